//! Module sources: fetches bundles from repositories, keeps them on the disk and in the cluster.
//!
//! ```text
//! repository ─▶ connector ─▶ http ─▶ archive ─▶ store ─▶ secrets
//!               addresses    limits  entries    blobs    cluster
//! ```

mod address;
mod archive;
mod cache;
mod connector;
mod crds;
mod fetch;
mod http;
mod permits;
mod secrets;
mod sources;
mod store;
mod tree;

pub use connector::{AuthoritiesError, Lookup, SystemLookup, Trust};
pub use crds::{CRDS, crds};
pub use fetch::{FetchMetrics, FetchObservation};
pub use sources::{Options, Restored, Sources};

/// Returns where the links to bundles are in the store directory, for the loader of modules.
pub fn active(directory: &std::path::Path) -> std::path::PathBuf {
    directory.join(store::ACTIVE)
}

//! Module sources: fetches bundles from repositories, keeps them on the disk and in the cluster.
//!
//! ```text
//! repository ─▶ connector ─▶ http ─▶ archive ─▶ store ─▶ secrets
//!               addresses    limits  entries    blobs    cluster
//!                              └─▶ git ─▶ pack ─┘
//! ```

mod address;
mod archive;
mod cache;
mod connector;
mod crds;
mod fetch;
mod git;
mod http;
mod observation;
mod pack;
mod permits;
mod publish;
mod secrets;
mod sources;
mod store;
mod tree;

pub use connector::{AuthoritiesError, Lookup, SystemLookup, Trust};
pub use crds::{CRDS, crds};
pub use observation::{FetchMetrics, FetchObservation};
pub use publish::{Inspected, Packed, index, inspect, pack};
pub use sources::{Options, Restored, Sources};

/// Returns where the links to bundles are in the store directory, for the loader of modules.
pub fn active(directory: &std::path::Path) -> std::path::PathBuf {
    directory.join(store::ACTIVE)
}

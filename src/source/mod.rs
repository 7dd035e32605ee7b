//! Module sources: fetches bundles from repositories, keeps them on the disk and in the cluster.
//!
//! ```text
//! repository ─▶ remote ──────▶ archive ─▶ store ─▶ secrets
//!               limits         entries    blobs    cluster
//!                 ├─▶ registry ─┤
//!                 └─▶ git ─▶ pack
//! ```

mod archive;
mod cache;
mod client;
mod crds;
mod disk_error;
mod fetch;
mod git;
mod gone;
mod keys;
mod links;
mod lint;
mod mirror;
mod pack;
mod publish;
mod push;
mod registry;
mod secrets;
mod sources;
mod store;
mod tree;
mod turns;
mod verification;

pub use client::{Client, ClientOptions};
pub use crds::{CRDS, crds, unknown_fields};
pub use mirror::{Copied, Destination, Part, mirror};
pub use publish::{Inspected, Packed, index, inspect, pack, pack_all};
pub use push::{Pushed, push};
pub use sources::{Options, Restored, Sources};

pub use crate::remote::{
    AuthoritiesError, FetchMetrics, FetchObservation, Lookup, SystemLookup, Trust, TrustOptions,
};

/// Returns where the links to bundles are in the store directory, for the loader of modules.
pub fn active(directory: &std::path::Path) -> std::path::PathBuf {
    directory.join(store::ACTIVE)
}

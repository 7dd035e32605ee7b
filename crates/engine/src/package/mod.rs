//! Charts from repositories: what objects and modules ask for, what repositories offer, and what is kept of it.
//!
//! ```text
//! ChartRepositorySpec ─▶ FetchedIndex        index maps
//! ChartSpec ─▶ ResolvedVersion ─▶ StoredPackage    maps and package
//! ChartReference ─▶ Pin ─▶ Package           what a module is installed from
//! ```
//!
//! All of it is plain data. The decisions are those of the machine `repository`.

mod key;
mod pin;
mod spec;
mod work;

pub use key::{RepositoryKey, RepositoryKind};
pub use pin::{ChartDependencies, ChartDependency, ChartReference, GivenUp, Package, Pin, Pins};
pub use spec::{ChartRepositorySpec, ChartSpec, ListedChart, MAX_CHARTS, MAX_VERSIONS, RepoGroupSpec};
pub use work::{
    ChartConfigMap, FetchedIndex, IndexRequest, IndexValidator, PackageDependency, RepositoryAccess,
    ResolveRequest, ResolvedChart, ResolvedVersion, StoreRequest, StoredPackage, Unresolved, VersionStep,
    WantedVersion,
};

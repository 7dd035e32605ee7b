//! Addons: modules that come as bundles from repositories. What configurations ask for, what fetching brings, and what
//! is registered.
//!
//! ```text
//! SourceSpec ─▶ Fetched ─▶ Registry ─▶ ModuleLink
//! object        network    cluster     files
//! ```
//!
//! All of it is plain data. The decisions are those of the machine `source`.

mod approvals;
mod bundle;
mod fetched;
mod key;
mod plan;
mod registry;
mod shown_url;
mod spec;
mod update;
mod withheld;

pub use approvals::Approvals;
pub(crate) use approvals::is_higher;
pub use bundle::{Bundle, BundleKind, Digest, ModuleLink, NotADigest};
pub use fetched::{
    AddonProblem, AddonReason, Fetched, FetchedAddon, FetchedRepository, RepositoryProblem, RepositoryReason,
};
pub use key::{SourceKey, SourceKind, SourceReference};
pub use plan::{PlannedChange, PlannedModule, SourcePlan};
pub(crate) use registry::sort;
pub use registry::{RegisteredAddon, RegisteredAddons, Registry, RegistryError};
pub(crate) use shown_url::shown_url;
pub use spec::{
    DeletionPolicy, FailurePolicy, Include, MAX_INCLUDES, MAX_REPOSITORIES, MAX_URL, RepositorySpec,
    SecretName, SourceSpec, SpecError, Verification,
};
pub use update::{Approval, UpdateWindow};
pub use withheld::{GivenUpBundle, HoldReason, WithheldVersion};

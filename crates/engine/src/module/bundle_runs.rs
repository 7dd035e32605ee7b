//! How a module does with the bundle that it has.

use super::{Modules, Phase};
use crate::addon::Digest;
use crate::name::ModuleName;

/// How a module does with the bundle that it has.
#[derive(Clone, Debug)]
pub(crate) struct BundleRuns {
    /// The bundle.
    pub(crate) digest: Digest,
    /// How many runs failed with it, without a success between them.
    pub(crate) failures: u32,
    /// Whether a run succeeded with it.
    pub(crate) is_good: bool,
    /// Whether the bundle that is to take its place can't be used, so that this one is in force still.
    pub(crate) is_unusable: bool,
}

impl Modules {
    /// Returns how a module does with the bundle that it has; `None` if it is not there, or comes from no bundle.
    pub(crate) fn bundle_runs(&self, name: &ModuleName) -> Option<BundleRuns> {
        let module = self.states.get(name).filter(|module| module.phase != Phase::Orphaned)?;
        Some(BundleRuns {
            digest: module.spec.origin.digest()?.clone(),
            failures: module.package_failures,
            is_good: module.is_package_good,
            is_unusable: module.broken_version.is_some(),
        })
    }
}

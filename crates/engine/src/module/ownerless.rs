//! What the list of releases said about modules that were not there when it was made: a bundle that was lost may come back.

use std::collections::BTreeSet;

use crate::name::ModuleName;
use crate::release_target::ReleaseTarget;

/// The modules of sources that were not there when releases were listed, and the releases that nobody had.
#[derive(Debug, Default)]
pub(super) struct Ownerless {
    /// The modules that were registered, and not there.
    missing: BTreeSet<ModuleName>,
    /// The places whose releases are known.
    listed: BTreeSet<ReleaseTarget>,
    releases: BTreeSet<(ModuleName, ReleaseTarget)>,
}

impl Ownerless {
    /// Begins with another list; `missing` are the modules that are registered, and not there.
    pub(super) fn new(missing: BTreeSet<ModuleName>) -> Self {
        Self { missing, ..Self::default() }
    }

    /// Records that the releases of a place are known.
    pub(super) fn listed(&mut self, target: &ReleaseTarget) {
        self.listed.insert(target.clone());
    }

    /// Returns whether the releases of a place are known.
    pub(super) fn is_listed(&self, target: &ReleaseTarget) -> bool {
        self.listed.contains(target)
    }

    /// Records a release whose module is not there.
    pub(super) fn found(&mut self, name: &ModuleName, target: &ReleaseTarget) {
        self.releases.insert((name.clone(), target.clone()));
    }

    /// Returns whether there is a release of a module that is not there.
    pub(super) fn has(&self, name: &ModuleName) -> bool {
        self.releases.iter().any(|(known, _)| known == name)
    }

    /// Forgets a release that is gone.
    pub(super) fn gone(&mut self, name: &ModuleName, target: &ReleaseTarget) {
        self.releases.remove(&(name.clone(), target.clone()));
    }

    /// Returns whether there may be a release of a module that is there from now on, and belongs to `target`.
    pub(super) fn take(&mut self, name: &ModuleName, target: &ReleaseTarget) -> bool {
        let was_missing = self.missing.remove(name);
        let is_found = self.releases.remove(&(name.clone(), target.clone()));
        is_found || (was_missing && !self.is_listed(target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missing_may_have_a_release_where_none_was_seen_to_be_absent() {
        let [a, b] = ["a", "b"].map(ReleaseTarget::of_namespace);
        let [web, db, log] = ["web", "db", "log"].map(ModuleName::from);
        let mut ownerless = Ownerless::new([web.clone(), db.clone()].into());
        ownerless.listed(&a);
        ownerless.found(&web, &a);
        ownerless.found(&log, &a);
        ownerless.gone(&log, &a);
        assert_eq!([&web, &log].map(|name| ownerless.take(name, &a)), [true, false]);
        // The list of the other place could not be had.
        assert_eq!([&web, &db, &log].map(|name| ownerless.take(name, &b)), [false, true, false]);
        // What came once is known from then on.
        assert_eq!([&web, &db].map(|name| ownerless.take(name, &a)), [false, false]);
    }
}

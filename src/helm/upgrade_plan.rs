//! What an upgrade has to do, by the history of its release. Pure.

use chart::record::Status;

/// One revision as its labels describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Revision {
    pub(super) version: u32,
    pub(super) status: Status,
}

/// What an upgrade does with the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UpgradePlan {
    /// The number of the new revision.
    pub(super) next: u32,
    /// Whether there is something to upgrade, or a first revision is made.
    pub(super) is_upgrade: bool,
    /// The revision that counts as the one before: the newest that was deployed, or
    /// the newest at all.
    pub(super) base: Option<u32>,
    /// Revisions whose objects may be in the cluster, the newest last.
    pub(super) previous: Vec<u32>,
    /// Revisions that were cut off; they are deleted.
    pub(super) cut_off: Vec<u32>,
    /// Revisions that a successful upgrade marks as superseded.
    pub(super) superseded: Vec<u32>,
    /// What the record of a failed revision says that is tried once more, in the place of a new one.
    pub(super) repeated: Option<String>,
}

impl UpgradePlan {
    /// Returns what to do; `history` is sorted by version.
    ///
    /// A revision that was cut off is forgotten, but its objects are adopted. The
    /// newest of several deployed ones counts. Objects of revisions that failed, or
    /// whose deletion was cut off, are adopted too.
    pub(super) fn of(history: &[Revision]) -> Self {
        let cut_off = versions(history, |revision| revision.status.is_pending());
        let settled: Vec<&Revision> =
            history.iter().filter(|revision| !revision.status.is_pending()).collect();
        let deployed = settled.iter().rev().find(|revision| revision.status == Status::Deployed);
        let base = deployed.or(settled.last()).copied();
        let previous = match base {
            Some(base) => versions(history, |revision| revision.version >= base.version),
            None => cut_off.clone(),
        };
        let superseded = versions(history, |revision| {
            revision.status == Status::Deployed || base.is_some_and(|base| base.version == revision.version)
        });
        Self {
            next: settled.last().map_or(0, |revision| revision.version).saturating_add(1),
            is_upgrade: base
                .is_some_and(|base| !matches!(base.status, Status::Uninstalled | Status::Uninstalling)),
            base: base.map(|base| base.version),
            previous,
            cut_off,
            superseded,
            repeated: None,
        }
    }

    /// Has the failed revision `version` tried once more; `description` is what its record says.
    pub(super) fn repeat(&mut self, version: u32, description: String) {
        self.next = version;
        self.superseded.retain(|superseded| *superseded != version);
        self.repeated = Some(description);
    }
}

fn versions(history: &[Revision], keep: impl Fn(&Revision) -> bool) -> Vec<u32> {
    history.iter().filter(|revision| keep(revision)).map(|revision| revision.version).collect()
}

/// Returns the revisions that are over the limit, the oldest first; 0 means no limit.
pub(super) fn over_limit(versions: &[u32], limit: usize) -> &[u32] {
    let over = if limit == 0 { 0 } else { versions.len().saturating_sub(limit) };
    versions.get(..over).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(statuses: &[(u32, Status)]) -> UpgradePlan {
        let history: Vec<Revision> = statuses
            .iter()
            .map(|(version, status)| Revision { version: *version, status: *status })
            .collect();
        UpgradePlan::of(&history)
    }

    #[test]
    fn a_first_revision_is_installed() {
        assert_eq!(plan(&[]), UpgradePlan { next: 1, ..UpgradePlan::default() });
    }

    #[test]
    fn f_a1_an_upgrade_that_was_cut_off_is_done_again() {
        let plan = plan(&[(1, Status::Superseded), (2, Status::Deployed), (3, Status::PendingUpgrade)]);
        assert_eq!(plan.next, 3);
        assert!(plan.is_upgrade);
        assert_eq!((plan.base, plan.cut_off, plan.superseded), (Some(2), vec![3], vec![2]));
        assert_eq!(plan.previous, [2, 3]);
    }

    #[test]
    fn f_a2_an_install_that_was_cut_off_is_done_again_over_its_objects() {
        let plan = plan(&[(1, Status::PendingInstall)]);
        assert_eq!((plan.next, plan.is_upgrade, plan.base), (1, false, None));
        assert_eq!((plan.previous, plan.cut_off), (vec![1], vec![1]));
    }

    #[test]
    fn f_a4_a_release_that_only_failed_is_upgraded() {
        let plan = plan(&[(1, Status::Failed), (2, Status::Failed)]);
        assert_eq!((plan.next, plan.is_upgrade, plan.base), (3, true, Some(2)));
        assert_eq!((plan.previous, plan.superseded), (vec![2], vec![2]));
    }

    #[test]
    fn f_a5_of_two_deployed_revisions_the_newest_counts() {
        let plan = plan(&[(1, Status::Deployed), (2, Status::Deployed), (3, Status::Failed)]);
        assert_eq!((plan.next, plan.base), (4, Some(2)));
        assert_eq!((plan.previous, plan.superseded), (vec![2, 3], vec![1, 2]));
    }

    #[test]
    fn a_release_whose_deletion_was_cut_off_is_installed_over_what_is_left() {
        let plan = plan(&[(4, Status::Uninstalling)]);
        assert_eq!((plan.next, plan.is_upgrade, plan.previous), (5, false, vec![4]));
    }

    #[test]
    fn the_oldest_revisions_are_over_the_limit() {
        assert_eq!(over_limit(&[1, 2, 3], 2), [1]);
        assert!(over_limit(&[1, 2, 3], 0).is_empty());
        assert!(over_limit(&[1], 10).is_empty());
    }
}

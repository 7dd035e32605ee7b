//! Whether the last revision of a release says that there is nothing to do, or nothing new.

use chart::record::{Record, Status};
use engine::{ReleaseAction, ReleaseOutcome};

use super::error::ReleaseError;
use super::first_list::{History, Standing};
use super::storage::{CHECKSUM, StoredRevision};
use super::upgrade::{Upgrade, outcome};
use super::{Helm, LastRelease};

impl Helm {
    /// Asks for the records of a release.
    pub(super) async fn read_history(&self, name: &str) -> Result<History, ReleaseError> {
        Ok(History { revisions: self.storage.history(name).await?, is_read: true })
    }

    /// Returns the outcome if the revision that stands says that there is nothing to do. `is_read` says whether the
    /// records were asked for just now.
    pub(super) async fn settled(
        &self,
        upgrade: &Upgrade<'_>,
        standing: &Standing,
        is_read: bool,
        watched: bool,
    ) -> Result<Option<ReleaseOutcome>, ReleaseError> {
        let name = upgrade.name;
        let last = LastRelease {
            checksum: standing.checksum.clone(),
            revision: standing.version,
            maintenance: standing.maintenance,
            origin: standing.origin.clone(),
            written: vec![standing.written.clone()],
        };
        if upgrade.maintenance && standing.maintenance {
            self.last_releases.set(name, Some(last));
            return Ok(Some(self.unmanaged(name)));
        }
        let same = standing.checksum == upgrade.checksum && standing.maintenance == upgrade.maintenance;
        if !same || !watched {
            return Ok(None);
        }
        // From here on what others do to the records is noticed.
        self.last_releases.set(name, Some(last));
        let is_readable = self.is_readable(name, standing, is_read).await;
        if let Ok(true) = is_readable {
            self.mark_origin(upgrade, standing).await?;
            return Ok(Some(outcome(ReleaseAction::Unchanged, standing.version, &upgrade.checksum)));
        }
        self.last_releases.set(name, None);
        is_readable.map(|_| None)
    }

    pub(super) fn unmanaged(&self, name: &str) -> ReleaseOutcome {
        let last = self.last_releases.get(name);
        let revision = last.as_ref().map_or(0, |last| last.revision);
        outcome(ReleaseAction::Unmanaged, revision, last.as_ref().map_or("", |last| &last.checksum))
    }

    /// Returns the last revision of a guest's release if it failed and nothing changed since then: it is tried again and again,
    /// since rights may come at any time, and a revision for each attempt would only fill the namespace of the guest. Whatever
    /// the attempts write is in the manifest of that revision.
    pub(super) async fn failed_attempt(
        &self,
        upgrade: &Upgrade<'_>,
        last: Option<&StoredRevision>,
    ) -> Result<Option<Record>, ReleaseError> {
        let is_same = |stored: &&StoredRevision| {
            stored.status == Status::Failed && stored.label(CHECKSUM) == Some(&*upgrade.checksum)
        };
        let Some(last) = last.filter(is_same).filter(|_| self.guest.is_some()) else { return Ok(None) };
        match self.storage.read(upgrade.name, last.version).await {
            Err(ReleaseError::Record { .. }) => Ok(None),
            outcome => outcome,
        }
    }

    /// Marks a release that stays as it is with what its module and its chart come from now, if it has another mark.
    async fn mark_origin(&self, upgrade: &Upgrade<'_>, standing: &Standing) -> Result<(), ReleaseError> {
        let origin = upgrade.origin.labels();
        if standing.origin == origin {
            return Ok(());
        }
        let written = self.storage.mark_origin(upgrade.name, standing.version, &upgrade.origin).await?;
        let last = LastRelease {
            checksum: standing.checksum.clone(),
            revision: standing.version,
            maintenance: standing.maintenance,
            origin,
            written: vec![standing.written.clone(), written],
        };
        self.last_releases.set(upgrade.name, Some(last));
        Ok(())
    }

    /// Reports whether the record of a revision can be read: the labels of one that was cut are whole. It is read once,
    /// and watched from then on.
    async fn is_readable(
        &self,
        name: &str,
        standing: &Standing,
        is_read: bool,
    ) -> Result<bool, ReleaseError> {
        if !is_read && self.first_list.is_readable(name, standing).await? {
            return Ok(true);
        }
        match self.storage.read(name, standing.version).await {
            Ok(record) => Ok(record.is_some()),
            Err(error @ ReleaseError::Record { .. }) => {
                tracing::warn!(release = name, "{error}; a new revision takes its place");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

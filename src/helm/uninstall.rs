//! Removing releases.

use chart::manifest::HookEvent;
use chart::manifest::order;
use chart::record::{Record, Status, Time};
use engine::{ReleaseAction, ReleaseOutcome};
use jiff::Timestamp;

use super::Helm;
use super::error::ReleaseError;
use super::object::{self, Object};
use super::plan::Plan;
use super::storage::Stored;

impl Helm {
    /// Deletes the objects of a release, then its history. Cut off at any request, the
    /// next call goes on.
    pub(super) async fn uninstall_release(&self, name: &str) -> Result<ReleaseOutcome, ReleaseError> {
        self.drift.pause(name);
        self.remember(name, None);
        let history = self.storage.history(name).await?;
        if history.is_empty() {
            return Ok(ReleaseOutcome {
                action: ReleaseAction::Absent,
                revision: 0,
                checksum: 0,
                changed: None,
            });
        }
        let revisions: Vec<_> = history.iter().map(Stored::revision).collect();
        let plan = Plan::of(&revisions);
        let mut records = self.previous(name, &plan).await?;
        let mut objects: Vec<Object> = Vec::new();
        for record in records.iter().rev() {
            for object in object::of_record(&record.manifest) {
                let key = object.key(&self.settings.namespace);
                if !objects.iter().any(|known| known.key(&self.settings.namespace) == key) {
                    objects.push(object);
                }
            }
        }
        order::sort(&mut objects, order::UNINSTALL, |object| &object.kind);
        // The newest record says how the release is removed; without one that can be
        // read there are no hooks.
        if let Some(record) = records.last_mut() {
            self.begin_deletion(record).await?;
            if history.last().is_some_and(Stored::skips_hooks) {
                tracing::info!(release = name, "the hooks of the deletion are passed over, as a label says");
                record.hooks.clear();
            }
            self.hooks().run(HookEvent::PreDelete, &mut record.hooks).await?;
        }
        self.applier(name).delete(objects.iter()).await?;
        if let Some(record) = records.last_mut() {
            self.hooks().run(HookEvent::PostDelete, &mut record.hooks).await?;
        }
        // The newest goes last: until then the next look finds what is left to do.
        for stored in &history {
            self.storage.delete(name, stored.version).await?;
        }
        Ok(ReleaseOutcome { action: ReleaseAction::Uninstalled, revision: 0, checksum: 0, changed: None })
    }

    async fn begin_deletion(&self, record: &mut Record) -> Result<(), ReleaseError> {
        let now = Timestamp::now();
        record.info.status = Status::Uninstalling;
        record.info.deleted = Time(Some(now));
        "Deletion in progress (or silently failed)".clone_into(&mut record.info.description);
        self.storage.update(record, &std::collections::BTreeMap::new(), now.as_second()).await
    }
}

//! Adoption of releases that `helm` or another operator wrote, and that are already as the chart says.

use std::collections::BTreeMap;

use chart::record::{HookRecord, Status};
use engine::{ReleaseAction, ReleaseOutcome};

use super::error::ReleaseError;
use super::object;
use super::storage::StoredRevision;
use super::upgrade::{Upgrade, outcome};
use super::{Helm, LastRelease, object_diff};

impl Helm {
    /// Reports whether the last revision stands and is not one of ours.
    pub(super) fn is_foreign(&self, history: &[StoredRevision]) -> bool {
        let deployed = history.iter().filter(|stored| stored.status == Status::Deployed).count();
        let newest = history.last().filter(|newest| newest.status == Status::Deployed);
        deployed == 1 && newest.is_some_and(|newest| !self.storage.is_ours(newest))
    }

    /// Adopts the last revision of `history` as it is, if it has the objects and hooks
    /// that the chart renders to for that revision: only its labels are written.
    pub(super) async fn adopt(
        &self,
        upgrade: &Upgrade<'_>,
        history: &[StoredRevision],
        labels: &BTreeMap<String, String>,
    ) -> Result<Option<ReleaseOutcome>, ReleaseError> {
        let Some(newest) = history.last() else { return Ok(None) };
        let record = match self.storage.read(upgrade.name, newest.version).await {
            Ok(Some(record)) => record,
            // A new revision takes the place of one that says nothing.
            Ok(None) | Err(ReleaseError::Record { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let rendered = self
            .render_chart(upgrade.loaded, upgrade.name, upgrade.values, newest.version, newest.version > 1)
            .await?;
        let before = object::of_record(&record.manifest);
        let objects = object::of_manifests(&object::labelled(rendered.manifests, labels)?)?;
        let own: Vec<HookRecord> = rendered.hooks.iter().map(HookRecord::from).collect();
        let is_same = object_diff::is_none(&before, &objects, &self.settings.namespace)
            && canonical(&record.hooks) == canonical(&own);
        if !is_same {
            return Ok(None);
        }
        let written = self.storage.mark(upgrade.name, newest.version, &upgrade.marks(None)).await?;
        tracing::info!(
            release = upgrade.name,
            revision = newest.version,
            "the release was written by somebody else, is as the module says, and is taken over"
        );
        let last = LastRelease {
            checksum: upgrade.checksum.clone(),
            revision: newest.version,
            maintenance: upgrade.maintenance,
            origin: upgrade.origin.labels(),
            written: vec![written],
        };
        self.last_releases.set(upgrade.name, Some(last));
        Ok(Some(outcome(ReleaseAction::Unchanged, newest.version, &upgrade.checksum)))
    }
}

/// Returns what counts of hooks, in an order that does not depend on how they were rendered.
fn canonical(hooks: &[HookRecord]) -> Vec<(String, String)> {
    let mut canonical: Vec<(String, String)> = hooks
        .iter()
        .map(|hook| {
            let object = values::yaml::parse(&hook.manifest).unwrap_or_default().to_string();
            (format!("{} {}", hook.kind, hook.name), object)
        })
        .collect();
    canonical.sort();
    canonical
}

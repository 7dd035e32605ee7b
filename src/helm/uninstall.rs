//! Removing releases.

use chart::manifest::HookEvent;
use chart::manifest::order;
use chart::record::{Record, Status, Time};
use engine::{ReleaseAction, ReleaseOutcome};
use jiff::Timestamp;
use serde_json::Value;

use super::cancellation::Cancellation;
use super::error::ReleaseError;
use super::marks::Marks;
use super::object::{self, Object};
use super::storage::StoredRevision;
use super::upgrade::outcome;
use super::upgrade_plan::UpgradePlan;
use super::{Guest, Helm};
use crate::cluster::Resource;

impl Helm {
    /// Deletes the objects of a release, then its history. Cut off at any request, the
    /// next call goes on.
    pub(super) async fn uninstall_release(
        &self,
        name: &str,
        cancellation: &Cancellation,
    ) -> Result<ReleaseOutcome, ReleaseError> {
        let is_done = match self.command.get() {
            Some(command) => self.uninstall_by_command(command, name, cancellation).await,
            None => Ok(false),
        };
        let removed = match is_done {
            Ok(true) => Ok(outcome(ReleaseAction::Uninstalled, 0, "")),
            Ok(false) => self.remove(name, cancellation).await,
            Err(error) => Err(error),
        };
        match removed {
            Err(_) if self.is_namespace_going().await => {
                tracing::info!(release = name, "the release goes with its namespace");
                Ok(outcome(ReleaseAction::Absent, 0, ""))
            }
            outcome => outcome,
        }
    }

    /// Returns whether the namespace in which somebody else's rights count is going, and those rights with it: then what is
    /// in it goes, too.
    async fn is_namespace_going(&self) -> bool {
        let Some(Guest { operator, .. }) = &self.guest else { return false };
        match operator.get(&format!("/api/v1/namespaces/{}", self.settings.namespace)).await {
            Ok(namespace) => {
                namespace.is_none_or(|namespace| namespace.pointer("/metadata/deletionTimestamp").is_some())
            }
            Err(_) => false,
        }
    }

    async fn remove(&self, name: &str, cancellation: &Cancellation) -> Result<ReleaseOutcome, ReleaseError> {
        self.objects.pause(name);
        self.last_releases.set(name, None);
        self.first_list.pass_by(name);
        let history = self.storage.history(name).await?;
        if history.is_empty() {
            return Ok(outcome(ReleaseAction::Absent, 0, ""));
        }
        let revisions: Vec<_> = history.iter().map(StoredRevision::revision).collect();
        let plan = UpgradePlan::of(&revisions);
        let mut records = self.previous(name, &plan).await?;
        let mut left = Vec::new();
        if records.len() < plan.previous.len() {
            left = self.left_over(name).await?;
        }
        if records.is_empty() {
            records.extend(self.older(name, &history).await?);
        }
        let recorded = records.iter().rev().flat_map(|record| object::of_record(&record.manifest));
        let mut objects: Vec<Object> = Vec::new();
        for object in recorded.chain(left) {
            let key = object.key(&self.settings.namespace);
            if !objects.iter().any(|known| known.key(&self.settings.namespace) == key) {
                objects.push(object);
            }
        }
        order::sort(&mut objects, order::UNINSTALL, |object| &object.kind);
        // The newest record says how the release is removed; without one that can be
        // read there are no hooks.
        if let Some(record) = records.last_mut() {
            self.begin_deletion(record).await?;
            if history.last().is_some_and(StoredRevision::skips_hooks) {
                tracing::info!(release = name, "the hooks of the deletion are passed over, as a label says");
                record.hooks.clear();
            }
            self.hooks(cancellation).run(HookEvent::PreDelete, &mut record.hooks).await?;
        }
        self.applier(name).delete(objects.iter()).await?;
        if let Some(record) = records.last_mut() {
            self.hooks(cancellation).run(HookEvent::PostDelete, &mut record.hooks).await?;
        }
        // Modules of sources may have credentials; others cost no request.
        if history.iter().any(StoredRevision::has_source) {
            self.remove_credentials(name).await?;
        }
        // The newest is deleted last: until then the next attempt finds what is left to do.
        for stored in &history {
            self.storage.delete(name, stored).await?;
        }
        Ok(outcome(ReleaseAction::Uninstalled, 0, ""))
    }

    /// Returns the newest record that can be read.
    async fn older(&self, name: &str, history: &[StoredRevision]) -> Result<Option<Record>, ReleaseError> {
        for stored in history.iter().rev() {
            match self.storage.read(name, stored.version).await {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) | Err(ReleaseError::Record { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Looks through all kinds of the cluster for the objects that are marked as those of a
    /// release whose records do not say which they are.
    async fn left_over(&self, name: &str) -> Result<Vec<Object>, ReleaseError> {
        tracing::warn!(release = name, "the objects of the release are looked for by their annotations");
        let kinds = self.discovery.all().await;
        let kinds = kinds.map_err(|source| ReleaseError::of_kind("release", "objects", name, source))?;
        let selector = format!("{}={}", object::MANAGED.0, object::MANAGED.1);
        let can = |kind: &Resource, verb: &str| kind.verbs.iter().any(|own| own == verb);
        let mut found = Vec::new();
        for kind in kinds.iter().filter(|kind| kind.preferred && can(kind, "list") && can(kind, "delete")) {
            match self.requests.list_metadata(&kind.path(None), &selector).await {
                Ok(listed) => {
                    let own = listed
                        .into_iter()
                        .filter(|item| object::is_of(&item.annotations, name, &self.settings.namespace));
                    found.extend(own.map(|item| Object {
                        path: "a chart that can not be read".to_owned(),
                        api_version: kind.api_version(),
                        kind: kind.kind.clone(),
                        name: item.name,
                        namespace: item.namespace,
                        value: Value::Null,
                    }));
                }
                // What may not be listed was not written either, or its kind is gone by now.
                Err(error) if matches!(error.code(), 403..=405) => {
                    tracing::warn!(
                        release = name,
                        "objects of kind {} are not looked for: {error}",
                        kind.kind
                    );
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }

    async fn begin_deletion(&self, record: &mut Record) -> Result<(), ReleaseError> {
        let now = Timestamp::now();
        record.info.status = Status::Uninstalling;
        record.info.deleted = Time(Some(now));
        "Deletion in progress (or silently failed)".clone_into(&mut record.info.description);
        self.storage.update(record, &Marks::default(), now.as_second()).await.map(|_| ())
    }
}

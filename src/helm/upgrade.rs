//! Installing and upgrading.
//!
//! It is long because the steps of one revision stand here in their order, and nowhere else.

use std::collections::BTreeMap;

use chart::manifest::{self, HookEvent, Manifest};
use chart::record::{self, HookRecord, Info, Record, Status, Time};
use chart::render::Rendered;
use engine::view::Secrets;
use engine::{ApplyMode, ReleaseAction, ReleaseOutcome};
use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;

use super::apply::{Applier, WriteOutcome};
use super::cancellation::Cancellation;
use super::chart_cache::LoadedChart;
use super::chart_hook::ChartHooks;
use super::error::ReleaseError;
use super::first_list::{History, Known};
use super::marks::{Marks, Origin};
use super::object::{self, Key, Object};
use super::record_parts::EncodedRecord;
use super::storage::{CHECKSUM, MAINTENANCE, StoredRevision, carried};
use super::upgrade_plan::{UpgradePlan, over_limit};
use super::{Helm, LastRelease, ReleaseRun, object_diff, server_side};
use crate::cluster::Resource;

/// One revision of a release, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The number of the revision, counted from 1.
    pub version: u32,
    /// The state that its record has.
    pub status: Status,
    /// The checksum of what was rendered, if it is ours.
    pub checksum: Option<String>,
    /// Seconds since 1970 of the last change.
    pub changed: Option<i64>,
}

impl From<&StoredRevision> for Revision {
    fn from(stored: &StoredRevision) -> Self {
        let seconds = |name: &str| stored.label(name).and_then(|text| text.parse().ok());
        Self {
            version: stored.version,
            status: stored.status,
            checksum: stored.label(CHECKSUM).map(str::to_owned),
            changed: seconds("modifiedAt").or_else(|| seconds("createdAt")),
        }
    }
}

/// What one upgrade is about.
pub(super) struct Upgrade<'u> {
    pub(super) name: &'u str,
    pub(super) loaded: &'u LoadedChart,
    pub(super) values: &'u Map<String, Value>,
    /// What no line of the log quotes.
    secret: &'u Secrets<'static>,
    pub(super) maintenance: bool,
    /// Whether it may be begun.
    is_recorded: bool,
    /// How its objects are written.
    pub(super) mode: ApplyMode,
    /// What marks the release.
    pub(super) origin: Origin,
    pub(super) checksum: String,
    /// What was rendered to see whether anything changed, as it was rendered and with labels.
    pub(super) checked: (&'u [Manifest], &'u [Manifest]),
    pub(super) cancellation: &'u Cancellation,
}

impl Upgrade<'_> {
    /// Returns what is written on the record of a new revision, behind the revision `last`.
    pub(super) fn marks(&self, last: Option<&StoredRevision>) -> Marks {
        let mut labels = last.map(carried).unwrap_or_default();
        labels.insert(CHECKSUM.to_owned(), self.checksum.clone());
        labels.insert(MAINTENANCE.to_owned(), self.maintenance.to_string());
        Marks { labels, origin: self.origin.clone() }
    }

    /// Tells of the first thing that a revision changes. A chart can make names of values.
    pub(super) fn tell_change(&self, plan: &UpgradePlan, change: Option<&str>) {
        if let Some(change) = change {
            let change = self.secret.hide(change);
            tracing::info!(release = self.name, revision = plan.next, "the release changes: {change}");
        }
    }
}

impl Helm {
    pub(super) async fn upgrade_module(
        &self,
        &ReleaseRun { module, values: read, maintenance, source, is_recorded }: &ReleaseRun<'_>,
        values: &Map<String, Value>,
        cancellation: &Cancellation,
    ) -> Result<ReleaseOutcome, ReleaseError> {
        let name = module.name.as_str();
        chart::release_name(name)?;
        if maintenance && self.last_releases.get(name).is_some_and(|last| last.maintenance) {
            return Ok(self.unmanaged(name));
        }
        let loaded = self.charts.load(module).await?;
        let labels = self.object_labels(maintenance);
        let checked = self.render_checked(&loaded, name, values).await?;
        let _place = self.place(&checked, cancellation).await?;
        let checked = checked.manifests;
        let manifests = object::labelled(checked.clone(), &labels)?;
        let checksum = checksum(&manifests, module.settings.apply);
        let upgrade = Upgrade {
            name,
            loaded: &loaded,
            values,
            secret: &read.secret,
            maintenance,
            is_recorded,
            mode: module.settings.apply,
            origin: Origin::of(source, module.package.as_deref()),
            checksum,
            checked: (&checked, &manifests),
            cancellation,
        };
        let watched = self.objects.is_intact(name).await;
        if watched && let Some(unchanged) = self.unchanged(&upgrade) {
            return Ok(unchanged);
        }
        let (mut known, mut history) = (self.first_list.take(name).await?, History::default());
        if known == Known::Unknown {
            history = self.read_history(name).await?;
            known = Known::of(&history.revisions, |stored| self.storage.is_ours(stored));
        }
        if !is_recorded && known != Known::Absent {
            return Ok(outcome(ReleaseAction::Unrecorded, 0, ""));
        }
        let mut settled = None;
        if let Known::Stands(standing) = &known {
            settled = self.settled(&upgrade, standing, history.is_read, watched).await?;
        }
        if settled.is_none() && known != Known::Absent && !history.is_read {
            history = self.read_history(name).await?;
        }
        let is_adopted = settled.is_none() && watched && self.is_foreign(&history.revisions);
        if is_adopted {
            settled = self.adopt(&upgrade, &history.revisions, &labels).await?;
        }
        if let Some(outcome) = settled {
            let objects = object::of_manifests(&manifests)?;
            let objects = self.collections(&objects).await;
            if outcome.action != ReleaseAction::Unchanged || is_adopted {
                self.objects.track(name, objects, false);
                return Ok(outcome);
            }
            // Objects may have been deleted before the watch began.
            if self.objects.is_complete(name, objects).await {
                return Ok(outcome);
            }
            if !history.is_read {
                history = self.read_history(name).await?;
            }
        }
        self.objects.pause(name);
        self.last_releases.set(name, None);
        self.revise(&upgrade, history, &labels).await
    }

    /// Creates a revision behind the last one that there is.
    async fn revise(
        &self,
        upgrade: &Upgrade<'_>,
        mut history: History,
        labels: &BTreeMap<String, String>,
    ) -> Result<ReleaseOutcome, ReleaseError> {
        loop {
            if let Some(outcome) = self.create_revision(upgrade, &history, labels).await? {
                return Ok(outcome);
            }
            // Somebody has written a record since the list.
            history = self.read_history(upgrade.name).await?;
        }
    }

    /// Waits for a place among the runs of large charts, if this is one of a namespace.
    async fn place(
        &self,
        rendered: &Rendered,
        cancellation: &Cancellation,
    ) -> Result<Option<OwnedSemaphorePermit>, ReleaseError> {
        if self.guest.is_none() {
            return Ok(None);
        }
        tokio::select! {
            biased;
            place = self.guest_places.run(rendered) => Ok(place),
            () = cancellation.requested() => Err(ReleaseError::Cancelled),
        }
    }

    /// Returns that nothing changed since this process made the last revision, if that is so.
    fn unchanged(&self, upgrade: &Upgrade<'_>) -> Option<ReleaseOutcome> {
        let is_it = |last: &LastRelease| {
            last.checksum == upgrade.checksum
                && last.maintenance == upgrade.maintenance
                && last.origin == upgrade.origin.labels()
        };
        let last = self.last_releases.get(upgrade.name).filter(is_it)?;
        Some(outcome(ReleaseAction::Unchanged, last.revision, &last.checksum))
    }

    /// Creates a revision: renders, applies, and records the outcome. Returns none, and has done nothing, if a record is
    /// there that a list did not show.
    async fn create_revision(
        &self,
        upgrade: &Upgrade<'_>,
        history: &History,
        labels: &BTreeMap<String, String>,
    ) -> Result<Option<ReleaseOutcome>, ReleaseError> {
        let History { revisions: history, is_read } = history;
        let revisions: Vec<_> = history.iter().map(StoredRevision::revision).collect();
        let mut plan = UpgradePlan::of(&revisions);
        if let Some(failed) = self.failed_attempt(upgrade, history.last()).await? {
            plan.repeat(failed.version, failed.info.description);
        }
        let rendered = self.render_next(upgrade, &plan, labels).await?;
        let objects = object::of_manifests(&rendered.manifests)?;
        object::check_duplicates(&objects, &self.settings.namespace)?;
        let applier = self.applier(upgrade.name);
        self.create_crds_of_dependencies(&rendered.crds).await?;
        applier.check_kinds(&objects).await?;
        let previous = self.previous(upgrade.name, &plan).await?;
        let before: Vec<Object> =
            previous.iter().flat_map(|record| object::of_record(&record.manifest)).collect();
        self.check_readable(upgrade.name, &objects, &rendered.hooks, &before).await?;
        if !upgrade.is_recorded {
            // All that can be wrong without a write is looked at by now.
            return Ok(Some(outcome(ReleaseAction::Unrecorded, 0, "")));
        }
        if let Some(done) = self.by_command(upgrade, (&plan, &rendered, &objects, &before, history)).await? {
            return Ok(Some(done));
        }
        let mut record = self.new_record(upgrade, &plan, &rendered, &previous)?;
        let marks = upgrade.marks(history.last());
        // A record that fits no Secret is refused before anything is touched.
        let data = self.storage.encode(&record)?;
        if upgrade.cancellation.is_requested() {
            return Err(ReleaseError::Cancelled);
        }
        self.storage.delete_all(upgrade.name, history, &plan.cut_off).await?;
        let mut written = Vec::new();
        if plan.repeated.is_none() {
            let begun = self.begin_revision(&mut plan, &mut record, data, &marks, *is_read).await?;
            let Some(begun) = begun else { return Ok(None) };
            written.push(begun);
        }
        let change =
            object_diff::first(&before, &objects, &self.settings.namespace).filter(|_| plan.is_upgrade);
        upgrade.tell_change(&plan, change.as_deref());
        let mut done = self.carry_out(&plan, &mut record, &objects, &before, upgrade.cancellation).await;
        if done.is_ok()
            && let Err(error) = self.supersede(upgrade.name, history, (&plan, &previous)).await
        {
            done = Err(error);
        }
        let wrote = match self.finish(upgrade, &plan, record, &marks, done).await {
            Ok((last, wrote)) => {
                written.push(last);
                wrote
            }
            Err(error) => {
                self.purge_behind_failure(upgrade.name, history, &plan).await;
                return Err(error);
            }
        };
        self.purge(upgrade.name, history, &plan).await?;
        self.track(upgrade.name, &objects).await;
        let last = LastRelease {
            checksum: upgrade.checksum.clone(),
            revision: plan.next,
            maintenance: upgrade.maintenance,
            origin: upgrade.origin.labels(),
            written,
        };
        self.last_releases.set(upgrade.name, Some(last));
        let action = if plan.is_upgrade { ReleaseAction::Upgraded } else { ReleaseAction::Installed };
        let done = outcome(action, plan.next, &upgrade.checksum);
        let changed = change.or(wrote.lacked).filter(|_| plan.is_upgrade);
        Ok(Some(ReleaseOutcome { changed, taken_over: self.taken_over.take(upgrade.name), ..done }))
    }

    /// Deletes old revisions: attempts that fail again and again must not fill the namespace.
    async fn purge_behind_failure(&self, name: &str, history: &[StoredRevision], plan: &UpgradePlan) {
        if let Err(kept) = self.purge(name, history, plan).await {
            tracing::warn!(release = name, "old revisions were not deleted: {kept}");
        }
    }

    /// Renders the next revision, with labels.
    async fn render_next(
        &self,
        upgrade: &Upgrade<'_>,
        plan: &UpgradePlan,
        labels: &BTreeMap<String, String>,
    ) -> Result<Rendered, ReleaseError> {
        // An install is the first revision to its templates, whatever number it gets.
        let shown = if plan.is_upgrade { plan.next } else { 1 };
        let mut rendered = self
            .render_revision(upgrade.loaded, upgrade.name, upgrade.values, shown, plan.is_upgrade)
            .await?;
        let (checked, checked_labelled) = upgrade.checked;
        if rendered.manifests == checked {
            // Most charts render the same for each revision.
            rendered.manifests = checked_labelled.to_vec();
        } else {
            object::label_manifests(&mut rendered.manifests, labels)?;
        }
        Ok(rendered)
    }

    pub(super) fn applier<'a>(&'a self, release: &'a str) -> Applier<'a> {
        Applier {
            requests: &self.requests,
            discovery: &self.discovery,
            release,
            namespace: &self.settings.namespace,
            taken_over: &self.taken_over,
            mode: ApplyMode::Client,
        }
    }

    pub(super) fn hooks<'a>(&'a self, cancellation: &'a Cancellation) -> ChartHooks<'a> {
        ChartHooks {
            requests: &self.requests,
            discovery: &self.discovery,
            namespace: &self.settings.namespace,
            timeout: self.settings.timeout,
            cancellation,
        }
    }

    /// Reads the records whose objects may be in the cluster, the newest last. One that
    /// can't be read is skipped: the new one replaces it.
    pub(super) async fn previous(&self, name: &str, plan: &UpgradePlan) -> Result<Vec<Record>, ReleaseError> {
        let mut previous = Vec::new();
        for version in &plan.previous {
            match self.storage.read(name, *version).await {
                Ok(record) => previous.extend(record),
                Err(error @ ReleaseError::Record { .. }) => tracing::warn!(release = name, "{error}"),
                Err(error) => return Err(error),
            }
        }
        Ok(previous)
    }

    fn new_record(
        &self,
        upgrade: &Upgrade<'_>,
        plan: &UpgradePlan,
        rendered: &Rendered,
        previous: &[Record],
    ) -> Result<Record, ReleaseError> {
        let now = Time(Some(Timestamp::now()));
        let first = previous.first().map(|record| record.info.first_deployed).filter(|time| time.0.is_some());
        let (status, description) = if plan.is_upgrade {
            (Status::PendingUpgrade, "Preparing upgrade")
        } else {
            (Status::PendingInstall, "Initial install underway")
        };
        Ok(Record {
            name: upgrade.name.to_owned(),
            info: Info {
                first_deployed: first.unwrap_or(now),
                last_deployed: now,
                deleted: Time(None),
                description: description.to_owned(),
                status,
                notes: rendered.notes.clone(),
            },
            chart: Some(record::stored_chart(&rendered.chart)?),
            config: record::stored_config(upgrade.values)?,
            manifest: manifest::join(&rendered.manifests),
            hooks: rendered.hooks.iter().map(HookRecord::from).collect(),
            version: plan.next,
            namespace: self.settings.namespace.clone(),
            apply_method: server_side::method(upgrade.mode).to_owned(),
            parts: None,
        })
    }

    async fn carry_out(
        &self,
        plan: &UpgradePlan,
        record: &mut Record,
        objects: &[Object],
        before: &[Object],
        cancellation: &Cancellation,
    ) -> Result<WriteOutcome, ReleaseError> {
        let (pre, post) = if plan.is_upgrade {
            (HookEvent::PreUpgrade, HookEvent::PostUpgrade)
        } else {
            (HookEvent::PreInstall, HookEvent::PostInstall)
        };
        let name = record.name.clone();
        let applier = Applier { mode: server_side::mode_of(record), ..self.applier(&name) };
        let hooks = self.hooks(cancellation);
        hooks.run(pre, &mut record.hooks).await?;
        let writing = async {
            let wrote = applier.apply(objects, before).await?;
            applier.delete_gone(before, objects).await?;
            Ok(wrote)
        };
        let wrote = tokio::select! {
            biased;
            wrote = writing => wrote,
            () = cancellation.requested() => Err(ReleaseError::Cancelled),
        }?;
        hooks.run(post, &mut record.hooks).await?;
        Ok(wrote)
    }

    /// Records the outcome, and returns which write that is with what was written. The failure of the upgrade goes before that of the writing.
    async fn finish(
        &self,
        upgrade: &Upgrade<'_>,
        plan: &UpgradePlan,
        mut record: Record,
        marks: &Marks,
        done: Result<WriteOutcome, ReleaseError>,
    ) -> Result<(String, WriteOutcome), ReleaseError> {
        let now = Timestamp::now().as_second();
        match done {
            Ok(wrote) => {
                record.info.status = Status::Deployed;
                let description = if plan.is_upgrade { "Upgrade complete" } else { "Install complete" };
                description.clone_into(&mut record.info.description);
                Ok((self.storage.update(&record, marks, now).await?, wrote))
            }
            Err(error) => {
                record.info.status = Status::Failed;
                let what = if plan.is_upgrade { "Upgrade" } else { "Release" };
                record.info.description = format!("{what} {:?} failed: {error}", upgrade.name);
                if plan.repeated.as_ref() == Some(&record.info.description) {
                    return Err(error);
                }
                if let Err(unwritten) = self.storage.update(&record, marks, now).await {
                    tracing::warn!(release = upgrade.name, "the failure was not written down: {unwritten}");
                }
                Err(error)
            }
        }
    }

    /// Marks the revisions before the new one as superseded. Those that somebody deleted meanwhile stay deleted.
    pub(super) async fn supersede(
        &self,
        name: &str,
        history: &[StoredRevision],
        (plan, previous): (&UpgradePlan, &[Record]),
    ) -> Result<(), ReleaseError> {
        for version in &plan.superseded {
            let read = previous.iter().find(|record| record.version == *version);
            let record = match read {
                Some(record) => Some(record.clone()),
                None => match self.storage.read(name, *version).await {
                    Ok(record) => record,
                    Err(ReleaseError::Record { .. }) => None,
                    Err(error) => return Err(error),
                },
            };
            match record {
                Some(mut record) => {
                    if record.info.status == Status::Uninstalled {
                        "superseded by new release".clone_into(&mut record.info.description);
                    }
                    record.info.status = Status::Superseded;
                    let now = Timestamp::now().as_second();
                    match self.storage.update(&record, &Marks::default(), now).await {
                        Ok(_) => {}
                        Err(ReleaseError::Request(error)) if error.code() == 404 => {}
                        Err(error) => return Err(error),
                    }
                }
                // Nobody can read it, and it would count as deployed for ever.
                None => self.storage.delete_all(name, history, &[*version]).await?,
            }
        }
        Ok(())
    }

    /// Writes the record of the new revision and returns which write that is. If a record
    /// without labels, which no list shows, has its number, the next number is used; none is returned if the records were
    /// not asked for, because then it may have labels.
    async fn begin_revision(
        &self,
        plan: &mut UpgradePlan,
        record: &mut Record,
        mut data: EncodedRecord,
        marks: &Marks,
        is_read: bool,
    ) -> Result<Option<String>, ReleaseError> {
        const NUMBERS: u32 = 20;
        for number in 0.. {
            match self.storage.create(record, &data, marks, Timestamp::now().as_second()).await {
                Err(error) if error.is_already_there() && !is_read => return Ok(None),
                Err(error) if error.is_already_there() && number < NUMBERS => {
                    tracing::warn!(
                        release = record.name,
                        version = plan.next,
                        "a record without labels is in the way"
                    );
                    plan.next = plan.next.saturating_add(1);
                    record.version = plan.next;
                    data = self.storage.encode(record)?;
                }
                outcome => {
                    let written = outcome?;
                    record.parts = data.parts();
                    return Ok(Some(written));
                }
            }
        }
        Ok(None)
    }

    /// Deletes the revisions that are over the limit, but for the one that counts as deployed.
    async fn purge(
        &self,
        name: &str,
        history: &[StoredRevision],
        plan: &UpgradePlan,
    ) -> Result<(), ReleaseError> {
        let mut versions: Vec<u32> = history.iter().map(|stored| stored.version).collect();
        versions.retain(|version| !plan.cut_off.contains(version) && *version != plan.next);
        versions.push(plan.next);
        let mut over = over_limit(&versions, self.settings.history_max).to_vec();
        over.retain(|version| plan.base != Some(*version));
        Ok(self.storage.delete_all(name, history, &over).await?)
    }

    /// Has the objects that there are now watched.
    pub(super) async fn track(&self, name: &str, objects: &[Object]) {
        let objects = self.collections(objects).await;
        self.objects.track(name, objects, true);
    }

    /// Returns the objects of known kinds, each with the collection that it is in.
    async fn collections(&self, objects: &[Object]) -> Vec<(Key, Resource)> {
        let mut found = Vec::new();
        for object in objects {
            if let Ok(resource) = self.discovery.resolve(&object.api_version, &object.kind).await {
                found.push((object.key(&self.settings.namespace), resource));
            }
        }
        found
    }

    pub(super) fn object_labels(&self, maintenance: bool) -> BTreeMap<String, String> {
        let mut labels = self.settings.extra_labels.clone();
        if maintenance {
            labels.insert(MAINTENANCE.to_owned(), String::new());
        }
        labels
    }
}

/// Returns the checksum of what was rendered. A module that has its objects written in the other way has another one, so that a
/// revision writes them.
fn checksum(manifests: &[Manifest], mode: ApplyMode) -> String {
    let mut text = manifest::join(manifests);
    match mode {
        ApplyMode::Client => {}
        ApplyMode::Server => text.push_str("# apply: server\n"),
    }
    chart::checksum(&text)
}

pub(super) fn outcome(action: ReleaseAction, revision: u32, checksum: &str) -> ReleaseOutcome {
    let number = checksum.get(..16).and_then(|start| u64::from_str_radix(start, 16).ok());
    ReleaseOutcome { action, revision, checksum: number.unwrap_or(0), changed: None, taken_over: Vec::new() }
}

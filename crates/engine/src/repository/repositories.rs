//! All objects of chart repositories: what is known about each, and whose turn it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::chart::Chart;
use super::group::Group;
use super::known::Repository;
use super::module_chart::ModuleChart;
use super::watches::RepositoryWatches;
use super::work::{RepositoryAnswer, Worked, module_key, of_work, work_key};
use crate::cause::Cause;
use crate::config::Config;
use crate::context::Context;
use crate::effect::Effect;
use crate::failure::Failure;
use crate::hook::snapshot::{Item, Key};
use crate::module::{Lower, Modules};
use crate::name::{ModuleName, MonitorId, QueueName, RunId};
use crate::package::{FetchedIndex, Pins, RepositoryKind, ResolvedChart, StoredPackage};
use crate::reconcile::{Reconciles, Step, Terms, WorkKey};
use crate::time::Time;
use crate::view::QueueView;

/// All objects of chart repositories.
#[expect(clippy::struct_field_names, reason = "repositories are one of the three kinds of objects")]
#[derive(Debug)]
pub(crate) struct Repositories {
    pub(super) config: Arc<Config>,
    reconciles: Reconciles,
    pub(super) watches: RepositoryWatches,
    pub(super) repositories: BTreeMap<Arc<str>, Repository>,
    pub(super) groups: BTreeMap<Arc<str>, Group>,
    pub(super) charts: BTreeMap<Arc<str>, Chart>,
    pub(super) modules: BTreeMap<ModuleName, ModuleChart>,
    /// The pins of modules that are not known, or that name no chart.
    pub(super) pins: Pins,
    /// What is asked for when nobody holds what is known.
    pub(super) wakes: BTreeSet<WorkKey>,
    /// The modules whose package is another one now.
    pub(super) repackaged: BTreeSet<ModuleName>,
    /// Whether a Chart came that is of a module about which nothing is known here.
    pub(super) has_unknown: bool,
    /// Whether Repositories came, went or moved since it was looked which of them have the charts that charts of modules need.
    pub(super) has_moved: bool,
}

impl Repositories {
    /// Returns no objects, and what modules stay with.
    pub(crate) fn new(config: Arc<Config>, pins: Pins) -> Self {
        Self {
            reconciles: Reconciles::new(
                Arc::clone(&config),
                Terms {
                    queue: QueueName::chart(1),
                    others: (2..=config.chart_workers).map(QueueName::chart).collect(),
                    workers: config.chart_workers,
                    ..Terms::default()
                },
            ),
            config,
            watches: RepositoryWatches::default(),
            repositories: BTreeMap::new(),
            groups: BTreeMap::new(),
            charts: BTreeMap::new(),
            modules: BTreeMap::new(),
            pins,
            wakes: BTreeSet::new(),
            repackaged: BTreeSet::new(),
            has_unknown: false,
            has_moved: false,
        }
    }

    /// Starts to watch the objects, if anybody is to look after them. Kinds that are missing are waited for.
    pub(crate) fn start(&mut self, lower: &mut Lower<'_>) {
        if self.config.chart_workers == 0 {
            return;
        }
        if self.config.are_repository_kinds_served {
            return self.watch(lower);
        }
        lower.cx.push(Effect::AwaitRepositoryKinds);
    }

    /// Starts to watch the objects, unless they are watched: their kinds are there.
    pub(crate) fn watch(&mut self, lower: &mut Lower<'_>) {
        if self.watches.is_off() {
            self.watches.start(lower);
        }
    }

    /// Returns whether the watch is ours.
    pub(crate) fn owns(&self, monitor: MonitorId) -> bool {
        self.watches.kind_of(monitor).is_some()
    }

    /// Returns what a watch of ours is about, in words.
    pub(crate) fn watch_of(&self, monitor: MonitorId) -> String {
        let kind = self.watches.kind_of(monitor).map_or("", RepositoryKind::as_str);
        format!("objects of kind {kind} of chart repositories")
    }

    /// Returns whether a run is one of ours.
    pub(crate) fn awaits(&self, run: RunId) -> bool {
        self.reconciles.awaits(run)
    }

    /// Handles a list of all objects of the kind that a watch is about.
    pub(crate) fn listed(&mut self, monitor: MonitorId, objects: &[(Key, Arc<Item>)]) {
        let Some(kind) = self.watches.kind_of(monitor) else { return };
        let listed: BTreeSet<&Arc<str>> = objects.iter().map(|(key, _)| &key.name).collect();
        let known: Vec<Arc<str>> = match kind {
            RepositoryKind::Chart => self.charts.keys().cloned().collect(),
            RepositoryKind::RepoGroup => self.groups.keys().cloned().collect(),
            RepositoryKind::Repository => self.repositories.keys().cloned().collect(),
        };
        for name in known.iter().filter(|name| !listed.contains(name)) {
            self.observe(kind, name, None);
        }
        for (key, item) in objects {
            self.observe(kind, &key.name, Some(item));
        }
        self.watches.listed(kind);
        if self.watches.are_all_listed() {
            self.has_moved = true;
            // What was decided without the other kinds was decided in the dark.
            let charts = self.charts.keys().map(|name| work_key(RepositoryKind::Chart, name));
            let repositories =
                self.repositories.keys().map(|name| work_key(RepositoryKind::Repository, name));
            let groups = self.groups.keys().map(|name| work_key(RepositoryKind::RepoGroup, name));
            let modules = self.modules.keys().map(module_key);
            self.wakes.extend(charts.chain(repositories).chain(groups).chain(modules));
        }
    }

    /// Handles the change of an object.
    pub(crate) fn object_changed(&mut self, monitor: MonitorId, key: &Key, is_gone: bool, item: &Item) {
        let Some(kind) = self.watches.kind_of(monitor) else { return };
        self.observe(kind, &key.name, Some(item).filter(|_| !is_gone));
    }

    fn observe(&mut self, kind: RepositoryKind, name: &Arc<str>, item: Option<&Item>) {
        let json = item.map(|item| item.object().unwrap_or_default());
        match kind {
            RepositoryKind::Chart => self.observe_chart(name, json),
            RepositoryKind::RepoGroup => self.observe_group(name, json),
            RepositoryKind::Repository => self.observe_repository(name, json),
        }
        self.wakes.insert(work_key(kind, name));
    }

    /// Asks for the work on an object.
    pub(super) fn wake(&mut self, kind: RepositoryKind, name: &Arc<str>) {
        self.wakes.insert(work_key(kind, name));
    }

    /// Handles that an index was fetched.
    pub(crate) fn index_fetched(
        &mut self,
        run: RunId,
        outcome: Result<Result<FetchedIndex, String>, Failure>,
    ) {
        self.answered(run, RepositoryAnswer::Fetched(outcome));
    }

    /// Handles that versions were looked for.
    pub(crate) fn chart_resolved(
        &mut self,
        run: RunId,
        outcome: Result<Result<ResolvedChart, String>, Failure>,
    ) {
        self.answered(run, RepositoryAnswer::Resolved(outcome));
    }

    /// Handles that a version is kept, or is not.
    pub(crate) fn package_stored(
        &mut self,
        run: RunId,
        outcome: Result<Result<StoredPackage, String>, Failure>,
    ) {
        self.answered(run, RepositoryAnswer::Stored(outcome));
    }

    /// Handles that a pin was written.
    pub(crate) fn package_pinned(&mut self, run: RunId, outcome: Result<(), Failure>) {
        self.answered(run, RepositoryAnswer::Pinned(outcome));
    }

    /// Handles that an object was changed, or was not.
    pub(crate) fn patched(&mut self, run: RunId, outcome: Result<(), Failure>) {
        self.answered(run, RepositoryAnswer::Patched(outcome));
    }

    fn answered(&mut self, run: RunId, answer: RepositoryAnswer) {
        let Some(work) = self.reconciles.finish(run) else { return };
        let slot = match of_work(&work) {
            Worked::Module => self.modules.get_mut(&*work.name).map(|module| &mut module.answer),
            Worked::Object(RepositoryKind::Chart) => {
                self.charts.get_mut(&work.name).map(|chart| &mut chart.answer)
            }
            Worked::Object(RepositoryKind::RepoGroup) => {
                self.groups.get_mut(&work.name).map(|group| &mut group.answer)
            }
            Worked::Object(RepositoryKind::Repository) => {
                self.repositories.get_mut(&work.name).map(|repository| &mut repository.answer)
            }
        };
        if let Some(slot) = slot {
            *slot = Some(answer);
        }
    }

    /// Does everything that can be done. Returns the modules whose package is another one now, which have to run.
    pub(crate) fn advance(&mut self, modules: &mut Modules, lower: &mut Lower<'_>) -> BTreeSet<ModuleName> {
        self.observe_modules(modules, lower);
        if !self.watches.are_all_listed() {
            return std::mem::take(&mut self.repackaged);
        }
        self.reconciles.wake_due(lower.cx.now);
        loop {
            for work in std::mem::take(&mut self.wakes) {
                if let Worked::Module = of_work(&work) {
                    let module = ModuleName::from(&*work.name);
                    self.chart_of_module_seen(&module);
                    self.say_why_held(modules, lower, &module);
                }
                if let Some(run) = self.reconciles.fetch_of(&work) {
                    if self.is_outdated(&work) {
                        lower.cx.push(Effect::CancelRun { run });
                    }
                } else if self.has_work(modules, &work, lower.cx.now) || self.is_left_over(&work) {
                    self.reconciles.request(lower.cx, &work, &Cause::outside("cluster"));
                }
            }
            let Some(work) = self.reconciles.take_next(lower.cx) else { break };
            let step = match of_work(&work) {
                Worked::Module => self.advance_module(modules, lower, &ModuleName::from(&*work.name)),
                Worked::Object(RepositoryKind::Chart) => self.advance_chart(lower.cx, &work.name),
                Worked::Object(RepositoryKind::RepoGroup) => self.advance_group(lower.cx, &work.name),
                Worked::Object(RepositoryKind::Repository) => self.advance_repository(lower.cx, &work.name),
            };
            if let Step::Failed(_) = step {
                self.begin_anew(&work);
            }
            self.reconciles.apply(lower.cx, lower.queues, &work, step);
        }
        self.reconciles.report_length(lower.cx);
        std::mem::take(&mut self.repackaged)
    }

    /// Returns whether there is anything to do, so that the work on what is as it should be leaves no trace.
    fn has_work(&self, modules: &Modules, work: &WorkKey, now: Time) -> bool {
        match of_work(work) {
            Worked::Module => self.module_has_work(modules, &ModuleName::from(&*work.name), now),
            Worked::Object(RepositoryKind::Chart) => self.chart_has_work(&work.name, now),
            Worked::Object(RepositoryKind::RepoGroup) => self.group_has_work(&work.name),
            Worked::Object(RepositoryKind::Repository) => self.repository_has_work(&work.name, now),
        }
    }

    /// Returns whether work waits for its time whose object is gone. It ends at once, so that nobody sees it any more.
    fn is_left_over(&self, work: &WorkKey) -> bool {
        let is_there = match of_work(work) {
            Worked::Module => true,
            Worked::Object(RepositoryKind::Chart) => self.charts.contains_key(&work.name),
            Worked::Object(RepositoryKind::RepoGroup) => self.groups.contains_key(&work.name),
            Worked::Object(RepositoryKind::Repository) => self.repositories.contains_key(&work.name),
        };
        !is_there && self.reconciles.has(work)
    }

    /// Returns whether nobody wants any more what is being fetched.
    fn is_outdated(&self, work: &WorkKey) -> bool {
        match of_work(work) {
            Worked::Object(RepositoryKind::Repository) => self.is_fetch_outdated(&work.name),
            Worked::Object(RepositoryKind::Chart) => !self.charts.contains_key(&work.name),
            Worked::Object(RepositoryKind::RepoGroup) | Worked::Module => false,
        }
    }

    /// Forgets how far a work is that failed: it is tried again from what is known then.
    fn begin_anew(&mut self, work: &WorkKey) {
        match of_work(work) {
            Worked::Module => {
                if let Some(module) = self.modules.get_mut(&*work.name) {
                    module.begin_anew();
                }
            }
            Worked::Object(RepositoryKind::Chart) => {
                if let Some(chart) = self.charts.get_mut(&work.name) {
                    chart.begin_anew();
                }
            }
            Worked::Object(RepositoryKind::RepoGroup) => {
                if let Some(group) = self.groups.get_mut(&work.name) {
                    group.begin_anew();
                }
            }
            Worked::Object(RepositoryKind::Repository) => {
                if let Some(repository) = self.repositories.get_mut(&work.name) {
                    repository.begin_anew();
                }
            }
        }
    }

    /// Returns when there is something to do by itself.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        self.reconciles.next_wakeup()
    }

    /// Ends what only reads, as the operator ends.
    pub(crate) fn end(&self, cx: &mut Context) {
        self.reconciles.cancel_fetches(cx);
    }

    /// Returns whether nothing is in flight.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.reconciles.is_at_rest()
    }

    /// Returns how many things are kept by name or number.
    pub(crate) fn entries(&self) -> usize {
        let objects = self.repositories.len() + self.groups.len() + self.charts.len();
        self.reconciles.entries() + objects + self.modules.len() + self.pins.len()
    }

    /// Adds a picture of the work to those of queues, if there is any.
    pub(crate) fn add_queue_view(&self, queues: &mut Vec<QueueView>, most_tasks: usize, now: Time) {
        self.reconciles.add_view(queues, most_tasks, now);
    }
}

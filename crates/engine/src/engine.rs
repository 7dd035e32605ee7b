//! The state machine that ties everything together. Routing only.

use std::collections::BTreeMap;
use std::sync::Arc;

use values::Section;

use crate::binding::rate::Rate;
use crate::binding::schedule::Schedules;
use crate::binding::watches::Watches;
use crate::catalog::{Catalog, Hook};
use crate::cause::Cause;
use crate::config::Config;
use crate::configuration::config_map::UserConfig;
use crate::converge::converges::ConvergeState;
use crate::converge::discovery::DynamicFlag;
use crate::effect::{Effect, ModuleValues, ValuesInput};
use crate::event::Event;
use crate::module::ModuleState;
use crate::module::broken_files::BrokenFiles;
use crate::name::{CommandId, HookId, HookName, ModuleName, QueueName, RunId, Scope, TaskId};
use crate::notice::Notice;
use crate::queue::journal::Journal;
use crate::queue::queues::{Place, Queues};
use crate::task::{Task, TaskKind};
use crate::time::Time;

/// Decides what the operator does next.
pub struct Engine {
    pub(crate) config: Config,
    pub(crate) catalog: Catalog,
    pub(crate) queues: Queues,
    pub(crate) global: Section,
    pub(crate) sections: BTreeMap<ModuleName, Section>,
    pub(crate) modules: BTreeMap<ModuleName, ModuleState>,
    /// The modules of the catalog as they run.
    pub(crate) order: Vec<ModuleName>,
    pub(crate) keys: BTreeMap<Arc<str>, ModuleName>,
    pub(crate) global_hooks: BTreeMap<HookName, Arc<Hook>>,
    pub(crate) enabled_modules: Arc<[ModuleName]>,
    /// What global hooks say about modules.
    pub(crate) dynamic_flags: BTreeMap<ModuleName, DynamicFlag>,
    pub(crate) user: UserConfig,
    pub(crate) watches: Watches,
    pub(crate) schedules: Schedules,
    pub(crate) rates: BTreeMap<HookId, Rate>,
    pub(crate) broken_files: BrokenFiles,
    pub(crate) converge: ConvergeState,
    /// Some module run may wait for a kind.
    pub(crate) has_kind_waiters: bool,
    /// How many discoveries were completed.
    pub(crate) discoveries: u64,
    /// Writes of the ConfigMap that commands wait for.
    pub(crate) command_saves: BTreeMap<RunId, (CommandId, String)>,
    pub(crate) journal: Journal,
    pub(crate) life: Life,
    /// When the processes that still run are ended.
    pub(crate) cancels_at: Option<Time>,
    /// How many processes of hooks and scripts run.
    pub(crate) processes: usize,
    pub(crate) stale_answers: u64,
    pub(crate) last_run: u64,
    pub(crate) last_task: u64,
    pub(crate) now: Time,
    pub(crate) out: Vec<Effect>,
}

/// Where the operator is in its life.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Life {
    /// Nothing happened yet.
    New,
    /// It works.
    Running,
    /// It begins nothing new.
    Draining,
    /// It is at rest for ever.
    Stopped,
}

// Nearly everything in it can hold secrets.
impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("now", &self.now).field("life", &self.life).finish_non_exhaustive()
    }
}

impl Engine {
    /// Creates an engine that has seen no event yet.
    pub fn new(config: Config, catalog: Catalog) -> Self {
        let mut engine = Self {
            config,
            global: crate::configuration::sections::global_section(&catalog.global),
            catalog,
            queues: Queues::default(),
            sections: BTreeMap::new(),
            modules: BTreeMap::new(),
            order: Vec::new(),
            keys: BTreeMap::new(),
            global_hooks: BTreeMap::new(),
            enabled_modules: Arc::from([]),
            dynamic_flags: BTreeMap::new(),
            user: UserConfig::default(),
            watches: Watches::default(),
            schedules: Schedules::default(),
            rates: BTreeMap::new(),
            broken_files: BrokenFiles::default(),
            converge: ConvergeState::default(),
            has_kind_waiters: false,
            discoveries: 0,
            command_saves: BTreeMap::new(),
            journal: Journal::default(),
            life: Life::New,
            cancels_at: None,
            processes: 0,
            stale_answers: 0,
            last_run: 0,
            last_task: 0,
            now: Time::START,
            out: Vec::new(),
        };
        engine.queues.ensure(&QueueName::main());
        engine.index_catalog();
        engine
    }

    /// Takes in `event`, which happened at `now`, and returns what to do about it.
    ///
    /// `now` must not go backwards between calls. What is due at `now` happens first.
    pub fn handle(&mut self, now: Time, event: Event) -> Vec<Effect> {
        self.now = self.now.max(now);
        self.queues.wake_due(self.now);
        match event {
            Event::Started => self.start(),
            Event::CatalogChanged { catalog } => self.catalog_changed(catalog),
            Event::CatalogRejected { failure } => self.catalog_rejected(failure),
            Event::Commanded { id, command } => self.commanded(id, command),
            Event::ConfigChanged { version, data } => self.config_changed(&version, data),
            Event::ConfigRejected { failure } => self.config_rejected(failure),
            Event::ConfigSaved { run, outcome } => self.config_saved(run, outcome),
            Event::CrdsEnsured { run, outcome } => self.crds_ensured(run, outcome),
            Event::CronFired { line } => self.cron_fired(&line),
            Event::HookFinished { run, outcome, usage } => self.hook_finished(run, outcome, usage),
            Event::KindAppeared { monitor } => self.kind_appeared(monitor),
            Event::KindVanished { monitor, kind } => self.kind_vanished(monitor, kind),
            Event::Listed { lists } => self.listed(lists),
            Event::ModuleLoaded { run, outcome } => self.module_loaded(run, outcome),
            Event::NamespaceListed { monitor, namespace, objects } => {
                self.namespace_listed(monitor, &namespace, objects);
            }
            Event::ObjectChanged { change, key, items } => self.object_changed(change, &key, items),
            Event::ObjectsPatched { run, outcome } => self.objects_patched(run, outcome),
            Event::ReleaseDrifted { module, drift } => self.release_drifted(&module, drift),
            Event::ReleaseFinished { run, outcome } => self.release_finished(run, outcome),
            Event::ReleasesListed { run, outcome } => self.releases_listed(run, outcome),
            Event::ReviewRequested { id, webhook, .. } => self.review_requested(id, &webhook),
            Event::ScriptFinished { run, outcome, usage } => self.script_finished(run, outcome, usage),
            Event::ShutdownRequested => self.shut_down(),
            Event::TimerFired => {}
            Event::WatchFailed { monitor, failure } => self.watch_failed(monitor, failure),
        }
        self.settle();
        std::mem::take(&mut self.out)
    }

    /// Returns when to send [`Event::TimerFired`], if nothing happens before.
    pub fn next_wakeup(&self) -> Option<Time> {
        match self.life {
            Life::New | Life::Running => self.queues.next_wakeup(),
            Life::Draining => self.cancels_at,
            Life::Stopped => None,
        }
    }

    /// Moves every queue on until each head waits for something, and tells what changed.
    fn settle(&mut self) {
        loop {
            if self.life == Life::Running {
                while let Some(queue) = self.queues.pop_dirty() {
                    self.step(&queue);
                }
            }
            self.note_converge();
            if self.processes < self.config.max_hooks.max(1) {
                self.queues.wake_one_slot();
            }
            if self.life != Life::Running || !self.queues.has_dirty() {
                break;
            }
        }
        if self.is_ready()
            && self.life == Life::Running
            && let Some(lines) = self.schedules.take_changed()
        {
            self.out.push(Effect::SetSchedules { lines });
        }
        for (queue, length) in self.queues.take_changed() {
            self.notify(Notice::QueueChanged { queue, length });
        }
        self.note_ready();
        self.cancel_late_runs();
        self.exit_at_rest();
    }

    /// Tells something to whom it may concern. Values that a text quotes are masked.
    pub(crate) fn notify(&mut self, notice: Notice) {
        let notice = self.without_secrets(notice);
        self.out.push(Effect::Notify(notice));
    }

    pub(crate) fn next_run(&mut self) -> RunId {
        self.last_run += 1;
        RunId::new(self.last_run)
    }

    /// Returns a task that is in no queue yet.
    pub(crate) fn new_task(
        &mut self,
        kind: TaskKind,
        description: &'static str,
        cause: Cause,
        generation: Option<u64>,
    ) -> Task {
        self.last_task += 1;
        Task {
            id: TaskId::new(self.last_task),
            kind,
            description,
            cause,
            queued_at: self.now,
            begun_at: None,
            failing_since: None,
            failures: 0,
            last_failure: None,
            not_before: None,
            generation,
        }
    }

    /// Puts tasks at the end of a queue.
    pub(crate) fn put_back(&mut self, queue: &QueueName, tasks: Vec<Task>) {
        self.put(queue, Place::Back, tasks);
    }

    /// Puts new tasks in a queue and tells so.
    pub(crate) fn put(&mut self, queue: &QueueName, place: Place, tasks: Vec<Task>) {
        self.expect_converge(&tasks);
        for task in &tasks {
            self.out.push(Effect::Notify(Notice::TaskQueued { task: task.info(queue) }));
        }
        self.queues.put(queue, place, tasks);
    }

    /// Returns the section of `scope`.
    pub(crate) fn section(&self, scope: &Scope) -> Option<&Section> {
        match scope {
            Scope::Global => Some(&self.global),
            Scope::Module(name) => self.sections.get(name),
        }
    }

    pub(crate) fn set_section(&mut self, scope: &Scope, section: Section) {
        match scope {
            Scope::Global => self.global = section,
            Scope::Module(name) => {
                self.sections.insert(name.clone(), section);
            }
        }
    }

    /// Returns what a hook of `scope` reads.
    pub(crate) fn values_for(&self, scope: &Scope) -> ValuesInput {
        let module = scope.module().and_then(|name| {
            let (module, section) = (self.modules.get(name)?, self.sections.get(name)?);
            let (key, values) = (Arc::clone(&module.spec.key), Arc::clone(section.result()));
            Some(ModuleValues { key, values, config: section.config_or_null() })
        });
        ValuesInput {
            global: Arc::clone(self.global.result()),
            global_config: self.global.config_or_null(),
            enabled_modules: module.is_some().then(|| Arc::clone(&self.enabled_modules)),
            module,
        }
    }

    /// Returns the module whose section has the key.
    pub(crate) fn module_by_key(&self, key: &str) -> Option<ModuleName> {
        self.keys.get(key).cloned()
    }

    /// Returns the number that the hooks of a scope are sorted by.
    pub(crate) fn order_of(&self, scope: &Scope) -> u32 {
        scope.module().and_then(|name| self.modules.get(name)).map_or(0, |module| module.spec.order)
    }
}

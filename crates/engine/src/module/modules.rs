//! All modules and global hooks, as their files are in force.
//!
//! It is long because what all modules have in common stands here; what one of them does has files of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::broken_files::BrokenFiles;
use super::chart_tests::ChartTests;
use super::events::{Announcements, Change};
use super::files::Files;
use super::mends::Mends;
use super::ownerless::Ownerless;
use super::state::{Leaving, Release};
use super::task_queue::queue_of;
use super::unread_hooks::UnreadHooks;
use super::waits::Waits;
use super::{Lower, ModuleState, Phase};
use crate::addon::Digest;
use crate::catalog::{Catalog, Global, Hook};
use crate::cause::Cause;
use crate::config::Config;
use crate::configuration::{Configuration, Decision};
use crate::context::Context;
use crate::effect::ValuesInput;
use crate::enabled::EnabledModules;
use crate::event::Verdict;
use crate::failure::{Failure, FailureKind};
use crate::name::{HookId, ModuleName, RunId, Scope};
use crate::notice::Notice;
use crate::queue::{End, Reason};
use crate::task::{ModuleRun, Question, ScriptAnswer, Task, TaskKind, Trigger};
use crate::time::Time;

/// What the reconcile bindings of a hook may do.
#[derive(Debug)]
pub(crate) enum Control<'m> {
    /// All.
    Full(&'m Arc<Hook>),
    /// They finalize what is deleted, and do nothing else: its module is being removed, and no run of it in this process has prepared
    /// what its hooks read.
    Ends(&'m Arc<Hook>),
    /// Nothing before the first run of its module.
    NotYet,
    /// Nothing.
    Off,
}

/// All modules and global hooks.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    pub(super) config: Arc<Config>,
    /// The files of no module, as they are in force.
    pub(super) global: Arc<Global>,
    /// What of the files is not in force because it is broken.
    pub(super) broken_files: BrokenFiles,
    /// Whether all directories of modules could be read.
    pub(super) complete: bool,
    /// What was skipped in the files.
    pub(super) warnings: Vec<String>,
    pub(super) states: BTreeMap<ModuleName, ModuleState>,
    /// The files that modules came with.
    pub(super) files: Files,
    /// The modules that are on, as they run.
    pub(super) enabled: Arc<[ModuleName]>,
    pub(super) announcements: Announcements,
    /// Whether the releases in the cluster were listed.
    pub(super) are_releases_known: bool,
    /// What that list said about modules that were not there.
    pub(super) ownerless: Ownerless,
    /// A number that changes with the hooks that are in service.
    pub(super) in_service: u64,
    /// The modules of bundles that changed since the last call of [`Modules::take_changed`].
    pub(super) changed: BTreeSet<ModuleName>,
    /// The modules whose chart may be another one since the last call of [`Modules::take_chart_changes`], or that were switched on
    /// or off and name one.
    pub(super) chart_changes: BTreeSet<ModuleName>,
    /// Whether modules, or releases of modules that are not there, may be gone since the last call of [`Modules::take_departures`].
    pub(super) has_departures: bool,
    /// Which modules wait for others.
    pub(super) waits: Waits,
    /// The modules whose hooks of a bundle before gave way to their own since the last call of [`Modules::take_replaced_hooks`].
    pub(super) replaced_hooks: BTreeSet<ModuleName>,
    /// The hooks of bundles that are asked what they want beside the queues.
    pub(super) unread_hooks: UnreadHooks,
    /// The objects of releases that are put right.
    pub(super) mends: Mends,
    /// The tests of charts that run, or wait to.
    pub(super) tests: ChartTests,
    /// When the objects of modules are late that are not ready yet.
    pub(super) deadlines: BTreeMap<ModuleName, Time>,
}

impl Modules {
    /// Returns no modules.
    pub(crate) fn new(config: Arc<Config>) -> Self {
        Self { config, ..Self::default() }
    }

    /// Puts files into force before anything has begun.
    pub(crate) fn load(&mut self, lower: &mut Lower<'_>, catalog: Catalog) {
        lower.configuration.reset(lower.cx, &catalog.global);
        lower.configuration.set_keys(&*catalog.modules);
        self.states.clear();
        self.files = Files::new(&catalog.modules);
        for module in catalog.modules.iter() {
            let name = &module.name;
            lower.configuration.add_module(lower.cx, module);
            lower.bindings.limit(&module.hooks);
            self.files.adopted(module);
            let is_withdrawn = lower.configuration.withdrawn_by(name).is_some();
            let mut state = ModuleState::new(Arc::clone(module), lower.cx.now);
            if state.spec.names_charts() {
                self.chart_changes.insert(state.spec.name.clone());
            }
            // Its removal began in a process before this one, and may not have come to its last hook.
            state.may_have_run = state.spec.origin.digest().is_some();
            let was_never_on = lower.configuration.was_never_on(name);
            state.is_active = is_withdrawn && state.may_have_run && !was_never_on;
            self.states.insert(name.clone(), state);
            self.note_left(lower.configuration, name);
        }
        self.ownerless = Ownerless::new(self.missing(lower.configuration));
        self.global = catalog.global;
        self.in_service += 1;
        self.has_departures = true;
        self.complete = catalog.complete;
        self.warnings = catalog.warnings;
        // A standby has read the ConfigMap, and learns of other modules when it leads.
        lower.configuration.reread_all(lower.cx);
        self.find_circles(lower.configuration);
        self.index_global_hooks(lower);
    }

    /// Makes the limits and queues of global hooks known.
    pub(super) fn index_global_hooks(&self, lower: &mut Lower<'_>) {
        lower.bindings.limit(&self.global.hooks);
        for hook in &self.global.hooks {
            for queue in hook.spec.queues() {
                lower.queues.ensure(queue);
            }
        }
    }

    /// Returns the global hooks by path.
    pub(crate) fn global_hooks(&self) -> &[Arc<Hook>] {
        &self.global.hooks
    }

    /// Returns what was skipped in the files.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the directory of a module that no bundle brings, if there is one of this name.
    pub(crate) fn built_in(&self, name: &ModuleName) -> Option<Arc<str>> {
        let module = self.states.get(name).filter(|module| module.phase != Phase::Orphaned)?;
        module.spec.origin.digest().is_none().then(|| Arc::clone(&module.spec.path))
    }

    /// Returns whether nothing is left of the module of a bundle: it is off and removed, or it is not there at all. A built-in
    /// module of its name is none of it.
    pub(crate) fn is_gone(&self, name: &ModuleName) -> bool {
        let Some(module) = self.states.get(name) else { return true };
        if self.built_in(name).is_some() {
            return true;
        }
        let has_release = match module.release {
            Release::Absent => false,
            // Also of one without a chart: the files before may have had one.
            Release::Unknown => !self.are_releases_known,
            Release::Broken | Release::Deployed { .. } | Release::Unmanaged => true,
        };
        module.is_decided() && !module.is_on() && !module.is_active && !has_release
    }

    /// Returns the modules that come from bundles, with their bundles.
    pub(crate) fn bundles(&self) -> BTreeMap<ModuleName, Digest> {
        let bundle = |(name, module): (&ModuleName, &ModuleState)| {
            Some((name.clone(), module.spec.origin.digest()?.clone()))
        };
        self.states.iter().filter_map(bundle).collect()
    }

    /// Returns the bundle that a module comes from, if it does.
    pub(crate) fn bundle_of(&self, name: &ModuleName) -> Option<&Digest> {
        self.states.get(name)?.spec.origin.digest()
    }

    /// Returns the bundles of modules that are in force although something else was to be loaded, or whose hooks are.
    pub(crate) fn outdated_bundles(&self) -> BTreeSet<Digest> {
        let is_old =
            |module: &&ModuleState| module.phase == Phase::Orphaned || module.broken_version.is_some();
        let outdated = self.files.outdated().filter_map(|name| self.states.get(name));
        let outdated = outdated.filter(is_old).filter_map(|module| module.spec.origin.digest().cloned());
        let lent = self.files.lent().filter_map(|name| self.states.get(name)?.hooks_from.clone());
        outdated.chain(lent).collect()
    }

    /// Returns the modules of bundles that changed since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<ModuleName> {
        std::mem::take(&mut self.changed)
    }

    /// Returns the module, if it is known.
    pub(crate) fn get(&self, name: &ModuleName) -> Option<&ModuleState> {
        self.states.get(name)
    }

    /// Returns in words that everybody may read why the last run of a module failed, if it did.
    pub(crate) fn error_of(&self, name: &ModuleName) -> Option<String> {
        let failure = self.states.get(name)?.last_error.as_ref()?.for_everybody();
        let advice = failure.advice.as_ref().map(|advice| format!("; {advice}"));
        Some(format!("{}{}", failure.message, advice.unwrap_or_default()))
    }

    /// Records what the removal of a module waits for, if it waits for anything.
    pub(crate) fn removal_waits(&mut self, name: &ModuleName, what: Option<String>) {
        let Some(module) = self.states.get_mut(name) else { return };
        if module.removal_waits != what {
            module.removal_waits = what;
            self.changed.insert(name.clone());
        }
    }

    /// Returns what the removal of a module waits for, if it is under way and waits.
    pub(crate) fn removal_wait_of(&self, name: &ModuleName) -> Option<&str> {
        self.states.get(name)?.removal_waits.as_deref()
    }

    /// Iterates over the names of all modules, orphans too.
    pub(crate) fn names(&self) -> impl Iterator<Item = &ModuleName> {
        self.states.keys()
    }

    /// Iterates over the modules that have files, as they run.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &ModuleState> {
        self.files.names().filter_map(|name| self.states.get(name))
    }

    /// Iterates over the modules with hooks that keep objects by a finalizer, as far as they are in files or bundles.
    pub(crate) fn finalizing(&self) -> impl Iterator<Item = &ModuleState> {
        self.files.finalizing().filter_map(|name| self.states.get(name))
    }

    /// Returns the module at a place of the order, if there is one.
    pub(crate) fn at(&self, place: usize) -> Option<&ModuleState> {
        self.states.get(self.files.name_at(place)?)
    }

    /// Returns whether the module is known and on.
    pub(crate) fn is_on(&self, name: &ModuleName) -> bool {
        self.states.get(name).is_some_and(ModuleState::is_on)
    }

    /// Returns the modules that are on, as they run.
    pub(crate) fn enabled(&self) -> &Arc<[ModuleName]> {
        &self.enabled
    }

    /// Returns the hooks of a scope, if it exists.
    pub(crate) fn hooks_of(&self, scope: &Scope) -> Option<&[Arc<Hook>]> {
        match scope {
            Scope::Global => Some(&self.global.hooks),
            Scope::Module(name) => Some(&self.states.get(name)?.spec.hooks),
        }
    }

    /// Returns the hook if it exists, whether its module is on or not.
    pub(crate) fn loaded_hook(&self, id: &HookId) -> Option<&Arc<Hook>> {
        let hooks = match &id.scope {
            Scope::Global => &self.global.hooks,
            Scope::Module(name) => &self.states.get(name)?.spec.hooks,
        };
        hooks.iter().find(|hook| hook.id == *id)
    }

    /// Returns what the reconcile bindings of a hook may do. Those of a module that is switched off go on until it is removed: what
    /// its hooks delete then, and what leaves with its release, has to be finalized.
    pub(crate) fn control(&self, id: &HookId) -> Control<'_> {
        let Some(hook) = self.loaded_hook(id) else { return Control::Off };
        let Some(name) = id.scope.module() else { return Control::Full(hook) };
        let Some(module) = self.states.get(name).filter(|module| module.phase != Phase::Orphaned) else {
            return Control::Off;
        };
        match module.leaving {
            _ if module.first_run_done => Control::Full(hook),
            Some(Leaving { was_ready: true }) if !module.is_on() => Control::Full(hook),
            Some(Leaving { was_ready: false }) if !module.is_on() => Control::Ends(hook),
            _ if module.is_on() => Control::NotYet,
            Some(_) | None => Control::Off,
        }
    }

    /// Returns whether a reconcile binding that is named so, as children name it, has files, as far as is known: hooks of a module
    /// that is off may not be read.
    pub(crate) fn may_have_controller(&self, mark: &str) -> bool {
        let is_it = |hook: &Arc<Hook>| {
            let of_hook = mark.strip_prefix(&hook.id.to_string()).and_then(|rest| rest.strip_prefix('/'));
            of_hook.is_some_and(|name| hook.spec.reconciles.iter().any(|binding| binding.name == name))
        };
        let may_have = |module: &ModuleState| {
            let is_meant =
                mark.strip_prefix(module.spec.name.as_str()).is_some_and(|rest| rest.starts_with('/'));
            is_meant && (module.spec.has_unread_hooks || module.spec.hooks.iter().any(is_it))
        };
        let mut modules = self.states.values().filter(|module| module.phase != Phase::Orphaned);
        self.global.hooks.iter().any(is_it) || modules.any(may_have)
    }

    /// Returns the hook if it exists and its module is on.
    pub(crate) fn runnable_hook(&self, id: &HookId) -> Option<&Arc<Hook>> {
        let is_on =
            id.scope.module().is_none_or(|name| self.states.get(name).is_some_and(ModuleState::is_on));
        self.loaded_hook(id).filter(|_| is_on)
    }

    /// Returns the hook if it exists and its module may be on.
    pub(crate) fn hook_to_come(&self, id: &HookId) -> Option<&Arc<Hook>> {
        let may_be_on =
            id.scope.module().is_none_or(|name| self.states.get(name).is_some_and(ModuleState::may_be_on));
        self.loaded_hook(id).filter(|_| may_be_on)
    }

    /// Records and reports that changed files can't be loaded at all.
    pub(crate) fn catalog_rejected(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        failure: Failure,
    ) {
        self.broken_files.reject(cx, configuration.told(failure, None, None));
    }

    /// Returns why no process may be started from the file of `hook`, if its new version is broken.
    pub(crate) fn broken_version(&self, hook: &HookId) -> Option<Reason> {
        let failure = match &hook.scope {
            Scope::Global => self.broken_files.of_hook(&hook.name)?,
            Scope::Module(module) => self.states.get(module)?.broken_version.as_ref()?,
        };
        Some(Reason::BrokenVersion(failure.for_everybody().message.clone()))
    }

    /// Returns the number that the hooks of a scope are sorted by.
    pub(super) fn order_of(&self, scope: &Scope) -> u32 {
        scope.module().and_then(|name| self.states.get(name)).map_or(0, |module| module.spec.order)
    }

    /// Returns what a hook, script or chart of `scope` reads.
    pub(crate) fn input(&self, configuration: &Configuration, scope: &Scope) -> ValuesInput {
        let module = scope.module().and_then(|name| self.states.get(name));
        configuration.input(module.map(|module| &*module.spec), &self.enabled)
    }

    /// Records and reports what a module is doing from now on.
    pub(super) fn set_phase(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        name: &ModuleName,
        phase: Phase,
        reason: Option<String>,
    ) {
        let Some(module) = self.states.get_mut(name) else { return };
        if module.phase == phase && (reason.is_none() || module.reason == reason) {
            return;
        }
        module.reason.clone_from(&reason);
        if module.phase != phase {
            module.since = cx.now;
        }
        let before = if std::mem::take(&mut module.is_past_failure) { Phase::Failed } else { module.phase };
        let change = before.change_to(phase);
        module.phase = phase;
        module.removal_waits = None;
        self.waits.phase_changed(name, phase);
        let names_chart = module.spec.names_charts();
        if let Some(change) = change {
            let why = reason.as_deref().map(|why| configuration.without_values(name, why));
            self.announce(cx, name, change, why.as_deref());
        }
        if configuration.source_of(name).is_some() {
            self.changed.insert(name.clone());
        }
        if phase == Phase::Disabled && names_chart {
            self.chart_changes.insert(name.clone());
        }
        cx.notify(Notice::ModuleChanged { module: name.clone(), phase: phase.as_str(), reason });
    }

    /// Writes a Kubernetes Event about a module. `why` quotes no values.
    pub(super) fn announce(
        &mut self,
        cx: &mut Context,
        name: &ModuleName,
        change: Change,
        why: Option<&str>,
    ) {
        let Some(module) = self.states.get_mut(name) else { return };
        let what = match change {
            Change::Disabled => "is switched off and removed",
            Change::Enabled => "is switched on",
            Change::Failed => "failed",
            Change::Installed => "was installed",
            Change::Orphaned => "is orphaned",
            Change::Parked => "is parked",
            Change::Recovered => "runs again after it had failed",
            Change::Resumed => "is no longer parked",
            Change::TookOver => "took objects over",
            Change::Upgraded => "was upgraded",
        };
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let message = format!("module {name} {what}{why}");
        self.announcements.announce(cx, (name, &mut module.announced), change, message);
    }

    /// Records that no converge is under way: what changed now is part of none.
    pub(crate) fn forget_changes(&mut self) {
        self.announcements.forget_changes();
    }

    /// Writes a Kubernetes Event about the end of a converge, if it changed anything.
    pub(crate) fn converge_ended(
        &mut self,
        cx: &mut Context,
        generation: u64,
        took: std::time::Duration,
        cause: &Cause,
    ) {
        self.announcements.converge_ended(cx, generation, took, cause);
    }

    /// Returns why a module does what it does not, for commands.
    pub(crate) fn why_off(&self, name: &ModuleName) -> Failure {
        let Some(module) = self.states.get(name) else {
            return Failure::new(FailureKind::Files, format!("there is no module {name}"))
                .advise("`addon-operator status` shows the names");
        };
        if module.phase == Phase::Orphaned {
            let message = format!("module {name} is orphaned: its directory is gone");
            return Failure::new(FailureKind::Files, message).advise(format!(
                "put it back, or remove its release with `addon-operator module purge {name}`"
            ));
        }
        let why = module
            .decision
            .as_ref()
            .map_or_else(|| "no discovery was completed yet".to_owned(), ToString::to_string);
        Failure::new(FailureKind::Values, format!("module {name} is not enabled: {why}"))
            .advise(format!("`addon-operator module enable {name}` switches it on in the ConfigMap"))
    }

    /// Records what an enabled script said.
    pub(crate) fn script_said(
        &mut self,
        cx: &Context,
        name: &ModuleName,
        (run, question): (RunId, Question),
        verdict: Verdict,
    ) {
        if let Some(module) = self.states.get_mut(name) {
            module.script = Some(ScriptAnswer { question, verdict, run, at: cx.now });
        }
    }

    /// Makes what a discovery found out true. Returns whether a module was switched on or off.
    ///
    /// Each decision is about the module at its place; the others are as they were.
    pub(crate) fn decide(&mut self, lower: &mut Lower<'_>, decisions: Vec<(usize, Decision)>) -> bool {
        let mut changed = false;
        self.waits.changed();
        for (place, decision) in decisions {
            let Some(name) = self.files.name_at(place).cloned() else { continue };
            let name = &name;
            let Some(module) = self.states.get_mut(name) else { continue };
            let was_on = module.is_on();
            changed |= was_on != decision.enabled;
            module.removal_since = module.removal_since.filter(|_| !decision.enabled);
            if module.phase == Phase::Orphaned {
                module.phase = Phase::Disabled;
            }
            let reason = (decision.enabled && !was_on).then(|| decision.to_string());
            let is_new = module.decision.replace(decision).is_none();
            if is_new || module.is_on() != was_on {
                self.in_service += 1;
            }
            if is_new && lower.configuration.source_of(name).is_some() {
                self.changed.insert(name.clone());
            }
            if module.spec.names_charts() && (is_new || module.is_on() != was_on) {
                self.chart_changes.insert(name.clone());
            }
            let (is_on, is_active) = (module.is_on(), module.is_active);
            let has_missed = is_on && std::mem::take(&mut module.missed_events);
            if was_on && !is_on {
                self.disable_schedules(lower.bindings, name);
            }
            if has_missed {
                lower.bindings.disable_scope(lower.cx, &Scope::Module(name.clone()));
            }
            if is_on && !was_on {
                lower.bindings.left(name);
                lower.queues.wake(|reason| matches!(reason, Reason::Finalizing { .. }));
                if !is_new {
                    self.announce(lower.cx, name, Change::Enabled, reason.as_deref());
                }
                self.set_phase(lower.cx, lower.configuration, name, Phase::Starting, reason);
            } else if !is_on && !is_active {
                self.set_phase(lower.cx, lower.configuration, name, Phase::Disabled, None);
            }
        }
        changed
    }

    /// Records which modules are on. Returns all modules with what they are now.
    pub(crate) fn set_enabled(&mut self, enabled: EnabledModules) -> Arc<[(ModuleName, bool)]> {
        self.enabled = enabled.into_names();
        self.in_order().map(|module| (module.spec.name.clone(), module.is_on())).collect()
    }

    /// Returns the places of the modules for which a discovery may find something else than the last one; `None` if these may be all.
    pub(crate) fn undecided(&self, configuration: &Configuration) -> Option<Vec<usize>> {
        // What is not in force may run at another place than its files say.
        let names = configuration.undecided().names().filter(|_| self.files.are_in_force())?;
        Some(self.files.places(names, |name| Some(self.states.get(name)?.spec.order)))
    }

    /// Returns whether a module runs before that at a place, if it has files.
    pub(crate) fn is_before(&self, name: &ModuleName, place: usize) -> bool {
        let number = |name: &ModuleName| Some(self.states.get(name)?.spec.order);
        self.files.name_at(place).is_none_or(|other| (number(name), name) < (number(other), other))
    }

    /// Records that a discovery looks at a module.
    pub(crate) fn look_at_one(&self) {
        self.files.look(1);
    }

    /// Returns how many modules were looked at so far because files changed, or to find out which are on.
    pub(crate) fn looked_at(&self) -> usize {
        self.files.looked_at()
    }

    /// Returns whether a discovery may find that other modules are on than now.
    pub(crate) fn may_switch(&self, configuration: &Configuration) -> bool {
        self.states.values().any(|module| {
            let flags = configuration.flags_of(&module.spec);
            let has_script = configuration.script_of(&module.spec).is_some();
            has_script || (module.phase != Phase::Orphaned && flags.enabled != module.is_on())
        })
    }

    /// Records that an attempt at a task of a module failed.
    pub(crate) fn attempt_failed(&mut self, name: &ModuleName, failure: &Failure) {
        if let Some(module) = self.states.get_mut(name) {
            module.last_error = Some(Arc::new(failure.clone()));
            if module.spec.origin.digest().is_some() {
                self.changed.insert(name.clone());
            }
        }
    }

    /// Records that the run of a module failed.
    pub(crate) fn run_failed(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        run: &ModuleRun,
        failure: &Failure,
    ) {
        let name = &run.module;
        self.attempt_failed(name, failure);
        if let Some(module) = self.states.get_mut(name) {
            module.failed_at = run.step();
            if !module.first_run_done {
                module.started_hooks.clear();
            }
        }
        self.step_failed(name);
        self.set_phase(
            cx,
            configuration,
            name,
            Phase::Failed,
            Some(configuration.shown(failure).message.clone()),
        );
    }

    /// Records that the run of a module waits. If it got further than the one that failed, what it waits for is told, and not
    /// what failed: that is put right.
    pub(super) fn run_waits(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        name: &ModuleName,
        reached: (u8, usize),
    ) {
        let Some(module) = self.states.get_mut(name) else { return };
        if module.last_error.is_none() || module.parked.is_some() || reached <= module.failed_at {
            return;
        }
        module.last_error = None;
        if module.phase == Phase::Failed {
            self.set_phase(cx, configuration, name, Phase::Starting, None);
        }
        if let Some(module) = self.states.get_mut(name) {
            module.is_past_failure = true;
        }
    }

    /// Returns whether the run of a module waits behind what failed before.
    pub(crate) fn is_past_failure(&self, name: &ModuleName) -> bool {
        self.states.get(name).is_some_and(|module| module.is_past_failure)
    }

    /// Returns whether a run of a module waits for its Synchronizations.
    pub(crate) fn is_synchronizing(&self, name: &ModuleName) -> bool {
        self.states.get(name).is_some_and(|module| module.is_synchronizing)
    }

    /// Records that something failed without which a run of a module can't come to its end.
    pub(crate) fn step_failed(&mut self, name: &ModuleName) {
        let Some(module) = self.states.get_mut(name) else { return };
        module.package_failures = module.package_failures.saturating_add(1);
        if module.spec.package.is_some() {
            self.chart_changes.insert(name.clone());
        }
        if module.spec.origin.digest().is_some() {
            self.changed.insert(name.clone());
        }
    }

    /// Records that the CRDs of a module are installed.
    pub(crate) fn crds_ensured(&mut self, name: &ModuleName) {
        if let Some(module) = self.states.get_mut(name) {
            module.crds_of = Some(module.spec.content);
        }
    }

    /// Queues a run of a module, unless it is off or one waits that will see everything.
    pub(crate) fn queue_run(
        &self,
        Lower { cx, queues, configuration, .. }: &mut Lower<'_>,
        name: &ModuleName,
        trigger: Trigger,
        cause: &Cause,
    ) {
        let Some(module) = self.states.get(name).filter(|module| module.can_run()) else { return };
        if queues.is_pending(name) {
            return;
        }
        let run = TaskKind::ModuleRun(module.next_run());
        let (queue, cause) = (queue_of(configuration, &run), cause.then(format!("module {name}")));
        let task = Task::new(cx, &queue, run, trigger, cause, None);
        queues.put(cx, &queue, End::Back, vec![task]);
    }

    /// Makes a parked module go on. Returns why it is not, if it is not parked.
    pub(crate) fn resume(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        name: &ModuleName,
    ) -> Result<(), Failure> {
        let Some(module) = self.states.get_mut(name) else { return Err(self.why_off(name)) };
        if module.parked.take().is_none() {
            let message = format!("module {name} is not parked, it is {}", module.phase.as_str());
            return Err(Failure::new(FailureKind::Values, message)
                .advise(format!("`addon-operator module run {name}` runs it")));
        }
        module.upgrades.clear();
        let why = "resumed by command".to_owned();
        self.announce(cx, name, Change::Resumed, None);
        self.set_phase(cx, configuration, name, Phase::Starting, Some(why));
        Ok(())
    }

    /// Forgets what the enabled script of a module said, so that it is asked again.
    pub(crate) fn forget_script(&mut self, name: &ModuleName) {
        if let Some(module) = self.states.get_mut(name) {
            module.script = None;
        }
    }
}

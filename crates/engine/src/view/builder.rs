//! Taking the picture.

use super::{ConfigProblem, ConvergeView, ModuleView, OpinionView, QueueView, Source, View, WatchView};
use crate::binding::watches::Monitor;
use crate::converge::converges::{First, Readiness};
use crate::converge::discovery::Opinion;
use crate::engine::{Engine, Life};
use crate::failure::Failure;
use crate::module::{ModuleState, Release};
use crate::name::MonitorId;
use crate::time::Time;

impl Engine {
    /// Returns a picture for people: queues, modules, watches, last failures.
    ///
    /// Ages and waits are those at the last event; [`Engine::view_at`] counts on.
    pub fn view(&self) -> View {
        self.view_at(self.now)
    }

    /// Returns the picture as it is at `now`.
    pub fn view_at(&self, now: Time) -> View {
        let now = now.max(self.now);
        let mut queues: Vec<QueueView> =
            self.queues.iter().map(|(name, queue)| QueueView::of(name, queue, &self.journal, now)).collect();
        queues.sort_by_key(|queue| !queue.name.is_main());
        let in_order = self.order.iter().filter_map(|name| self.modules.get(name));
        let orphans = self.modules.values().filter(|module| !self.keys.contains_key(&module.spec.key));
        View {
            now,
            queues,
            global_hooks: self.catalog.global.hooks.iter().map(|hook| hook.id.name.clone()).collect(),
            modules: in_order.chain(orphans).map(|module| self.module_view(module, now)).collect(),
            watches: self.watches.iter().map(|(id, monitor)| self.watch_view(id, monitor, now)).collect(),
            converge: self.converge_view(now),
            config_problems: self.config_problems(now),
            file_problems: self.broken_files.failures(),
            warnings: self.catalog.warnings.clone(),
            journal: self.journal.iter().rev().cloned().collect(),
            processes: self.processes,
            stale_answers: self.stale_answers,
            config_map: format!("{}/{}", self.config.namespace, self.config.config_map),
            is_ending: self.life == Life::Draining || self.life == Life::Stopped,
        }
    }

    /// Returns how far converges are. Cheap.
    pub fn converge_view(&self, now: Time) -> ConvergeView {
        ConvergeView {
            generation: self.converge.generation,
            first_started: self.converge.first != First::NotStarted,
            first_done: self.converge.ready == Readiness::Yes,
            tasks: self.queues.unready(),
            finished_ago: self.converge.finished_at.map(|at| now.since(at)),
            began_ago: self.converge.begun.as_ref().map(|(at, _)| now.since(*at)),
            cause: self.converge.begun.as_ref().map(|(_, cause)| cause.to_string()),
        }
    }

    fn module_view(&self, module: &ModuleState, now: Time) -> ModuleView {
        let spec = &module.spec;
        ModuleView {
            name: spec.name.clone(),
            key: spec.key.clone(),
            order: spec.order,
            path: spec.path.clone(),
            phase: module.phase.as_str(),
            since: now.since(module.since),
            enabled: module.decision.as_ref().map(|_| module.is_on()),
            why: module.decision.as_ref().map_or_else(String::new, ToString::to_string),
            opinions: self.opinions(module, now),
            config_problem: self.user.module_problem(&spec.key).cloned(),
            last_error: module.last_error.clone(),
            revision: match module.release {
                Release::Deployed { revision, .. } => Some(revision),
                Release::Absent | Release::Broken | Release::Unknown | Release::Unmanaged => None,
            },
            release: match module.release {
                Release::Absent => "absent",
                Release::Broken => "broken",
                Release::Deployed { .. } => "deployed",
                Release::Unknown => "unknown",
                Release::Unmanaged => "unmanaged",
            },
            maintenance: self.user.is_in_maintenance(&spec.key),
            parked: module.parked.as_ref().map(|parked| parked.why.clone()),
            changed_objects: module.changed_objects.iter().cloned().collect(),
            broken_version: module.broken_version.clone().or_else(|| spec.broken.clone()),
            hooks: spec.hooks.iter().map(|hook| hook.id.clone()).collect(),
        }
    }

    /// Returns who says what about a module; before the first discovery that is what flags say.
    fn opinions(&self, module: &ModuleState, now: Time) -> Vec<OpinionView> {
        let decision = module.decision.clone().unwrap_or_else(|| self.flags_of(module));
        let view = |opinion: Opinion| {
            let (source, says, by) = match &opinion {
                Opinion::Static { on, file } => (Source::Static, *on, file.to_string()),
                Opinion::Dynamic { on, hook } => (Source::Dynamic, *on, hook.to_string()),
                Opinion::ConfigMap { on, key } => (Source::ConfigMap, *on, key.clone()),
                Opinion::Script(verdict) => {
                    let path = module.spec.enabled_script.as_ref().map(|script| script.path.to_string());
                    (Source::Script, verdict.enabled, path.unwrap_or_default())
                }
            };
            let since = match &opinion {
                Opinion::Static { .. } | Opinion::ConfigMap { .. } => None,
                Opinion::Dynamic { .. } => self.dynamic_flags.get(&module.spec.name).map(|flag| flag.since),
                Opinion::Script(_) => module.script.as_ref().map(|answer| answer.at),
            };
            let reason = match opinion {
                Opinion::Static { .. } | Opinion::ConfigMap { .. } => None,
                Opinion::Dynamic { .. } => {
                    self.dynamic_flags.get(&module.spec.name).map(|flag| flag.cause.to_string())
                }
                Opinion::Script(verdict) => verdict.reason,
            };
            OpinionView { source, says, by, reason, ago: since.map(|since| now.since(since)) }
        };
        decision.opinions.into_iter().map(view).collect()
    }

    fn config_problems(&self, now: Time) -> Vec<ConfigProblem> {
        let problem = |(failure, at): (Failure, Time)| ConfigProblem { failure, since: now.since(at) };
        self.user.problems_since().map(problem).collect()
    }

    fn watch_view(&self, id: MonitorId, monitor: &Monitor, now: Time) -> WatchView {
        let bindings = monitor.users.iter().filter_map(|key| {
            let hook = self.runnable_hook(&key.hook)?;
            Some((key.hook.clone(), hook.spec.kubernetes.get(key.index)?.name.clone()))
        });
        WatchView {
            id,
            kind: monitor.spec.selection.kind.clone(),
            bindings: bindings.collect(),
            objects: monitor.snapshot.len(),
            listed: monitor.listed,
            missing_kind: monitor.missing_kind.clone(),
            failure: monitor.failure.clone(),
            broken_for: monitor.broken_since.map(|since| now.since(since)),
        }
    }
}

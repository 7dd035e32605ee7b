//! The removal of what a module brought.

use crate::effect::Effect;
use crate::engine::Engine;
use crate::hook::{BindingContext, Lifecycle};
use crate::module::run::hooks_at;
use crate::module::{Phase, Release};
use crate::name::{ModuleName, QueueName, ReleaseName, Scope};
use crate::notice::Notice;
use crate::queue::fifo::Reason;
use crate::queue::next::Next;
use crate::task::in_flight::Work;
use crate::task::{Task, TaskKind};

/// The removal of a module and how far it got.
#[derive(Clone, Debug)]
pub(crate) struct ModuleDelete {
    /// The module.
    pub(crate) module: ModuleName,
    /// The step that runs now.
    pub(crate) stage: Stage,
}

/// A step of a [`ModuleDelete`].
///
/// ```text
/// Begin ─▶ BeforeDeleteHelm(0) ─▶ … ─▶ Uninstall ─▶ AfterDeleteHelm(0) ─▶ … ─▶ done
///   ▲                                                  │
///   └──────────────── any step fails ──────────────────┘   a removed release is not removed again
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stage {
    /// Nothing was done.
    Begin,
    /// The n-th `beforeDeleteHelm` hook.
    BeforeDeleteHelm(usize),
    /// The release.
    Uninstall,
    /// The n-th `afterDeleteHelm` hook.
    AfterDeleteHelm(usize),
}

impl ModuleDelete {
    /// Creates a removal that did not begin.
    pub(crate) fn new(module: ModuleName) -> Self {
        Self { module, stage: Stage::Begin }
    }

    /// Records that a hook of the current stage succeeded.
    pub(crate) fn hook_done(&mut self) {
        match &mut self.stage {
            Stage::BeforeDeleteHelm(n) | Stage::AfterDeleteHelm(n) => *n += 1,
            Stage::Begin | Stage::Uninstall => {}
        }
    }

    /// Records that there is no release any more.
    pub(crate) fn uninstalled(&mut self) {
        self.stage = Stage::AfterDeleteHelm(0);
    }
}

impl Engine {
    /// Does the next step of a removal.
    pub(crate) fn step_module_delete(&mut self, queue: &QueueName, mut task: Task) -> Next {
        loop {
            let TaskKind::ModuleDelete(delete) = &mut task.kind else { return Next::Done(task) };
            let name = delete.module.clone();
            let Some(module) = self.modules.get(&name).filter(|module| !module.is_on()) else {
                return Next::Gone(task);
            };
            let spec = std::sync::Arc::clone(&module.spec);
            if delete.stage == Stage::Begin && !module.is_active && module.release == Release::Absent {
                return Next::Gone(task);
            }
            let stale = module.stale_runs > 0;
            let has_release = spec.has_chart && module.release != Release::Absent;
            match delete.stage {
                Stage::Begin => {
                    if stale {
                        return Next::Wait(task, Reason::EarlierRun);
                    }
                    delete.stage =
                        if has_release { Stage::BeforeDeleteHelm(0) } else { Stage::AfterDeleteHelm(0) };
                    self.begin_deletion(&name);
                }
                Stage::BeforeDeleteHelm(n) => {
                    if let Some(hook) = hooks_at(&spec, Lifecycle::BeforeDeleteHelm).get(n) {
                        let context = vec![BindingContext::lifecycle(Lifecycle::BeforeDeleteHelm)];
                        return self.start_hook(queue, task, hook, context);
                    }
                    delete.stage = Stage::Uninstall;
                }
                Stage::Uninstall => {
                    let run = self.next_run();
                    let effect = Effect::UninstallRelease { run, release: ReleaseName::from(name.as_str()) };
                    return Next::Run(task, run, Work::Release(name), Box::new(effect));
                }
                Stage::AfterDeleteHelm(n) => {
                    if let Some(hook) = hooks_at(&spec, Lifecycle::AfterDeleteHelm).get(n) {
                        let context = vec![BindingContext::lifecycle(Lifecycle::AfterDeleteHelm)];
                        return self.start_hook(queue, task, hook, context);
                    }
                    self.finish_deletion(&name);
                    return Next::Done(task);
                }
            }
        }
    }

    fn begin_deletion(&mut self, name: &ModuleName) {
        self.set_phase(name, Phase::Deleting, None);
        self.disable_module_schedules(name);
        self.drop_tasks_of(name);
        self.disable_unlisted_bindings(&Scope::Module(name.clone()));
        let Some(module) = self.modules.get_mut(name) else { return };
        // Whatever comes next, the module's hooks have to prepare everything again.
        module.first_run_done = false;
        module.started_hooks.clear();
        if std::mem::take(&mut module.release_watched) {
            self.out.push(Effect::ForgetRelease { module: name.clone() });
        }
    }

    fn finish_deletion(&mut self, name: &ModuleName) {
        let scope = Scope::Module(name.clone());
        self.disable_bindings(&scope);
        if let Some(module) = self.modules.get_mut(name) {
            module.reset();
        }
        if let Some(section) = self.sections.get(name).and_then(|section| section.without_patches().ok()) {
            self.sections.insert(name.clone(), section);
        }
        self.notify(Notice::MetricsForgotten { scope });
        self.set_phase(name, Phase::Disabled, None);
    }

    /// Drops the tasks of a module that runs no more, wherever they are; its removal stays.
    pub(crate) fn drop_tasks_of(&mut self, name: &ModuleName) {
        for queue in self.queues.names() {
            let dropped = self.queues.retain(&queue, |task| {
                task.module() != Some(name) || matches!(task.kind, TaskKind::ModuleDelete(_))
            });
            self.forget(&queue, &dropped);
        }
    }
}

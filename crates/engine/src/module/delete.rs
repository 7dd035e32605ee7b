//! The removal of what a module brought.

use std::sync::Arc;
use std::time::Duration;

use super::state::{Leaving, Release, hooks_at};
use super::{Lower, Modules, Phase};
use crate::binding::Unfinished;
use crate::configuration::Configuration;
use crate::context::Context;
use crate::effect::Effect;
use crate::hook::Lifecycle;
use crate::name::{ModuleName, ReleaseName, Scope};
use crate::notice::Notice;
use crate::queue::{Next, Reason};
use crate::release_target::ReleaseTarget;
use crate::task::{Answer, DeleteStage, ModuleDelete, TaskHead, TaskKind};
use crate::time::Time;

/// How long the removal of a module waits for objects to be finalized. After that the others of its queue have their turn.
const LONGEST_END: Duration = Duration::from_mins(5);

/// How long a deletion is waited for to be told of by watches.
const UNTIL_SEEN: Duration = Duration::from_secs(1);

impl Modules {
    /// Does the next step of a removal.
    pub(crate) fn advance_delete(
        &mut self,
        lower: &mut Lower<'_>,
        head: &mut TaskHead,
        delete: &mut ModuleDelete,
    ) -> Next {
        let name = &delete.module;
        if let Some(module) = self.states.get_mut(name).filter(|module| !module.is_on()) {
            head.holds_since = Some(*module.removal_since.get_or_insert(lower.cx.now));
        }
        loop {
            let Some(module) = self.states.get(name).filter(|module| !module.is_on()) else {
                return Next::Gone;
            };
            let spec = Arc::clone(&module.spec);
            match delete.stage {
                DeleteStage::Begin => {
                    if self.is_nothing(name) {
                        return Next::Gone;
                    }
                    if lower.queues.has_earlier_run(name, &head.queue) {
                        return Next::Wait(Reason::EarlierRun);
                    }
                    if let Some(next) = self.look_for_release(lower, name) {
                        return next;
                    }
                    if spec.has_unread_hooks && std::mem::take(&mut delete.reads_hooks) {
                        // It ran in a process before this one.
                        let run = lower.cx.ids.run();
                        let effect = Effect::LoadModule { run, module: name.clone() };
                        return Next::Run(run, Answer::Task, Box::new(effect));
                    }
                    delete.stage = self.first_stage(lower.configuration, name);
                    self.begin_deletion(lower, name);
                }
                DeleteStage::BeforeDeleteHelm(n) => {
                    let point = Lifecycle::BeforeDeleteHelm;
                    if let Some(hook) = hooks_at(&spec, point).get(n) {
                        return self.start_lifecycle_hook(lower, head, hook, point);
                    }
                    delete.stage = DeleteStage::Uninstall;
                }
                DeleteStage::Uninstall => {
                    let target = self.release_place(lower.configuration, name);
                    return start_uninstall(lower.cx, name, target);
                }
                DeleteStage::Finalize(since) => {
                    if let Some(next) = self.unfinished(lower, name, since) {
                        delete.stage = DeleteStage::Finalize(since.or(Some(lower.cx.now)));
                        return next;
                    }
                    delete.stage = DeleteStage::AfterDeleteHelm(0);
                }
                DeleteStage::AfterDeleteHelm(n) => {
                    let point = Lifecycle::AfterDeleteHelm;
                    let hooks = hooks_at(&spec, point);
                    if let Some(hook) = hooks.get(n) {
                        return self.start_lifecycle_hook(lower, head, hook, point);
                    }
                    delete.stage = DeleteStage::FinalizeRest(None);
                    if hooks.is_empty() {
                        self.finish_deletion(lower, name);
                        return Next::Done;
                    }
                }
                DeleteStage::FinalizeRest(since) => {
                    if let Some(next) = self.unfinished(lower, name, since) {
                        delete.stage = DeleteStage::FinalizeRest(since.or(Some(lower.cx.now)));
                        return next;
                    }
                    self.finish_deletion(lower, name);
                    return Next::Done;
                }
            }
        }
    }

    /// Returns whether there is nothing of a module to remove.
    pub(super) fn is_nothing(&self, name: &ModuleName) -> bool {
        let module = self.states.get(name);
        module.is_none_or(|module| !module.is_active && module.release == Release::Absent)
    }

    /// Returns what the removal of a module begins with.
    fn first_stage(&self, configuration: &Configuration, name: &ModuleName) -> DeleteStage {
        let module = self.states.get(name);
        if module.is_some_and(|module| module.may_leave_release(configuration)) {
            DeleteStage::BeforeDeleteHelm(0)
        } else {
            DeleteStage::Finalize(None)
        }
    }

    /// Returns how long the removal of a module waits for objects that are being deleted, and that its hooks finalize; `None` if it
    /// goes on. `since` is when it began to wait.
    fn unfinished(&self, lower: &mut Lower<'_>, name: &ModuleName, since: Option<Time>) -> Option<Next> {
        let now = lower.cx.now;
        let since = since.unwrap_or(now);
        // Watches tell later of what was deleted than the API server answers.
        let settled = since + if self.config.longest_rest.is_zero() { Duration::ZERO } else { UNTIL_SEEN };
        let what = lower.bindings.leaving(name)?;
        let (what, until) = match what {
            Unfinished::Objects(what) => (what, since + LONGEST_END),
            Unfinished::Unknown => ("the first look at its objects".to_owned(), since + LONGEST_END),
            Unfinished::Living if now < settled => {
                ("what of its objects is deleted with it to be seen".to_owned(), settled)
            }
            Unfinished::Living => return None,
        };
        if now >= until {
            lower.bindings.left(name);
            let scope = Scope::Module(name.clone());
            let message = format!(
                "the module is removed, and for {} minutes it waited for {what}; the object stays until the module is on again, or somebody removes its finalizer",
                LONGEST_END.as_secs() / 60
            );
            lower.cx.notify(Notice::Warned { scope, message });
            return None;
        }
        Some(Next::Wait(Reason::Finalizing { what, until }))
    }

    fn begin_deletion(&mut self, lower: &mut Lower<'_>, name: &ModuleName) {
        let why = self.states.get(name).and_then(|module| Some(module.decision.as_ref()?.to_string()));
        self.set_phase(lower.cx, lower.configuration, name, Phase::Deleting, why);
        self.disable_schedules(lower.bindings, name);
        drop_tasks_of(lower, name);
        lower.bindings.disable_unlisted(lower.cx, &Scope::Module(name.clone()));
        let hooks = self.states.get(name).map(|module| module.spec.hooks.clone()).unwrap_or_default();
        lower.bindings.finalize_for(name, &hooks);
        let target = self.release_place(lower.configuration, name);
        let Some(module) = self.states.get_mut(name) else { return };
        let was_ready = module.leaving.is_some_and(|leaving| leaving.was_ready);
        // Without its release it is not removed yet: its last hooks have to succeed.
        module.is_active = true;
        module.leaving = Some(Leaving { was_ready: was_ready || module.first_run_done });
        // Whatever comes next, the module's hooks have to prepare everything again.
        module.first_run_done = false;
        module.started_hooks.clear();
        // Why its last run failed is no reason why it is not removed.
        module.last_error = None;
        if std::mem::take(&mut module.release_watched) {
            lower.cx.push(Effect::ForgetRelease { module: name.clone(), target });
        }
    }

    fn finish_deletion(&mut self, lower: &mut Lower<'_>, name: &ModuleName) {
        let scope = Scope::Module(name.clone());
        lower.bindings.left(name);
        lower.bindings.disable_scope(lower.cx, &scope);
        if let Some(module) = self.states.get_mut(name) {
            module.reset();
        }
        lower.configuration.remove_patches(lower.cx, name);
        lower.cx.notify(Notice::MetricsForgotten { scope });
        self.set_phase(lower.cx, lower.configuration, name, Phase::Disabled, None);
    }
}

/// Begins to remove the release of a module from a place.
pub(super) fn start_uninstall(cx: &mut Context, name: &ModuleName, target: ReleaseTarget) -> Next {
    let (run, release) = (cx.ids.run(), ReleaseName::from(name.as_str()));
    let effect = Effect::UninstallRelease { run, release, target };
    Next::Run(run, Answer::Release(name.clone()), Box::new(effect))
}

/// Drops the tasks of a module that runs no more, in all queues; its removal stays.
fn drop_tasks_of(lower: &mut Lower<'_>, name: &ModuleName) {
    lower.drop_tasks(|task| task.module() != Some(name) || matches!(task.kind, TaskKind::ModuleDelete(_)));
}

//! The steps of the work on one key. Only what a hook wrote, the API server and we ourselves fail.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use super::identity::ChildKey;
use super::key_state::{Answer, Carrying, End, KeyState, Pass, Process, Pruning, Wanted};
use super::patches;
use super::plan::{Desired, Plan, desired, doomed, named, plan, shown};
use super::progress::{Go, UNTIL_SEEN, children_taken, failed, not_applied};
use super::single::Controller;
use super::turns::ChildChange;
use crate::binding::timeout;
use crate::catalog::Hook;
use crate::cause::Cause;
use crate::config::Config;
use crate::configuration::{Carried, mismatch};
use crate::context::Context;
use crate::effect::{Effect, PatchAuthor, RunLabels};
use crate::event::{HookOutput, Usage};
use crate::failure::Failure;
use crate::hook::BindingContext;
use crate::hook::object_patch::ObjectPatch;
use crate::hook::reconcile::ReconcileResult;
use crate::hook::snapshot::Key;
use crate::module::{Control, Lower, Modules};
use crate::name::{HookId, TaskId};
use crate::notice::{HookEnd, Notice};
use crate::queue::Reason;
use crate::reconcile::{Rest, Step};

/// What the work on a key is part of.
pub(super) struct Head {
    pub(super) task: TaskId,
    pub(super) cause: Cause,
}

/// What a run of a hook led to beside its objects.
#[derive(Debug, Default)]
pub(super) struct Aftermath {
    /// Whether the values of its scope differ.
    pub(super) values_changed: bool,
    /// Whether it said something new about which modules are on.
    pub(super) flags_changed: bool,
}

/// What steps work with.
pub(super) struct Surroundings<'a, 'l> {
    pub(super) config: &'a Config,
    pub(super) modules: &'a Modules,
    pub(super) lower: &'a mut Lower<'l>,
    /// Whether it is known which modules there are.
    pub(super) is_converged: bool,
    pub(super) head: Head,
    pub(super) aftermath: Aftermath,
}

impl Controller {
    /// Does the next step of the work on a key.
    pub(super) fn step(&mut self, around: &mut Surroundings<'_, '_>, key: &Key) -> Step {
        loop {
            let Some(state) = self.keys.get_mut(key) else { return Step::Done };
            let (pass, answer) = (mem::take(&mut state.pass), state.answer.take());
            let go = match pass {
                Pass::Idle => self.begin(around, key),
                Pass::Finalizing => self.finalizer_added(key, answer),
                Pass::Process(process) => self.process_ended(around, key, process, answer),
                Pass::Carrying(process, wanted, carrying) => {
                    self.carried_on(around, (process, wanted, carrying), answer)
                }
                Pass::Applying(wanted, tried) => self.applied(around, key, wanted, &tried, answer),
                Pass::Status(wanted, written) => self.status_written(around, key, wanted, written, answer),
                Pass::Pruning(wanted, pruning) => self.prune(around.lower.cx, key, wanted, pruning, answer),
                Pass::TakingOver => children_taken(answer),
                Pass::Recording(wanted) => self.end_recorded(key, wanted, answer),
                Pass::Unfinalizing => self.finalizer_removed(key, answer),
                Pass::Stalling => self.stalled(key, answer),
            };
            match go {
                Go::On(pass) => self.set_pass(key, pass),
                Go::Stop(pass, step) => {
                    self.set_pass(key, pass);
                    return step;
                }
            }
        }
    }

    fn set_pass(&mut self, key: &Key, pass: Pass) {
        if let Some(state) = self.keys.get_mut(key) {
            state.pass = pass;
        }
    }

    /// Begins with the object as it is now.
    fn begin(&mut self, around: &mut Surroundings<'_, '_>, key: &Key) -> Go {
        let Some(parent) = self.parent(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        let (is_finalize, generation) = (parent.metadata.is_deleting(), parent.metadata.generation);
        let finalizers = self.finalizers(parent.metadata);
        let (are_held, are_settled) = (finalizers.are_held(), finalizers.are_settled());
        let is_being_orphaned = finalizers.are_being_orphaned();
        let state = self.keys.get(key);
        let is_released = state.is_some_and(KeyState::is_released);
        let is_finalized =
            is_finalize && (finalizers.is_finalized() || state.is_some_and(|state| state.end != End::Open));
        if is_finalize && (!are_held || is_released || self.is_retired) {
            return self.let_go(around.lower.cx, key);
        }
        if self.is_retired {
            return Go::Stop(Pass::Idle, Step::Done);
        }
        if is_finalize && is_being_orphaned {
            // Who asked that children stay wants none of them to go before they are nobody's.
            let reason = "the garbage collector to part it from its children (--cascade=orphan)".to_owned();
            return Go::Stop(Pass::Idle, Step::Rest(Rest { reason, after: None, is_end: false }));
        }
        if is_finalized {
            let obstacle = self.obstacle(is_finalize);
            let go = self.held_up(around.config, around.lower.cx, key, obstacle);
            let go = go.or_else(|| self.take_over(around, key));
            return go.unwrap_or_else(|| self.go_on_with_end(key));
        }
        let hook = match hook_of(around.modules, &self.id.hook, is_finalize) {
            Ok(hook) => hook,
            Err(reason) => return Go::Stop(Pass::Idle, Step::Wait(reason)),
        };
        let broken = around.modules.broken_version(&hook.id);
        let obstacle = self.obstacle(is_finalize).or(broken);
        if let Some(go) = self.held_up(around.config, around.lower.cx, key, obstacle) {
            return go;
        }
        if !is_finalize && !are_settled {
            return self.settle_finalizer(around.lower.cx, key);
        }
        if is_finalize && self.binding.finalizer.is_none() {
            // It named one before, and is shown no ends any more.
            return self.release(around.lower.cx, key);
        }
        if is_finalize && let Some(go) = self.take_over(around, key) {
            return go;
        }
        if let Some(rest) = self.slowed(around.config, around.lower.cx.now, around.head.task, key) {
            return rest;
        }
        if let Some(Reason::Rate { until }) = around.lower.bindings.held_up(&hook.id, around.lower.cx.now) {
            return Go::Stop(Pass::Idle, Step::Later(until.since(around.lower.cx.now)));
        }
        let Some(reconciliation) = self.shown(key, is_finalize) else {
            return Go::Stop(Pass::Idle, Step::Done);
        };
        let contexts = vec![BindingContext::reconcile(&self.binding, reconciliation)];
        let lower = &mut *around.lower;
        let contexts = lower.bindings.show(&hook, contexts, lower.cx.now);
        let values = around.modules.input(lower.configuration, &hook.id.scope);
        self.read = Some(values.clone());
        if let Some(state) = self.keys.get_mut(key) {
            state.is_stale = false;
            state.gone.clear();
            state.turns.run();
        }
        let labels = self.labels(&around.head);
        let run = lower.cx.ids.run();
        let timeout = timeout(&hook.spec.settings, around.config.hook_timeout);
        let process = Process { hook: Arc::clone(&hook), values: values.clone(), is_finalize, generation };
        let effect = Effect::RunHook { run, hook, contexts, values, timeout, labels };
        lower.queues.process_began();
        Go::Stop(Pass::Process(Box::new(process)), Step::Write(run, Box::new(effect)))
    }

    fn labels(&self, head: &Head) -> RunLabels {
        RunLabels {
            task: head.task,
            queue: self.queue.clone(),
            binding_type: BINDING_TYPE,
            binding: Arc::clone(&self.id.binding),
            cause: head.cause.clone(),
        }
    }

    /// Returns the step that changes objects as the hook.
    pub(super) fn write(&self, cx: &mut Context, patches: Vec<ObjectPatch>) -> Step {
        let (run, author) = (cx.ids.run(), PatchAuthor::Hook(self.id.hook.clone()));
        Step::Write(run, Box::new(Effect::PatchObjects { run, author, patches: patches.into() }))
    }

    fn process_ended(
        &mut self,
        around: &mut Surroundings<'_, '_>,
        key: &Key,
        process: Box<Process>,
        answer: Option<Answer>,
    ) -> Go {
        let Some(Answer::Hook(outcome, usage)) = answer else {
            return Go::Stop(Pass::Idle, Step::Failed(mismatch("a hook")));
        };
        let mut output = match *outcome {
            Ok(output) => output,
            Err(failure) => return self.hook_failed(around, &process, failure, usage),
        };
        let Some(parent) = self.parent(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        let is_early = !process.is_finalize && output.reconcile.finalized;
        let wanted = Wanted {
            result: mem::take(&mut output.reconcile),
            is_finalize: process.is_finalize,
            generation: process.generation,
            uid: Arc::clone(&parent.metadata.uid),
        };
        if let Some(state) = self.keys.get_mut(key) {
            state.is_finalized_early = is_early;
        }
        if output.failed.is_none()
            && let Err(failure) = self.desired(key, &wanted.result)
        {
            return self.hook_failed(around, &process, failure, usage);
        }
        self.carry_out(around, process, wanted, output, usage)
    }

    fn hook_failed(
        &self,
        around: &mut Surroundings<'_, '_>,
        process: &Process,
        failure: Failure,
        usage: Option<Usage>,
    ) -> Go {
        self.report(around, process, usage, HookEnd::Error);
        let lower = &around.lower;
        let failure = lower.configuration.told(failure, self.id.hook.scope.module(), Some(&process.values));
        Go::Stop(Pass::Idle, Step::Failed(failure))
    }

    fn report(
        &self,
        around: &mut Surroundings<'_, '_>,
        process: &Process,
        usage: Option<Usage>,
        outcome: HookEnd,
    ) {
        around.lower.cx.notify(Notice::HookRan {
            hook: process.hook.id.clone(),
            binding: BINDING_TYPE,
            queue: self.queue.clone(),
            usage,
            outcome,
            is_task: true,
            startup: around.head.cause.is_of_start(),
        });
    }

    /// Carries out what the hook wrote into other files than its result.
    fn carry_out(
        &mut self,
        around: &mut Surroundings<'_, '_>,
        process: Box<Process>,
        wanted: Wanted,
        output: HookOutput,
        usage: Option<Usage>,
    ) -> Go {
        let (lower, cause) = (&mut *around.lower, &around.head.cause);
        let carried = lower.configuration.hook_wrote(lower.cx, &process.hook, output, usage, cause);
        self.carried(around, process, wanted, carried)
    }

    fn carried_on(
        &mut self,
        around: &mut Surroundings<'_, '_>,
        (process, wanted, carrying): (Box<Process>, Wanted, Carrying),
        answer: Option<Answer>,
    ) -> Go {
        let (lower, cause) = (&mut *around.lower, &around.head.cause);
        let carried = match (carrying, answer) {
            (Carrying::Patching(prepared), Some(Answer::Patched(outcome))) => {
                lower.configuration.objects_patched(lower.cx, &process.hook, *prepared, outcome, cause)
            }
            (Carrying::Saving(prepared), Some(Answer::Saved(run, outcome))) => {
                lower.configuration.hook_saved(lower.cx, run, &process.hook, *prepared, outcome, cause)
            }
            (Carrying::Patching(_) | Carrying::Saving(_), _) => {
                return Go::Stop(Pass::Idle, Step::Failed(mismatch("what a hook wrote")));
            }
        };
        self.carried(around, process, wanted, carried)
    }

    fn carried(
        &mut self,
        around: &mut Surroundings<'_, '_>,
        process: Box<Process>,
        wanted: Wanted,
        carried: Carried,
    ) -> Go {
        match carried {
            Carried::Patching(prepared, run, effect) => {
                let pass = Pass::Carrying(process, wanted, Carrying::Patching(Box::new(prepared)));
                Go::Stop(pass, Step::Write(run, Box::new(effect)))
            }
            Carried::Saving(prepared, run, effect) => {
                let pass = Pass::Carrying(process, wanted, Carrying::Saving(Box::new(prepared)));
                Go::Stop(pass, Step::Write(run, Box::new(effect)))
            }
            Carried::Failed(failure, usage) => self.hook_failed(around, &process, failure, usage),
            Carried::Done { usage, changed, flags_changed } => {
                self.report(around, &process, usage, HookEnd::Success);
                around.aftermath.values_changed |= changed;
                around.aftermath.flags_changed |= flags_changed;
                Go::On(Pass::Applying(wanted, Vec::new()))
            }
        }
    }

    /// Returns the children that a result asks for.
    fn desired<'r>(&self, key: &Key, result: &'r ReconcileResult) -> Result<Vec<Desired<'r>>, Failure> {
        let children = result.children.as_deref().unwrap_or_default();
        if children.is_empty() {
            return Ok(Vec::new());
        }
        self.parent(key).map_or_else(
            || Ok(Vec::new()),
            |parent| desired(&self.binding, &parent, &self.children, children),
        )
    }

    /// Applies the children, then goes on to the status. `tried` is what was written, if anything was.
    fn applied(
        &mut self,
        around: &mut Surroundings<'_, '_>,
        key: &Key,
        wanted: Wanted,
        tried: &[ChildChange],
        answer: Option<Answer>,
    ) -> Go {
        let is_answered = answer.is_some();
        let failure = failed(answer);
        if is_answered && let Some(state) = self.keys.get_mut(key) {
            if failure.is_some() {
                for change in tried {
                    state.attempts.remove(change.child());
                }
            } else {
                // What was refused is tried again, and goes round in no circle.
                for change in tried {
                    change.count_in(&mut state.turns);
                }
            }
        }
        if !self.is_same(key, &wanted) {
            return Go::On(Pass::Idle);
        }
        if let Some(failure) = failure {
            return not_applied(failure);
        }
        // Of an object that is finalized nothing is made any more.
        if is_answered || (wanted.is_finalize && wanted.result.finalized) {
            return self.status(around, key, wanted);
        }
        match self.planned(key, &wanted.result) {
            Err(failure) => Go::Stop(Pass::Idle, Step::Failed(failure)),
            Ok(plan) if plan.patches.is_empty() => {
                self.note_missing(key, &plan);
                self.status(around, key, wanted)
            }
            Ok(plan) => {
                self.note_missing(key, &plan);
                let step = self.write(around.lower.cx, plan.patches);
                // The watch may tell of the write, and of what others make of it, before the write is answered.
                if let Some(state) = self.keys.get_mut(key) {
                    state.attempts.extend(plan.attempts);
                }
                Go::Stop(Pass::Applying(wanted, plan.changes), step)
            }
        }
    }

    /// Notes which children are not there as they should be: those that are on their way out, and those that were made before and
    /// are not seen. If that stays so, the next run makes them again.
    fn note_missing(&mut self, key: &Key, plan: &Plan) {
        let Some(state) = self.keys.get_mut(key) else { return };
        let before = mem::take(&mut state.unseen);
        let again = before.into_iter().filter(|child| plan.attempts.contains_key(child));
        state.unseen = again.chain(plan.unseen.iter().cloned()).collect();
        state.leaving.clone_from(&plan.leaving);
        for child in plan.unseen.iter().filter(|child| !plan.attempts.contains_key(child)) {
            state.attempts.remove(child);
            state.turns.made(child);
        }
    }

    /// Returns what has to be done about the children.
    fn planned(&self, key: &Key, result: &ReconcileResult) -> Result<Plan, Failure> {
        let desired = self.desired(key, result)?;
        let (Some(parent), Some(state)) = (self.parent(key), self.keys.get(key)) else {
            return Ok(Plan::default());
        };
        plan(&self.binding, &parent, &self.children, desired, state)
    }

    /// Returns whether the object is still the one that the hook was shown.
    fn is_same(&self, key: &Key, wanted: &Wanted) -> bool {
        self.parent(key).is_some_and(|parent| {
            parent.metadata.uid == wanted.uid && parent.metadata.is_deleting() == wanted.is_finalize
        })
    }

    /// Deletes the next child that is not wanted any more. All gone, the key is done.
    fn prune(
        &mut self,
        cx: &mut Context,
        key: &Key,
        wanted: Wanted,
        mut pruning: Pruning,
        answer: Option<Answer>,
    ) -> Go {
        if let Some(failure) = failed(answer) {
            return Go::Stop(Pass::Idle, Step::Failed(failure));
        }
        let is_stale = self.keys.get(key).is_some_and(|state| state.is_stale);
        if !self.is_same(key, &wanted) || (is_stale && !pruning.deleted.is_empty()) {
            return Go::On(Pass::Idle);
        }
        let is_final = wanted.is_finalize && wanted.result.finalized;
        let kept: BTreeSet<ChildKey> = match &wanted.result.children {
            None if !is_final => return self.finished(cx, key, &wanted),
            Some(children) if !is_final => named(&self.binding, &self.children, children).collect(),
            None | Some(_) => BTreeSet::new(),
        };
        if is_final {
            self.note_end(key);
        }
        let Some(parent) = self.parent(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        let next = doomed(&parent, &self.children, &kept).into_iter().next();
        if let Some((child, is_deleting)) = next {
            if is_final && !self.is_end_recorded(key) {
                return self.record_end(cx, key, wanted);
            }
            let what = shown(&self.binding, &child);
            let kind = self.binding.children.get(child.0).map(|child| child.kind.clone());
            if is_deleting || !pruning.deleted.insert(child.clone()) {
                pruning.deleted.insert(child);
                let reason = format!("{what} to be gone");
                return Go::Stop(Pass::Pruning(wanted, pruning), Step::Wait(reason));
            }
            let Some(kind) = kind else { return self.finished(cx, key, &wanted) };
            if let Some(state) = self.keys.get_mut(key).filter(|_| !is_final) {
                state.turns.removed(&child);
            }
            let step = self.write(cx, vec![patches::delete(&kind, &child.1)]);
            return Go::Stop(Pass::Pruning(wanted, pruning), step);
        }
        if is_final {
            let written_to = self.keys.get(key).and_then(|state| state.written_to.as_ref());
            let is_unseen = written_to == Some(&parent.metadata.resource_version);
            if is_unseen && !mem::replace(&mut pruning.has_waited, true) {
                // The finalizer goes from the object as it is. That may be as it was, whatever was written.
                let reason = "its status to be seen".to_owned();
                let rest = Rest { reason, after: Some(UNTIL_SEEN), is_end: false };
                return Go::Stop(Pass::Pruning(wanted, pruning), Step::Rest(rest));
            }
            return self.release(cx, key);
        }
        if pruning.deleted.is_empty() { self.finished(cx, key, &wanted) } else { Go::On(Pass::Idle) }
    }
}

/// What log lines and metrics call runs of reconcile bindings.
pub(super) const BINDING_TYPE: &str = "reconcile";

/// Returns a hook if it may run now, or what it waits for.
fn hook_of(modules: &Modules, id: &HookId, is_finalize: bool) -> Result<Arc<Hook>, String> {
    match modules.control(id) {
        Control::Full(hook) => Ok(Arc::clone(hook)),
        Control::Ends(hook) if is_finalize => Ok(Arc::clone(hook)),
        Control::Ends(_) => Err(format!("{} to be on again: it is being removed", scope(id))),
        Control::Off => Err(format!("{} to be on", scope(id))),
        Control::NotYet => Err(format!("the first run of {}", scope(id))),
    }
}

fn scope(hook: &HookId) -> String {
    hook.scope.module().map_or_else(|| "the global hooks".to_owned(), |module| format!("module {module}"))
}

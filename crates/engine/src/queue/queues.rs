//! All queues: what is put in them, taken out and dropped, and which of them is worth a look.
//!
//! It is long because whatever changes a queue has to note that it is worth a look, and how many tasks there are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::counts::Counts;
use super::journal::Journal;
use super::{Blocked, Queue, Reason};
use crate::cause::Cause;
use crate::config::Config;
use crate::context::Context;
use crate::effect::Effect;
use crate::hook::combine;
use crate::memory::ShortMemory;
use crate::name::{HookId, ModuleName, QueueName, RunId};
use crate::notice::Notice;
use crate::task::{ConvergeMode, HookRun, Running, Task, TaskKind, Trigger};
use crate::time::Time;

/// How many runs of one hook may wait in a queue before they are merged.
const COMPACT_AT: usize = 100;

/// All queues by name, and how their tasks ended.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub(super) config: Arc<Config>,
    pub(super) by_name: BTreeMap<QueueName, Queue>,
    /// Queues whose first task is worth a look.
    pub(super) dirty: BTreeSet<QueueName>,
    /// When a queue becomes worth a look.
    pub(super) wakeups: BTreeSet<(Time, QueueName)>,
    /// Queues whose first task waits for something.
    waiting: BTreeSet<QueueName>,
    /// Queues whose first task waits for a place among the running hooks, and since when.
    slots: BTreeSet<(Time, QueueName)>,
    /// Which queue waits for which answer.
    runs: BTreeMap<RunId, QueueName>,
    pub(super) counts: Counts,
    /// When the first task was put that readiness waits for, since the last call of [`Queues::take_expected`], and why.
    expected: Option<(Time, Cause)>,
    /// Queues whose length changed since the last call of [`Queues::report_lengths`].
    changed: BTreeSet<QueueName>,
    /// The lengths that were reported last.
    reported: BTreeMap<QueueName, usize>,
    pub(super) journal: Journal,
    /// How many processes of hooks and scripts run.
    pub(super) processes: usize,
    /// How many bytes are used and may be used, while that is close.
    pub(super) short_memory: Option<ShortMemory>,
    /// How many answers came that were not wanted any more.
    pub(super) stale_answers: u64,
    /// How often somebody changed what may have been the reason of failures.
    pub(super) repairs: u64,
}

/// An end of a queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// Behind all others.
    Back,
    /// Before all others that do not run.
    Front,
}

/// What an answer that came is worth.
#[derive(Debug)]
pub(crate) enum Finished {
    /// Its task waits for it.
    Awaited(Box<Running>),
    /// Its task was dropped; the queue goes on.
    Dropped,
    /// No task waits for it.
    Unknown,
}

/// What [`Queues::drop_tasks`] took out.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    /// The head whose effect is in flight.
    pub(crate) running: Option<Task>,
    /// The others.
    pub(crate) waiting: Vec<Task>,
}

impl Dropped {
    /// Returns whether anything was taken out.
    pub(crate) fn any(&self) -> bool {
        self.running.is_some() || !self.waiting.is_empty()
    }

    /// Iterates over all of it.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.running.iter().chain(&self.waiting)
    }
}

impl Queues {
    /// Returns an empty `main` queue.
    pub(crate) fn new(config: Arc<Config>) -> Self {
        Self { config, by_name: BTreeMap::from([(QueueName::main(), Queue::default())]), ..Self::default() }
    }

    /// Makes sure that the queue exists.
    pub(crate) fn ensure(&mut self, name: &QueueName) {
        if !self.by_name.contains_key(name) {
            self.by_name.insert(name.clone(), Queue::default());
        }
    }

    /// Iterates over the queues, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&QueueName, &Queue)> {
        self.by_name.iter()
    }

    /// Returns the names of all queues.
    pub(crate) fn names(&self) -> Vec<QueueName> {
        self.by_name.keys().cloned().collect()
    }

    /// Iterates over the tasks of `main`, the running one first.
    pub(crate) fn main_tasks(&self) -> impl Iterator<Item = &Task> {
        self.by_name.get(&QueueName::main()).into_iter().flat_map(Queue::iter)
    }

    /// Returns the first task of `main`, unless its answer is not wanted any more.
    pub(crate) fn main_head(&self) -> Option<&Task> {
        let main = self.by_name.get(&QueueName::main())?;
        match &main.running {
            Some(running) => Some(&running.task).filter(|_| !running.dropped),
            None => main.tasks.front(),
        }
    }

    /// Puts new tasks in a queue, in their order, and reports them.
    pub(crate) fn put(&mut self, cx: &mut Context, name: &QueueName, end: End, tasks: Vec<Task>) {
        if self.expected.is_none() {
            let full = |task: &&Task| {
                task.counts_for_readiness()
                    && task.converge().is_none_or(|converge| converge.mode == ConvergeMode::Full)
            };
            let converge = tasks.iter().filter(full).find(|task| task.converge().is_some());
            let expected = converge.or_else(|| tasks.iter().find(full));
            self.expected = expected.map(|task| (cx.now, task.head.cause.clone()));
        }
        for task in &tasks {
            cx.notify(Notice::TaskQueued { task: task.info() });
        }
        self.insert(name, end, tasks);
    }

    /// Puts new tasks in the queue of each, in their order, and reports them.
    pub(crate) fn put_each(&mut self, cx: &mut Context, end: End, tasks: Vec<Task>) {
        let mut by_queue: BTreeMap<QueueName, Vec<Task>> = BTreeMap::new();
        for task in tasks {
            by_queue.entry(task.head.queue.clone()).or_default().push(task);
        }
        for (name, tasks) in by_queue {
            self.put(cx, &name, end, tasks);
        }
    }

    /// Puts new tasks before the first of a queue that does not run and that `is_later` accepts; behind all if there is none.
    pub(crate) fn put_before(
        &mut self,
        cx: &mut Context,
        name: &QueueName,
        tasks: Vec<Task>,
        is_later: impl Fn(&Task) -> bool,
    ) {
        let place = self.by_name.get(name).and_then(|queue| queue.tasks.iter().position(is_later));
        let rest = place.and_then(|place| Some(self.by_name.get_mut(name)?.tasks.split_off(place)));
        self.put(cx, name, End::Back, tasks);
        if let Some((rest, queue)) = rest.zip(self.by_name.get_mut(name)) {
            queue.tasks.extend(rest);
            queue.blocked = None;
        }
    }

    /// Puts a task back at the head of its queue, to go on at once.
    pub(crate) fn resume(&mut self, task: Task) {
        self.insert(&task.head.queue.clone(), End::Front, vec![task]);
    }

    /// Puts a task at the end of another queue.
    pub(crate) fn move_to(&mut self, mut task: Task, name: &QueueName) {
        task.head.queue = name.clone();
        self.insert(name, End::Back, vec![task]);
    }

    fn insert(&mut self, name: &QueueName, end: End, tasks: Vec<Task>) {
        for task in &tasks {
            self.counts.add(task);
        }
        let queue = self.by_name.entry(name.clone()).or_default();
        match end {
            End::Back => queue.tasks.extend(tasks),
            End::Front => {
                for task in tasks.into_iter().rev() {
                    queue.tasks.push_front(task);
                }
                queue.blocked = None;
            }
        }
        self.touch(name);
    }

    /// Puts the run of a hook at the end of its queue, or adds it to the one that waits there if `merges`.
    pub(crate) fn put_hook_run(
        &mut self,
        cx: &mut Context,
        name: &QueueName,
        run: HookRun,
        merges: bool,
        (trigger, cause): (Trigger, Cause),
    ) {
        let last = self.by_name.get_mut(name).and_then(|queue| queue.tasks.back_mut());
        if let Some(waiting) = last.filter(|_| merges).and_then(Task::hook_run_mut)
            && waiting.is_of_events(&run.hook)
            && waiting.allow_failure == run.allow_failure
        {
            return combine::append(&mut waiting.contexts, run.contexts);
        }
        let hook = run.hook.clone();
        let task = Task::new(cx, name, TaskKind::HookRun(run), trigger, cause, None);
        self.put(cx, name, End::Back, vec![task]);
        let before = self.counts.waiting_runs(name, &hook);
        if merges && before > COMPACT_AT {
            self.rebuild(name, |tasks| compacted(tasks, &hook));
            let after = self.counts.waiting_runs(name, &hook);
            cx.notify(Notice::QueueCompacted { queue: name.clone(), hook, before, after });
        }
    }

    /// Takes the first task out if it may go on at `now`. It has to be put back, run or dropped.
    pub(crate) fn take_ready(&mut self, name: &QueueName, now: Time) -> Option<Task> {
        let queue = self.by_name.get_mut(name)?;
        if queue.running.is_some() {
            return None;
        }
        match queue.tasks.front()?.head.not_before {
            Some(until) if until > now => {
                let delay = match &queue.blocked {
                    Some(Blocked::Backoff { delay, .. }) => *delay,
                    Some(Blocked::Waiting { .. }) | None => until.since(now),
                };
                self.block(name, Blocked::Backoff { until, delay });
                None
            }
            Some(_) | None => {
                queue.blocked = None;
                let task = queue.tasks.pop_front()?;
                self.counts.remove(&task);
                self.touch(name);
                Some(task)
            }
        }
    }

    /// Takes the first waiting task out if `wanted` accepts it.
    pub(crate) fn take_next(&mut self, name: &QueueName, wanted: impl Fn(&Task) -> bool) -> Option<Task> {
        let queue = self.by_name.get_mut(name)?;
        if !queue.tasks.front().is_some_and(wanted) {
            return None;
        }
        let task = queue.tasks.pop_front()?;
        self.counts.remove(&task);
        self.touch(name);
        Some(task)
    }

    /// Changes the first task that `change` accepts, the running one too, and takes it back if it was aside.
    ///
    /// Nothing that is counted may change.
    pub(crate) fn edit(&mut self, name: &QueueName, mut change: impl FnMut(&mut Task) -> bool) -> bool {
        let Some(queue) = self.by_name.get_mut(name) else { return false };
        let running =
            queue.running.as_mut().filter(|running| !running.dropped).map(|running| &mut running.task);
        let found = running.into_iter().chain(&mut queue.tasks).any(&mut change);
        if found {
            self.touch(name);
        }
        found || self.edit_aside(name, change)
    }

    /// Puts `task` first in its queue and records why it does not go on. What comes between two attempts goes first, also if it
    /// was queued while this one was under way.
    pub(super) fn put_blocked(&mut self, mut task: Task, blocked: Blocked) {
        self.counts.add(&task);
        let name = task.head.queue.clone();
        let queue = self.by_name.entry(name.clone()).or_default();
        let between = queue.tasks.iter().position(Task::comes_between_attempts);
        let between =
            between.filter(|_| !task.comes_between_attempts()).and_then(|at| queue.tasks.remove(at));
        let has_to_wait = between.is_some();
        if between.as_ref().is_some_and(|between| between.converge().is_some()) {
            // What somebody changed meanwhile may be what it failed of.
            task.head.not_before = None;
        }
        queue.tasks.push_front(task);
        if let Some(between) = between {
            queue.tasks.push_front(between);
        }
        self.touch(&name);
        if !has_to_wait {
            self.block(&name, blocked);
        }
    }

    fn block(&mut self, name: &QueueName, blocked: Blocked) {
        let Some(queue) = self.by_name.get_mut(name) else { return };
        if let Blocked::Waiting { reason, since } = &blocked {
            self.waiting.insert(name.clone());
            if *reason == Reason::Slot {
                self.slots.insert((*since, name.clone()));
            }
        }
        queue.blocked = Some(blocked);
        if let Some(until) = queue.wakeup() {
            self.wakeups.insert((until, name.clone()));
        }
        self.dirty.remove(name);
    }

    /// Makes `running` the head of its queue.
    pub(super) fn put_running(&mut self, running: Running) {
        let name = running.task.head.queue.clone();
        if !running.dropped {
            self.counts.add_unready(&running.task);
        }
        self.runs.insert(running.run, name.clone());
        self.touch(&name);
        self.by_name.entry(name).or_default().running = Some(running);
    }

    /// Takes the task out whose effect ended. Returns `None` when no task waits for the answer.
    pub(super) fn take_running(&mut self, run: RunId) -> Option<Running> {
        let name = self.runs.remove(&run)?;
        let running = self.by_name.get_mut(&name)?.running.take()?;
        if !running.dropped {
            self.counts.remove_unready(&running.task);
        }
        self.touch(&name);
        Some(running)
    }

    /// Iterates over what is in flight.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Running> {
        self.runs.values().filter_map(|name| self.by_name.get(name)?.running.as_ref())
    }

    /// Ends the changes of a module's release that are in flight because of tasks that `is_outdated` accepts. Only who has a queue of
    /// its own is ended so: what others begin comes to its end.
    pub(crate) fn end_attempts(
        &self,
        cx: &mut Context,
        module: &ModuleName,
        is_outdated: impl Fn(&Task) -> bool,
    ) {
        let of_module = self.in_flight().filter(|running| running.task.module() == Some(module));
        let alone = of_module.filter(|running| running.task.head.queue.is_temporary());
        for running in alone.filter(|running| running.answer.can_be_cancelled()) {
            if is_outdated(&running.task) {
                cx.push(Effect::CancelRun { run: running.run });
            }
        }
    }

    /// Returns whether an effect of the module is in flight that has to end before a task of the module begins in a queue: its answer
    /// is not wanted any more, or it gave way and is not through.
    pub(crate) fn has_earlier_run(&self, module: &ModuleName, queue: &QueueName) -> bool {
        self.in_flight().filter(|running| running.task.module() == Some(module)).any(|running| {
            let of_run = &running.task.head.queue;
            running.dropped || of_run != queue && of_run.home().is_some()
        })
    }

    /// Returns the task that waits for `run`, with its effect.
    pub(crate) fn running(&self, run: RunId) -> Option<&Running> {
        self.by_name.get(self.runs.get(&run)?)?.running.as_ref()
    }

    /// Returns the same to be changed.
    pub(super) fn running_mut(&mut self, run: RunId) -> Option<&mut Running> {
        self.by_name.get_mut(self.runs.get(&run)?)?.running.as_mut()
    }

    /// Drops the tasks of a queue that `keep` rejects.
    ///
    /// A running one stays at the head until its effect ends; its answer is not wanted any more.
    pub(crate) fn drop_tasks(&mut self, name: &QueueName, keep: impl Fn(&Task) -> bool) -> Dropped {
        let mut dropped = Dropped::default();
        let Some(queue) = self.by_name.get_mut(name) else { return dropped };
        if let Some(running) =
            queue.running.as_mut().filter(|running| !running.dropped && !keep(&running.task))
        {
            running.dropped = true;
            self.counts.remove_unready(&running.task);
            dropped.running = Some(running.task.clone());
        }
        if queue.tasks.iter().any(|task| !keep(task)) {
            let tasks = std::mem::take(&mut queue.tasks);
            let (kept, gone): (Vec<Task>, Vec<Task>) = tasks.into_iter().partition(&keep);
            queue.tasks = kept.into();
            queue.blocked = None;
            dropped.waiting = gone;
        }
        for task in &dropped.waiting {
            self.counts.remove(task);
        }
        self.drop_aside(name, keep, &mut dropped);
        if dropped.any() {
            self.touch(name);
        }
        dropped
    }

    /// Puts all waiting tasks of the queue through `change`.
    pub(super) fn rebuild(&mut self, name: &QueueName, change: impl FnOnce(Vec<Task>) -> Vec<Task>) {
        let Some(queue) = self.by_name.get_mut(name) else { return };
        let tasks: Vec<Task> = std::mem::take(&mut queue.tasks).into();
        queue.blocked = None;
        for task in &tasks {
            self.counts.remove(task);
        }
        self.insert(name, End::Back, change(tasks));
    }

    /// Makes the tasks of the queue that failed ready at once.
    pub(crate) fn cancel_backoff(&mut self, name: &QueueName) {
        let Some(queue) = self.by_name.get_mut(name) else { return };
        for task in &mut queue.tasks {
            task.head.not_before = None;
        }
        if let Some(Blocked::Backoff { .. }) = queue.blocked {
            queue.blocked = None;
        }
        self.touch(name);
        self.take_back_failed(name, |_| true);
    }

    /// Marks all queues as worth a look whose first task waits for something that `wanted` accepts.
    pub(crate) fn wake(&mut self, wanted: impl Fn(&Reason) -> bool) {
        let names: Vec<QueueName> = self.waiting.iter().cloned().collect();
        for name in names {
            let reason = match self.by_name.get(&name).and_then(|queue| queue.blocked.as_ref()) {
                Some(Blocked::Waiting { reason, .. }) => reason,
                Some(Blocked::Backoff { .. }) | None => {
                    self.waiting.remove(&name);
                    continue;
                }
            };
            if wanted(reason) {
                self.waiting.remove(&name);
                self.dirty.insert(name);
            }
        }
    }

    /// Marks one queue as worth a look that waits for a place among the running hooks, if there is one.
    pub(crate) fn wake_one_slot(&mut self) {
        if !self.has_free_slot() {
            return;
        }
        while let Some((since, name)) = self.slots.pop_first() {
            let slot = Blocked::Waiting { reason: Reason::Slot, since };
            if self.by_name.get(&name).and_then(|queue| queue.blocked.as_ref()) == Some(&slot) {
                self.waiting.remove(&name);
                self.dirty.insert(name);
                return;
            }
        }
    }

    /// Marks the queues as worth a look whose time has come.
    pub(crate) fn wake_due(&mut self, now: Time) {
        while let Some((until, _)) = self.wakeups.first()
            && *until <= now
            && let Some((_, name)) = self.wakeups.pop_first()
        {
            self.take_back_failed(&name, |until| until <= now);
            self.dirty.insert(name);
        }
    }

    /// Returns when a queue becomes worth a look.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        // Entries of queues that went on meanwhile stay until their time; such a look finds nothing to do.
        self.wakeups
            .iter()
            .find(|(until, name)| {
                let wakes = |queue: &Queue| queue.wakes_at(*until) || self.gives_way_at(name) == Some(*until);
                self.by_name.get(name).is_some_and(wakes)
            })
            .map(|(until, _)| *until)
    }

    /// Returns whether the first task of some queue is worth a look.
    pub(crate) fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Returns a queue whose first task is worth a look.
    pub(crate) fn pop_dirty(&mut self) -> Option<QueueName> {
        self.dirty.pop_first()
    }

    /// Reports the queues whose length changed since the last call.
    pub(crate) fn report_lengths(&mut self, cx: &mut Context) {
        for queue in std::mem::take(&mut self.changed) {
            let length = self.by_name.get(&queue).map_or(0, Queue::len);
            if length == 0 && queue.is_temporary() {
                self.by_name.remove(&queue);
                if self.reported.remove(&queue).is_some() {
                    cx.notify(Notice::QueueChanged { queue, length });
                }
                continue;
            }
            if self.reported.insert(queue.clone(), length) != Some(length) {
                cx.notify(Notice::QueueChanged { queue, length });
            }
        }
    }

    /// Returns when the first task was put that readiness waits for, and why, if one was since the last call.
    pub(crate) fn take_expected(&mut self) -> Option<(Time, Cause)> {
        self.expected.take()
    }

    /// Returns whether a run of the module waits that will see the values as they are now.
    pub(crate) fn is_pending(&self, module: &ModuleName) -> bool {
        self.counts.pending_runs.contains_key(module)
    }

    /// Returns whether a converge waits that did not begin.
    pub(crate) fn has_unstarted_converge(&self) -> bool {
        self.counts.unstarted_converges > 0
    }

    /// Returns how many tasks there are that readiness waits for.
    pub(crate) fn unready(&self) -> usize {
        self.counts.unready
    }

    pub(super) fn touch(&mut self, name: &QueueName) {
        self.dirty.insert(name.clone());
        self.changed.insert(name.clone());
    }
}

/// Merges the waiting runs of `hook` into the first of them. Synchronizations and points of a lifecycle stay as they are.
fn compacted(tasks: Vec<Task>, hook: &HookId) -> Vec<Task> {
    let mut kept: Vec<Task> = Vec::with_capacity(tasks.len());
    let mut first: Option<usize> = None;
    for mut task in tasks {
        let Some(run) = task.hook_run_mut().filter(|run| run.is_of_events(hook)) else {
            kept.push(task);
            continue;
        };
        if let Some(merged) = first.and_then(|place| kept.get_mut(place)).and_then(Task::hook_run_mut) {
            combine::append(&mut merged.contexts, std::mem::take(&mut run.contexts));
        } else {
            first = Some(kept.len());
            kept.push(task);
        }
    }
    kept
}

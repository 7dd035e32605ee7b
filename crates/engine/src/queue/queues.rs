//! All queues, and what must be known about them without looking at every task.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::{HookId, ModuleName, QueueName, RunId};
use crate::queue::fifo::{Blocked, Queue, Reason};
use crate::task::Task;
use crate::task::in_flight::{Running, Work};
use crate::time::Time;

/// How many runs of one hook may wait in a queue before they are merged.
const COMPACT_AT: usize = 100;

/// All queues by name.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    by_name: BTreeMap<QueueName, Queue>,
    /// Queues whose first task is worth a look.
    dirty: BTreeSet<QueueName>,
    /// When a queue becomes worth a look.
    wakeups: BTreeSet<(Time, QueueName)>,
    /// Queues whose first task waits for something.
    waiting: BTreeSet<QueueName>,
    /// Queues whose first task waits for a place among the running hooks, and since when.
    slots: BTreeSet<(Time, QueueName)>,
    /// Which queue waits for which answer.
    runs: BTreeMap<RunId, QueueName>,
    /// Module runs that did not begin, by module.
    pending_runs: BTreeMap<ModuleName, usize>,
    /// Hook runs that wait, by queue and hook.
    waiting_hooks: BTreeMap<(QueueName, HookId), usize>,
    /// Converges that did not begin.
    unstarted_converges: usize,
    /// Tasks that readiness waits for.
    unready: usize,
    /// Queues whose length changed since somebody asked.
    changed: BTreeSet<QueueName>,
    /// The lengths as they were told.
    told: BTreeMap<QueueName, usize>,
}

/// Where tasks are put.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    /// Behind all others.
    Back,
    /// Before all others that do not run.
    Front,
}

impl Queues {
    /// Makes sure that the queue exists.
    pub(crate) fn ensure(&mut self, name: &QueueName) {
        if !self.by_name.contains_key(name) {
            self.by_name.insert(name.clone(), Queue::default());
        }
    }

    /// Returns the queue, if it exists.
    pub(crate) fn get(&self, name: &QueueName) -> Option<&Queue> {
        self.by_name.get(name)
    }

    /// Iterates over the queues, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&QueueName, &Queue)> {
        self.by_name.iter()
    }

    /// Returns the names of all queues.
    pub(crate) fn names(&self) -> Vec<QueueName> {
        self.by_name.keys().cloned().collect()
    }

    /// Puts tasks in a queue; their order is kept.
    pub(crate) fn put(&mut self, name: &QueueName, place: Place, tasks: Vec<Task>) {
        for task in &tasks {
            self.count(name, task);
        }
        let queue = self.by_name.entry(name.clone()).or_default();
        match place {
            Place::Back => queue.tasks.extend(tasks),
            Place::Front => {
                for task in tasks.into_iter().rev() {
                    queue.tasks.push_front(task);
                }
                queue.blocked = None;
            }
        }
        self.touch(name);
    }

    /// Lets `merge` add to the last task of the queue, if that one does not run.
    pub(crate) fn with_last(&mut self, name: &QueueName, merge: impl FnOnce(&mut Task) -> bool) -> bool {
        let last = self.by_name.get_mut(name).and_then(|queue| queue.tasks.back_mut());
        last.is_some_and(merge)
    }

    /// Takes the first task out if it may go on at `now`. It has to be put back, run or dropped.
    pub(crate) fn take_ready(&mut self, name: &QueueName, now: Time) -> Option<Task> {
        let queue = self.by_name.get_mut(name)?;
        if queue.running.is_some() {
            return None;
        }
        match queue.tasks.front()?.not_before {
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
                self.uncount(name, &task);
                self.touch(name);
                Some(task)
            }
        }
    }

    /// Changes the first task that `change` accepts, the running one too. Nothing that is counted may change.
    pub(crate) fn edit(&mut self, name: &QueueName, mut change: impl FnMut(&mut Task) -> bool) -> bool {
        let Some(queue) = self.by_name.get_mut(name) else { return false };
        let running =
            queue.running.as_mut().filter(|running| !running.dropped).map(|running| &mut running.task);
        let found = running.into_iter().chain(&mut queue.tasks).any(&mut change);
        if found {
            self.touch(name);
        }
        found
    }

    /// Takes the first waiting task out if `wanted` accepts it.
    pub(crate) fn take_next(&mut self, name: &QueueName, wanted: impl Fn(&Task) -> bool) -> Option<Task> {
        let queue = self.by_name.get_mut(name)?;
        if !queue.tasks.front().is_some_and(wanted) {
            return None;
        }
        let task = queue.tasks.pop_front()?;
        self.uncount(name, &task);
        self.touch(name);
        Some(task)
    }

    /// Puts `task` first and remembers why it does not go on.
    pub(crate) fn put_blocked(&mut self, name: &QueueName, task: Task, blocked: Blocked) {
        self.count(name, &task);
        let queue = self.by_name.entry(name.clone()).or_default();
        queue.tasks.push_front(task);
        self.touch(name);
        self.block(name, blocked);
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

    /// Makes `running` the head of the queue.
    pub(crate) fn run(&mut self, name: &QueueName, running: Running) {
        self.count_readiness(&running.task, true);
        self.runs.insert(running.run, name.clone());
        let queue = self.by_name.entry(name.clone()).or_default();
        queue.running = Some(running);
        self.touch(name);
    }

    /// Takes the task out whose effect ended. `None` when nobody waits for the answer.
    pub(crate) fn finish(&mut self, run: RunId) -> Option<(QueueName, Running)> {
        let name = self.runs.remove(&run)?;
        let running = self.by_name.get_mut(&name)?.running.take()?;
        if !running.dropped {
            self.count_readiness(&running.task, false);
        }
        self.touch(&name);
        Some((name, running))
    }

    /// Returns what is in flight.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = (&QueueName, &Running)> {
        self.runs.values().filter_map(|name| Some((name, self.by_name.get(name)?.running.as_ref()?)))
    }

    /// Returns the queue that waits for `run`.
    pub(crate) fn running(&self, run: RunId) -> Option<&Running> {
        self.by_name.get(self.runs.get(&run)?)?.running.as_ref()
    }

    /// Drops the tasks of a queue that `keep` rejects, and hands out those that waited.
    ///
    /// A running one stays at the head until its effect ends; its answer is not wanted any more.
    pub(crate) fn retain(&mut self, name: &QueueName, keep: impl Fn(&Task) -> bool) -> Dropped {
        let mut dropped = Dropped::default();
        let Some(queue) = self.by_name.get_mut(name) else { return dropped };
        if let Some(running) =
            queue.running.as_mut().filter(|running| !running.dropped && !keep(&running.task))
        {
            running.dropped = true;
            dropped.running = Some((running.task.clone(), matches!(running.work, Work::Release(_))));
        }
        if queue.tasks.iter().any(|task| !keep(task)) {
            let tasks = std::mem::take(&mut queue.tasks);
            let (kept, gone): (Vec<Task>, Vec<Task>) = tasks.into_iter().partition(keep);
            queue.tasks = kept.into();
            queue.blocked = None;
            dropped.waiting = gone;
        }
        if let Some((task, _)) = &dropped.running {
            let task = task.clone();
            self.count_readiness(&task, false);
        }
        for task in &dropped.waiting {
            self.uncount(name, task);
        }
        if dropped.any() {
            self.touch(name);
        }
        dropped
    }

    /// Lets the first task of the queue be tried at once if it failed.
    pub(crate) fn cancel_backoff(&mut self, name: &QueueName) {
        let Some(queue) = self.by_name.get_mut(name) else { return };
        for task in &mut queue.tasks {
            task.not_before = None;
        }
        if let Some(Blocked::Backoff { .. }) = queue.blocked {
            queue.blocked = None;
        }
        self.touch(name);
    }

    /// Lets all queues be looked at whose first task waits for something that `wanted` accepts.
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

    /// Lets one queue be looked at that waits for a place among the running hooks.
    pub(crate) fn wake_one_slot(&mut self) {
        while let Some((since, name)) = self.slots.pop_first() {
            let slot = Blocked::Waiting { reason: Reason::Slot, since };
            if self.by_name.get(&name).is_some_and(|queue| queue.blocked.as_ref() == Some(&slot)) {
                self.waiting.remove(&name);
                self.dirty.insert(name);
                return;
            }
        }
    }

    /// Lets the queues be looked at whose time has come.
    pub(crate) fn wake_due(&mut self, now: Time) {
        while let Some((until, _)) = self.wakeups.first()
            && *until <= now
            && let Some((_, name)) = self.wakeups.pop_first()
        {
            self.dirty.insert(name);
        }
    }

    /// Returns when a queue becomes worth a look.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        // Entries of queues that went on meanwhile stay until their time; such a look finds nothing to do.
        self.wakeups
            .iter()
            .find(|(until, name)| {
                self.by_name.get(name).and_then(Queue::wakeup).is_some_and(|wakeup| wakeup == *until)
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

    /// Returns the queues whose length changed since the last call.
    pub(crate) fn take_changed(&mut self) -> Vec<(QueueName, usize)> {
        let names = std::mem::take(&mut self.changed);
        let mut changed = Vec::new();
        for name in names {
            let length = self.by_name.get(&name).map_or(0, Queue::len);
            if self.told.insert(name.clone(), length) != Some(length) {
                changed.push((name, length));
            }
        }
        changed
    }

    /// Returns whether a run of the module waits that will see the values as they are now.
    pub(crate) fn is_pending(&self, module: &ModuleName) -> bool {
        self.pending_runs.contains_key(module)
    }

    /// Returns whether a converge waits that did not begin.
    pub(crate) fn has_unstarted_converge(&self) -> bool {
        self.unstarted_converges > 0
    }

    /// Returns how many tasks there are that readiness waits for.
    pub(crate) fn unready(&self) -> usize {
        self.unready
    }

    /// Returns whether so many runs of the hook wait that they have to be merged.
    pub(crate) fn is_crowded(&self, name: &QueueName, hook: &HookId) -> bool {
        self.waiting_runs(name, hook) > COMPACT_AT
    }

    /// Returns how many runs of the hook wait.
    pub(crate) fn waiting_runs(&self, name: &QueueName, hook: &HookId) -> usize {
        self.waiting_hooks.get(&(name.clone(), hook.clone())).copied().unwrap_or(0)
    }

    /// Puts all waiting tasks of the queue through `change`.
    pub(crate) fn rebuild(&mut self, name: &QueueName, change: impl FnOnce(Vec<Task>) -> Vec<Task>) {
        let Some(queue) = self.by_name.get_mut(name) else { return };
        let tasks: Vec<Task> = std::mem::take(&mut queue.tasks).into();
        queue.blocked = None;
        for task in &tasks {
            self.uncount(name, task);
        }
        self.put(name, Place::Back, change(tasks));
    }

    fn touch(&mut self, name: &QueueName) {
        self.dirty.insert(name.clone());
        self.changed.insert(name.clone());
    }

    fn count_readiness(&mut self, task: &Task, more: bool) {
        if task.counts_for_readiness() {
            self.unready = if more { self.unready + 1 } else { self.unready.saturating_sub(1) };
        }
    }

    fn count(&mut self, name: &QueueName, task: &Task) {
        self.count_readiness(task, true);
        if let Some(run) = task.module_run().filter(|_| task.is_pending_run()) {
            *self.pending_runs.entry(run.module.clone()).or_default() += 1;
        }
        if let Some(run) = task.hook_run() {
            *self.waiting_hooks.entry((name.clone(), run.hook.clone())).or_default() += 1;
        }
        if task.converge().is_some_and(crate::task::Converge::is_unstarted) {
            self.unstarted_converges += 1;
        }
    }

    fn uncount(&mut self, name: &QueueName, task: &Task) {
        self.count_readiness(task, false);
        if let Some(run) = task.module_run().filter(|_| task.is_pending_run()) {
            less(&mut self.pending_runs, &run.module);
        }
        if let Some(run) = task.hook_run() {
            less(&mut self.waiting_hooks, &(name.clone(), run.hook.clone()));
        }
        if task.converge().is_some_and(crate::task::Converge::is_unstarted) {
            self.unstarted_converges = self.unstarted_converges.saturating_sub(1);
        }
    }
}

/// What [`Queues::retain`] took out.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    /// The head whose effect is in flight, and whether it works on a release.
    pub(crate) running: Option<(Task, bool)>,
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
        self.running.iter().map(|(task, _)| task).chain(&self.waiting)
    }
}

fn less<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

//! Tasks that were set aside: they wait for what a module may bring, so everything else of their queue passes them.
//!
//! A task at the head of a queue keeps away all tasks behind it. That is right for a failure, and wrong for a wait whose
//! end may stand behind it: the module that installs a kind or grants a right, or the Synchronization that shows it. Such a task leaves the
//! row, and comes back to the front when what it waits for may have come.
//!
//! ```text
//! first of its queue ─▶ aside(Kind)      ─▶ front, when that kind is there or files changed
//!                    ─▶ aside(Right)     ─▶ front, when its objects can be listed or files changed
//!                    ─▶ aside(others)    ─▶ front, when any task that was aside came back or went
//!                    ─▶ aside(Backoff)   ─▶ behind the other runs of its converge, when its time has come
//! ```

use std::collections::BTreeSet;

use super::fifo::Aside;
use super::{Blocked, Dropped, Queues, Reason};
use crate::name::{BindingKey, HookId, ModuleName, QueueName};
use crate::task::Task;
use crate::time::Time;

impl Queues {
    /// Lets all others of its queue pass `task` until `why` is over.
    pub(super) fn set_aside(&mut self, task: Task, why: Blocked) {
        let name = task.head.queue.clone();
        let queue = self.by_name.entry(name.clone()).or_default();
        if let Blocked::Backoff { until, .. } = why {
            self.wakeups.insert((until, name.clone()));
        }
        if let Some(aside) = queue.aside.iter_mut().find(|aside| aside.is_open_to(&task)) {
            self.counts.remove_aside(&aside.task);
            aside.absorb(task, why);
            self.counts.add_aside(&aside.task);
        } else {
            self.counts.add_aside(&task);
            queue.aside.push_back(Aside { task, why });
        }
        self.touch(&name);
        // Who waits for the modules of parallel queues may find now that none of them goes on.
        if name.is_parallel() {
            self.touch(&QueueName::main());
        }
        self.wake(|reason| matches!(reason, Reason::Synchronization(_)));
    }

    /// Returns whether a task becomes one with one that was parked for this reason. It adds nothing to what was told of that.
    pub(super) fn joins_parked(&self, task: &Task, reason: &Reason) -> bool {
        let is_parked_so = |aside: &Aside| {
            matches!(&aside.why, Blocked::Waiting { reason: known, .. } if known == reason)
                && aside.is_open_to(task)
        };
        let queue = self.by_name.get(&task.head.queue).filter(|_| matches!(reason, Reason::Parked(_)));
        queue.is_some_and(|queue| queue.aside.iter().any(is_parked_so))
    }

    /// Returns whether any task is aside.
    pub(crate) fn has_aside(&self) -> bool {
        self.by_name.values().any(|queue| !queue.aside.is_empty())
    }

    /// Makes the tasks go on that are aside and that `wanted` accepts, and those that wait for them.
    pub(crate) fn take_back(&mut self, wanted: impl Fn(&Task) -> bool) {
        let is_wanted = |aside: &Aside| aside.until().is_none() && wanted(&aside.task);
        if self.by_name.values().any(|queue| queue.aside.iter().any(is_wanted)) {
            self.bring_back(is_wanted);
        }
    }

    /// Makes the parked tasks go on that `wanted` accepts. Returns whether there are any.
    pub(crate) fn take_back_parked(&mut self, wanted: impl Fn(&Task) -> bool) -> bool {
        let is_wanted = |aside: &Aside| {
            matches!(aside.why, Blocked::Waiting { reason: Reason::Parked(_), .. }) && wanted(&aside.task)
        };
        let any = self.by_name.values().any(|queue| queue.aside.iter().any(is_wanted));
        if any {
            self.bring_back(is_wanted);
        }
        any
    }

    /// Makes the tasks go on that wait for others that are aside: one of those came back or went.
    pub(crate) fn take_back_followers(&mut self) {
        self.bring_back(|_| false);
    }

    fn bring_back(&mut self, wanted: impl Fn(&Aside) -> bool) {
        for (name, queue) in &mut self.by_name {
            let aside = std::mem::take(&mut queue.aside);
            let (back, stays): (Vec<Aside>, Vec<Aside>) =
                aside.into_iter().partition(|aside| aside.follows_others() || wanted(aside));
            queue.aside = stays.into();
            if back.is_empty() {
                continue;
            }
            for aside in back.into_iter().rev() {
                self.counts.remove_aside(&aside.task);
                self.counts.add(&aside.task);
                queue.tasks.push_front(aside.task);
            }
            queue.blocked = None;
            self.dirty.insert(name.clone());
        }
    }

    /// Makes the tasks of a queue go on that are aside until a time that `is_over` accepts.
    pub(super) fn take_back_failed(&mut self, name: &QueueName, is_over: impl Fn(Time) -> bool) {
        let Some(queue) = self.by_name.get_mut(name) else { return };
        let is_due = |aside: &Aside| aside.until().is_some_and(&is_over);
        if !queue.aside.iter().any(is_due) {
            return;
        }
        let aside = std::mem::take(&mut queue.aside);
        let (back, stays): (Vec<Aside>, Vec<Aside>) = aside.into_iter().partition(is_due);
        queue.aside = stays.into();
        // Who waits for them comes behind them.
        self.take_back_followers();
        for Aside { mut task, .. } in back {
            self.counts.remove_aside(&task);
            task.head.not_before = None;
            self.put_behind(task);
        }
    }

    /// Takes the first task back that is aside and that `change` accepts. Returns whether there is one.
    pub(super) fn edit_aside(&mut self, name: &QueueName, mut change: impl FnMut(&mut Task) -> bool) -> bool {
        let Some(queue) = self.by_name.get_mut(name) else { return false };
        let place = queue.aside.iter_mut().position(|aside| change(&mut aside.task));
        let Some(aside) = place.and_then(|place| queue.aside.remove(place)) else { return false };
        self.counts.remove_aside(&aside.task);
        self.resume(aside.task);
        true
    }

    /// Takes the tasks out that are aside in a queue and that `keep` rejects.
    pub(super) fn drop_aside(
        &mut self,
        name: &QueueName,
        keep: impl Fn(&Task) -> bool,
        dropped: &mut Dropped,
    ) {
        let Some(queue) = self.by_name.get_mut(name) else { return };
        if queue.aside.iter().all(|aside| keep(&aside.task)) {
            return;
        }
        let (stays, gone): (Vec<Aside>, Vec<Aside>) =
            std::mem::take(&mut queue.aside).into_iter().partition(|aside| keep(&aside.task));
        queue.aside = stays.into();
        for aside in gone {
            self.counts.remove_aside(&aside.task);
            dropped.waiting.push(aside.task);
        }
        self.take_back_followers();
    }

    /// Returns the modules whose runs of the converge `generation` are aside, and those whose parallel runs are.
    pub(crate) fn modules_aside(&self, generation: Option<u64>) -> BTreeSet<ModuleName> {
        let queues = self.by_name.iter().filter(|(name, _)| name.is_main() || name.is_parallel());
        let tasks = queues.flat_map(|(_, queue)| &queue.aside).map(|aside| &aside.task);
        let of_converge = tasks.filter(|task| task.head.generation == generation);
        of_converge.filter_map(|task| Some(task.module_run()?.module.clone())).collect()
    }

    /// Returns what a run of `hook` for events is aside for in a queue: later ones must not overtake it.
    pub(crate) fn events_aside(&self, name: &QueueName, hook: &HookId) -> Option<Reason> {
        let queue = self.by_name.get(name).filter(|queue| !queue.aside.is_empty())?;
        queue.aside.iter().find_map(|aside| match &aside.why {
            Blocked::Waiting { reason, .. } if aside.task.hook_run()?.is_of_events(hook) => {
                Some(reason.clone())
            }
            Blocked::Waiting { .. } | Blocked::Backoff { .. } => None,
        })
    }

    /// Returns what the Synchronization of a binding is aside for.
    pub(crate) fn synchronization_aside(&self, key: &BindingKey) -> Option<Reason> {
        let aside = self.by_name.values().flat_map(|queue| &queue.aside);
        aside
            .filter(|aside| aside.task.hook_run().is_some_and(|run| run.synchronizes.contains(key)))
            .find_map(|aside| match &aside.why {
                Blocked::Waiting { reason, .. } => Some(reason.clone()),
                Blocked::Backoff { .. } => None,
            })
    }

    /// Returns the first run of a global hook that is aside, with what it waits for.
    pub(crate) fn global_hook_aside(&self) -> Option<(HookId, Reason)> {
        let aside = self.by_name.values().flat_map(|queue| &queue.aside);
        aside.filter(|aside| aside.task.module().is_none()).find_map(|aside| match &aside.why {
            Blocked::Waiting { reason, .. } => Some((aside.task.hook_run()?.hook.clone(), reason.clone())),
            Blocked::Backoff { .. } => None,
        })
    }
}

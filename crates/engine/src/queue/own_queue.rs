//! Modules that give way: who keeps the others of its queue waiting for too long goes on in a queue of its own.
//!
//! A hook that waits for what never comes to be, or a change of a release that does not end, would hold up everybody behind it for
//! ever. Nothing of it is left out: the others just do not wait for it any more.
//!
//! ```text
//! main: A ─▶ B ─▶ C          A takes too long          main:         B ─▶ C
//!                            ───────────────▶          main_queue_A: A ─▶ what comes of A later
//! ```

use std::time::Duration;

use super::{Queue, Queues};
use crate::context::Context;
use crate::name::{ModuleName, QueueName, Scope};
use crate::notice::Notice;
use crate::task::{Task, TaskKind};
use crate::time::Time;

/// How long the removal of a module keeps the others of `main` waiting.
const LONGEST_REMOVAL: Duration = Duration::from_mins(5);

/// How long a module of a namespace keeps the others of that waiting.
const LONGEST_TURN: Duration = Duration::from_mins(1);

/// How many have given way in one queue, at most: each may hold what it wants to install.
const MOST_ALONE: usize = 8;

/// Returns how long a task may keep the others of its queue waiting; `None` if they wait for it whatever it does.
fn patience(task: &Task) -> Option<Duration> {
    let queue = &task.head.queue;
    if queue.is_main() {
        return matches!(task.kind, TaskKind::ModuleDelete(_)).then_some(LONGEST_REMOVAL);
    }
    let is_of_all = queue.is_of_namespace() && queue.home().is_none();
    (is_of_all && task.module().is_some()).then_some(LONGEST_TURN)
}

impl Queues {
    /// Returns when the first task of a queue gives way to those behind it.
    pub(super) fn gives_way_at(&self, name: &QueueName) -> Option<Time> {
        let queue = self.by_name.get(name)?;
        // Of what is dropped the rest is waited for, too.
        let task = queue.running.as_ref().map(|running| &running.task).or(queue.tasks.front())?;
        Some(task.head.holds_since? + patience(task)?)
    }

    /// Lets the first task of a queue go on in a queue of its own, if it has kept those behind it waiting for too long.
    pub(crate) fn give_way(&mut self, cx: &mut Context, name: &QueueName) {
        let Some(queue) = self.by_name.get(name) else { return };
        if let Some(home) = name.home() {
            if queue.len() == 0 {
                // There is room for another one.
                self.dirty.insert(home.clone());
            }
            return;
        }
        let Some(at) = self.gives_way_at(name) else { return };
        if at > cx.now {
            self.wakeups.insert((at, name.clone()));
            return;
        }
        let module = queue.running.as_ref().map(|running| &running.task).or(queue.tasks.front());
        let Some(module) = module.and_then(Task::module).cloned() else { return };
        let has_others = queue.tasks.iter().any(|task| task.module() != Some(&module));
        if has_others && self.count_own(name) < MOST_ALONE {
            self.give_own_queue(cx, name, &module);
        }
    }

    /// Returns the queue of a module that gave way in another one, while something is in it.
    pub(crate) fn own_queue(&self, home: &QueueName, module: &ModuleName) -> Option<QueueName> {
        let own = home.own(module);
        self.by_name.get(&own).is_some_and(|queue| queue.len() > 0).then_some(own)
    }

    fn count_own(&self, home: &QueueName) -> usize {
        let is_one = |(name, queue): &(&QueueName, &Queue)| queue.len() > 0 && name.home() == Some(home);
        self.by_name.iter().filter(is_one).count()
    }

    fn give_own_queue(&mut self, cx: &mut Context, name: &QueueName, module: &ModuleName) {
        let own = name.own(module);
        let Some(queue) = self.by_name.get_mut(name) else { return };
        if let Some(mut running) = queue.running.take() {
            running.task.head.queue = own.clone();
            if !running.dropped {
                self.counts.remove_unready(&running.task);
                running.task.head.generation = None;
            }
            self.put_running(running);
        } else if let Some(mut task) = queue.tasks.pop_front() {
            queue.blocked = None;
            self.counts.remove(&task);
            task.head.generation = None;
            self.move_to(task, &own);
        }
        self.touch(name);
        if name.is_main() {
            let message = format!(
                "its removal takes longer than {} minutes and goes on in queue {own}; the others of {name} do not wait for it any more",
                LONGEST_REMOVAL.as_secs() / 60
            );
            cx.notify(Notice::Warned { scope: Scope::Module(module.clone()), message });
        }
    }
}

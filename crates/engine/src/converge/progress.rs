//! Whether the first converge goes on: the end that `--once` waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::name::{ModuleName, QueueName, Scope};
use crate::notice::TaskInfo;
use crate::time::Time;

/// How the modules did at their last try.
#[derive(Debug, Default)]
pub(super) struct Progress {
    on: BTreeSet<ModuleName>,
    succeeded: BTreeSet<ModuleName>,
    /// Those that have failed, or wait for what a person has to do, since the last success of any; how, in words.
    failed: BTreeMap<ModuleName, String>,
    /// Those that are set aside until something comes.
    waiting: BTreeMap<ModuleName, Wait>,
    /// The global hook that is.
    hook: Option<Wait>,
    /// When those are given up, as there is nothing left to do but wait.
    due: Option<Time>,
}

/// A wait for what a module may bring.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    /// Who waits, and for what, in words that quote no values.
    pub(super) how: String,
    /// How long it may take after the last module that may have brought it.
    pub(super) patience: Duration,
}

impl Progress {
    /// Records which modules are on.
    pub(super) fn discovered(&mut self, modules: impl IntoIterator<Item = (ModuleName, bool)>) {
        self.on = modules.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect();
    }

    /// Records that the run of a module succeeded.
    pub(super) fn succeeded(&mut self, module: &ModuleName, now: Time) {
        self.succeeded.insert(module.clone());
        // What failed before may have waited for this one.
        self.failed.clear();
        self.waiting.remove(module);
        self.rest(now);
    }

    /// Records what a global hook waits for when the first converge is through; `None` when it has what it needs.
    pub(super) fn hook_waits(&mut self, wait: Option<Wait>, now: Time) {
        self.hook = wait;
        self.rest(now);
    }

    /// Finds out how long is waited if nothing but waiting is left.
    fn rest(&mut self, now: Time) {
        // Nearly always none waits: then all modules are not looked at for each of them.
        let is_through =
            || self.on.iter().all(|on| self.succeeded.contains(on) || self.waiting.contains_key(on));
        let patience = self.waiting.values().chain(&self.hook).map(|wait| wait.patience).max();
        self.due = patience.filter(|_| is_through()).map(|patience| now + patience);
    }

    /// Returns when to look whether nothing but waiting is left.
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Returns what is waited for in vain, once, when its time is over.
    pub(super) fn given_up(&mut self, now: Time) -> Option<String> {
        self.due.take_if(|due| *due <= now)?;
        let waits = self.hook.iter().chain(self.waiting.values());
        Some(waits.map(|wait| wait.how.clone()).collect::<Vec<_>>().join("; "))
    }

    /// Records that a task failed. Returns why nothing goes on, if so.
    pub(super) fn failed(&mut self, task: &TaskInfo, failure: &str) -> Option<String> {
        match run_module(task) {
            Some(module) => self.stopped(module, format!("module {module} failed: {failure}")),
            None => is_of_main(&task.queue).then(|| match task.scope.module() {
                Some(module) => format!("{} of module {module} failed: {failure}", task.kind),
                None => format!("{} failed: {failure}", task.kind),
            }),
        }
    }

    /// Records that a task waits for what does not come by itself. Returns why nothing goes on, if so.
    pub(super) fn waits(&mut self, task: &TaskInfo, reason: &str, patience: Duration) -> Option<String> {
        let module = run_module(task)?;
        let how = format!("module {module} waits: {reason}");
        let stuck = self.stopped(module, how.clone());
        self.waiting.insert(module.clone(), Wait { how, patience });
        stuck
    }

    fn stopped(&mut self, module: &ModuleName, how: String) -> Option<String> {
        self.succeeded.remove(module);
        self.waiting.remove(module);
        self.due = None;
        self.failed.insert(module.clone(), how);
        let is_through = self.on.iter().all(|on| self.succeeded.contains(on) || self.failed.contains_key(on));
        is_through.then(|| self.failed.values().cloned().collect::<Vec<_>>().join("; "))
    }
}

/// Returns whether a task is in `main`, or was until it gave way to the others.
fn is_of_main(queue: &QueueName) -> bool {
    queue.is_main() || queue.home().is_some_and(QueueName::is_main)
}

fn run_module(task: &TaskInfo) -> Option<&ModuleName> {
    match &task.scope {
        Scope::Module(module) if task.kind.is_module_run() => Some(module),
        Scope::Module(_) | Scope::Global => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Cause;
    use crate::name::TaskId;
    use crate::notice::TaskType;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn task(kind: TaskType, module: &str) -> TaskInfo {
        TaskInfo {
            id: TaskId::new(1),
            queue: QueueName::from("main"),
            kind,
            scope: if module.is_empty() { Scope::Global } else { Scope::Module(module.into()) },
            hook: None,
            binding: None,
            cause: Cause::outside("start"),
        }
    }

    #[test]
    fn a_round_in_which_nothing_succeeds_is_the_last() {
        let mut progress = Progress::default();
        let run = |module| task(TaskType::ModuleRun, module);
        progress.discovered([("a".into(), true), ("b".into(), true), ("off".into(), false)]);
        assert_eq!(progress.failed(&run("a"), "bad"), None, "b had no try yet");
        let now = Time::from_start(Duration::from_secs(1));
        progress.succeeded(&"b".into(), now);
        assert_eq!(
            progress.failed(&run("a"), "bad"),
            Some("module a failed: bad".to_owned()),
            "a may have needed what b brought, and failed again"
        );
        assert_eq!(
            progress.waits(&run("b"), "kind Foo", PATIENCE),
            Some("module a failed: bad; module b waits: kind Foo".to_owned())
        );
        progress.succeeded(&"a".into(), now);
        assert_eq!(progress.given_up(now), None, "the kind may be about to come");
        assert_eq!(progress.given_up(now + PATIENCE), Some("module b waits: kind Foo".to_owned()));
        assert_eq!(progress.given_up(now + PATIENCE), None);
        assert_eq!(
            progress.failed(&task(TaskType::GlobalHookRun, ""), "bad"),
            Some("GlobalHookRun failed: bad".to_owned())
        );
        assert_eq!(
            progress.failed(&task(TaskType::ModuleDelete, "off"), "bad"),
            Some("ModuleDelete of module off failed: bad".to_owned())
        );
    }

    #[test]
    fn who_waits_for_the_rarest_answer_is_given_up_last() {
        let mut progress = Progress::default();
        progress.discovered([("a".into(), true), ("b".into(), true)]);
        let now = Time::from_start(Duration::from_secs(1));
        assert_eq!(progress.waits(&task(TaskType::ModuleRun, "a"), "kind Foo", PATIENCE), None);
        progress.succeeded(&"b".into(), now);
        assert_eq!(progress.due(), Some(now + PATIENCE));
        let hook = Wait { how: "hook g waits: a right".to_owned(), patience: 9 * PATIENCE };
        progress.hook_waits(Some(hook), now);
        assert_eq!(progress.due(), Some(now + 9 * PATIENCE));
        let given_up = progress.given_up(now + 9 * PATIENCE).unwrap();
        assert_eq!(given_up, "hook g waits: a right; module a waits: kind Foo");
        // What comes late ends the wait.
        progress.hook_waits(None, now);
        progress.succeeded(&"a".into(), now);
        assert_eq!(progress.due(), None);
    }
}

//! Whether the first converge goes on: the end that `--once` waits for.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::{ModuleName, Scope};
use crate::notice::{TaskInfo, TaskType};

/// How the modules did at their last try.
#[derive(Debug, Default)]
pub(super) struct Progress {
    on: BTreeSet<ModuleName>,
    succeeded: BTreeSet<ModuleName>,
    /// Those that have failed, or wait for what a person has to do, since the last success of any; how, in words.
    failed: BTreeMap<ModuleName, String>,
}

impl Progress {
    /// Records which modules are on.
    pub(super) fn discovered(&mut self, modules: &[(ModuleName, bool)]) {
        self.on = modules.iter().filter(|(_, on)| *on).map(|(name, _)| name.clone()).collect();
    }

    /// Records that the run of a module succeeded.
    pub(super) fn succeeded(&mut self, module: &ModuleName) {
        self.succeeded.insert(module.clone());
        // What failed before may have waited for this one.
        self.failed.clear();
    }

    /// Records that a task failed. Returns why nothing goes on, if so.
    pub(super) fn failed(&mut self, task: &TaskInfo, failure: &str) -> Option<String> {
        match run_module(task) {
            Some(module) => self.stopped(module, format!("module {module} failed: {failure}")),
            None => task.queue.is_main().then(|| format!("{} failed: {failure}", task.kind)),
        }
    }

    /// Records that a task waits for what does not come by itself. Returns why nothing goes on, if so.
    pub(super) fn waits(&mut self, task: &TaskInfo, reason: &str) -> Option<String> {
        let module = run_module(task)?;
        self.stopped(module, format!("module {module} waits: {reason}"))
    }

    fn stopped(&mut self, module: &ModuleName, how: String) -> Option<String> {
        self.succeeded.remove(module);
        self.failed.insert(module.clone(), how);
        let is_through = self.on.iter().all(|on| self.succeeded.contains(on) || self.failed.contains_key(on));
        is_through.then(|| self.failed.values().cloned().collect::<Vec<_>>().join("; "))
    }
}

fn run_module(task: &TaskInfo) -> Option<&ModuleName> {
    match &task.scope {
        Scope::Module(module) if task.kind == TaskType::ModuleRun => Some(module),
        Scope::Module(_) | Scope::Global => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Cause;
    use crate::name::{QueueName, TaskId};

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
        progress.discovered(&[("a".into(), true), ("b".into(), true), ("off".into(), false)]);
        assert_eq!(progress.failed(&run("a"), "bad"), None, "b had no try yet");
        progress.succeeded(&"b".into());
        assert_eq!(
            progress.failed(&run("a"), "bad"),
            Some("module a failed: bad".to_owned()),
            "a may have needed what b brought, and failed again"
        );
        assert_eq!(
            progress.waits(&run("b"), "kind Foo"),
            Some("module a failed: bad; module b waits: kind Foo".to_owned())
        );
        progress.succeeded(&"a".into());
        assert_eq!(
            progress.failed(&task(TaskType::GlobalHookRun, ""), "bad"),
            Some("GlobalHookRun failed: bad".to_owned())
        );
    }
}

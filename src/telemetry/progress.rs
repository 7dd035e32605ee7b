//! How far the first converge is, for those who wait for its end.

use std::collections::{BTreeMap, BTreeSet};

use engine::{Failure, ModuleName, TaskInfo};

/// How far the first converge is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Progress {
    /// It goes on.
    #[default]
    Running,
    /// It came to its end: the operator is ready.
    Converged,
    /// A whole round has brought nothing further; why, in one line.
    Stuck(String),
}

/// How the modules did at their last try.
#[derive(Debug, Default)]
pub(super) struct Tries {
    on: BTreeSet<ModuleName>,
    succeeded: BTreeSet<ModuleName>,
    /// Those that have failed, or wait for what a person has to do, since the last success of any; how, in words.
    failed: BTreeMap<ModuleName, String>,
}

impl Tries {
    /// Takes in which modules are on.
    pub(super) fn discovered(&mut self, modules: &[(ModuleName, bool)]) {
        self.on = modules.iter().filter(|(_, on)| *on).map(|(name, _)| name.clone()).collect();
    }

    /// Takes in the end of a task of the main queue; returns why nothing goes on, if so.
    pub(super) fn ended(&mut self, task: &TaskInfo, failure: Option<&Failure>) -> Option<String> {
        let module = task.scope.module().filter(|_| task.kind == "ModuleRun");
        let Some(failure) = failure else {
            if let Some(module) = module {
                self.succeeded.insert(module.clone());
                // What failed before may have waited for this one.
                self.failed.clear();
            }
            return None;
        };
        let Some(module) = module else {
            return task.queue.is_main().then(|| format!("{} failed: {failure}", task.kind));
        };
        self.stopped(module, format!("module {module} failed: {failure}"))
    }

    /// Takes in that a task of the main queue waits for what does not come by itself; returns why nothing goes on, if so.
    pub(super) fn waits(&mut self, task: &TaskInfo, reason: &str) -> Option<String> {
        let module = task.scope.module().filter(|_| task.kind == "ModuleRun")?;
        self.stopped(module, format!("module {module} waits: {reason}"))
    }

    fn stopped(&mut self, module: &ModuleName, how: String) -> Option<String> {
        self.succeeded.remove(module);
        self.failed.insert(module.clone(), how);
        let is_through = self.on.iter().all(|on| self.succeeded.contains(on) || self.failed.contains_key(on));
        is_through.then(|| self.failed.values().cloned().collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use engine::{Cause, FailureKind, QueueName, Scope, TaskId};

    use super::*;

    fn task(kind: &'static str, module: &str) -> TaskInfo {
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
        let failure = Failure::new(FailureKind::Render, "bad");
        let mut tries = Tries::default();
        tries.discovered(&[("a".into(), true), ("b".into(), true), ("off".into(), false)]);
        assert_eq!(tries.ended(&task("ModuleRun", "a"), Some(&failure)), None, "b had no try yet");
        assert_eq!(tries.ended(&task("ModuleRun", "b"), None), None, "a may need what b brought");
        assert_eq!(
            tries.ended(&task("ModuleRun", "a"), Some(&failure)),
            Some("module a failed: bad".to_owned())
        );
        assert_eq!(
            tries.waits(&task("ModuleRun", "b"), "kind Foo"),
            Some("module a failed: bad; module b waits: kind Foo".to_owned())
        );
        assert_eq!(tries.ended(&task("ModuleRun", "a"), None), None);
        assert_eq!(
            tries.ended(&task("GlobalHookRun", ""), Some(&failure)),
            Some("GlobalHookRun failed: bad".to_owned())
        );
    }
}

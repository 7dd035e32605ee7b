//! The tests of charts that people asked for: those that run, and those that wait to.

use std::collections::BTreeMap;

use crate::cause::Cause;
use crate::chart_test::TestRequest;
use crate::name::{CommandId, ModuleName, RunId, TaskId};
use crate::notice::TaskType;
use crate::time::Time;
use crate::view::{TaskView, span};

/// How many modules have their tests run, or waiting, at the same time.
pub(super) const AT_ONCE: usize = 8;

/// The name under which they are shown beside the queues. They do not wait for each other.
pub(super) const QUEUE: &str = "tests";

/// The tests that were asked for, by module.
#[derive(Debug, Default)]
pub(super) struct ChartTests {
    pub(super) waiting: BTreeMap<ModuleName, Asked>,
    pub(super) running: BTreeMap<RunId, (ModuleName, Asked, Time)>,
}

/// What somebody asked for, and who and when.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) command: CommandId,
    pub(super) request: TestRequest,
    pub(super) task: TaskId,
    pub(super) at: Time,
}

impl ChartTests {
    /// Returns whether the tests of a module run, or wait to.
    pub(super) fn has(&self, name: &ModuleName) -> bool {
        self.waiting.contains_key(name) || self.running.values().any(|(running, ..)| running == name)
    }

    /// Returns a picture of them.
    pub(super) fn views(&self, now: Time) -> Vec<TaskView> {
        let running = self.running.values().map(|(name, asked, since)| asked.view(name, now, Some(*since)));
        let waiting = self.waiting.iter().map(|(name, asked)| asked.view(name, now, None));
        running.chain(waiting).collect()
    }
}

impl Asked {
    fn view(&self, name: &ModuleName, now: Time, since: Option<Time>) -> TaskView {
        let kind = TaskType::ModuleTest;
        let TestRequest { only, without, timeout, .. } = &self.request;
        let which = match (only.as_slice(), without.as_slice()) {
            ([], []) => "all".to_owned(),
            ([], without) => format!("all but {}", without.join(", ")),
            (only, _) => only.join(", "),
        };
        let patience = timeout.map_or(String::new(), |time| format!(" in {} each", span(time)));
        let description = format!("{kind}:{QUEUE}:{name}:{which}{patience}");
        let (age, running) = (now.since(self.at), since.map(|since| now.since(since)));
        let cause = Cause::outside(format!("command module test {name}"));
        TaskView {
            module: Some(name.clone()),
            ..TaskView::outside(self.task, kind, description, cause, (age, running))
        }
    }
}

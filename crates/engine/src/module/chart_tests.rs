//! The tests of charts that people asked for: those that run, and those that wait to.

use std::collections::BTreeMap;

use crate::chart_test::TestRequest;
use crate::name::{CommandId, ModuleName, RunId};

/// How many modules have their tests run, or waiting, at the same time.
pub(super) const AT_ONCE: usize = 8;

/// The tests that were asked for, by module.
#[derive(Debug, Default)]
pub(super) struct ChartTests {
    pub(super) waiting: BTreeMap<ModuleName, (CommandId, TestRequest)>,
    pub(super) running: BTreeMap<RunId, (ModuleName, CommandId)>,
}

impl ChartTests {
    /// Returns whether the tests of a module run, or wait to.
    pub(super) fn has(&self, name: &ModuleName) -> bool {
        self.waiting.contains_key(name) || self.running.values().any(|(running, _)| running == name)
    }
}

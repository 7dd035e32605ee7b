//! What a person asks of a configuration by a command: its spec is changed, as that person could do.

use std::collections::BTreeMap;

use crate::context::Context;
use crate::effect::Effect;
use crate::failure::Failure;
use crate::name::{CommandId, RunId};

/// The commands that wait for the write of a spec, each with its answer.
#[derive(Debug, Default)]
pub(super) struct Syncs(BTreeMap<RunId, (CommandId, String)>);

impl Syncs {
    /// Has the command answered when the run ends, with this text if it succeeds.
    pub(super) fn await_end(&mut self, run: RunId, id: CommandId, told: String) {
        self.0.insert(run, (id, told));
    }

    pub(super) fn awaits(&self, run: RunId) -> bool {
        self.0.contains_key(&run)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Answers the command that waited for a write. Returns the outcome if none did.
    pub(super) fn answer(
        &mut self,
        cx: &mut Context,
        run: RunId,
        outcome: Result<(), Failure>,
    ) -> Option<Result<(), Failure>> {
        let Some((id, told)) = self.0.remove(&run) else { return Some(outcome) };
        cx.push(Effect::AnswerCommand { id, outcome: outcome.map(|()| told) });
        None
    }
}

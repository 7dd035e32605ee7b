//! What every machine is given: the time, new ids, and where effects go.

use crate::effect::Effect;
use crate::name::{RunId, TaskId};
use crate::notice::Notice;
use crate::time::Time;

/// The surroundings of one call of the engine.
#[derive(Debug, Default)]
pub(crate) struct Context {
    /// When the event happened that is handled.
    pub(crate) now: Time,
    /// The ids that come next.
    pub(crate) ids: Ids,
    /// The effects so far.
    pub(crate) out: Out,
}

/// Gives each run and each task a number of its own.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    last_run: u64,
    last_task: u64,
}

/// How many effects most events lead to at most.
const USUAL: usize = 8;

/// Collects effects in order. The notices among them are redacted before the values change that they may quote.
#[derive(Debug, Default)]
pub(crate) struct Out {
    effects: Vec<Effect>,
    /// How many effects from the first on hold nothing to redact.
    redacted: usize,
}

impl Context {
    /// Adds an effect.
    pub(crate) fn push(&mut self, effect: Effect) {
        let effects = &mut self.out.effects;
        if effects.capacity() == 0 {
            effects.reserve(USUAL);
        }
        effects.push(effect);
    }

    /// Adds a notice.
    pub(crate) fn notify(&mut self, notice: Notice) {
        self.push(Effect::Notify(notice));
    }
}

impl Ids {
    /// Returns the id of a new run.
    pub(crate) fn run(&mut self) -> RunId {
        self.last_run += 1;
        RunId::new(self.last_run)
    }

    /// Returns the id of the newest run.
    pub(crate) fn newest_run(&self) -> RunId {
        RunId::new(self.last_run)
    }

    /// Returns the id of a new task.
    pub(crate) fn task(&mut self) -> TaskId {
        self.last_task += 1;
        TaskId::new(self.last_task)
    }
}

impl Out {
    /// Returns all effects.
    pub(crate) fn take(&mut self) -> Vec<Effect> {
        self.redacted = 0;
        std::mem::take(&mut self.effects)
    }

    /// Iterates over the notices that were added since the last call.
    pub(crate) fn unredacted(&mut self) -> impl Iterator<Item = &mut Notice> {
        let from = std::mem::replace(&mut self.redacted, self.effects.len());
        let added = self.effects.iter_mut().skip(from);
        added.filter_map(|effect| if let Effect::Notify(notice) = effect { Some(notice) } else { None })
    }
}

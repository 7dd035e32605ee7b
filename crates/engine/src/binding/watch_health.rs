//! Whether a watch works, since when it does not, and whether a person was told.

use std::sync::Arc;
use std::time::Duration;

use crate::failure::Failure;
use crate::time::Time;

/// How long a watch does not work until it is announced. Most breaks end by themselves before.
const LASTING: Duration = Duration::from_mins(1);

/// Whether a watch works.
#[derive(Debug, Default)]
pub(super) struct WatchHealth(Option<Broken>);

/// Why a watch does not work.
#[derive(Debug)]
struct Broken {
    failure: Arc<Failure>,
    since: Time,
    is_announced: bool,
}

/// A watch that works again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Restored {
    /// How long it did not work.
    pub(crate) broken_for: Duration,
    /// Whether it was announced that it did not.
    pub(crate) was_announced: bool,
}

impl WatchHealth {
    /// Records why the watch does not work. Returns for how long it has not, if that is long and was not announced.
    pub(super) fn fail(&mut self, failure: Failure, now: Time) -> Option<Duration> {
        let failure = Arc::new(failure);
        let broken = self.0.get_or_insert_with(|| Broken {
            failure: Arc::clone(&failure),
            since: now,
            is_announced: false,
        });
        broken.failure = failure;
        let broken_for = now.since(broken.since);
        (broken_for >= LASTING && !broken.is_announced).then_some(broken_for)
    }

    /// Records that it is announced that the watch does not work.
    pub(super) fn announce(&mut self) {
        self.0.iter_mut().for_each(|broken| broken.is_announced = true);
    }

    /// Records that the watch works. Returns what that ends, if it did not.
    pub(super) fn restore(&mut self, now: Time) -> Option<Restored> {
        let broken = self.0.take()?;
        Some(Restored { broken_for: now.since(broken.since), was_announced: broken.is_announced })
    }

    /// Returns why the watch does not work.
    pub(super) fn failure(&self) -> Option<&Arc<Failure>> {
        self.0.as_ref().map(|broken| &broken.failure)
    }

    /// Returns since when the watch does not work.
    pub(super) fn since(&self) -> Option<Time> {
        self.0.as_ref().map(|broken| broken.since)
    }
}

//! On which terms keyed work is done: where it is shown, how many keys at a time, and when one that failed comes back.

use std::time::Duration;

use crate::config::Config;
use crate::name::{QueueName, TaskId};

/// The longest wait of a key that failed, where waits grow.
pub(crate) const LONGEST: Duration = Duration::from_mins(5);

/// On which terms keyed work is done.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Where it is shown.
    pub(crate) queue: QueueName,
    /// The other places where it is shown, if there are several: a piece of work stays in one of them.
    pub(crate) others: Vec<QueueName>,
    /// How many keys are worked on at a time.
    pub(crate) workers: usize,
    /// Whether the wait of a key that fails again and again grows to five minutes, and a change cuts it short that came
    /// while the key was worked on. Otherwise waits are those of tasks.
    pub(crate) grows: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self { queue: QueueName::addons(), others: Vec::new(), workers: 0, grows: false }
    }
}

impl Terms {
    /// Returns where a piece of work is shown.
    pub(super) fn queue_of(&self, id: TaskId) -> &QueueName {
        let count = u64::try_from(self.others.len()).unwrap_or_default().saturating_add(1);
        let place = usize::try_from(id.number() % count).unwrap_or_default();
        place.checked_sub(1).and_then(|place| self.others.get(place)).unwrap_or(&self.queue)
    }

    /// Returns all places where it is shown.
    pub(super) fn queues(&self) -> impl Iterator<Item = &QueueName> {
        std::iter::once(&self.queue).chain(&self.others)
    }

    /// Returns how long a key waits that failed `failures` times. `salt` is different for keys that fail together.
    pub(super) fn retry_after(&self, config: &Config, failures: u32, salt: u64) -> Duration {
        let longest = if self.grows { LONGEST.max(config.retry_delay) } else { config.retry_max_delay };
        config.retry_within(longest, failures, salt)
    }
}

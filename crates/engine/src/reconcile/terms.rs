//! On which terms keyed work is done: where it is shown, how many keys at a time, and when one that failed comes back.

use std::time::Duration;

use crate::config::Config;
use crate::name::QueueName;

/// The longest wait of a key that failed, where waits grow.
pub(crate) const LONGEST: Duration = Duration::from_mins(5);

/// On which terms keyed work is done.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Where it is shown.
    pub(crate) queue: QueueName,
    /// How many keys are worked on at a time.
    pub(crate) workers: usize,
    /// Whether the wait of a key that fails again and again grows to five minutes, and a change cuts it short that came
    /// while the key was worked on. Otherwise waits are those of tasks.
    pub(crate) grows: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self { queue: QueueName::addons(), workers: 0, grows: false }
    }
}

impl Terms {
    /// Returns how long a key waits that failed `failures` times. `salt` is different for keys that fail together.
    pub(super) fn retry_after(&self, config: &Config, failures: u32, salt: u64) -> Duration {
        let longest = if self.grows { LONGEST.max(config.retry_delay) } else { config.retry_max_delay };
        config.retry_within(longest, failures, salt)
    }
}

//! The metric of a ConfigMap that can't be used: it grows as long as that lasts.

use tokio::time::Instant;

use super::metrics::Metrics;

/// How often the reference operator counts that the ConfigMap can't be used, in seconds. Alerts rely on that rate.
const PERIOD: u64 = 5;

/// Since when the ConfigMap can't be used, and how often that was counted; `None` while it is good.
#[derive(Debug, Default)]
pub(super) struct ConfigErrors(Option<Invalid>);

#[derive(Clone, Copy, Debug)]
struct Invalid {
    since: Instant,
    counted: u64,
}

impl ConfigErrors {
    /// Records whether the ConfigMap can be used from now on.
    pub(super) fn set_invalid(&mut self, is_invalid: bool, metrics: &Metrics) {
        if is_invalid {
            self.0.get_or_insert_with(|| Invalid { since: Instant::now(), counted: 0 });
        }
        self.count(metrics);
        if !is_invalid {
            self.0 = None;
        }
    }

    /// Counts what is due up to now.
    pub(super) fn count(&mut self, metrics: &Metrics) {
        let Some(invalid) = &mut self.0 else { return };
        let due = invalid.since.elapsed().as_secs() / PERIOD + 1;
        for _ in invalid.counted..due {
            metrics.config_values_errors.count(&[]);
        }
        invalid.counted = due;
    }
}

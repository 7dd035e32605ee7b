//! How long watches need for an object, by the bindings that use the watch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::{MonitorId, ObservedBinding};

use super::metrics::{Metrics, hook_labels};

/// How many measurements of a watch are kept until its bindings are known.
const WAITING: usize = 1000;

/// How long a watch took for one step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timing {
    /// To filter an object.
    Filtered(Duration),
    /// To pass on a change, the filter included.
    PassedOn(Duration),
}

/// The bindings of each watch, and what was measured before they are known.
#[derive(Debug, Default)]
pub(super) struct WatchTimes {
    bindings: BTreeMap<MonitorId, Arc<[ObservedBinding]>>,
    waiting: BTreeMap<MonitorId, Vec<Timing>>,
}

impl WatchTimes {
    /// Sets the bindings of a watch and counts what was measured before.
    pub(super) fn set_bindings(
        &mut self,
        monitor: MonitorId,
        bindings: Arc<[ObservedBinding]>,
        metrics: &Metrics,
    ) {
        for timing in self.waiting.remove(&monitor).unwrap_or_default() {
            observe(metrics, &bindings, timing);
        }
        self.bindings.insert(monitor, bindings);
    }

    /// Counts a measurement, at once if the bindings of the watch are known.
    pub(super) fn measured(&mut self, monitor: MonitorId, timing: Timing, metrics: &Metrics) {
        if let Some(bindings) = self.bindings.get(&monitor) {
            return observe(metrics, bindings, timing);
        }
        let waiting = self.waiting.entry(monitor).or_default();
        if waiting.len() < WAITING {
            waiting.push(timing);
        }
    }
}

fn observe(metrics: &Metrics, bindings: &[ObservedBinding], timing: Timing) {
    let (metric, took) = match timing {
        Timing::Filtered(took) => (&metrics.jq_seconds, took),
        Timing::PassedOn(took) => (&metrics.event_seconds, took),
    };
    for binding in bindings {
        let (module, hook) = hook_labels(&binding.hook);
        let labels = [module, hook, &*binding.binding, binding.queue.as_str(), &*binding.kind];
        metric.observe(&labels, took.as_secs_f64());
    }
}

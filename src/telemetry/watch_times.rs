//! What adapters and the driver measure: requests, filters, changes, decisions.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use engine::{Effect, FedBinding, HookId, MonitorId, Notice, QueueName};

use super::metrics::Metrics;
use super::{Telemetry, names};
use crate::cluster::Told;

/// How many measurements of a watch are kept until it is known whom it feeds.
const WAITING: usize = 1000;

/// What a watch did, and how long it took.
#[derive(Clone, Copy, Debug)]
enum Timing {
    Filtered(Duration),
    PassedOn(Duration),
}

/// Whom the watches feed, and what was measured before that is known.
#[derive(Debug, Default)]
pub(super) struct WatchTimes {
    fed: BTreeMap<MonitorId, Arc<[FedBinding]>>,
    waiting: BTreeMap<MonitorId, Vec<Timing>>,
}

impl WatchTimes {
    /// Takes in whom a watch feeds.
    pub(super) fn know(&mut self, monitor: MonitorId, bindings: Arc<[FedBinding]>, metrics: &Metrics) {
        for timing in self.waiting.remove(&monitor).unwrap_or_default() {
            observe(metrics, &bindings, timing);
        }
        self.fed.insert(monitor, bindings);
    }
}

fn observe(metrics: &Metrics, bindings: &[FedBinding], timing: Timing) {
    let (metric, took) = match timing {
        Timing::Filtered(took) => (&metrics.jq_seconds, took),
        Timing::PassedOn(took) => (&metrics.event_seconds, took),
    };
    for fed in bindings {
        let (module, hook) = names(&fed.hook);
        let labels = [module, hook, &*fed.binding, fed.queue.as_str(), &*fed.kind];
        metric.with_label_values(&labels).observe(took.as_secs_f64());
    }
}

impl Telemetry {
    /// Takes in what was measured at a request to the API server.
    pub fn request(&self, told: &Told<'_>) {
        let metrics = |component: &str| match component {
            "object_patcher" => &self.metrics.patcher,
            _ => &self.metrics.main_client,
        };
        match told {
            Told::Answered { component, method, path, host, status, took } => {
                let metrics = metrics(component);
                metrics.latency.with_label_values(&[*component, *method, *path]).observe(took.as_secs_f64());
                let code = status.map_or_else(|| "<error>".to_owned(), |status| status.to_string());
                metrics.results.with_label_values(&[*component, code.as_str(), *method, *host]).inc();
            }
            Told::Waited { component, method, path, waited } => {
                let labels = [*component, *method, *path];
                metrics(component).waits.with_label_values(&labels).observe(waited.as_secs_f64());
            }
        }
    }

    /// Takes in how long a watch took to filter an object.
    pub fn watch_filtered(&self, monitor: MonitorId, took: Duration) {
        self.watch_worked(monitor, Timing::Filtered(took));
    }

    /// Takes in how long a watch took to pass on a change, the filter included.
    pub fn watch_passed_on(&self, monitor: MonitorId, took: Duration) {
        self.watch_worked(monitor, Timing::PassedOn(took));
    }

    fn watch_worked(&self, monitor: MonitorId, timing: Timing) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bindings) = watches.fed.get(&monitor) {
            return observe(&self.metrics, bindings, timing);
        }
        let waiting = watches.waiting.entry(monitor).or_default();
        if waiting.len() < WAITING {
            waiting.push(timing);
        }
    }

    /// Takes in how long a decision took that changed queues.
    pub fn decided(&self, took: Duration, effects: &[Effect]) {
        for effect in effects {
            let Effect::Notify(notice) = effect else { continue };
            let (task, action) = if let Notice::TaskQueued { task } = notice {
                (task, "AddLast")
            } else if let Notice::TaskStarted { task, .. } = notice {
                (task, "GetFirst")
            } else if let Notice::TaskFinished { task, .. } = notice {
                (task, "RemoveFirst")
            } else {
                continue;
            };
            let labels = [task.queue.as_str(), action];
            self.metrics.queue_action_seconds.with_label_values(&labels).observe(took.as_secs_f64());
        }
    }

    pub(super) fn queue_compacted(&self, queue: &QueueName, hook: &HookId, before: usize, after: usize) {
        let labels = [queue.as_str(), hook.name.as_str()];
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        self.metrics.compactions.with_label_values(&labels).inc();
        self.metrics.compacted_tasks.with_label_values(&labels).set(before.into());
        tracing::info!(queue = queue.as_str(), "{before} waiting runs of hook {hook} became {after}");
    }
}

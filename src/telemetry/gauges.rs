//! Metrics that show how everything is now: they are set from a view before each scrape.

use engine::View;

use super::metrics::Metrics;

impl Metrics {
    /// Sets all gauges of this kind.
    pub(super) fn set_gauges(&self, view: &View) {
        self.queue_head.reset();
        self.queue_head_seconds.reset();
        for queue in &view.queues {
            let Some(head) = queue.tasks.first() else { continue };
            let module = head.module.as_ref().map_or("", |module| module.as_str());
            let hook = head.hook.as_ref().map_or("", |hook| hook.name.as_str());
            self.queue_head
                .with_label_values(&[queue.name.as_str(), module, head.kind.as_str(), hook])
                .set(1.0);
            if let Some(since) = queue.head_for() {
                self.queue_head_seconds.with_label_values(&[queue.name.as_str()]).set(since.as_secs_f64());
            }
        }
        self.broken_files.reset();
        let modules = view.modules.iter().filter(|module| module.broken_version.is_some());
        let broken = modules.map(|module| module.name.as_str()).chain(view.file_problems.iter().map(|_| ""));
        for module in broken {
            self.broken_files.with_label_values(&[module]).inc();
        }
        self.set_states(view);
        self.module_maintenance.reset();
        for module in view.modules.iter().filter(|module| module.maintenance) {
            let labels = [module.name.as_str(), "NoResourceReconciliation"];
            self.module_maintenance.with_label_values(&labels).set(1.0);
        }
    }

    /// Sets what modules are doing and which watches do not work.
    fn set_states(&self, view: &View) {
        self.module_phase.reset();
        for module in &view.modules {
            self.module_phase.with_label_values(&[module.name.as_str(), module.phase]).set(1.0);
        }
        self.changed_objects.reset();
        self.unwatched_kinds.reset();
        for module in &view.modules {
            let name = module.name.as_str();
            for _ in &module.changed_objects {
                self.changed_objects.with_label_values(&[name]).inc();
            }
            for unwatched in &module.unwatched_kinds {
                self.unwatched_kinds.with_label_values(&[name, unwatched.kind.as_str()]).set(1.0);
            }
        }
        self.watches_broken.reset();
        for watch in &view.watches {
            let reason = match (&watch.missing_kind, &watch.failure) {
                (Some(_), _) => "missing_kind",
                (None, Some(_)) => "failure",
                (None, None) => continue,
            };
            self.watches_broken.with_label_values(&[watch.kind.as_str(), reason]).inc();
        }
        for watch in &view.broken_own_watches {
            self.watches_broken.with_label_values(&[watch.name.as_str(), "failure"]).inc();
        }
    }
}

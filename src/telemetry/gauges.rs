//! Metrics that show how everything is now: they are set from a view before each scrape.

use engine::View;
use engine::view::{ElectionRole, SourceView};

use super::metrics::Metrics;

impl Metrics {
    /// Sets all gauges of this kind.
    pub(super) fn set_gauges(&self, view: &View) {
        let heads = || view.queues.iter().filter_map(|queue| Some((queue, queue.tasks.first()?)));
        self.queue_head.renew(|gauges| {
            for (queue, head) in heads() {
                let module = head.module.as_ref().map_or("", |module| module.as_str());
                let hook = head.hook.as_ref().map_or("", |hook| hook.name.as_str());
                gauges.set(&[queue.name.as_str(), module, head.kind.as_str(), hook], 1.0);
            }
        });
        self.queue_head_seconds.renew(|gauges| {
            for (queue, _) in heads() {
                if let Some(since) = queue.head_for() {
                    gauges.set(&[queue.name.as_str()], since.as_secs_f64());
                }
            }
        });
        self.broken_files.renew(|gauges| {
            let modules = view.modules.iter().filter(|module| module.broken_version.is_some());
            let modules = modules.map(|module| module.name.as_str());
            for module in modules.chain(view.file_problems.iter().map(|_| "")) {
                gauges.count(&[module]);
            }
        });
        self.set_states(view);
        self.leader.renew(|gauges| {
            if let Some(election) = &view.election {
                gauges.set(&[], if election.role == ElectionRole::Leader { 1.0 } else { 0.0 });
            }
        });
        self.other_operators.renew(|gauges| {
            if let Some(election) = &view.election {
                gauges.set(&[], if election.rival.is_some() { 1.0 } else { 0.0 });
            }
        });
        self.module_readiness.renew(|gauges| {
            for module in &view.modules {
                if let Some(readiness) = &module.readiness {
                    gauges.set(&[module.name.as_str(), readiness.state()], 1.0);
                }
            }
        });
        self.module_maintenance.renew(|gauges| {
            for module in view.modules.iter().filter(|module| module.maintenance.is_some()) {
                gauges.set(&[module.name.as_str(), "NoResourceReconciliation"], 1.0);
            }
        });
    }

    /// Sets what modules are doing and which watches do not work.
    fn set_states(&self, view: &View) {
        self.module_phase.renew(|gauges| {
            for module in &view.modules {
                gauges.set(&[module.name.as_str(), module.phase], 1.0);
            }
        });
        self.changed_objects.renew(|gauges| {
            for module in &view.modules {
                module.changed_objects.iter().for_each(|_| gauges.count(&[module.name.as_str()]));
            }
        });
        self.unwatched_kinds.renew(|gauges| {
            for module in &view.modules {
                for unwatched in &module.unwatched_kinds {
                    gauges.set(&[module.name.as_str(), unwatched.kind.as_str()], 1.0);
                }
            }
        });
        self.configurations.renew(|gauges| {
            for source in &view.sources {
                gauges.count(&[source.key.kind.as_str(), source.phase]);
            }
        });
        self.addons_held_back.renew(|gauges| {
            let modules =
                view.sources.iter().flat_map(SourceView::addons).filter_map(|addon| addon.module.as_ref());
            for (_, state) in modules.filter(|(_, state)| ["RolledBack", "Waiting"].contains(state)) {
                gauges.count(&[*state]);
            }
        });
        self.chart_repositories.renew(|gauges| {
            for repository in &view.charts.repositories {
                gauges.count(&[if repository.is_synced == Some(true) { "true" } else { "false" }]);
            }
        });
        self.chart_versions.renew(|gauges| {
            for chart in &view.charts.charts {
                chart.versions.iter().for_each(|_| gauges.count(&[chart.repository.as_str()]));
            }
        });
        self.watches_broken.renew(|gauges| {
            for watch in &view.watches {
                let reason = match (&watch.missing_kind, &watch.failure) {
                    (Some(_), _) => "missing_kind",
                    (None, Some(_)) => "failure",
                    (None, None) => continue,
                };
                gauges.count(&[watch.kind.as_str(), reason]);
            }
            for watch in &view.broken_own_watches {
                gauges.count(&[watch.name.as_str(), "failure"]);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use engine::view::SourceView;
    use engine::{Catalog, Config, Engine, SourceKey};

    use crate::telemetry::Telemetry;

    #[test]
    fn configurations_are_counted_by_kind_and_phase_if_there_are_any() {
        let telemetry = Telemetry::new("p_").unwrap();
        let mut view = Engine::new(Config::default(), Catalog::default()).view();
        let scraped = |view: &_| telemetry.metrics(Some(view)).collect::<String>();
        assert!(!scraped(&view).contains("addons_"), "who has no source sees nothing of them");
        let source = |name: &str, phase| SourceView {
            key: SourceKey::cluster(name),
            phase,
            message: String::new(),
            modules: String::new(),
            generation: 1,
            observed_generation: 1,
            is_deleting: false,
            waits_for: None,
            is_suspended: false,
            is_left_alone: false,
            processed_at: String::new(),
            processed_in: None,
            work: None,
            repositories: Vec::new(),
        };
        view.sources = vec![source("a", "Ready"), source("b", "Failed"), source("c", "Ready")];
        let text = scraped(&view);
        for (phase, count) in [("Ready", 2), ("Failed", 1)] {
            let line = format!(
                "p_addons_configurations{{kind=\"ClusterAddonsConfiguration\",phase=\"{phase}\"}} {count}\n"
            );
            assert!(text.contains(&line), "{line}{text}");
        }
        // What is gone or another phase leaves nothing behind.
        view.sources.truncate(1);
        assert!(!scraped(&view).contains("phase=\"Failed\""));
    }
}

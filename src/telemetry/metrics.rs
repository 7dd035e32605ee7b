//! The operator's own metrics. See docs/contract.md#metrics.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use engine::{Effect, HookEnd, HookId, Notice, ReleaseAction, Scope, Usage};
use prometheus::{CounterVec, Encoder, GaugeVec, HistogramOpts, HistogramVec, Opts, Registry, TextEncoder};

use crate::cluster::RequestObservation;

/// The bounds of all histograms, in seconds.
const BUCKETS: &[f64] = &[0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// How often the reference operator increments its live ticks, in seconds.
const TICK: u64 = 10;

const MODULE_HOOK: &[&str] = &["module", "hook", "binding", "queue", "activation"];
const WATCH: &[&str] = &["module", "hook", "binding", "queue", "kind"];
const GLOBAL_HOOK: &[&str] = &["hook", "binding", "queue", "activation"];

/// The metrics of global hooks or of module hooks.
#[derive(Debug)]
pub(super) struct HookMetrics {
    pub(super) run_seconds: HistogramVec,
    pub(super) user_cpu: HistogramVec,
    pub(super) system_cpu: HistogramVec,
    pub(super) max_rss: GaugeVec,
    pub(super) allowed_errors: CounterVec,
    pub(super) errors: CounterVec,
    pub(super) successes: CounterVec,
}

/// The metrics of one client of the API server.
#[derive(Debug)]
pub(super) struct ClientMetrics {
    pub(super) latency: HistogramVec,
    pub(super) results: CounterVec,
    pub(super) waits: HistogramVec,
}

/// All metrics of the operator.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    described: Vec<Description>,
    begun: Instant,
    prefix: String,
    pub(super) binding_count: GaugeVec,
    pub(super) config_values_errors: CounterVec,
    pub(super) discover_errors: CounterVec,
    pub(super) module_delete_errors: CounterVec,
    pub(super) module_run_seconds: HistogramVec,
    pub(super) module_run_errors: CounterVec,
    pub(super) release_redeployed: CounterVec,
    pub(super) absent_resources: CounterVec,
    pub(super) changed_resources: CounterVec,
    pub(super) module_info: GaugeVec,
    pub(super) module_helm_seconds: HistogramVec,
    pub(super) helm_operation_seconds: HistogramVec,
    pub(super) module_hooks: HookMetrics,
    pub(super) global_hooks: HookMetrics,
    pub(super) convergence_seconds: CounterVec,
    pub(super) convergence_total: CounterVec,
    pub(super) task_wait: CounterVec,
    pub(super) broken_files: GaugeVec,
    pub(super) queue_length: GaugeVec,
    pub(super) queue_head: GaugeVec,
    pub(super) module_maintenance: GaugeVec,
    pub(super) module_phase: GaugeVec,
    pub(super) watches_broken: GaugeVec,
    pub(super) snapshot_objects: GaugeVec,
    pub(super) jq_seconds: HistogramVec,
    pub(super) event_seconds: HistogramVec,
    pub(super) queue_action_seconds: HistogramVec,
    pub(super) compactions: CounterVec,
    pub(super) compacted_tasks: GaugeVec,
    pub(super) main_client: ClientMetrics,
    pub(super) patcher: ClientMetrics,
    pub(super) watch_errors: CounterVec,
    pub(super) tasks_waiting: CounterVec,
}

/// The description of a metric, for the reference documentation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Description {
    /// Its name with the prefix.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of its labels.
    pub labels: Vec<String>,
    /// One line that says what it counts.
    pub help: String,
}

/// Creates metrics and registers them.
struct Maker<'a> {
    registry: &'a Registry,
    prefix: &'a str,
    made: RefCell<Vec<Description>>,
}

impl<'a> Maker<'a> {
    /// Returns a maker for the same registry with another prefix.
    fn beside(&self, prefix: &'a str) -> Maker<'a> {
        Maker { registry: self.registry, prefix, made: RefCell::default() }
    }

    fn opts(&self, kind: &'static str, name: &str, help: &str, labels: &[&str]) -> Opts {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        self.made.borrow_mut().push(Description {
            name: format!("{}{name}", self.prefix),
            kind,
            labels,
            help: help.to_owned(),
        });
        Opts::new(format!("{}{name}", self.prefix), help)
    }

    fn counter(&self, name: &str, help: &str, labels: &[&str]) -> Result<CounterVec, prometheus::Error> {
        let metric = CounterVec::new(self.opts("counter", name, help, labels), labels)?;
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    fn gauge(&self, name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec, prometheus::Error> {
        let metric = GaugeVec::new(self.opts("gauge", name, help, labels), labels)?;
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    fn histogram(&self, name: &str, help: &str, labels: &[&str]) -> Result<HistogramVec, prometheus::Error> {
        let opts = HistogramOpts {
            common_opts: self.opts("histogram", name, help, labels),
            buckets: BUCKETS.to_vec(),
        };
        let metric = HistogramVec::new(opts, labels)?;
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    fn client(&self) -> Result<ClientMetrics, prometheus::Error> {
        let request = &["component", "verb", "url"];
        Ok(ClientMetrics {
            latency: self.histogram(
                "kubernetes_client_request_latency_seconds",
                "How long the API server takes to answer",
                request,
            )?,
            results: self.counter(
                "kubernetes_client_request_result_total",
                "Requests by what was answered",
                &["component", "code", "method", "host"],
            )?,
            waits: self.histogram(
                "kubernetes_client_rate_limiter_latency_seconds",
                "How long requests wait for the limit on our side",
                request,
            )?,
        })
    }

    fn hooks(&self, kind: &str, labels: &[&str]) -> Result<HookMetrics, prometheus::Error> {
        let name = |rest: &str| format!("{kind}_hook_{rest}");
        Ok(HookMetrics {
            run_seconds: self.histogram(&name("run_seconds"), "How long runs of hooks take", labels)?,
            user_cpu: self.histogram(
                &name("run_user_cpu_seconds"),
                "Processor time of hooks in user mode",
                labels,
            )?,
            system_cpu: self.histogram(
                &name("run_sys_cpu_seconds"),
                "Processor time of hooks in the kernel",
                labels,
            )?,
            max_rss: self.gauge(&name("run_max_rss_bytes"), "Largest memory of a run", labels)?,
            allowed_errors: self.counter(
                &name("allowed_errors_total"),
                "Failed runs that may fail",
                labels,
            )?,
            errors: self.counter(&name("errors_total"), "Failed runs", labels)?,
            successes: self.counter(&name("success_total"), "Runs that did what they should", labels)?,
        })
    }
}

impl Metrics {
    /// Returns the metrics with names that begin with `prefix`.
    #[expect(clippy::too_many_lines, reason = "a table with one row for each metric")]
    pub(super) fn new(prefix: &str) -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let make = Maker { registry: &registry, prefix, made: RefCell::default() };
        let telemetry_prefix = format!("d8_telemetry_{prefix}");
        let compacted = make.beside(&telemetry_prefix);
        let patcher = make.beside("object_patcher_");
        let mut metrics = Self {
            binding_count: make.gauge("binding_count", "Bindings of a hook", &["module", "hook"])?,
            config_values_errors: make.counter(
                "config_values_errors_total",
                "Counts every 5 seconds while the ConfigMap can't be used as it is",
                &[],
            )?,
            discover_errors: make.counter(
                "modules_discover_errors_total",
                "Failed discoveries of modules",
                &[],
            )?,
            module_delete_errors: make.counter(
                "module_delete_errors_total",
                "Failed deletions",
                &["module"],
            )?,
            module_run_seconds: make.histogram(
                "module_run_seconds",
                "How long runs of modules take",
                &["module", "activation"],
            )?,
            module_run_errors: make.counter(
                "module_run_errors_total",
                "Failed runs of modules",
                &["module"],
            )?,
            release_redeployed: make.counter(
                "modules_helm_release_redeployed_total",
                "Releases that had an unexpected status",
                &["module"],
            )?,
            absent_resources: make.counter(
                "modules_absent_resources_total",
                "Objects of releases that were gone",
                &["module", "resource"],
            )?,
            changed_resources: make.counter(
                "modules_changed_resources_total",
                "Objects of releases that somebody else changed",
                &["module", "resource"],
            )?,
            module_info: make.gauge(
                "mm_module_info",
                "Modules and whether they are on",
                &["module", "enabled", "critical"],
            )?,
            module_helm_seconds: make.histogram(
                "module_helm_seconds",
                "How long releases take",
                &["module", "activation"],
            )?,
            helm_operation_seconds: make.histogram(
                "helm_operation_seconds",
                "How long operations on releases take",
                &["module", "activation", "operation"],
            )?,
            module_hooks: make.hooks("module", MODULE_HOOK)?,
            global_hooks: make.hooks("global", GLOBAL_HOOK)?,
            convergence_seconds: make.counter(
                "convergence_seconds",
                "How long converges took",
                &["activation"],
            )?,
            convergence_total: make.counter(
                "convergence_total",
                "Converges that came to their end",
                &["activation"],
            )?,
            task_wait: make.counter(
                "task_wait_in_queue_seconds_total",
                "How long tasks waited in queues",
                &["module", "hook", "binding", "queue"],
            )?,
            queue_head: make.gauge(
                "tasks_queue_head_info",
                "The first task of a queue",
                &["queue", "module", "task_type", "hook"],
            )?,
            module_maintenance: make.gauge(
                "mm_module_maintenance",
                "Modules in maintenance",
                &["module", "state"],
            )?,
            module_phase: make.gauge(
                "module_phase",
                "What a module is doing: disabled, starting, running, failed, deleting, parked, orphaned",
                &["module", "phase"],
            )?,
            watches_broken: make.gauge(
                "watches_broken",
                "Watches that are broken or wait for a kind that does not exist",
                &["kind", "reason"],
            )?,
            broken_files: make.gauge(
                "broken_files",
                "Modules and global files whose new version can't be used: an older one is in force",
                &["module"],
            )?,
            queue_length: make.gauge("tasks_queue_length", "Tasks in a queue", &["queue"])?,
            snapshot_objects: make.gauge("kube_snapshot_objects", "Objects in a snapshot", WATCH)?,
            jq_seconds: make.histogram(
                "kube_jq_filter_duration_seconds",
                "How long filters take for an object",
                WATCH,
            )?,
            event_seconds: make.histogram(
                "kube_event_duration_seconds",
                "How long it takes to pass on a change",
                WATCH,
            )?,
            queue_action_seconds: make.histogram(
                "tasks_queue_action_duration_seconds",
                "How long changes of queues take",
                &["queue_name", "queue_action"],
            )?,
            compactions: compacted.counter(
                "tasks_queue_compaction_operations_total",
                "How often waiting runs of a hook were put together",
                &["queue_name", "hook"],
            )?,
            compacted_tasks: compacted.gauge(
                "tasks_queue_compaction_tasks_by_hook",
                "How many runs of a hook were put together last",
                &["queue_name", "hook"],
            )?,
            main_client: make.client()?,
            patcher: patcher.client()?,
            watch_errors: make.counter(
                "kubernetes_client_watch_errors_total",
                "Watches that broke",
                &["error_type"],
            )?,
            tasks_waiting: make.counter(
                "tasks_held_back_total",
                "Tasks that could not begin at once",
                &["queue", "module"],
            )?,
            prefix: prefix.to_owned(),
            begun: Instant::now(),
            described: Vec::new(),
            registry: registry.clone(),
        };
        metrics.described = [make, compacted, patcher].iter().flat_map(|maker| maker.made.take()).collect();
        metrics.described.push(Description {
            name: format!("{prefix}live_ticks"),
            kind: "counter",
            labels: Vec::new(),
            help: format!("Counts every {TICK} seconds"),
        });
        Ok(metrics)
    }

    /// Returns the descriptions of all metrics by name.
    pub(super) fn described(&self) -> Vec<Description> {
        let mut described = self.described.clone();
        described.sort_by(|a, b| a.name.cmp(&b.name));
        described
    }

    /// Returns all metrics in the text format of Prometheus.
    pub(super) fn text(&self) -> String {
        let mut out = Vec::new();
        let mut families = self.registry.gather();
        families.extend(prometheus::gather());
        if TextEncoder::new().encode(&families, &mut out).is_err() {
            return String::new();
        }
        let mut text = String::from_utf8(out).unwrap_or_default();
        // Computed at each scrape: a timer would wake an idle operator for nothing.
        let name = format!("{}live_ticks", self.prefix);
        let ticks = self.begun.elapsed().as_secs() / TICK + 1;
        let _ = write!(
            text,
            "# HELP {name} Counts every {TICK} seconds\n# TYPE {name} counter\n{name} {ticks}\n"
        );
        text
    }
}

impl Metrics {
    /// Counts a request to the API server.
    pub(super) fn request(&self, observed: &RequestObservation<'_>) {
        let metrics = |component: &str| match component {
            "object_patcher" => &self.patcher,
            _ => &self.main_client,
        };
        match observed {
            RequestObservation::Answered { component, method, path, host, status, took } => {
                let metrics = metrics(component);
                metrics.latency.with_label_values(&[*component, *method, *path]).observe(took.as_secs_f64());
                let code = status.map_or_else(|| "<error>".to_owned(), |status| status.to_string());
                metrics.results.with_label_values(&[*component, code.as_str(), *method, *host]).inc();
            }
            RequestObservation::Throttled { component, method, path, waited } => {
                let labels = [*component, *method, *path];
                metrics(component).waits.with_label_values(&labels).observe(waited.as_secs_f64());
            }
        }
    }

    /// Counts a run of a hook with the labels binding, queue and activation.
    ///
    /// The outcome is counted only if the run was a task; a run within the task of a module counts as the module's.
    pub(super) fn hook_ran(
        &self,
        hook: &HookId,
        labels: &[&str; 3],
        usage: Option<Usage>,
        (outcome, is_task): (HookEnd, bool),
    ) {
        let [binding, queue, activation] = *labels;
        let (module, name) = hook_labels(hook);
        let (metrics, labels) = match &hook.scope {
            Scope::Global => (&self.global_hooks, vec![name, binding, queue, activation]),
            Scope::Module(_) => (&self.module_hooks, vec![module, name, binding, queue, activation]),
        };
        let ends = [
            (&metrics.allowed_errors, HookEnd::AllowedError),
            (&metrics.errors, HookEnd::Error),
            (&metrics.successes, HookEnd::Success),
        ];
        for (counter, end) in ends.into_iter().filter(|_| is_task) {
            counter.with_label_values(&labels).inc_by(f64::from(u8::from(end == outcome)));
        }
        let Some(usage) = usage else { return };
        metrics.run_seconds.with_label_values(&labels).observe(usage.took.as_secs_f64());
        if outcome == HookEnd::Success {
            metrics.user_cpu.with_label_values(&labels).observe(usage.user.as_secs_f64());
            metrics.system_cpu.with_label_values(&labels).observe(usage.system.as_secs_f64());
            #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
            metrics.max_rss.with_label_values(&labels).set(usage.max_rss as f64);
        }
    }

    /// Counts a run of the release of a module; no action is a failure.
    pub(super) fn release_ran(
        &self,
        [module, activation]: [&str; 2],
        action: Option<ReleaseAction>,
        took: Duration,
    ) {
        let seconds = took.as_secs_f64();
        self.module_helm_seconds.with_label_values(&[module, activation]).observe(seconds);
        let operation = match action {
            Some(ReleaseAction::Unchanged | ReleaseAction::Unmanaged | ReleaseAction::Absent) => {
                "check-upgrade"
            }
            Some(ReleaseAction::Installed | ReleaseAction::Upgraded) | None => "upgrade",
            Some(ReleaseAction::Uninstalled) => "uninstall",
        };
        self.helm_operation_seconds.with_label_values(&[module, activation, operation]).observe(seconds);
    }

    /// Counts how long a decision took, for each action on a queue among its effects.
    pub(super) fn decided(&self, took: Duration, effects: &[Effect]) {
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
            self.queue_action_seconds.with_label_values(&labels).observe(took.as_secs_f64());
        }
    }
}

/// Returns the values of the labels module and hook; the module of a global hook is empty.
pub(super) fn hook_labels(hook: &HookId) -> (&str, &str) {
    (hook.scope.module().map_or("", |module| module.as_str()), hook.name.as_str())
}

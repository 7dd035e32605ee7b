//! The operator's own metrics. See docs/contract.md#metrics.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::iter;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Effect, HookEnd, HookId, Notice, ReleaseAction, Scope, Usage};
use prometheus::core::Desc;

use super::family::{Counter, Family, Gauge, Histogram, Pieces, Sample, Shown};
use super::process_metrics;
use crate::cluster::RequestObservation;
use crate::lasting_task;
use crate::process::usage;

/// How often the reference operator increments its live ticks, in seconds.
const TICK: u64 = 10;

const MODULE_HOOK: &[&str] = &["module", "hook", "binding", "queue", "activation"];
const RECONCILE: &[&str] = &["module", "hook", "binding"];
const WATCH: &[&str] = &["module", "hook", "binding", "queue", "kind"];
const REQUEST: &[&str] = &["component", "verb", "url"];
const GLOBAL_HOOK: &[&str] = &["hook", "binding", "queue", "activation"];

/// What the names of the metrics of clients begin with.
const CLIENT: &str = "kubernetes_client_";

/// Defines a group of metrics: kind, field, name behind the prefix, labels and help of each, then the groups within.
macro_rules! metrics {
    (@counter) => { Arc<Family<Counter>> };
    (@gauge) => { Arc<Family<Gauge>> };
    (@histogram) => { Arc<Family<Histogram>> };
    (
        $(#[$about:meta])*
        $group:ident($maker:ident $(, $parameter:ident: $of:ty)?) {
            $($kind:ident $field:ident = $name:literal, $labels:expr, $help:literal;)*
        }
        $($inner:ident: $type:ty = $make:expr;)*
    ) => {
        $(#[$about])*
        #[derive(Debug)]
        pub(super) struct $group {
            $(pub(super) $field: metrics!(@$kind),)*
            $(pub(super) $inner: $type,)*
        }

        impl $group {
            fn new($maker: &Maker<'_> $(, $parameter: $of)?) -> Result<Self, prometheus::Error> {
                Ok(Self {
                    $($field: $maker.$kind($name, $help, $labels)?,)*
                    $($inner: $make?,)*
                })
            }
        }
    };
}

metrics! {
    /// The metrics of global hooks or of module hooks.
    HookMetrics(make, labels: &'static [&'static str]) {
        histogram run_seconds = "run_seconds", labels, "How long runs of hooks take";
        histogram user_cpu = "run_user_cpu_seconds", labels, "Processor time of hooks in user mode";
        histogram system_cpu = "run_sys_cpu_seconds", labels, "Processor time of hooks in the kernel";
        gauge max_rss = "run_max_rss_bytes", labels, "Largest memory of a run";
        counter allowed_errors = "allowed_errors_total", labels, "Failed runs that may fail";
        counter errors = "errors_total", labels, "Failed runs";
        counter successes = "success_total", labels, "Runs that did what they should";
    }
}

metrics! {
    /// The metrics of one client of the API server.
    ClientMetrics(make) {
        histogram latency = "request_latency_seconds", REQUEST, "How long the API server takes to answer";
        counter results = "request_result_total", &["component", "code", "method", "host"],
            "Requests by what was answered";
        histogram waits = "rate_limiter_latency_seconds", REQUEST,
            "How long requests wait for the limit on our side";
    }
}

metrics! {
    /// The metrics of compacted queues.
    CompactionMetrics(make) {
        counter operations = "operations_total", &["queue_name", "hook"],
            "How often waiting runs of a hook were put together";
        gauge tasks = "tasks_by_hook", &["queue_name", "hook"],
            "How many runs of a hook were put together last";
    }
}

metrics! {
    /// All metrics of the operator.
    Metrics(make) {
        gauge binding_count = "binding_count", &["module", "hook"], "Bindings of a hook";
        counter config_values_errors = "config_values_errors_total", &[],
            "Counts every 5 seconds while the ConfigMap can't be used as it is";
        counter discover_errors = "modules_discover_errors_total", &[], "Failed discoveries of modules";
        counter module_delete_errors = "module_delete_errors_total", &["module"], "Failed deletions";
        histogram module_run_seconds = "module_run_seconds", &["module", "activation"],
            "How long runs of modules take";
        counter module_run_errors = "module_run_errors_total", &["module"], "Failed runs of modules";
        counter release_redeployed = "modules_helm_release_redeployed_total", &["module"],
            "Releases that had an unexpected status";
        counter absent_resources = "modules_absent_resources_total", &["module", "resource"],
            "Objects of releases that were gone";
        counter changed_resources = "modules_changed_resources_total", &["module", "resource"],
            "Objects of releases that somebody else changed";
        counter mended_resources = "modules_mended_resources_total", &["module", "resource"],
            "Changes of objects of releases by others that were put right";
        histogram reconcile_seconds = "reconcile_seconds", RECONCILE,
            "How long it took to make an object what its controller says";
        counter reconcile_failures = "reconcile_failures_total", RECONCILE,
            "How often an object could not be made what its controller says";
        gauge reconcile_keys = "reconcile_keys", RECONCILE, "Objects of a controller";
        gauge leader = "leader", &[],
            "1 if this operator holds the Lease, 0 if it waits for it or works without it";
        gauge other_operators = "other_operators", &[],
            "1 if another operator is at work in the namespace that is no replica of this one";
        gauge module_info = "mm_module_info", &["module", "enabled", "critical"],
            "Modules and whether they are on";
        histogram module_helm_seconds = "module_helm_seconds", &["module", "activation"],
            "How long releases take";
        histogram helm_operation_seconds = "helm_operation_seconds", &["module", "activation", "operation"],
            "How long operations on releases take";
        counter convergence_seconds = "convergence_seconds", &["activation"], "How long converges took";
        counter convergence_total = "convergence_total", &["activation"], "Converges that came to their end";
        counter task_wait = "task_wait_in_queue_seconds_total", &["module", "hook", "binding", "queue"],
            "How long tasks waited in queues";
        gauge queue_head = "tasks_queue_head_info", &["queue", "module", "task_type", "hook"],
            "The first task of a queue";
        gauge queue_head_seconds = "tasks_queue_head_seconds", &["queue"],
            "How long a queue has been at its first task: running, failing or waiting";
        gauge module_readiness = "module_readiness", &["module", "state"], "Modules whose objects are awaited: ready, waiting or late";
        gauge module_maintenance = "mm_module_maintenance", &["module", "state"], "Modules in maintenance";
        gauge module_phase = "module_phase", &["module", "phase"],
            "What a module is doing: disabled, starting, running, failed, deleting, parked, orphaned";
        gauge changed_objects = "module_changed_objects", &["module"],
            "Objects of a release with a rendered field that somebody else changed";
        gauge unwatched_kinds = "module_unwatched_kinds", &["module", "kind"],
            "Kinds of objects of a release that can't be watched: what is deleted comes back with the next run only";
        gauge watches_broken = "watches_broken", &["kind", "reason"],
            "Watches that are broken or wait for a kind that does not exist";
        gauge broken_files = "broken_files", &["module"],
            "Modules and global files whose new version can't be used: an older one is in force";
        gauge queue_length = "tasks_queue_length", &["queue"], "Tasks in a queue";
        gauge snapshot_objects = "kube_snapshot_objects", WATCH, "Objects in a snapshot";
        histogram jq_seconds = "kube_jq_filter_duration_seconds", WATCH,
            "How long filters take for an object";
        histogram event_seconds = "kube_event_duration_seconds", WATCH,
            "How long it takes to pass on a change";
        histogram queue_action_seconds = "tasks_queue_action_duration_seconds", &["queue_name", "queue_action"],
            "How long changes of queues take";
        gauge configurations = "addons_configurations", &["kind", "phase"],
            "Configurations of module sources: New, Pending (being deleted, too), Ready, Failed";
        counter addons_rolled_back = "addons_rolled_back_total", &["module"],
            "How often a module of a source went back to the version before";
        gauge addons_held_back = "addons_held_back", &["state"],
            "Versions that sources offer and that are not in force: RolledBack, or Waiting for approval or a window";
        histogram fetch_seconds = "addons_fetch_seconds", &["scheme", "outcome"],
            "How long requests to repositories of module sources take, with the wait for their turn";
        histogram broker_request_seconds = "broker_request_seconds", &["method", "code"],
            "How long calls of platforms take, with the wait for their turn";
        counter broker_instances = "broker_instances_total", &["module", "stage"],
            "How often an instance came to a stage: provisioning, provisioned, provision-failed, deprovisioning, deprovisioned, deprovision-failed";
        gauge chart_repositories = "chart_repositories", &["synced"],
            "Chart repositories, by whether their index was read when it was looked at last";
        gauge chart_versions = "chart_versions", &["repository"],
            "Versions that Charts keep of a chart repository";
        histogram chart_fetch_seconds = "chart_fetch_seconds", &["what", "outcome"],
            "How long requests to chart repositories take, with the wait for their turn";
        histogram review_seconds = "webhook_review_seconds", &["binding", "webhook", "outcome"],
            "How long reviews of the API server take, with the wait for other hooks";
        gauge certificate_end = "webhook_certificate_expires_seconds", &[],
            "When the certificate of webhooks is not valid any more, in seconds since 1970";
        counter watch_errors = "kubernetes_client_watch_errors_total", &["error_type"], "Watches that broke";
        counter tasks_waiting = "tasks_held_back_total", &["queue", "module"],
            "Tasks that could not begin at once";
    }
    module_hooks: HookMetrics = HookMetrics::new(&make.below("module_hook_"), MODULE_HOOK);
    global_hooks: HookMetrics = HookMetrics::new(&make.below("global_hook_"), GLOBAL_HOOK);
    main_client: ClientMetrics = ClientMetrics::new(&make.below(CLIENT));
    patcher: ClientMetrics = ClientMetrics::new(&make.with_prefix(format!("object_patcher_{CLIENT}")));
    compactions: CompactionMetrics =
        CompactionMetrics::new(&make.with_prefix(format!("d8_telemetry_{}tasks_queue_compaction_", make.prefix)));
}

/// What is exposed beside the values of metrics.
#[derive(Debug)]
pub(super) struct Exposition {
    /// By name.
    families: Arc<[Arc<dyn Shown>]>,
    described: Vec<Description>,
    started: Instant,
    /// When the process was started, in seconds since 1970.
    started_at: Option<f64>,
    prefix: String,
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

/// Creates metrics, and keeps what is needed to show them.
struct Maker<'a> {
    prefix: String,
    made: &'a RefCell<Made>,
}

#[derive(Default)]
struct Made {
    families: Vec<Arc<dyn Shown>>,
    described: Vec<Description>,
}

impl<'a> Maker<'a> {
    /// Returns a maker of metrics with another prefix.
    fn with_prefix(&self, prefix: String) -> Maker<'a> {
        Maker { prefix, made: self.made }
    }

    /// Returns a maker whose prefix is longer by `rest`.
    fn below(&self, rest: &str) -> Maker<'a> {
        self.with_prefix(format!("{}{rest}", self.prefix))
    }

    fn family<S: Sample>(
        &self,
        kind: &'static str,
        name: &str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Result<Arc<Family<S>>, prometheus::Error> {
        let name = format!("{}{name}", self.prefix);
        let names: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        // It refuses names that Prometheus can't read.
        Desc::new(name.clone(), help.to_owned(), names.clone(), HashMap::new())?;
        let family = Arc::new(Family::new(name.clone(), help, labels));
        let mut made = self.made.borrow_mut();
        made.described.push(Description { name, kind, labels: names, help: help.to_owned() });
        made.families.push(Arc::clone(&family) as Arc<dyn Shown>);
        Ok(family)
    }

    fn counter(
        &self,
        name: &str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Result<Arc<Family<Counter>>, prometheus::Error> {
        self.family("counter", name, help, labels)
    }

    fn gauge(
        &self,
        name: &str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Result<Arc<Family<Gauge>>, prometheus::Error> {
        self.family("gauge", name, help, labels)
    }

    fn histogram(
        &self,
        name: &str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Result<Arc<Family<Histogram>>, prometheus::Error> {
        self.family("histogram", name, help, labels)
    }
}

/// Returns the counters that nobody counts up, with what they mean and their values after the operator has run for so long.
fn computed(prefix: &str, runs: Duration) -> [(String, String, u64); 2] {
    [
        (format!("{prefix}live_ticks"), format!("Counts every {TICK} seconds"), runs.as_secs() / TICK + 1),
        (
            format!("{prefix}task_panics_total"),
            "Tasks that panicked by a defect of the operator and were begun again".to_owned(),
            lasting_task::panics(),
        ),
    ]
}

impl Exposition {
    /// Returns the metrics with names that begin with `prefix`, and their exposition.
    pub(super) fn new(prefix: &str) -> Result<(Self, Metrics), prometheus::Error> {
        let made = RefCell::default();
        let metrics = Metrics::new(&Maker { prefix: prefix.to_owned(), made: &made })?;
        let Made { mut families, mut described } = made.into_inner();
        described.extend(computed(prefix, Duration::ZERO).map(|(name, help, _)| Description {
            name,
            kind: "counter",
            labels: Vec::new(),
            help,
        }));
        described.sort_by(|a, b| a.name.cmp(&b.name));
        families.sort_by(|a, b| a.name().cmp(b.name()));
        let families = families.into();
        // It does not change, and is not read at each scrape.
        let started_at = usage::started_at().ok();
        let prefix = prefix.to_owned();
        Ok((Self { families, described, started: Instant::now(), started_at, prefix }, metrics))
    }

    /// Returns the descriptions of all metrics by name.
    pub(super) fn described(&self) -> Vec<Description> {
        self.described.clone()
    }

    /// Returns all metrics in the text format of Prometheus, in pieces that are made one after the other.
    pub(super) fn pieces(&self) -> impl Iterator<Item = String> + Send + use<> {
        let (started, started_at, prefix) = (self.started, self.started_at, self.prefix.clone());
        let rest = move || {
            let mut text = process_metrics::text(started_at);
            // Computed at each scrape: a timer would wake an idle operator for nothing.
            for (name, help, count) in computed(&prefix, started.elapsed()) {
                let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}\n");
            }
            text
        };
        Pieces::new(Arc::clone(&self.families)).chain(iter::once_with(rest))
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
                metrics.latency.observe(&[*component, *method, *path], took.as_secs_f64());
                let code = status.map_or_else(|| "<error>".to_owned(), |status| status.to_string());
                metrics.results.count(&[*component, code.as_str(), *method, *host]);
            }
            RequestObservation::Throttled { component, method, path, waited } => {
                let labels = [*component, *method, *path];
                metrics(component).waits.observe(&labels, waited.as_secs_f64());
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
            counter.add(&labels, f64::from(u8::from(end == outcome)));
        }
        let Some(usage) = usage else { return };
        metrics.run_seconds.observe(&labels, usage.took.as_secs_f64());
        if outcome == HookEnd::Success {
            metrics.user_cpu.observe(&labels, usage.user.as_secs_f64());
            metrics.system_cpu.observe(&labels, usage.system.as_secs_f64());
            #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
            metrics.max_rss.set(&labels, usage.max_rss as f64);
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
        self.module_helm_seconds.observe(&[module, activation], seconds);
        let operation = match action {
            Some(
                ReleaseAction::Unchanged
                | ReleaseAction::Unmanaged
                | ReleaseAction::Unrecorded
                | ReleaseAction::Absent,
            ) => "check-upgrade",
            Some(ReleaseAction::Installed | ReleaseAction::Upgraded) | None => "upgrade",
            Some(ReleaseAction::Uninstalled) => "uninstall",
        };
        self.helm_operation_seconds.observe(&[module, activation, operation], seconds);
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
            self.queue_action_seconds.observe(&labels, took.as_secs_f64());
        }
    }
}

/// Returns the values of the labels module and hook; the module of a global hook is empty.
pub(super) fn hook_labels(hook: &HookId) -> (&str, &str) {
    (hook.scope.module().map_or("", |module| module.as_str()), hook.name.as_str())
}

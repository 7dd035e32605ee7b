//! Logs and metrics, made from the notices of the engine. Nothing is decided here.

mod config_errors;
mod exported_metrics;
mod family;
mod gauges;
pub mod log;
mod metrics;
mod process_metrics;
mod progress;
pub mod progress_bar;
mod task_log;
mod watch_times;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine::{
    Catalog, Drift, Effect, Failure, HookId, ModuleName, MonitorId, Notice, QueueName, ReleaseAction,
    TaskInfo, TaskType, View,
};
use tokio::sync::watch;

use config_errors::ConfigErrors;
use exported_metrics::ExportedMetrics;
use metrics::{Exposition, Metrics, hook_labels};
pub use progress::Progress;
use task_log::{explained, log_failure, log_final_failure, log_task, title};
use watch_times::{Timing, WatchTimes};

pub use metrics::Description;

use crate::cluster::RequestObservation;

/// The value of the label `activation` before the first converge has ended.
const STARTUP: &str = "OperatorStartup";

/// Turns notices into log lines and metrics.
#[derive(Debug)]
pub struct Telemetry {
    metrics: Metrics,
    exposition: Exposition,
    exported: Mutex<ExportedMetrics>,
    watches: Mutex<WatchTimes>,
    config_errors: Mutex<ConfigErrors>,
    progress: watch::Sender<Progress>,
    /// The modules that are held, with what each waits for.
    held: Mutex<BTreeMap<ModuleName, String>>,
}

impl Telemetry {
    /// Returns telemetry whose metrics begin with `prefix`, or why there can't be such metrics.
    pub fn new(prefix: &str) -> Result<Self, prometheus::Error> {
        let (exposition, metrics) = Exposition::new(prefix)?;
        Ok(Self {
            metrics,
            exposition,
            exported: Mutex::default(),
            watches: Mutex::default(),
            config_errors: Mutex::default(),
            progress: watch::Sender::default(),
            held: Mutex::default(),
        })
    }

    /// Returns the operator's own metrics as text, in pieces of some 32 KiB that are made when they are asked for: the
    /// whole has 30 MB at 1,000 modules. Gauges of the current state are set from `view` at once.
    pub fn metrics(&self, view: Option<&View>) -> impl Iterator<Item = String> + Send + use<> {
        self.config_errors.lock().unwrap_or_else(PoisonError::into_inner).count(&self.metrics);
        if let Some(view) = view {
            self.metrics.set_gauges(view);
        }
        self.exposition.pieces()
    }

    /// Returns the descriptions of the operator's own metrics by name.
    pub fn described(&self) -> Vec<Description> {
        self.exposition.described()
    }

    /// Returns the metrics of hooks as text.
    pub fn hook_metrics_text(&self) -> String {
        self.exported.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Returns a receiver for the progress of the first converge.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Nothing goes on by itself, for now.
    fn stuck(&self, why: String) {
        self.progress.send_if_modified(|progress| {
            let is_new = *progress == Progress::Running;
            if is_new {
                *progress = Progress::Stuck(why);
            }
            is_new
        });
    }

    /// Counts the bindings of a catalog's hooks.
    pub fn count_bindings(&self, catalog: &Catalog) {
        let modules = catalog.modules.iter().flat_map(|module| &module.hooks);
        for hook in catalog.global.hooks.iter().chain(modules) {
            let spec = &hook.spec;
            let count =
                spec.lifecycle.len() + spec.schedules.len() + spec.kubernetes.len() + spec.reconciles.len();
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            let (module, name) = hook_labels(&hook.id);
            self.metrics.binding_count.set(&[module, name], count.into());
        }
    }

    /// Logs and counts one notice.
    #[expect(clippy::too_many_lines, reason = "one arm for each notice")]
    pub fn take(&self, notice: Notice) {
        progress_bar::take(&notice);
        match notice {
            Notice::TaskQueued { task } => log_task(&task, "add", "queued"),
            Notice::TaskStarted { task, waited } => self.task_started(&task, waited),
            Notice::TaskStopped { task, at_shutdown } => {
                let why = if at_shutdown { "at shutdown" } else { "for something newer" };
                tracing::info!(
                    queue = task.queue.as_str(),
                    "task.id" = %task.id,
                    "task.flow" = "end",
                    cause = %task.cause,
                    "{} stopped {why}",
                    title(&task)
                );
            }
            Notice::TaskWaits { task, reason, advice } => self.task_waits(&task, &reason, advice.as_deref()),
            Notice::TaskFinished { task, took, failure, retry, allowed, is_old } => {
                self.task_finished(&task, took, (failure.as_ref(), is_old), retry, allowed);
            }
            Notice::HookRan { hook, binding, queue, usage, outcome, is_task, startup } => {
                let labels = [binding, queue.as_str(), activation(startup)];
                self.metrics.hook_ran(&hook, &labels, usage, (outcome, is_task));
            }
            Notice::ReleaseRan { module, action, took, startup } => {
                self.release_ran(module.as_str(), action, took, startup);
            }
            Notice::ObjectMended { module, object } => {
                self.metrics.mended_resources.count(&[module.as_str(), &object]);
                tracing::info!(module = module.as_str(), "{object} is as it was rendered again");
            }
            Notice::ReleaseDrifted { module, drift, what } => {
                self.release_drifted(module.as_str(), &drift, &what);
            }
            Notice::MetricsExported { hook, operations, unquotable } => {
                let problems =
                    self.exported.lock().unwrap_or_else(PoisonError::into_inner).take(&hook, &operations);
                for problem in unquotable.hide_in(&problems) {
                    tracing::warn!("{problem}");
                }
            }
            Notice::ModuleLeft { module } => self.metrics.module_info.remove(&[module.as_str()]),
            Notice::MetricsForgotten { scope } => {
                self.exported.lock().unwrap_or_else(PoisonError::into_inner).forget(&scope);
            }
            Notice::ConvergeStarted { generation, cause } => {
                tracing::info!(%cause, "converge {generation} begins");
            }
            Notice::ConvergeFinished { generation, took, first, cause } => {
                self.converged_now(generation, took, first, &cause.to_string());
            }
            Notice::Ready => tracing::info!("first converge is finished. Operator is ready now."),
            Notice::CleanedUp => {
                let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
                let waits = held.iter().map(|(module, why)| format!("module {module} does not run: {why}"));
                let waits: Vec<String> = waits.collect();
                if waits.is_empty() {
                    self.progress.send_replace(Progress::Converged);
                } else {
                    self.stuck(waits.join("; "));
                }
            }
            Notice::ReadinessWaits { hook, reason, advice } => {
                tracing::warn!(advice, "the operator is not ready: hook {hook} waits: {reason}");
            }
            Notice::DiscoveryFailed { failure } => {
                self.metrics.discover_errors.count(&[]);
                log_failure(&failure, "modules can't be discovered; it is tried again");
            }
            Notice::ConfigChecked { problems } => {
                let mut errors = self.config_errors.lock().unwrap_or_else(PoisonError::into_inner);
                errors.set_invalid(!problems.is_empty(), &self.metrics);
                drop(errors);
                for (object, problem) in &problems {
                    let text = format!("the {object} has a problem; what was good before stays in force");
                    log_failure(problem, &text);
                }
            }
            Notice::ModuleChanged { module, phase, reason } => {
                let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
                if matches!(phase, "held" | "waiting") {
                    held.insert(module.clone(), reason.clone().unwrap_or_default());
                } else {
                    held.remove(&module);
                }
                drop(held);
                macro_rules! log {
                    ($level:ident) => {
                        tracing::$level!(
                            module = module.as_str(),
                            "module.state" = phase,
                            reason = reason.as_deref().unwrap_or_default(),
                            "module {module} is {phase}"
                        )
                    };
                }
                if matches!(phase, "failed" | "orphaned" | "parked") { log!(warn) } else { log!(info) }
            }
            Notice::ModulesDiscovered { modules } => self.modules_discovered(&modules),
            Notice::ScriptsAskedAgain { scripts } => {
                tracing::info!("{scripts} enabled scripts ran again, as hooks had changed what they read");
            }
            // Such queues come and go: each would leave a series.
            Notice::QueueChanged { queue, length: 0 } if queue.is_temporary() => {
                self.metrics.queue_length.remove(&[queue.as_str()]);
            }
            Notice::QueueChanged { queue, length } => {
                let length = u32::try_from(length).unwrap_or(u32::MAX);
                self.metrics.queue_length.set(&[queue.as_str()], length.into());
            }
            Notice::ReconcileKeysChanged { hook, binding, keys } => {
                let (module, hook) = hook_labels(&hook);
                let keys = u32::try_from(keys).unwrap_or(u32::MAX);
                self.metrics.reconcile_keys.set(&[module, hook, &*binding], keys.into());
            }
            Notice::QueueCompacted { queue, hook, before, after } => {
                self.queue_compacted(&queue, &hook, before, after);
            }
            Notice::SnapshotChanged { monitor, bindings, objects } => {
                let objects = u32::try_from(objects).unwrap_or(u32::MAX);
                for fed in bindings.iter() {
                    let (module, hook) = hook_labels(&fed.hook);
                    let labels = [module, hook, &*fed.binding, fed.queue.as_str(), &*fed.kind];
                    self.metrics.snapshot_objects.set(&labels, objects.into());
                }
                self.watches.lock().unwrap_or_else(PoisonError::into_inner).set_bindings(
                    monitor,
                    bindings,
                    &self.metrics,
                );
            }
            Notice::InstanceChanged { module, stage, message } => {
                self.metrics.broker_instances.count(&[module.as_str(), &stage.to_string()]);
                if stage.is_failure() {
                    tracing::warn!(module = module.as_str(), "{message}");
                } else {
                    tracing::info!(module = module.as_str(), "{message}");
                }
            }
            Notice::ModuleRolledBack { module, message } => {
                self.metrics.addons_rolled_back.count(&[module.as_str()]);
                tracing::warn!(module = module.as_str(), "{message}");
            }
            Notice::SourceChanged { is_ready: true, message } | Notice::SourceReleases { message } => {
                tracing::info!("{message}");
            }
            Notice::SourceChanged { is_ready: false, message } => tracing::warn!("{message}"),
            Notice::ReviewAnswered { binding, webhook, outcome, took } => {
                let labels = [binding, &*webhook, outcome.as_str()];
                self.metrics.review_seconds.observe(&labels, took.as_secs_f64());
            }
            Notice::WebhookCertificateChanged { valid_for } => {
                let end = jiff::Timestamp::now().as_duration().as_secs_f64() + valid_for.as_secs_f64();
                self.metrics.certificate_end.set(&[], end);
            }
            Notice::ReviewFailed { hook, webhook, failure } => {
                // The API server has its answer: a review is not tried again.
                log_final_failure(&failure, &format!("hook {hook} has no answer for webhook {webhook}"));
            }
            Notice::ChartStepped { object, step } => tracing::debug!("{object}: {step}"),
            Notice::SourcesAbsent { kind } => {
                tracing::info!(
                    "there is no kind {kind}; for modules from repositories run `addon-operator crds | kubectl apply -f -`: \
                     module sources are looked after as soon as it is there"
                );
            }
            Notice::Stuck { why } => self.stuck(why),
            Notice::ElectionChanged { message, warning: true } => tracing::warn!("{message}"),
            Notice::ElectionChanged { message, warning: false } => tracing::info!("{message}"),
            Notice::Warned { scope, message } => {
                tracing::warn!(module = scope.module().map_or("", |module| module.as_str()), "{message}");
            }
            Notice::WatchFailed { failure, .. } => {
                self.metrics.watch_errors.count(&["fail"]);
                log_failure(&failure, "a watch broke; it is opened again");
            }
            Notice::WatchRestored { watch, broken_for } => {
                tracing::info!(seconds = broken_for.as_secs_f64(), "the watch of {watch} works again");
            }
        }
    }

    /// Counts a request to the API server.
    pub fn request(&self, observed: &RequestObservation<'_>) {
        self.metrics.request(observed);
    }

    /// Counts a call of a platform to the broker: its method, the status of the answer, and how long it took.
    pub fn broker_asked(&self, method: &str, status: u16, took: Duration) {
        self.metrics.broker_request_seconds.observe(&[method, &status.to_string()], took.as_secs_f64());
    }

    /// Counts a request to a repository of module sources: how the server was spoken to, what came of it, and how long it
    /// took with the wait for its turn.
    pub fn fetched(&self, scheme: &str, outcome: &str, took: Duration) {
        self.metrics.fetch_seconds.observe(&[scheme, outcome], took.as_secs_f64());
    }

    /// Counts a request to a chart repository: for what, what came of it, and how long it took with the wait for its turn.
    pub fn chart_fetched(&self, what: &str, outcome: &str, took: Duration) {
        self.metrics.chart_fetch_seconds.observe(&[what, outcome], took.as_secs_f64());
    }

    /// Counts how long a watch took to filter an object.
    pub fn watch_filtered(&self, monitor: MonitorId, took: Duration) {
        self.watch_measured(monitor, Timing::Filtered(took));
    }

    /// Counts how long a watch took to pass on a change, the filter included.
    pub fn watch_passed_on(&self, monitor: MonitorId, took: Duration) {
        self.watch_measured(monitor, Timing::PassedOn(took));
    }

    fn watch_measured(&self, monitor: MonitorId, timing: Timing) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.measured(monitor, timing, &self.metrics);
    }

    /// Counts how long a decision took that changed queues.
    pub fn decided(&self, took: Duration, effects: &[Effect]) {
        self.metrics.decided(took, effects);
    }

    fn queue_compacted(&self, queue: &QueueName, hook: &HookId, before: usize, after: usize) {
        let labels = [queue.as_str(), hook.name.as_str()];
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        self.metrics.compactions.operations.count(&labels);
        self.metrics.compactions.tasks.set(&labels, before.into());
        tracing::info!(queue = queue.as_str(), "{before} waiting runs of hook {hook} became {after}");
    }

    fn task_started(&self, task: &TaskInfo, waited: Duration) {
        let module = task.scope.module().map_or("", |module| module.as_str());
        let hook = task.hook.as_ref().map_or("", |hook| hook.name.as_str());
        let binding = task.binding.as_deref().unwrap_or(task.kind.as_str());
        let labels = [module, hook, binding, task.queue.as_str()];
        self.metrics.task_wait.add(&labels, waited.as_secs_f64());
        log_task(task, "start", "begins");
    }

    fn task_waits(&self, task: &TaskInfo, reason: &str, advice: Option<&str>) {
        let module = task.scope.module().map_or("", |module| module.as_str());
        self.metrics.tasks_waiting.count(&[task.queue.as_str(), module]);
        macro_rules! log {
            ($level:ident, $text:expr) => {
                tracing::$level!(
                    queue = task.queue.as_str(),
                    "task.id" = %task.id,
                    "task.flow" = "noop",
                    module,
                    cause = %task.cause,
                    "{}",
                    $text
                )
            };
        }
        let text = format!("{} waits: {reason}", title(task));
        if let Some(advice) = advice {
            log!(warn, format!("{text} ({advice})"));
        } else {
            log!(info, text);
        }
    }

    fn task_finished(
        &self,
        task: &TaskInfo,
        took: Duration,
        (failure, is_old): (Option<&Failure>, bool),
        retry: Option<Duration>,
        allowed: bool,
    ) {
        let module = task.scope.module().map_or("", |module| module.as_str());
        match (task.kind, failure) {
            (TaskType::ModuleRun, Some(_)) => {
                self.metrics.module_run_errors.count(&[module]);
            }
            (TaskType::ModuleDelete, Some(_)) => {
                self.metrics.module_delete_errors.count(&[module]);
            }
            _ => {}
        }
        if task.kind == TaskType::ModuleRun {
            let labels = [module, activation(task.cause.is_of_start())];
            self.metrics.module_run_seconds.observe(&labels, took.as_secs_f64());
        }
        if task.kind == TaskType::ReconcileRun {
            let hook = task.hook.as_ref().map_or("", |hook| hook.name.as_str());
            let labels = [module, hook, task.binding.as_deref().unwrap_or_default()];
            self.metrics.reconcile_seconds.observe(&labels, took.as_secs_f64());
            if failure.is_some() {
                self.metrics.reconcile_failures.count(&labels);
            }
        }
        let (seconds, title) = (took.as_secs_f64(), title(task));
        macro_rules! log {
            ($level:ident, $text:expr, $error:expr) => {
                tracing::$level!(
                    queue = task.queue.as_str(),
                    "task.id" = %task.id,
                    "task.flow" = "end",
                    task_type = task.kind.as_str(),
                    module,
                    hook = task.hook.as_ref().map_or("", |hook| hook.name.as_str()),
                    cause = %task.cause,
                    seconds,
                    error = $error,
                    "{}",
                    $text
                )
            };
        }
        match failure {
            None => log!(info, format!("{title} done in {seconds:.3} s"), ""),
            Some(failure) if allowed => {
                let explained = explained(failure, Some(task), true);
                log!(info, format!("{title} failed and is passed over: its queue goes on"), explained);
            }
            Some(failure) => {
                let next = retry.map_or_else(
                    || "not tried again by itself".to_owned(),
                    |retry| format!("tried again in {} s", retry.as_secs_f64()),
                );
                let explained = explained(failure, Some(task), retry.is_none());
                let text = format!("{title} failed; {next}");
                if is_old {
                    log!(debug, text, explained);
                } else {
                    log!(error, text, explained);
                }
            }
        }
    }

    fn release_ran(&self, module: &str, action: Option<ReleaseAction>, took: Duration, startup: bool) {
        self.metrics.release_ran([module, activation(startup)], action, took);
        if let Some(action) = action {
            tracing::info!(module, seconds = took.as_secs_f64(), "release of module {module}: {action:?}");
        }
    }

    fn release_drifted(&self, module: &str, drift: &Drift, what: &str) {
        match drift {
            Drift::Absent(resource) => {
                self.metrics.absent_resources.count(&[module, resource]);
            }
            Drift::Changed { object, .. } => {
                self.metrics.changed_resources.count(&[module, object]);
            }
            Drift::Restored(_) => {}
            Drift::Status(_) => self.metrics.release_redeployed.count(&[module]),
        }
        tracing::warn!(module, "release of module {module}: {what}");
    }

    fn modules_discovered(&self, modules: &[(engine::ModuleName, bool)]) {
        self.metrics.module_info.renew(|gauges| {
            for (module, enabled) in modules {
                gauges.set(&[module.as_str(), if *enabled { "true" } else { "false" }, "true"], 1.0);
            }
        });
        let on: Vec<&str> =
            modules.iter().filter(|(_, enabled)| *enabled).map(|(module, _)| module.as_str()).collect();
        tracing::info!(modules = on.join(","), "{} of {} modules are on", on.len(), modules.len());
    }

    fn converged_now(&self, generation: Option<u64>, took: Duration, first: bool, cause: &str) {
        let seconds = took.as_secs_f64();
        self.metrics.convergence_seconds.add(&[activation(first)], seconds);
        self.metrics.convergence_total.count(&[activation(first)]);
        if let Some(generation) = generation {
            tracing::info!(cause, seconds, "converge {generation} done in {seconds:.3} s");
        }
    }
}

fn activation(startup: bool) -> &'static str {
    if startup { STARTUP } else { "" }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::{Cause, HookEnd, QueueName, Scope, TaskId, Usage};

    use super::*;

    /// The level and the message of each line that was logged.
    #[derive(Clone, Default)]
    struct Said(Arc<Mutex<Vec<(tracing::Level, String)>>>);

    impl tracing::field::Visit for Said {
        fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
            if field.name() == "message" {
                self.0.lock().unwrap().push((tracing::Level::TRACE, format!("{value:?}")));
            }
        }
    }

    impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Said {
        fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
            event.record(&mut self.clone());
            if let Some((level, _)) = self.0.lock().unwrap().last_mut() {
                *level = *event.metadata().level();
            }
        }
    }

    #[test]
    fn b20_each_step_of_a_chart_is_a_line_at_debug() {
        use tracing_subscriber::layer::SubscriberExt as _;
        // It sees to it that threads without a log make nobody deaf.
        drop(log::capture());
        let said = Said::default();
        let telemetry = Telemetry::new("x_").unwrap();
        let log = tracing::Dispatch::new(tracing_subscriber::registry().with(said.clone()));
        tracing::dispatcher::with_default(&log, || {
            for step in ["metadata", "version ~1: url"] {
                let object = "Chart redis-corp".to_owned();
                telemetry.take(Notice::ChartStepped { object, step: step.to_owned() });
            }
        });
        let lines = ["Chart redis-corp: metadata", "Chart redis-corp: version ~1: url"];
        let expected = lines.map(|line| (tracing::Level::DEBUG, line.to_owned()));
        assert_eq!(*said.0.lock().unwrap(), expected);
    }

    #[test]
    fn the_last_attempt_does_not_say_that_there_is_another_one() {
        use tracing_subscriber::layer::SubscriberExt as _;

        /// The text of each error that was logged.
        #[derive(Clone, Default)]
        struct Errors(Arc<Mutex<Vec<String>>>);

        impl tracing::field::Visit for Errors {
            fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
                if field.name() == "error" {
                    self.0.lock().unwrap().push(value.to_owned());
                }
            }
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0.lock().unwrap().push(format!("{value:?}"));
                }
            }
        }

        impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Errors {
            fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
                event.record(&mut self.clone());
            }
        }

        drop(log::capture());
        let said = Errors::default();
        let telemetry = Telemetry::new("x_").unwrap();
        let log = tracing::Dispatch::new(tracing_subscriber::registry().with(said.clone()));
        tracing::dispatcher::with_default(&log, || {
            for retry in [Some(Duration::from_secs(5)), None] {
                telemetry.take(Notice::TaskFinished {
                    task: task(),
                    took: Duration::from_secs(1),
                    failure: Some(engine::Failure::new(
                        engine::FailureKind::HookExit,
                        "exit status 1".to_owned(),
                    )),
                    retry,
                    allowed: false,
                    is_old: false,
                });
            }
        });
        let errors = said;
        let said = errors.0.lock().unwrap().join("\n");
        assert_eq!(said.matches("failed; tried again in 5 s").count(), 1, "{said}");
        assert_eq!(said.matches("failed; not tried again by itself").count(), 1, "{said}");
        assert_eq!(said.matches("it is tried again by itself").count(), 1, "{said}");
        // A review has its answer.
        tracing::dispatcher::with_default(&log, || {
            let failure = engine::Failure::new(engine::FailureKind::HookOutput, "got garbage".to_owned());
            telemetry.take(Notice::ReviewFailed { hook: hook(), webhook: "w.example.com".into(), failure });
        });
        let said = errors.0.lock().unwrap().join("\n");
        assert!(said.contains("got garbage (correct what the hook writes"), "{said}");
        assert_eq!(said.matches("it is tried again by itself").count(), 1, "{said}");
    }

    fn task() -> TaskInfo {
        TaskInfo {
            id: TaskId::new(1),
            queue: "side".into(),
            kind: TaskType::ModuleHookRun,
            scope: hook().scope,
            hook: Some(hook()),
            binding: Some("pods".into()),
            cause: Cause::outside("test"),
        }
    }

    fn hook() -> HookId {
        HookId { scope: Scope::Module("web".into()), name: "hooks/a.sh".into() }
    }

    fn scraped(telemetry: &Telemetry) -> String {
        telemetry.metrics(None).collect()
    }

    fn ran(outcome: HookEnd) -> Notice {
        let usage = Usage {
            took: Duration::from_millis(250),
            user: Duration::from_millis(40),
            system: Duration::from_millis(3),
            max_rss: 8 << 20,
        };
        let queue = QueueName::from("side");
        Notice::HookRan {
            hook: hook(),
            binding: "kubernetes",
            queue,
            usage: Some(usage),
            outcome,
            is_task: true,
            startup: false,
        }
    }

    #[test]
    fn what_has_left_has_no_series_any_more() {
        let telemetry = Telemetry::new("p_").unwrap();
        let modules = [("web".into(), false), ("web2".into(), true)];
        telemetry.take(Notice::ModulesDiscovered { modules: modules.into() });
        let queues = [QueueName::main(), QueueName::of_namespace("a"), "namespace_queue_b".into()];
        for (queue, length) in queues.iter().flat_map(|queue| [(queue, 1), (queue, 0)]) {
            telemetry.take(Notice::QueueChanged { queue: queue.clone(), length });
        }
        telemetry.take(Notice::ModuleLeft { module: "web".into() });
        let text = scraped(&telemetry);
        assert!(text.contains(r#"module="web2""#) && !text.contains(r#"module="web""#), "{text}");
        assert!(text.contains(r#"queue="main""#) && !text.contains("namespace_queue_a"), "{text}");
        assert!(text.contains(r#"queue="namespace_queue_b""#), "a hook has it: {text}");
    }

    #[test]
    fn drift_of_a_release_is_counted_by_what_it_is() {
        let telemetry = Telemetry::new("p_").unwrap();
        for drift in [
            Drift::Absent("a".into()),
            Drift::Changed { object: "c".into(), place: "/data/k".into(), writer: None },
            Drift::Status("s".into()),
        ] {
            telemetry.take(Notice::ReleaseDrifted { module: "web".into(), drift, what: "it".into() });
        }
        let text = scraped(&telemetry);
        for line in [
            r#"p_modules_absent_resources_total{module="web",resource="a"} 1"#,
            r#"p_modules_changed_resources_total{module="web",resource="c"} 1"#,
            r#"p_modules_helm_release_redeployed_total{module="web"} 1"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn runs_of_hooks_are_counted_with_what_they_used_and_how_long_they_waited() {
        let telemetry = Telemetry::new("addon_operator_").unwrap();
        let labels = r#"activation="",binding="kubernetes",hook="hooks/a.sh",module="web",queue="side""#;
        let mut part = ran(HookEnd::Error);
        if let Notice::HookRan { is_task, usage, .. } = &mut part {
            (*is_task, *usage) = (false, None);
        }
        telemetry.take(part);
        assert!(!scraped(&telemetry).contains("module_hook_errors_total{"), "its module failed");
        telemetry.take(ran(HookEnd::Error));
        let text = scraped(&telemetry);
        let name = |rest: &str| format!("addon_operator_module_hook_{rest}{{{labels}}}");
        assert!(text.contains(&format!("{} 0\n", name("success_total"))), "all series are there:\n{text}");
        assert!(
            !text.contains("run_user_cpu_seconds_sum{"),
            "what a failed run used is not counted:\n{text}"
        );
        telemetry.take(ran(HookEnd::Success));
        telemetry.take(ran(HookEnd::AllowedError));
        let task = task();
        telemetry.take(Notice::TaskStarted { task: task.clone(), waited: Duration::from_millis(1500) });
        telemetry.take(Notice::TaskStarted { task, waited: Duration::from_millis(750) });
        let text = scraped(&telemetry);
        for line in [
            format!("{} 1", name("errors_total")),
            format!("{} 1", name("allowed_errors_total")),
            format!("{} 1", name("success_total")),
            format!("{} 3", name("run_seconds_count")),
            format!("{} 0.75", name("run_seconds_sum")),
            format!("{} 0.04", name("run_user_cpu_seconds_sum")),
            format!("{} 0.003", name("run_sys_cpu_seconds_sum")),
            format!("{} 8388608", name("run_max_rss_bytes")),
            r#"addon_operator_task_wait_in_queue_seconds_total{binding="pods",hook="hooks/a.sh",module="web",queue="side"} 2.25"#.to_owned(),
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} is missing:\n{text}");
        }
        let bounds = text.lines().filter(|line| line.contains("module_hook_run_seconds_bucket")).count();
        assert_eq!(bounds, 15, "fourteen bounds and all:\n{text}");
    }
}

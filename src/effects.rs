//! Routes each effect to the adapter that carries it out.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::object_patch::ObjectPatch;
use engine::{
    ConfigText, Effect, Event, Failure, FailureKind, HookId, Module, ModuleName, Notice, ReleaseName, RunId,
    ValuesInput,
};
use futures::FutureExt;
use tokio::sync::oneshot;

use crate::driver::{Effects, Inbox};
use crate::helm::Helm;
use crate::hook::{HookRun, Hooks, ScriptRun};
use crate::kube::{ConfigSource, EventRecorder, Monitors, Patcher};
use crate::load::Loader;
use crate::process::memory;
use crate::schedule::Clock;
use crate::telemetry::Telemetry;

/// All adapters of a running operator.
pub struct Adapters {
    /// Reads modules from files.
    pub loader: Arc<Loader>,
    /// Runs hooks and scripts.
    pub hooks: Arc<Hooks>,
    /// Writes the ConfigMap.
    pub config: Arc<ConfigSource>,
    /// Writes Kubernetes Events.
    pub events: EventRecorder,
    /// Installs, upgrades and removes releases.
    pub helm: Arc<Helm>,
    /// Watches objects.
    pub monitors: Monitors,
    /// Changes objects for hooks.
    pub patcher: Arc<Patcher>,
    /// Reports when crontab lines are due.
    pub clock: Clock,
    /// Writes logs and metrics.
    pub telemetry: Arc<Telemetry>,
    /// The processes that run.
    pub running: Running,
}

/// The processes that can be cancelled.
#[derive(Clone, Debug, Default)]
pub struct Running(Arc<Mutex<BTreeMap<RunId, oneshot::Sender<()>>>>);

impl Running {
    fn add(&self, run: RunId) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run, sender);
        receiver
    }

    fn remove(&self, run: RunId) -> Option<oneshot::Sender<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&run)
    }
}

/// Answers with what `work` returns, or with `failed` when it panics: a defect of one
/// adapter is a failure of one run.
fn spawn(
    inbox: &Inbox,
    work: impl Future<Output = Event> + Send + 'static,
    failed: impl FnOnce(Failure) -> Event + Send + 'static,
) {
    let inbox = inbox.clone();
    tokio::spawn(async move {
        let event = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            failed(Failure::new(FailureKind::Bug, format!("a defect of the operator: {text}")))
        });
        inbox.answer(event);
    });
}

impl Effects for Adapters {
    fn observe_decision(&mut self, took: Duration, effects: &[Effect]) {
        self.telemetry.decided(took, effects);
    }

    fn begin(&mut self, effect: Effect, inbox: &Inbox) {
        match effect {
            Effect::Announce(announcement) => self.events.record(announcement),
            // The driver itself answers commands and ends; no admission or conversion server asks anything.
            Effect::AnswerCommand { .. } | Effect::AnswerReview { .. } | Effect::Exit => {}
            Effect::CancelRun { run } => {
                if let Some(cancel) = self.running.remove(run) {
                    let _ = cancel.send(());
                }
            }
            Effect::EnsureCrds { run, module } => self.ensure_crds(run, module, inbox),
            Effect::ForgetRelease { module } => self.helm.forget(&module),
            Effect::ListReleases { run } => self.list_releases(run, inbox),
            Effect::LoadModule { run, module } => self.load_module(run, module, inbox),
            Effect::Notify(notice) => self.notify(notice),
            Effect::PatchObjects { run, hook, patches } => self.patch_objects(run, hook, patches, inbox),
            Effect::RunEnabledScript { run, module, values, timeout } => {
                self.run_script(run, ScriptRun { module, values, timeout }, inbox);
            }
            Effect::RunHook { run, hook, contexts, values, timeout, labels } => {
                self.run_hook(run, HookRun { hook, contexts, values, timeout, labels }, inbox);
            }
            Effect::SaveConfigValues { run, key, text } => self.save_config(run, key, text, inbox),
            Effect::SetSchedules { lines } => self.clock.set(lines, inbox),
            Effect::StartMonitor { monitor, spec } => self.monitors.start(monitor, &spec, inbox),
            Effect::StopMonitor { monitor } => self.monitors.stop(monitor),
            Effect::UninstallRelease { run, release } => self.uninstall(run, release, inbox),
            Effect::UpgradeRelease { run, module, values, maintenance } => {
                self.upgrade(run, module, values, maintenance, inbox);
            }
            Effect::WatchRelease { module } => self.helm.watch(module, inbox),
        }
    }
}

impl Adapters {
    fn run_hook(&self, run: RunId, hook: HookRun, inbox: &Inbox) {
        let (hooks, running, cancel) = (Arc::clone(&self.hooks), self.running.clone(), self.running.add(run));
        let work = async move {
            let (outcome, usage) = hooks.run(hook, cancel).await;
            running.remove(run);
            Event::HookFinished { run, outcome, usage }
        };
        spawn(inbox, work, move |failure| Event::HookFinished { run, outcome: Err(failure), usage: None });
    }

    fn run_script(&self, run: RunId, script: ScriptRun, inbox: &Inbox) {
        let (hooks, running, cancel) = (Arc::clone(&self.hooks), self.running.clone(), self.running.add(run));
        let work = async move {
            let (outcome, usage) = hooks.run_script(script, cancel).await;
            running.remove(run);
            Event::ScriptFinished { run, outcome, usage }
        };
        spawn(inbox, work, move |failure| Event::ScriptFinished { run, outcome: Err(failure), usage: None });
    }

    fn notify(&self, notice: Notice) {
        if let Notice::ConvergeStarted { .. } | Notice::ConvergeFinished { .. } = notice {
            // What the start needed, or the charts and releases, is not needed any more.
            tokio::task::spawn_blocking(memory::give_back);
        }
        self.telemetry.take(notice);
    }

    fn load_module(&self, run: RunId, module: ModuleName, inbox: &Inbox) {
        let loader = Arc::clone(&self.loader);
        let work = async move { Event::ModuleLoaded { run, outcome: loader.load_module(&module).await } };
        spawn(inbox, work, move |failure| Event::ModuleLoaded { run, outcome: Err(failure) });
    }

    fn save_config(&self, run: RunId, key: String, text: Option<ConfigText>, inbox: &Inbox) {
        let config = Arc::clone(&self.config);
        let work = async move {
            let text = text.as_ref().map(|text| text.0.as_str());
            Event::ConfigSaved { run, outcome: config.save(&key, text).await }
        };
        spawn(inbox, work, move |failure| Event::ConfigSaved { run, outcome: Err(failure) });
    }

    fn patch_objects(&self, run: RunId, hook: HookId, patches: Arc<[ObjectPatch]>, inbox: &Inbox) {
        let writer = Arc::clone(&self.patcher);
        let work = async move { Event::ObjectsPatched { run, outcome: writer.apply(&hook, &patches).await } };
        spawn(inbox, work, move |failure| Event::ObjectsPatched { run, outcome: Err(failure) });
    }

    fn upgrade(
        &self,
        run: RunId,
        module: Arc<Module>,
        values: ValuesInput,
        maintenance: bool,
        inbox: &Inbox,
    ) {
        let helm = Arc::clone(&self.helm);
        let work = async move {
            Event::ReleaseFinished { run, outcome: helm.upgrade(&module, &values, maintenance).await }
        };
        spawn(inbox, work, move |failure| Event::ReleaseFinished { run, outcome: Err(failure) });
    }

    fn uninstall(&self, run: RunId, release: ReleaseName, inbox: &Inbox) {
        let helm = Arc::clone(&self.helm);
        let work = async move { Event::ReleaseFinished { run, outcome: helm.uninstall(&release).await } };
        spawn(inbox, work, move |failure| Event::ReleaseFinished { run, outcome: Err(failure) });
    }

    fn list_releases(&self, run: RunId, inbox: &Inbox) {
        let helm = Arc::clone(&self.helm);
        let work = async move { Event::ReleasesListed { run, outcome: helm.list().await } };
        spawn(inbox, work, move |failure| Event::ReleasesListed { run, outcome: Err(failure) });
    }

    fn ensure_crds(&self, run: RunId, module: Arc<Module>, inbox: &Inbox) {
        let helm = Arc::clone(&self.helm);
        let work = async move { Event::CrdsEnsured { run, outcome: helm.ensure_crds(&module).await } };
        spawn(inbox, work, move |failure| Event::CrdsEnsured { run, outcome: Err(failure) });
    }
}

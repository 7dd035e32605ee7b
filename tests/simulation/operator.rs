//! The operator of a run: the adapters of production wired by `app`, behind the network, with hooks of the simulation.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_operator::app::{self, Host, Outcome, Surroundings};
use addon_operator::cluster::{RateLimit, connect_in_process};
use addon_operator::config::Environment;
use addon_operator::driver::{Effects, Inbox, Questions};
use addon_operator::effects::Adapters;
use addon_operator::fence::Fence;
use addon_operator::http::{self, Port};
use addon_operator::schedule::Clock;
use engine::{Effect, Event, HookEnd, Notice};
use jq::Threads;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::Layer as _;

use crate::hooks::Hooks;
use crate::network::Network;
use crate::port::ROOM;
use crate::run::wall;
use crate::scenario::Scenario;
use crate::seed::Seed;
use crate::ticks::{Tick, Ticks};
use crate::trace::Trace;

/// An operator that runs.
pub(crate) struct Operator {
    pub(crate) questions: Questions,
    pub(crate) port: Arc<Port>,
    /// Which operator of the run it is, counted from 0.
    pub(crate) life: usize,
    pub(crate) shutdown: watch::Sender<bool>,
    pub(crate) driving: JoinHandle<Outcome>,
    /// When the ConfigMap had been read, and the driver began.
    pub(crate) started: Arc<Mutex<Option<Duration>>>,
    /// When the engine said that it is ready.
    pub(crate) ready: Arc<Mutex<Option<Duration>>>,
}

/// Those who see what an operator does.
pub(crate) type Observers = (Hooks, Ticks, Trace);

/// The adapters of production, which are listened to.
struct ObservedEffects {
    inner: Adapters,
    hooks: Hooks,
    trace: Trace,
    ticks: Ticks,
    begun: Instant,
    life: usize,
    started: Arc<Mutex<Option<Duration>>>,
    ready: Arc<Mutex<Option<Duration>>>,
}

impl Effects for ObservedEffects {
    fn begin(&mut self, effect: Effect, inbox: &Inbox) {
        self.note(&effect);
        match effect {
            // Not through the adapters, which give memory back to the system now and then.
            Effect::Notify(notice) => self.inner.telemetry.take(notice),
            effect => self.inner.begin(effect, inbox),
        }
    }

    fn look(&mut self) -> Option<Event> {
        self.inner.look()
    }

    fn observe_event(&mut self, event: &Event) {
        match event {
            Event::CronFired { .. } => self.ticks.note(self.life, Tick::Fired),
            Event::Started => *self.started.lock().unwrap() = Some(self.begun.elapsed()),
            Event::ReleaseFinished { outcome, .. } => self.trace.note(|| format!("  release: {outcome:?}")),
            Event::WatchFailed { failure, .. } => self.trace.note(|| format!("  watch failed: {failure}")),
            _ => {}
        }
    }

    fn observe_decision(&mut self, took: Duration, effects: &[Effect]) {
        self.inner.observe_decision(took, effects);
    }
}

impl ObservedEffects {
    fn note(&self, effect: &Effect) {
        match effect {
            Effect::Notify(Notice::Ready) => {
                *self.ready.lock().unwrap() = Some(self.begun.elapsed());
                self.trace.note(|| "engine: ready".to_owned());
            }
            Effect::Notify(Notice::HookRan { hook, queue, outcome, .. }) => {
                self.hooks.ended(hook, queue, *outcome == HookEnd::Success);
            }
            Effect::Notify(Notice::TaskFinished { task, failure: Some(failure), .. }) => {
                self.trace.note(|| format!("engine: {} {} failed: {failure}", task.id, task.kind));
            }
            Effect::Notify(Notice::ModuleChanged { module, phase, .. }) => {
                self.trace.note(|| format!("engine: module {module} is {phase}"));
            }
            Effect::SetSchedules { lines } => {
                self.ticks.note(self.life, if lines.is_empty() { Tick::Off } else { Tick::On });
            }
            Effect::UpgradeRelease { module, .. } => {
                self.trace.note(|| format!("engine: upgrade {}", module.name));
            }
            Effect::UninstallRelease { release, .. } => {
                self.trace.note(|| format!("engine: uninstall {release}"));
            }
            _ => {}
        }
    }
}

impl Operator {
    /// Starts an operator, which `app` wires: all is as in production but for files, sockets and processes.
    ///
    /// `begun` is the start of the run, from which all times are counted.
    pub(crate) fn start(
        network: &Network,
        seed: Seed,
        (hooks, ticks, trace): Observers,
        begun: Instant,
    ) -> Self {
        let (scenario, life) = (Scenario::of(seed), network.life());
        let settings = scenario.settings.clone();
        let request_metrics = app::request_metrics();
        let [main, of_hooks] = request_metrics.clone();
        let limits = [
            RateLimit::new(settings.kube_qps, settings.kube_burst).with_metrics(main),
            RateLimit::new(settings.patcher_qps, settings.patcher_burst).with_metrics(of_hooks),
        ];
        let [client, patcher] = limits.map(|limit| connect_in_process(limit.layer(network.clone()), "ops"));
        let (shutdown, ended) = watch::channel(false);
        let (close, closed) = watch::channel(false);
        let environment = Environment::default();
        let around = Surroundings {
            settings,
            environment,
            client,
            patcher,
            request_metrics,
            fence: Fence::none(),
            api_server: None,
            once: false,
            any_port: false,
            shutdown: ended,
        };
        let operator = app::Operator::new(&around).unwrap();
        let questions = operator.questions();
        let router = http::port(questions.clone(), operator.telemetry());
        let port = Arc::new(Port::with_room_for(ROOM[0], ROOM[1], router, closed));
        let host = Host {
            loader: Arc::clone(&scenario.loader),
            hooks: Arc::new(hooks.clone()),
            filters: Threads::none(),
            clock: Clock::by(move || wall(begun)),
            memory: None,
        };
        let (started, ready) = (Arc::default(), Arc::default());
        let observed = (hooks, Arc::clone(&started), Arc::clone(&ready));
        let driving = tokio::spawn(async move {
            let observed = |inner| {
                let (hooks, started, ready) = observed;
                ObservedEffects { inner, hooks, trace, ticks, begun, life, started, ready }
            };
            let operating = operator.operate(&around, host, scenario.catalog.clone(), observed);
            let outcome = Box::pin(operating).await.unwrap();
            // As in production the port is open until the operator is over.
            close.send_replace(true);
            outcome
        });
        Self { questions, port, life, shutdown, driving, started, ready }
    }
}

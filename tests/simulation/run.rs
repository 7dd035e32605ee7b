//! One run: a cluster, operators one after the other behind a network with faults, and people, all on a clock that stands still while
//! anybody works.

use std::time::Duration;

use apiserver::{ApiServer, Clock};
use engine::View;
use engine::view::WatchView;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::entropy;
use crate::hooks::{Hooks, Seen};
use crate::logs::Logs;
use crate::network::{Asked, Network};
use crate::operator::{Observers, Operator};
use crate::people::{Intent, People, ask};
use crate::port::{self, Answer, ROUTES, Readers, Reading};
use crate::scenario::{Extra, Kinds, Scenario};
use crate::seed::Seed;
use crate::ticks::{Tick, Ticks};
use crate::trace::Trace;
use crate::windows::windows;

/// How long after the last fault everything has to be as people want it, in seconds.
///
/// A watch of metadata whose connection has died is found after 298 seconds. Tasks are tried again every five.
const CONVERGES_WITHIN: u64 = 900;

/// How long it is watched what an operator does that has nothing to do, in seconds.
pub(crate) const QUIET: u64 = 120;

/// When the clock of the cluster begins.
const EPOCH: i64 = 1_800_000_000;

/// What came of a run.
pub(crate) struct Run {
    pub(crate) seed: Seed,
    pub(crate) windows: Vec<String>,
    pub(crate) trace: Vec<String>,
    pub(crate) intent: Intent,
    /// What is still not as people want it, at the end.
    pub(crate) unsettled: Vec<String>,
    /// When it was as people want it.
    pub(crate) settled_at: Duration,
    pub(crate) asked: Vec<Asked>,
    pub(crate) answers: Vec<Answer>,
    pub(crate) readings: Vec<Reading>,
    pub(crate) lives: Vec<Life>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) hook_runs: Vec<(Duration, String)>,
    pub(crate) ticks: Vec<(Duration, usize, Tick)>,
    pub(crate) logs: Vec<String>,
    pub(crate) events: Value,
    pub(crate) records: Value,
    pub(crate) views: Vec<(Duration, View)>,
}

/// One of the operators that ran one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    /// When the ConfigMap had been read.
    pub(crate) started: Option<Duration>,
    pub(crate) ready: Option<Duration>,
    /// When it was asked to end, or was killed.
    pub(crate) asked_at: Duration,
    pub(crate) ended_at: Duration,
    pub(crate) end: End,
}

/// How an operator ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// As asked for.
    Asked,
    /// It was asked to, and did not.
    Stuck,
    /// It was killed.
    Killed,
}

/// Runs a seed on a thread of its own.
pub(crate) fn run(seed: Seed) -> Run {
    Scenario::of(seed);
    std::thread::scope(|scope| {
        let simulated = scope.spawn(move || {
            entropy::seed_thread(seed.0);
            let logs = Logs::default();
            let _logging =
                tracing::subscriber::set_default(tracing_subscriber::registry().with(logs.clone()));
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_time().start_paused(true).build().unwrap();
            let run = runtime.block_on(simulate(seed, &logs));
            runtime.shutdown_background();
            run
        });
        simulated.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Returns the time of day in a run that begun then.
pub(crate) fn wall(begun: Instant) -> Timestamp {
    let passed = SignedDuration::try_from(begun.elapsed()).unwrap_or_default();
    Timestamp::from_second(EPOCH).unwrap_or_default().saturating_add(passed).unwrap_or_default()
}

fn server(seed: Seed, begun: Instant) -> ApiServer {
    ApiServer::builder().seed(seed.0).clock(Clock::new(move || wall(begun))).build().unwrap()
}

async fn simulate(seed: Seed, logs: &Logs) -> Run {
    let (trace, begun) = (Trace::new(), Instant::now());
    let server = server(seed, begun);
    let people = People::new(server.clone(), seed, trace.clone());
    people.prepare().await;
    let windows = windows(seed);
    let shown = windows.iter().map(ToString::to_string).collect();
    let network = Network::new(server.service(), seed, windows, trace.clone());
    let heals_at = network.heals_at();
    let (hooks, ticks) = (Hooks::new(seed, trace.clone()), Ticks::new());
    let observers = (hooks.clone(), ticks.clone(), trace.clone());
    let mut watched = Watched::start(network.clone(), seed, observers, begun);
    let working = tokio::spawn(people.clone().work());
    // It ends with the runtime.
    if Scenario::of(seed).extra == Extra::ChartHook {
        tokio::spawn(people.clone().run_jobs());
    }
    while !working.is_finished() || begun.elapsed() < heals_at || watched.restarts.last().is_some() {
        let look = seed.between("look", watched.views.len() as u64, 2_000, 25_000);
        watched.pass(Duration::from_millis(look)).await;
        watched.look().await;
    }
    working.await.unwrap();
    let healed = begun.elapsed();
    let mut unsettled = vec!["nothing was looked at".to_owned()];
    while !unsettled.is_empty() && begun.elapsed() < healed + Duration::from_secs(CONVERGES_WITHIN) {
        sleep(Duration::from_secs(10)).await;
        let view = watched.look().await;
        let intent = people.intent();
        unsettled = differences(&server, seed, &intent).await;
        unsettled
            .extend(view.map_or_else(|| vec!["no view".to_owned()], |view| unrest(&view, seed, &intent)));
        // Who finds one has something to do: what happened meanwhile is listed.
        let dead = watched.network.dead_connections();
        if dead > 0 {
            unsettled.push(format!("{dead} connections are dead, and not given up"));
        }
        // What was sent long ago changes the cluster as people do.
        let delayed = watched.network.delayed();
        if delayed > 0 {
            unsettled.push(format!("{delayed} requests are still to be carried out"));
        }
    }
    let settled_at = begun.elapsed();
    trace.note(|| format!("settled: {unsettled:?}"));
    sleep(Duration::from_secs(QUIET)).await;
    for route in ROUTES {
        watched.ask(route).await;
    }
    watched.look().await;
    watched.end().await;
    let events = ask(&server, Method::GET, "/api/v1/namespaces/ops/events", &Value::Null).await.1;
    let records = ask(&server, Method::GET, "/api/v1/namespaces/ops/secrets", &Value::Null).await.1;
    Run {
        seed,
        windows: shown,
        trace: trace.lines(),
        intent: people.intent(),
        unsettled,
        settled_at,
        asked: network.asked(),
        answers: watched.answers,
        readings: watched.readers.readings(),
        lives: watched.lives,
        seen: hooks.seen(),
        hook_runs: hooks.runs(),
        ticks: ticks.all(),
        logs: logs.lines(),
        events,
        records,
        views: watched.views,
    }
}

/// The operators of a run, one after the other, and what those saw who looked at them.
struct Watched {
    begun: Instant,
    seed: Seed,
    observers: Observers,
    network: Network,
    operator: Operator,
    /// When the next operators begin, the last first, and whether the ones before are killed.
    restarts: Vec<(Duration, bool)>,
    readers: Readers,
    lives: Vec<Life>,
    answers: Vec<Answer>,
    views: Vec<(Duration, View)>,
}

impl Watched {
    fn start(network: Network, seed: Seed, observers: Observers, begun: Instant) -> Self {
        let count = seed.pick("restarts", 0, &[0, 0, 0, 1, 2]);
        let restart = |nth| {
            let at = seed.between("restart at", nth, 100, seed.faults_end() * 1000);
            (Duration::from_millis(at), seed.chance("restart kills", nth, 50))
        };
        let mut restarts: Vec<(Duration, bool)> = (0..count).map(restart).collect();
        restarts.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        let operator = Operator::start(&network, seed, observers.clone(), begun);
        let readers = Readers::default();
        readers.connect(&operator.port, (begun, 0), seed, &observers.2);
        Self {
            begun,
            seed,
            observers,
            network,
            operator,
            restarts,
            readers,
            lives: Vec::new(),
            answers: Vec::new(),
            views: Vec::new(),
        }
    }

    /// Lets time pass. Operators are restarted at their times.
    async fn pass(&mut self, time: Duration) {
        let until = self.begun.elapsed() + time;
        while let Some((at, kills)) = self.restarts.last().copied().filter(|(at, _)| *at <= until) {
            self.restarts.pop();
            sleep(at.saturating_sub(self.begun.elapsed())).await;
            if kills {
                self.kill().await;
            } else {
                self.end().await;
            }
            self.network = self.network.of_next_life();
            let observers = self.observers.clone();
            self.operator = Operator::start(&self.network, self.seed, observers, self.begun);
            let life = (self.begun, self.operator.life);
            self.readers.connect(&self.operator.port, life, self.seed, &self.observers.2);
        }
        sleep(until.saturating_sub(self.begun.elapsed())).await;
    }

    fn record(&mut self, asked_at: Duration, end: End) {
        self.observers.2.note(|| format!("operator {} ends: {end:?}", self.operator.life));
        self.lives.push(Life {
            started: *self.operator.started.lock().unwrap(),
            ready: *self.operator.ready.lock().unwrap(),
            asked_at,
            ended_at: self.begun.elapsed(),
            end,
        });
    }

    /// Ends the operator without asking it.
    async fn kill(&mut self) {
        let asked_at = self.begun.elapsed();
        self.operator.driving.abort();
        // The task is gone only when it has been woken up.
        let _ = (&mut self.operator.driving).await;
        self.observers.0.killed();
        self.record(asked_at, End::Killed);
    }

    /// Ends the operator as it is asked to.
    async fn end(&mut self) {
        let asked_at = self.begun.elapsed();
        self.operator.shutdown.send_replace(true);
        let ending = tokio::time::timeout(Duration::from_mins(1), &mut self.operator.driving);
        if ending.await.is_err() {
            self.record(asked_at, End::Stuck);
            self.operator.driving.abort();
            return;
        }
        // What still ran was left behind.
        self.observers.0.killed();
        self.record(asked_at, End::Asked);
    }

    async fn ask(&mut self, route: &'static str) {
        let answer = port::ask(&self.operator.port, self.begun, self.operator.life, route).await;
        self.answers.push(answer);
    }

    /// Asks the probes and one other route, and takes a view.
    async fn look(&mut self) -> Option<View> {
        let nth = self.views.len() as u64;
        let other = self.seed.pick("route", nth, &ROUTES[3..]);
        let probes = if nth.is_multiple_of(3) { 3 } else { 2 };
        for route in ROUTES[..probes].iter().copied().chain([other]) {
            self.ask(route).await;
        }
        let asked = tokio::time::timeout(Duration::from_secs(10), self.operator.questions.view()).await;
        let view = asked.ok().flatten();
        self.views.extend(view.clone().map(|view| (self.begun.elapsed(), view)));
        view
    }
}

/// Returns whether people never bring the kind that a hook waits for.
pub(crate) fn waits_for_ever(seed: Seed, intent: &Intent) -> bool {
    Scenario::of(seed).kinds == Kinds::Awaited && intent.things.is_none()
}

/// Returns why the operator is not at rest.
fn unrest(view: &View, seed: Seed, intent: &Intent) -> Vec<String> {
    let waits = waits_for_ever(seed, intent);
    let extra = Scenario::of(seed).extra;
    let is_stuck = extra == Extra::ForbiddenKeys;
    let is_expected = |reason: &Option<String>| {
        reason.as_ref().is_some_and(|reason| {
            (waits && reason.contains("kind Thing")) || (is_stuck && reason.contains("watch kind Secret"))
        })
    };
    let is_forbidden = |watch: &WatchView| {
        let of = |name: &str| watch.bindings.iter().any(|(hook, _)| hook.to_string().ends_with(name));
        match extra {
            Extra::UnwatchedItems => {
                watch.listed && watch.kind == "ConfigMap" && (of("items.sh") || of("pair.sh"))
            }
            Extra::ForbiddenKeys => watch.kind == "Secret" && of("keys.sh"),
            _ => false,
        }
    };
    let queues = view.queues.iter().filter(|queue| queue.name.as_str() != "ticks");
    let tasks = queues.flat_map(|queue| queue.tasks.iter().map(move |task| (queue, task)));
    let mut found: Vec<String> = tasks
        .filter(|(_, task)| !is_expected(&task.waits_for))
        .map(|(queue, task)| {
            let failure = task.last_failure.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("queue {} has {} {}", queue.name, task.description, failure)
        })
        .collect();
    found.extend(
        view.watches
            .iter()
            .filter(|watch| !watch.listed || watch.failure.is_some())
            .filter(|watch| !(is_forbidden(watch) || waits && watch.missing_kind.is_some()))
            .map(|watch| format!("watch of {}: listed {}, {:?}", watch.kind, watch.listed, watch.failure)),
    );
    // One that has failed waits for up to a minute until it lists again.
    let never = extra == Extra::UnwatchedConfig;
    let own = view.broken_own_watches.iter();
    let own = own.filter(|watch| !(never && watch.name == "ConfigMap ops/addon-operator"));
    found.extend(own.map(|watch| format!("own watch {} is broken", watch.name)));
    if !waits && !is_stuck && (view.converge.began_ago.is_some() || !view.converge.first_done) {
        found.push(format!("converge: {:?}", view.converge));
    }
    found
}

/// Returns what of the cluster is not as people want it.
async fn differences(server: &ApiServer, seed: Seed, intent: &Intent) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |what: &str, actual: &Value, expected: &Value| {
        if actual != expected {
            found.push(format!("{what} is {actual}, should be {expected}"));
        }
    };
    let object = async |kind: &str, name: &str| {
        let path = format!("/api/v1/namespaces/ops/{kind}/{name}");
        let (status, object) = ask(server, Method::GET, &path, &Value::Null).await;
        if status == 200 { object["data"].clone() } else { Value::Null }
    };
    let items: Value = intent.items.iter().map(|(name, text)| (name.clone(), Value::from(&**text))).collect();
    let encoded = |text: &str| {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(text)
    };
    if intent.web_enabled {
        let expected = serde_json::json!({"text": intent.text, "items": intent.items.len().to_string()});
        check("ConfigMap web", &object("configmaps", "web").await, &expected);
        let expected = serde_json::json!({"password": encoded(&intent.password)});
        check("Secret web", &object("secrets", "web").await, &expected);
        let hook = object("configmaps", "seen-items").await;
        let hook = serde_json::from_str(hook["items"].as_str().unwrap_or_default()).unwrap_or(Value::Null);
        check("seen-items", &hook, &items);
    } else {
        check("ConfigMap web", &object("configmaps", "web").await, &Value::Null);
        check("Secret web", &object("secrets", "web").await, &Value::Null);
    }
    if intent.db_enabled {
        let expected = serde_json::json!({"text": "first"});
        check("ConfigMap db", &object("configmaps", "db").await, &expected);
        let token = intent.token.as_deref().map_or_else(|| "none".to_owned(), encoded);
        let expected = serde_json::json!({"token": encoded(&token)});
        check("Secret db", &object("secrets", "db").await, &expected);
        let length = intent.token.as_deref().map_or(4, |token| encoded(token).len());
        let config = object("configmaps", "addon-operator").await;
        check("key db of the ConfigMap", &config["db"], &format!("rotation: {length}\n").into());
        if Scenario::of(seed).extra == Extra::ChartHook {
            let path = "/apis/batch/v1/namespaces/ops/jobs/prepare";
            let status = ask(server, Method::GET, path, &Value::Null).await.0;
            check("the status of the Job of a hook that succeeded", &status.into(), &404.into());
        }
    } else {
        check("ConfigMap db", &object("configmaps", "db").await, &Value::Null);
    }
    let mirrored = async |name: &str| {
        let map = object("configmaps", name).await;
        serde_json::from_str(map["items"].as_str().unwrap_or_default()).unwrap_or(Value::Null)
    };
    if intent.moves == 0 {
        check("seen-teams", &mirrored("seen-teams").await, &items);
    }
    if let Some(things) = &intent.things {
        let things: Value = things.iter().map(|(name, text)| (name.clone(), Value::from(&**text))).collect();
        check("seen-things", &mirrored("seen-things").await, &things);
    }
    if Scenario::of(seed).kinds == Kinds::Brought {
        check("seen-gadgets", &mirrored("seen-gadgets").await, &serde_json::json!({"g": "brought"}));
    }
    found
}

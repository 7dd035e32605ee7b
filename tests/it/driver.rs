//! The loop between the engine and the world, with time that stands still.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_operator::driver::{self, Effects, Inbox, Stopped};
use addon_operator::telemetry::Telemetry;
use engine::{Catalog, Config, ConfigData, ConfigObject, Effect, Engine, Event, Failure, FailureKind};
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::support::pause::pause_thread;

/// Writes down the names of effects and answers those that a start needs.
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Effects for Recorder {
    fn begin(&mut self, effect: Effect, inbox: &Inbox) {
        let name = format!("{effect:?}").split([' ', '(', '{']).next().unwrap().to_owned();
        self.0.lock().unwrap().push(name);
        if let Effect::ListReleases { run, .. } = effect {
            inbox.answer(Event::ReleasesListed { run, outcome: Ok(Vec::new()) });
        }
    }
}

fn start() -> Vec<Event> {
    vec![
        Event::ConfigChanged { object: ConfigObject::ConfigMap, version: String::new(), data: None },
        Event::Started,
    ]
}

#[tokio::test(start_paused = true)]
async fn an_empty_operator_converges_answers_and_ends() {
    let effects = Arc::new(Mutex::new(Vec::new()));
    let (inbox, questions, channels) = driver::channels();
    let (stop, shutdown) = watch::channel(false);
    let engine = Engine::new(Config::default(), Catalog::default());
    let recorder = Recorder(Arc::clone(&effects));
    let patience = Duration::from_secs(10);
    let running =
        tokio::spawn(driver::drive(engine, recorder, (inbox, channels), start(), shutdown, patience));
    let view = questions.view().await.unwrap();
    assert!(view.converge.first_done, "{view:?}");
    assert!(questions.inspect().await.is_some());
    stop.send_replace(true);
    assert_eq!(running.await.unwrap(), Stopped::AtRest);
    assert!(questions.view().await.is_none(), "an operator that has ended answers nothing");
    assert!(effects.lock().unwrap().iter().any(|effect| effect == "Notify"));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_module_in_a_command_is_refused() {
    let (inbox, questions, channels) = driver::channels();
    let (stop, shutdown) = watch::channel(false);
    let engine = Engine::new(Config::default(), Catalog::default());
    let recorder = Recorder(Arc::default());
    let patience = Duration::from_secs(10);
    let running =
        tokio::spawn(driver::drive(engine, recorder, (inbox, channels), start(), shutdown, patience));
    let outcome = questions.command(engine::Command::RunModule("nobody".into())).await.unwrap();
    assert!(outcome.unwrap_err().to_string().contains("nobody"));
    stop.send_replace(true);
    running.await.unwrap();
}

const PATIENCE: Duration = Duration::from_secs(3);

/// Waits in the middle of a decision until it may go on.
struct Hanging(std::sync::mpsc::Receiver<()>);

impl Effects for Hanging {
    fn begin(&mut self, _: Effect, _: &Inbox) {
        let _ = self.0.recv();
    }
}

async fn healthz(router: &axum::Router) -> u16 {
    let request = http::Request::get("/healthz").body(axum::body::Body::empty()).unwrap();
    router.clone().oneshot(request).await.unwrap().status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn slip_02_an_operator_with_broken_watches_is_alive_before_and_while_it_runs() {
    let (inbox, questions, channels) = driver::channels();
    let telemetry = Arc::new(Telemetry::new("addon_operator_").unwrap());
    let router = addon_operator::http::port(questions.clone(), telemetry);
    assert_eq!(healthz(&router).await, 200, "it waits for the API server");
    let (stop, shutdown) = watch::channel(false);
    let engine = Engine::new(Config::default(), Catalog::default());
    let outside = inbox.clone();
    let recorder = Recorder(Arc::default());
    let running =
        tokio::spawn(driver::drive(engine, recorder, (inbox, channels), start(), shutdown, PATIENCE));
    for _ in 0..60 {
        let failure = Some(Failure::new(FailureKind::Cluster, "configmaps is forbidden"));
        outside
            .event(Event::OwnWatchChanged { watch: "ConfigMap ops/addon-operator".to_owned(), failure })
            .await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(healthz(&router).await, 200, "a restart mends no missing right");
    }
    assert_eq!(questions.view().await.unwrap().broken_own_watches.len(), 1);
    stop.send_replace(true);
    running.await.unwrap();
    assert_eq!(healthz(&router).await, 500, "it has ended");
}

#[tokio::test(start_paused = true)]
async fn slip_02_an_operator_that_hangs_is_not_alive() {
    let (inbox, questions, channels) = driver::channels();
    let telemetry = Arc::new(Telemetry::new("addon_operator_").unwrap());
    let router = addon_operator::http::port(questions.clone(), telemetry);
    let (stop, shutdown) = watch::channel(false);
    let (go_on, hangs) = std::sync::mpsc::channel();
    // It has a thread and a clock of its own, and hangs in the first effect. Nobody tells it to go on.
    let driving = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let engine = Engine::new(Config::default(), Catalog::default());
        let driving = driver::drive(engine, Hanging(hangs), (inbox, channels), start(), shutdown, PATIENCE);
        runtime.block_on(driving)
    });
    while questions.is_alive(PATIENCE).await {
        pause_thread();
    }
    assert_eq!(healthz(&router).await, 500);
    // So many questions that none is taken in any more are no other.
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            tokio::spawn({
                let questions = questions.clone();
                async move { questions.view().await }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    assert_eq!(healthz(&router).await, 500);
    stop.send_replace(true);
    drop(go_on);
    drop(waiting);
    driving.join().unwrap();
}

#[tokio::test(start_paused = true)]
async fn f_d2_a_flood_of_questions_delays_no_event() {
    let (inbox, questions, channels) = driver::channels();
    let (stop, shutdown) = watch::channel(false);
    let engine = Engine::new(Config::default(), Catalog::default());
    // All of this waits before the driver takes its first look.
    let askers: Vec<_> = (0..60)
        .map(|_| {
            let questions = questions.clone();
            tokio::spawn(async move { questions.view().await.unwrap().config_problems.len() })
        })
        .collect();
    let data = ConfigData([("global".to_owned(), "- : [".to_owned())].into());
    let event = Event::ConfigChanged {
        object: ConfigObject::ConfigMap,
        version: "1".to_owned(),
        data: Some(Arc::new(data)),
    };
    assert!(inbox.event(event).await);
    tokio::task::yield_now().await;
    let patience = Duration::from_secs(10);
    let recorder = Recorder(Arc::default());
    let running =
        tokio::spawn(driver::drive(engine, recorder, (inbox, channels), start(), shutdown, patience));
    let mut seen_before = 0;
    for asker in askers {
        seen_before += usize::from(asker.await.unwrap() == 0);
    }
    assert!(seen_before <= 1, "{seen_before} questions were answered before the event");
    stop.send_replace(true);
    running.await.unwrap();
}

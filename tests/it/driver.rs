//! The loop between the engine and the world, with time that stands still.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_operator::driver::{self, Effects, Inbox, Stopped};
use engine::{Catalog, Config, Effect, Engine, Event};
use tokio::sync::watch;

/// Writes down the names of effects and answers those that a start needs.
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Effects for Recorder {
    fn begin(&mut self, effect: Effect, inbox: &Inbox) {
        let name = format!("{effect:?}").split([' ', '(', '{']).next().unwrap().to_owned();
        self.0.lock().unwrap().push(name);
        if let Effect::ListReleases { run } = effect {
            inbox.answer(Event::ReleasesListed { run, outcome: Ok(Vec::new()) });
        }
    }
}

fn start() -> Vec<Event> {
    vec![Event::ConfigChanged { version: String::new(), data: None }, Event::Started]
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

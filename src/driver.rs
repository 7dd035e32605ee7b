//! The only loop: event in, decision, effects out. It owns the engine and the clock.

use std::time::Duration;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use engine::view::ConvergeView;
use engine::{
    Abort, Command, CommandId, Effect, Engine, Event, Failure, Fetched, Inspection, Module, ModuleName,
    ReleaseTarget, SourceKey, SourcePlan, SourceSpec, Time, ValuesInput, View,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::process::suspended;

/// How many watch events are taken at one turn, so that a flood of them delays nothing else.
const EVENTS_A_TURN: usize = 64;

/// How many watch events wait for the engine. A full channel slows the watches, which is what we want.
const WAITING_EVENTS: usize = 1024;

/// Carries out the effects that the engine decides.
pub trait Effects {
    /// Begins to carry out `effect` and returns at once. It may start work; it decides nothing.
    fn begin(&mut self, effect: Effect, inbox: &Inbox);

    /// Returns what the engine has to know before the next event, and nobody tells: it is seen only by who looks.
    fn look(&mut self) -> Option<Event> {
        None
    }

    /// Observes an event before the engine handles it. It changes nothing.
    fn observe_event(&mut self, _event: &Event) {}

    /// Observes how long a decision took, and which effects it was.
    fn observe_decision(&mut self, _took: Duration, _effects: &[Effect]) {}
}

/// Where adapters send events.
#[derive(Clone, Debug)]
pub struct Inbox {
    /// Answers to effects: never waits, at most one for each queue.
    answers: mpsc::UnboundedSender<Event>,
    /// What happens by itself: waits when the engine is slow.
    events: mpsc::Sender<Event>,
}

/// How people and programs ask the engine.
#[derive(Clone, Debug)]
pub struct Questions {
    questions: mpsc::Sender<Question>,
    start: Arc<Start>,
}

/// What comes before the driver.
#[derive(Debug)]
struct Start {
    /// Whether the driver has begun.
    is_driven: AtomicBool,
    /// What the operator does until then.
    doing: Mutex<String>,
}

impl Default for Start {
    fn default() -> Self {
        // The port answers before the operator has said anything: whoever asks then must not wait for the cluster.
        Self { is_driven: AtomicBool::new(false), doing: Mutex::new("it begins".to_owned()) }
    }
}

/// A module with what its chart reads.
type ChartInput = ((Arc<Module>, ReleaseTarget), ValuesInput);

#[derive(Debug)]
enum Question {
    Chart(ModuleName, oneshot::Sender<Option<ChartInput>>),
    /// A command; the receiver fails when nobody waits for the answer any more.
    Command(Command, oneshot::Sender<Result<String, Failure>>, oneshot::Receiver<()>),
    /// How far converges are.
    Converge(oneshot::Sender<ConvergeView>),
    /// What metrics tell.
    Heads(oneshot::Sender<View>),
    Inspection(oneshot::Sender<Inspection>),
    /// How late its timers are.
    Lateness(oneshot::Sender<Duration>),
    /// What a module would be rendered with that is to take the place of another one.
    Planned(SourceKey, Arc<Module>, oneshot::Sender<Result<ChartInput, Failure>>),
    /// What a configuration of module sources would bring about.
    SourcePlan(Box<PlannedSource>, oneshot::Sender<SourcePlan>),
    View(oneshot::Sender<View>),
}

/// A configuration of module sources that was not applied.
#[derive(Debug)]
struct PlannedSource {
    source: SourceKey,
    /// The versions that may come, if it says so.
    approved: Option<String>,
    spec: SourceSpec,
    fetched: Fetched,
}

/// The receiving ends of the driver.
#[derive(Debug)]
pub struct Channels {
    answers: mpsc::UnboundedReceiver<Event>,
    events: mpsc::Receiver<Event>,
    questions: mpsc::Receiver<Question>,
    start: Arc<Start>,
}

/// Why the driver stopped.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Stopped {
    /// Another operator may act now. What was running must be killed.
    Aborted(Abort),
    /// Nothing was running any more.
    AtRest,
    /// What was running did not end in time.
    Deadline,
}

/// Returns the channels between the driver and everybody else.
pub fn channels() -> (Inbox, Questions, Channels) {
    let (answers, answers_out) = mpsc::unbounded_channel();
    let (events, events_out) = mpsc::channel(WAITING_EVENTS);
    let (questions, questions_out) = mpsc::channel(64);
    let start = Arc::new(Start::default());
    let channels = Channels {
        answers: answers_out,
        events: events_out,
        questions: questions_out,
        start: Arc::clone(&start),
    };
    (Inbox { answers, events }, Questions { questions, start }, channels)
}

impl Channels {
    /// Records what the operator does before the driver begins, such as `it waits for the API server`.
    pub fn say(&self, doing: String) {
        *self.start.doing.lock().unwrap_or_else(PoisonError::into_inner) = doing;
    }

    /// Returns the next thing that happened by itself, as the driver would see it.
    pub async fn next_event(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Returns the next answer to an effect, as the driver would see it.
    pub async fn next_answer(&mut self) -> Option<Event> {
        self.answers.recv().await
    }
}

impl Inbox {
    /// Passes on the answer to an effect. An answer after the end is dropped.
    pub fn answer(&self, event: Event) {
        let _ = self.answers.send(event);
    }

    /// Passes on what happened by itself and waits until there is room.
    ///
    /// Returns whether anybody still listens.
    pub async fn event(&self, event: Event) -> bool {
        self.events.send(event).await.is_ok()
    }
}

impl Questions {
    /// Returns whether the driver takes its turns and its timers go off. It may be late by `patience`.
    ///
    /// Before it begins there is nothing to take: the operator reads files, or waits for the API server.
    pub async fn is_alive(&self, patience: Duration) -> bool {
        if !self.start.is_driven.load(Ordering::Relaxed) {
            return !self.questions.is_closed();
        }
        let (answer, lateness) = oneshot::channel();
        let asking = async {
            self.questions.send(Question::Lateness(answer)).await.ok()?;
            lateness.await.ok()
        };
        let lateness = tokio::time::timeout(patience, asking).await.ok().flatten();
        lateness.is_some_and(|late| late <= patience)
    }

    /// Returns what the operator does before the driver begins; `None` afterwards.
    ///
    /// Until then all other questions wait.
    pub fn start(&self) -> Option<String> {
        if self.start.is_driven.load(Ordering::Relaxed) || self.questions.is_closed() {
            return None;
        }
        Some(self.start.doing.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Returns a picture without values; `None` when the operator has ended.
    pub async fn view(&self) -> Option<View> {
        let (answer, view) = oneshot::channel();
        self.questions.send(Question::View(answer)).await.ok()?;
        view.await.ok()
    }

    /// Returns a picture with no more than the first task of each queue, for metrics; `None` when the operator has ended.
    pub async fn heads(&self) -> Option<View> {
        let (answer, heads) = oneshot::channel();
        self.questions.send(Question::Heads(answer)).await.ok()?;
        heads.await.ok()
    }

    /// Returns how far converges are; `None` when the operator has ended. It costs nothing, however many modules there are.
    pub async fn converge(&self) -> Option<ConvergeView> {
        let (answer, converge) = oneshot::channel();
        self.questions.send(Question::Converge(answer)).await.ok()?;
        converge.await.ok()
    }

    /// Returns values and snapshots, for the socket only; `None` when the operator has ended.
    pub async fn inspect(&self) -> Option<Inspection> {
        let (answer, inspection) = oneshot::channel();
        self.questions.send(Question::Inspection(answer)).await.ok()?;
        inspection.await.ok()
    }

    /// Returns a module with the values that its chart would be rendered with, for the socket only.
    pub async fn chart_input(&self, module: ModuleName) -> Option<ChartInput> {
        let (answer, input) = oneshot::channel();
        self.questions.send(Question::Chart(module, answer)).await.ok()?;
        input.await.ok()?
    }

    /// Returns what a configuration of module sources would bring about, with this fetched for it; `None` when the operator has
    /// ended. `approved` are the versions that may come, if it says so.
    pub async fn source_plan(
        &self,
        (source, approved): (SourceKey, Option<String>),
        spec: SourceSpec,
        fetched: Fetched,
    ) -> Option<SourcePlan> {
        let (answer, plan) = oneshot::channel();
        let planned = Box::new(PlannedSource { source, approved, spec, fetched });
        self.questions.send(Question::SourcePlan(planned, answer)).await.ok()?;
        plan.await.ok()
    }

    /// Returns a module that is to come, or to take the place of one of its name, with what its chart would be rendered with, for
    /// the socket only; `None` when the operator has ended. `source` is the configuration that would bring it.
    pub async fn planned_input(
        &self,
        source: SourceKey,
        module: Arc<Module>,
    ) -> Option<Result<ChartInput, Failure>> {
        let (answer, input) = oneshot::channel();
        self.questions.send(Question::Planned(source, module, answer)).await.ok()?;
        input.await.ok()
    }

    /// Gives a command and returns what came of it; `None` when the operator has ended.
    pub async fn command(&self, command: Command) -> Option<Result<String, Failure>> {
        let (answer, outcome) = oneshot::channel();
        // It is dropped with this future.
        let (waits, gone) = oneshot::channel();
        self.questions.send(Question::Command(command, answer, gone)).await.ok()?;
        let outcome = outcome.await.ok();
        let _ = waits.send(());
        outcome
    }
}

/// Runs `engine` until it is at rest after a shutdown, or until that takes longer than `patience`.
///
/// `started` are the first events that the engine handles. `shutdown` becomes true when the operator shall end.
pub async fn drive(
    engine: Engine,
    effects: impl Effects,
    (inbox, mut channels): (Inbox, Channels),
    started: Vec<Event>,
    mut shutdown: watch::Receiver<bool>,
    patience: Duration,
) -> Stopped {
    channels.start.is_driven.store(true, Ordering::Relaxed);
    let mut driver = Driver {
        engine,
        effects,
        inbox,
        begun: Instant::now(),
        suspended: suspended(),
        commands: Vec::new(),
        next_command: 1,
    };
    for event in started {
        if let Some(stopped) = driver.handle(event) {
            return stopped;
        }
    }
    let mut deadline: Option<Instant> = None;
    loop {
        let wakeup = driver.engine.next_wakeup().map(|time| driver.instant(time));
        let stopped = tokio::select! {
            biased;
            () = requested(&mut shutdown), if deadline.is_none() => {
                deadline = Some(Instant::now() + patience);
                driver.handle(Event::ShutdownRequested)
            }
            () = sleep_until(deadline) => return Stopped::Deadline,
            Some(event) = channels.answers.recv() => driver.handle(event),
            () = sleep_until(wakeup) => driver.handle(Event::TimerFired),
            Some(question) = channels.questions.recv() => {
                // Who asks without end delays no event: each question lets a turn of events follow.
                driver.answer(question).or_else(|| driver.take_in(&mut channels.events))
            }
            Some(event) = channels.events.recv() => {
                driver.handle(event).or_else(|| driver.take_in(&mut channels.events))
            }
        };
        if let Some(stopped) = stopped {
            return stopped;
        }
    }
}

struct Driver<O> {
    engine: Engine,
    effects: O,
    inbox: Inbox,
    begun: Instant,
    /// How long the machine had been suspended then.
    suspended: Duration,
    commands: Vec<(CommandId, oneshot::Sender<Result<String, Failure>>)>,
    next_command: u64,
}

impl<O: Effects> Driver<O> {
    /// Returns the time as the engine counts it. It goes on while the machine is suspended: a Lease does, too.
    fn now(&self) -> Time {
        Time::from_start(self.begun.elapsed() + self.slept())
    }

    /// Returns how long the machine was suspended since the beginning. Less than a second is what lies between the readings of
    /// two clocks.
    fn slept(&self) -> Duration {
        let slept = suspended().saturating_sub(self.suspended);
        if slept < Duration::from_secs(1) { Duration::ZERO } else { slept }
    }

    /// Returns when a time of the engine comes, if the machine is not suspended.
    fn instant(&self, time: Time) -> Instant {
        let awake = time.since_start().saturating_sub(self.slept());
        self.begun + awake
    }

    /// Has the engine handle `event`, behind what is seen now, and begins the effects. Returns how all ended, if it did.
    fn handle(&mut self, event: Event) -> Option<Stopped> {
        let seen = self.effects.look();
        let stopped = seen.and_then(|seen| self.decide(seen));
        stopped.or_else(|| self.decide(event))
    }

    fn decide(&mut self, event: Event) -> Option<Stopped> {
        let now = self.now();
        let mut stopped = None;
        self.effects.observe_event(&event);
        let begun = Instant::now();
        let effects = self.engine.handle(now, event);
        self.effects.observe_decision(begun.elapsed(), &effects);
        for effect in effects {
            if effect == Effect::Exit {
                stopped = Some(Stopped::AtRest);
            } else if let Effect::Abort(abort) = effect {
                return Some(Stopped::Aborted(abort));
            } else if let Effect::AnswerCommand { id, outcome } = effect {
                self.reply(id, outcome);
            } else {
                self.effects.begin(effect, &self.inbox);
            }
        }
        stopped
    }

    /// Handles the events that wait, as many as one turn may have. Returns how all ended, if it did.
    fn take_in(&mut self, events: &mut mpsc::Receiver<Event>) -> Option<Stopped> {
        for _ in 1..EVENTS_A_TURN {
            let Ok(event) = events.try_recv() else { break };
            let stopped = self.handle(event);
            if stopped.is_some() {
                return stopped;
            }
        }
        None
    }

    fn answer(&mut self, question: Question) -> Option<Stopped> {
        match question {
            // Who asked may have gone away.
            Question::View(answer) => {
                let now = self.now();
                let _ = answer.send(self.engine.view_at(now));
            }
            Question::Heads(answer) => {
                let now = self.now();
                let _ = answer.send(self.engine.heads_at(now));
            }
            Question::Converge(answer) => {
                let now = self.now();
                let _ = answer.send(self.engine.converge_view(now));
            }
            Question::Lateness(answer) => {
                let now = self.now();
                let late = self.engine.next_wakeup().map_or(Duration::ZERO, |due| now.since(due));
                let _ = answer.send(late);
            }
            Question::Chart(module, answer) => drop(answer.send(self.engine.chart_input(&module))),
            Question::Planned(source, module, answer) => {
                drop(answer.send(self.engine.planned_input(&source, &module)));
            }
            Question::SourcePlan(planned, answer) => {
                let PlannedSource { source, approved, spec, fetched } = *planned;
                let (now, key) = (self.now(), (&source, approved.as_deref()));
                let _ = answer.send(self.engine.source_plan(now, key, &spec, fetched));
            }
            Question::Inspection(answer) => drop(answer.send(self.engine.inspect())),
            Question::Command(command, answer, gone) => {
                let id = CommandId::new(self.next_command);
                self.next_command += 1;
                let inbox = self.inbox.clone();
                tokio::spawn(async move {
                    if gone.await.is_err() {
                        inbox.answer(Event::CommandAbandoned { id });
                    }
                });
                self.commands.retain(|(_, answer)| !answer.is_closed());
                self.commands.push((id, answer));
                return self.handle(Event::Commanded { id, command });
            }
        }
        None
    }

    fn reply(&mut self, id: CommandId, outcome: Result<String, Failure>) {
        if let Some(place) = self.commands.iter().position(|(waiting, _)| *waiting == id) {
            let (_, answer) = self.commands.swap_remove(place);
            let _ = answer.send(outcome);
        }
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Returns when the operator shall end.
async fn requested(shutdown: &mut watch::Receiver<bool>) {
    if shutdown.wait_for(|requested| *requested).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use engine::{Catalog, Config, FailureKind};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(3);

    #[tokio::test(start_paused = true)]
    async fn slip_02_an_operator_whose_timers_go_off_too_late_is_not_alive() {
        for (late, is_alive) in
            [(Duration::ZERO, true), (PATIENCE, true), (PATIENCE + Duration::from_millis(1), false)]
        {
            let (_inbox, questions, mut channels) = channels();
            channels.start.is_driven.store(true, Ordering::Relaxed);
            let answers = async {
                match channels.questions.recv().await {
                    Some(Question::Lateness(answer)) => answer.send(late).unwrap(),
                    other => unreachable!("{other:?}"),
                }
            };
            assert_eq!(tokio::join!(questions.is_alive(PATIENCE), answers).0, is_alive, "{late:?}");
        }
    }

    /// Answers that releases can't be listed, which is tried again later.
    struct Failing(Vec<Event>);

    impl Effects for Failing {
        fn begin(&mut self, effect: Effect, _: &Inbox) {
            if let Effect::ListReleases { run, .. } = effect {
                let failure = Failure::new(FailureKind::Cluster, "connection refused");
                self.0.push(Event::ReleasesListed { run, outcome: Err(failure) });
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slip_02_timers_are_as_late_as_time_has_passed_since_they_were_due() {
        let (inbox, _questions, _channels) = channels();
        let mut driver = Driver {
            engine: Engine::new(Config::default(), Catalog::default()),
            effects: Failing(Vec::new()),
            inbox,
            begun: Instant::now(),
            suspended: suspended(),
            commands: Vec::new(),
            next_command: 1,
        };
        let object = engine::ConfigObject::ConfigMap;
        driver.handle(Event::ConfigChanged { object, version: String::new(), data: None });
        driver.handle(Event::Started);
        let failed = driver.effects.0.pop().unwrap();
        driver.handle(failed);
        let lateness = |driver: &mut Driver<Failing>| {
            let (sender, mut answer) = oneshot::channel();
            driver.answer(Question::Lateness(sender));
            answer.try_recv().unwrap()
        };
        let due = driver.instant(driver.engine.next_wakeup().unwrap());
        assert!(due > Instant::now());
        assert_eq!(lateness(&mut driver), Duration::ZERO, "it is not due yet");
        tokio::time::sleep_until(due + Duration::from_secs(7)).await;
        assert_eq!(lateness(&mut driver), Duration::from_secs(7));
        driver.handle(Event::TimerFired);
        assert_eq!(lateness(&mut driver), Duration::ZERO, "it went off");
    }
}

//! All keyed work: what is ready, what is due when, and what is in flight.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::work::{Again, State, Subject, Work};
use super::{Terms, WorkKey};
use crate::cause::Cause;
use crate::config::Config;
use crate::context::Context;
use crate::effect::Effect;
use crate::failure::Failure;
use crate::name::{QueueName, RunId, TaskId};
use crate::notice::{Notice, TaskInfo};
use crate::queue::{Queues, is_told_already};
use crate::time::Time;
use crate::view::{QueueView, TaskView};

/// All keyed work on the same terms.
#[derive(Debug)]
pub(crate) struct Reconciles<K = WorkKey> {
    config: Arc<Config>,
    terms: Terms,
    works: BTreeMap<K, Work>,
    /// What waits for a worker: first whose effect ended, then the others in the order in which their turn came.
    ready: BTreeSet<(Standing, u64, K)>,
    /// How many turns came.
    turns: u64,
    /// What comes back when.
    due: BTreeSet<(Time, K)>,
    /// Whose effect a run is.
    runs: BTreeMap<RunId, K>,
    /// How many workers are busy.
    busy: usize,
    /// How much work each queue has, and how much was told of last.
    lengths: BTreeMap<QueueName, (usize, usize)>,
    /// Until when keys rest whose work ended a moment ago.
    rests: BTreeMap<K, Time>,
    /// When these rests end, and some that another one has followed.
    rest_ends: BTreeSet<(Time, K)>,
}

/// Where a key stands that waits for a worker.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Standing {
    /// It had one until a moment ago.
    UnderWay,
    /// It stands in line.
    InLine,
}

/// What the work on a key does next.
#[derive(Debug)]
pub(crate) enum Step {
    /// It is done for now, and comes back after this time.
    Again(Duration),
    /// It is done.
    Done,
    /// It comes back when it is asked for.
    Rest(Rest),
    /// It can't go on yet, and comes back after this time. That is no end of it, and it keeps its turn.
    Later(Duration),
    /// The API server or the operator itself failed: it is tried again.
    Failed(Failure),
    /// It begins something that holds no worker, however long it takes.
    Fetch(RunId, Box<Effect>),
    /// It waits for something inside of the engine, until [`Reconciles::resume`].
    Wait(String),
    /// It begins to write something.
    Write(RunId, Box<Effect>),
}

/// How the work on a key comes back that waits for a change outside, and says for which.
#[derive(Debug)]
pub(crate) struct Rest {
    /// What it waits for.
    pub(crate) reason: String,
    /// When it comes back by itself, if it does.
    pub(crate) after: Option<Duration>,
    /// Whether it is done for now. Otherwise it did not begin.
    pub(crate) is_end: bool,
}

impl<K> Default for Reconciles<K> {
    fn default() -> Self {
        Self {
            config: Arc::default(),
            terms: Terms::default(),
            works: BTreeMap::new(),
            ready: BTreeSet::new(),
            turns: 0,
            due: BTreeSet::new(),
            runs: BTreeMap::new(),
            busy: 0,
            lengths: BTreeMap::new(),
            rests: BTreeMap::new(),
            rest_ends: BTreeSet::new(),
        }
    }
}

impl<K: Subject> Reconciles<K> {
    /// Returns no work.
    pub(crate) fn new(config: Arc<Config>, terms: Terms) -> Self {
        Self { config, terms, ..Self::default() }
    }

    fn put(&mut self, key: &K, work: Work) {
        self.lengths.entry(self.terms.queue_of(work.id).clone()).or_default().0 += 1;
        self.works.insert(key.clone(), work);
    }

    fn info(&self, key: &K, work: &Work) -> TaskInfo {
        key.info(work.id, self.terms.queue_of(work.id), &work.cause)
    }

    /// Has a key worked on, now or once more when the work on it is done that is under way.
    pub(crate) fn request(&mut self, cx: &mut Context, key: &K, cause: &Cause) {
        let Some(work) = self.works.get_mut(key) else {
            let work = Work::new(cx.ids.task(), cause.then(key.to_string()), cx.now);
            cx.notify(Notice::TaskQueued { task: self.info(key, &work) });
            self.put(key, work);
            self.line_up(key);
            return;
        };
        match work.state {
            State::Ready => {}
            State::Due(until) => {
                self.due.remove(&(until, key.clone()));
                self.line_up(key);
            }
            State::Resting { until, .. } => {
                // What comes anew is another piece of work.
                if work.begun_at.is_none() {
                    (work.cause, work.queued_at) = (cause.then(key.to_string()), cx.now);
                }
                if let Some(until) = until {
                    self.due.remove(&(until, key.clone()));
                }
                self.line_up(key);
            }
            State::InFlight { .. } | State::Waiting { .. } => {
                work.again = Some(Again { cause: cause.clone(), rests: false });
            }
        }
    }

    /// Has a key worked on because of something beside it, such as a child. What a run does is told of in many small changes, so a
    /// key that was worked on a moment ago rests before as long as that took, [`Config::longest_rest`] at most: one run sees them all.
    pub(crate) fn request_after_rest(&mut self, cx: &mut Context, key: &K, cause: &Cause) {
        let until = self.rests.get(key).copied().filter(|until| *until > cx.now);
        let Some(work) = self.works.get_mut(key) else {
            self.request(cx, key, cause);
            return self.rest(key, until);
        };
        match work.state {
            State::InFlight { .. } | State::Waiting { .. } => {
                work.again.get_or_insert_with(|| Again { cause: cause.clone(), rests: true });
            }
            State::Ready => {}
            State::Due(due) if until.is_some_and(|until| due <= until) => {}
            State::Due(_) | State::Resting { .. } => {
                self.request(cx, key, cause);
                self.rest(key, until);
            }
        }
    }

    /// Has a key rest that was asked for last.
    fn rest(&mut self, key: &K, until: Option<Time>) {
        let Some((until, work)) = until.zip(self.works.get_mut(key)) else { return };
        work.state = State::Due(until);
        if let Some(turn) = work.turn.take() {
            self.ready.remove(&(Standing::InLine, turn, key.clone()));
        }
        self.due.insert((until, key.clone()));
    }

    /// Has a key wait for a worker. Who could not go on in its turn has not lost that: it stands before all that came later.
    fn line_up(&mut self, key: &K) {
        let Some(work) = self.works.get_mut(key) else { return };
        work.state = State::Ready;
        let turn = *work.turn.get_or_insert_with(|| {
            self.turns = self.turns.saturating_add(1);
            self.turns
        });
        self.ready.insert((Standing::InLine, turn, key.clone()));
    }

    /// Makes a key go on that waits for something inside of the engine.
    pub(crate) fn resume(&mut self, key: &K) {
        if self.is_waiting(key) {
            self.line_up(key);
        }
    }

    /// Makes all keys go on that wait and that `wanted` accepts.
    pub(crate) fn resume_all(&mut self, wanted: impl Fn(&K) -> bool) {
        let waits = |work: &Work| matches!(work.state, State::Waiting { .. });
        let waiting = self.works.iter().filter(|(key, work)| waits(work) && wanted(key));
        let waiting: Vec<K> = waiting.map(|(key, _)| key.clone()).collect();
        for key in waiting {
            self.line_up(&key);
        }
    }

    /// Returns whether a key waits for something inside of the engine.
    pub(crate) fn is_waiting(&self, key: &K) -> bool {
        self.works.get(key).is_some_and(|work| matches!(work.state, State::Waiting { .. }))
    }

    /// Returns whether a key waits for a change outside.
    pub(crate) fn is_resting(&self, key: &K) -> bool {
        self.works.get(key).is_some_and(|work| matches!(work.state, State::Resting { .. }))
    }

    /// Allows at least this many workers.
    pub(crate) fn allow(&mut self, workers: usize) {
        self.terms.workers = self.terms.workers.max(workers);
    }

    /// Forgets the work on keys that is not in flight.
    pub(crate) fn forget(&mut self, unwanted: impl Fn(&K) -> bool) {
        let (terms, lengths) = (&self.terms, &mut self.lengths);
        self.works.retain(|key, work| {
            let stays = matches!(work.state, State::InFlight { .. }) || !unwanted(key);
            if !stays {
                lengths.entry(terms.queue_of(work.id).clone()).or_default().0 -= 1;
            }
            stays
        });
        self.rests.retain(|key, _| !unwanted(key));
        self.rest_ends.retain(|(_, key)| !unwanted(key));
        let works = &self.works;
        self.ready.retain(|(_, _, key)| works.contains_key(key));
        self.due.retain(|(_, key)| works.contains_key(key));
    }

    /// Returns the task that the work on a key is, and why it exists.
    pub(crate) fn task(&self, key: &K) -> Option<(TaskId, Cause)> {
        self.works.get(key).map(|work| (work.id, work.cause.clone()))
    }

    /// Returns the next key, if a worker is free.
    pub(crate) fn peek(&self) -> Option<&K> {
        self.ready.first().map(|(_, _, key)| key).filter(|_| self.has_next())
    }

    /// Returns since when the next key is wanted, if a worker is free.
    pub(crate) fn next_since(&self) -> Option<Time> {
        self.peek().and_then(|key| self.works.get(key)).map(|work| work.queued_at)
    }

    /// Returns whether there is work on a key.
    pub(crate) fn has(&self, key: &K) -> bool {
        self.works.contains_key(key)
    }

    /// Returns whether something is ready and a worker is free for it.
    pub(crate) fn has_next(&self) -> bool {
        !self.ready.is_empty() && self.busy < self.terms.workers
    }

    /// Takes the next key, if a worker is free.
    pub(crate) fn take_next(&mut self, cx: &mut Context) -> Option<K> {
        if !self.has_next() {
            return None;
        }
        let (_, _, key) = self.ready.pop_first()?;
        let work = self.works.get_mut(&key)?;
        if work.begun_at.is_none() {
            work.begun_at = Some(cx.now);
            let task = key.info(work.id, self.terms.queue_of(work.id), &work.cause);
            cx.notify(Notice::TaskStarted { task, waited: cx.now.since(work.queued_at) });
        }
        Some(key)
    }

    /// Makes everything ready whose time has come.
    pub(crate) fn wake_due(&mut self, now: Time) {
        while let Some((until, _)) = self.rest_ends.first()
            && *until <= now
            && let Some((_, key)) = self.rest_ends.pop_first()
        {
            if self.rests.get(&key).is_some_and(|until| *until <= now) {
                self.rests.remove(&key);
            }
        }
        while let Some((until, _)) = self.due.first()
            && *until <= now
            && let Some((_, key)) = self.due.pop_first()
        {
            self.line_up(&key);
        }
    }

    /// Returns when something is due.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        self.due.first().map(|(until, _)| *until)
    }

    /// Carries out what the work on a key does next.
    pub(crate) fn apply(&mut self, cx: &mut Context, queues: &mut Queues, key: &K, step: Step) {
        let Some(work) = self.works.get_mut(key) else { return };
        match step {
            Step::Fetch(run, effect) => self.start(cx, key, run, *effect, false),
            Step::Write(run, effect) => self.start(cx, key, run, *effect, true),
            Step::Wait(reason) => {
                work.state = State::Waiting { reason, since: cx.now };
                self.go_on_if_asked(key);
            }
            Step::Done => self.end(cx, queues, key, None),
            Step::Again(delay) => self.end(cx, queues, key, Some(State::Due(cx.now + delay))),
            Step::Rest(Rest { reason, after, is_end }) => {
                let until = after.map(|after| cx.now + after);
                let state = State::Resting { reason, since: cx.now, until };
                if is_end {
                    return self.end(cx, queues, key, Some(state));
                }
                (work.state, work.turn) = (state, None);
                self.due.extend(until.map(|until| (until, key.clone())));
                self.go_on_if_asked(key);
            }
            Step::Later(delay) => {
                work.state = State::Due(cx.now + delay);
                self.due.insert((cx.now + delay, key.clone()));
                self.go_on_if_asked(key);
            }
            Step::Failed(failure) => {
                work.failures = work.failures.saturating_add(1);
                work.failing_since.get_or_insert(cx.now);
                let delay = self.terms.retry_after(&self.config, work.failures, work.id.number());
                let took = cx.now.since(work.begun_at.take().unwrap_or(cx.now));
                let info = key.info(work.id, self.terms.queue_of(work.id), &work.cause);
                work.alike = failure.in_a_row(work.last_failure.as_deref(), work.alike);
                // What grows comes less and less often anyway.
                let is_old = !self.terms.grows && is_told_already(work.alike);
                queues.record_end(cx, info, took, Some((failure.clone(), delay, is_old)));
                work.last_failure = Some(Arc::new(failure));
                (work.queued_at, work.turn) = (cx.now, None);
                if let Some(Again { cause, .. }) = work.again.take().filter(|_| self.terms.grows) {
                    // What came meanwhile may be what it lacked.
                    work.cause = cause.then(key.to_string());
                    self.line_up(key);
                    return;
                }
                work.state = State::Due(cx.now + delay);
                self.due.insert((cx.now + delay, key.clone()));
            }
        }
    }

    /// Goes on with a key for which something came while it was worked on: it may be what it waits for.
    fn go_on_if_asked(&mut self, key: &K) {
        let Some(work) = self.works.get_mut(key).filter(|_| self.terms.grows) else { return };
        let Some(Again { cause, .. }) = work.again.take() else { return };
        work.cause = cause.then(key.to_string());
        if let Some(until) = std::mem::replace(&mut work.state, State::Ready).until() {
            self.due.remove(&(until, key.clone()));
        }
        self.line_up(key);
    }

    fn start(&mut self, cx: &mut Context, key: &K, run: RunId, effect: Effect, holds_worker: bool) {
        let Some(work) = self.works.get_mut(key) else { return };
        work.state = State::InFlight { run, since: cx.now, holds_worker };
        self.busy += usize::from(holds_worker);
        self.runs.insert(run, key.clone());
        cx.push(effect);
    }

    /// Ends the work on a key. It comes back in this state, or at once if it was asked for meanwhile.
    fn end(&mut self, cx: &mut Context, queues: &mut Queues, key: &K, state: Option<State>) {
        let Some(mut work) = self.works.remove(key) else { return };
        self.lengths.entry(self.terms.queue_of(work.id).clone()).or_default().0 -= 1;
        let took = cx.now.since(work.begun_at.take().unwrap_or(cx.now));
        queues.record_end(cx, self.info(key, &work), took, None);
        let rest = took.min(self.config.longest_rest);
        if self.terms.grows && !rest.is_zero() {
            self.rests.insert(key.clone(), cx.now + rest);
            self.rest_ends.insert((cx.now + rest, key.clone()));
        }
        if let Some(Again { cause, rests }) = work.again.take() {
            if rests {
                self.request_after_rest(cx, key, &cause);
            } else {
                self.request(cx, key, &cause);
            }
            return;
        }
        if let Some(state) = state {
            let mut later = Work::new(work.id, work.cause, cx.now);
            self.due.extend(state.until().map(|until| (until, key.clone())));
            later.state = state;
            self.put(key, later);
        }
    }

    /// Returns the key whose effect ended; it goes on when a worker is free. `None` if nobody waits for that.
    pub(crate) fn finish(&mut self, run: RunId) -> Option<K> {
        let key = self.runs.remove(&run)?;
        let work = self.works.get_mut(&key)?;
        if let State::InFlight { holds_worker: true, .. } = work.state {
            self.busy = self.busy.saturating_sub(1);
        }
        work.state = State::Ready;
        self.ready.insert((Standing::UnderWay, work.turn.unwrap_or_default(), key.clone()));
        Some(key)
    }

    /// Returns the effects that are in flight, each with its key.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = (RunId, &K)> {
        self.runs.iter().map(|(run, key)| (*run, key))
    }

    /// Returns the effect of a key that is in flight and holds no worker.
    pub(crate) fn fetch_of(&self, key: &K) -> Option<RunId> {
        match self.works.get(key)?.state {
            State::InFlight { run, holds_worker: false, .. } => Some(run),
            State::InFlight { .. }
            | State::Ready
            | State::Due(_)
            | State::Resting { .. }
            | State::Waiting { .. } => None,
        }
    }

    /// Ends what only reads.
    pub(crate) fn cancel_fetches(&self, cx: &mut Context) {
        for run in self.works.keys().filter_map(|key| self.fetch_of(key)) {
            cx.push(Effect::CancelRun { run });
        }
    }

    /// Returns whether work waits for the end of a run.
    pub(crate) fn awaits(&self, run: RunId) -> bool {
        self.runs.contains_key(&run)
    }

    /// Returns whether no effect is in flight.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.runs.is_empty()
    }

    /// Reports how much work there is, if that changed.
    pub(crate) fn report_length(&mut self, cx: &mut Context) {
        for (queue, (length, told)) in &mut self.lengths {
            if std::mem::replace(told, *length) != *length {
                cx.notify(Notice::QueueChanged { queue: queue.clone(), length: *length });
            }
        }
    }

    /// Returns how many things are kept by name or number.
    pub(crate) fn entries(&self) -> usize {
        self.works.len() + self.runs.len()
    }

    /// Returns a picture of the work on a key, if there is any.
    pub(crate) fn view_of(&self, key: &K, now: Time) -> Option<TaskView> {
        self.works.get(key).map(|work| work.view(key, self.terms.queue_of(work.id), now))
    }

    /// Adds a picture of the work to those of queues, if there is any.
    pub(crate) fn add_view(&self, queues: &mut Vec<QueueView>, most_tasks: usize, now: Time) {
        for name in self.terms.queues() {
            let works = self.works.iter().filter(|(_, work)| self.terms.queue_of(work.id) == name);
            let works = works.take(most_tasks);
            let tasks: Vec<TaskView> = works.map(|(key, work)| work.view(key, name, now)).collect();
            if tasks.is_empty() {
                continue;
            }
            let runs = tasks.iter().any(|task| task.running.is_some());
            let status = if runs { "run first task".to_owned() } else { String::new() };
            match queues.iter_mut().find(|queue| queue.name == *name) {
                // A hook may have a queue of this name.
                Some(queue) => queue.tasks.extend(tasks),
                None => queues.push(QueueView { name: name.clone(), status, tasks }),
            }
        }
    }
}

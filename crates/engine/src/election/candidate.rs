//! This operator, as one of those who may hold the Lease.
//!
//! It is long because all transitions of one small machine stand here, with what each of them tells people.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::observation::{GIVEN_BACK, Observation};
use crate::binding::Bindings;
use crate::config::{Config, ElectionConfig, ElectionMode};
use crate::context::Context;
use crate::effect::{Abort, Effect};
use crate::failure::{Failure, FailureKind};
use crate::hook::MonitorSpec;
use crate::hook::selection::{Namespaces, Selection};
use crate::hook::snapshot::{Item, Objects};
use crate::lease::LeaseRecord;
use crate::name::{MonitorId, RunId};
use crate::notice::Notice;
use crate::time::Time;
use crate::view::{ElectionRole, ElectionView};

/// How long to wait at most before a request is sent again that failed.
const AGAIN: Duration = Duration::from_secs(2);

/// How long an operator that does not need the Lease waits until it asks again for one that it may not use.
const FORBIDDEN: Duration = Duration::from_mins(1);

/// This operator, as one of those who may hold the Lease.
#[derive(Debug, Default)]
pub(crate) struct Candidate {
    config: Arc<Config>,
    state: State,
    seen: Option<Observation>,
    in_flight: Option<(RunId, Step)>,
    /// When the next request is due, if it is not the Lease that is waited for.
    due_at: Time,
    /// How often in a row somebody else wrote the Lease at the same moment.
    conflicts: u32,
    /// Whether somebody else may have written the Lease that we hold.
    is_doubted: bool,
    monitor: Option<MonitorId>,
    /// Somebody else who is alive and holds the Lease.
    rival: Option<Arc<str>>,
    failure: Option<Arc<Failure>>,
}

/// Where it is in its life.
#[derive(Debug, Default)]
enum State {
    /// Nothing happened yet, or there is no election.
    #[default]
    New,
    /// It does not hold the Lease.
    Waiting,
    Holding(Holding),
    /// It does not want the Lease any more.
    Over,
}

/// The Lease that we hold.
#[derive(Debug)]
struct Holding {
    /// The record as we wrote it last. Its time of acquisition tells it from one of a namesake.
    record: LeaseRecord,
    /// Whether there is a Lease with the version of that record.
    exists: bool,
    /// Until when we may act.
    until: Time,
}

/// What is under way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    Read,
    /// Take it, or renew it. It was begun then.
    Take(Time),
    GiveBack,
}

/// What follows from the election.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Turn {
    /// This operator acts from now on.
    Elected,
    /// It must not act any more.
    Abort(Abort),
}

impl Candidate {
    /// Returns one that has not begun.
    pub(crate) fn new(config: Arc<Config>) -> Self {
        Self { config, ..Self::default() }
    }

    fn election(&self) -> Option<&ElectionConfig> {
        self.config.election.as_ref()
    }

    /// Returns whether nothing is done without the Lease.
    pub(crate) fn is_decisive(&self) -> bool {
        self.election().is_some_and(|election| election.mode != ElectionMode::Warn)
    }

    /// Returns how long a Lease is held at least, and how long to wait for a leader to make it again that somebody deleted.
    fn times(&self, election: &ElectionConfig) -> (Duration, Duration) {
        let unknown = if self.is_decisive() { election.retry_period.min(AGAIN) } else { Duration::ZERO };
        (election.lease_duration, unknown)
    }

    /// Begins to look at the Lease.
    pub(crate) fn start(&mut self, cx: &mut Context, bindings: &mut Bindings) {
        let Some(election) = self.config.election.clone() else { return };
        self.state = State::Waiting;
        self.due_at = cx.now;
        if !self.is_decisive() {
            return;
        }
        let monitor = bindings.own_monitor();
        self.monitor = Some(monitor);
        let selection = Selection {
            api_version: "coordination.k8s.io/v1".to_owned(),
            kind: "Lease".to_owned(),
            names: BTreeSet::from([election.lease]),
            namespaces: Namespaces::Named(BTreeSet::from([self.config.namespace.clone()])),
            ..Selection::default()
        };
        let jq_filter = Some(".".to_owned());
        let spec = Arc::new(MonitorSpec { selection, jq_filter, keep_objects: false });
        cx.push(Effect::StartMonitor { monitor, spec });
    }

    /// Returns whether this operator held the Lease and may not act any more, at `now`.
    pub(crate) fn is_too_late(&self, now: Time) -> bool {
        matches!(&self.state, State::Holding(holding) if self.is_decisive() && holding.until <= now)
    }

    /// Begins what is due. `may_give_back` says that this operator has ended, and will not act any more.
    pub(crate) fn advance(&mut self, cx: &mut Context, (is_ending, may_give_back): (bool, bool)) {
        let config = Arc::clone(&self.config);
        let Some(election) = &config.election else { return };
        if self.in_flight.is_some() {
            return;
        }
        match &self.state {
            State::Waiting if is_ending => self.state = State::Over,
            State::Waiting => self.try_to_take(cx, election),
            State::Holding(_) if may_give_back => self.give_back(cx),
            State::Holding(_) if self.is_doubted && self.due_at <= cx.now => self.read(cx),
            State::Holding(holding) if !self.is_doubted && self.due_at <= cx.now => {
                let (record, exists) = (holding.record.clone(), holding.exists);
                self.write(cx, election, record, exists);
            }
            State::New | State::Over | State::Holding(_) => {}
        }
    }

    fn try_to_take(&mut self, cx: &mut Context, election: &ElectionConfig) {
        if self.due_at > cx.now {
            return;
        }
        // Without a watch each look is a request. With one it is asked only if others write at the same moment.
        if self.is_doubted || self.monitor.is_none() {
            return self.read(cx);
        }
        self.take_if_free(cx, election);
    }

    fn take_if_free(&mut self, cx: &mut Context, election: &ElectionConfig) {
        let Some(seen) = self.seen.as_ref().filter(|seen| seen.held_until <= cx.now) else { return };
        let known = seen.record.clone();
        let is_ours = known.as_ref().and_then(|known| known.holder.as_deref()) == Some(&election.identity);
        let transitions = known.as_ref().map_or(0, |known| known.transitions + u32::from(!is_ours));
        let record = LeaseRecord {
            holder: Some(election.identity.as_str().into()),
            duration: Some(election.lease_duration),
            acquired: None,
            renewed: None,
            transitions,
            version: known.as_ref().map(|known| known.version.clone()).unwrap_or_default(),
        };
        self.write(cx, election, record, known.is_some());
    }

    fn read(&mut self, cx: &mut Context) {
        let run = cx.ids.run();
        self.is_doubted = false;
        self.in_flight = Some((run, Step::Read));
        cx.push(Effect::ReadLease { run });
    }

    fn write(&mut self, cx: &mut Context, election: &ElectionConfig, record: LeaseRecord, exists: bool) {
        let run = cx.ids.run();
        self.in_flight = Some((run, Step::Take(cx.now)));
        let acts_for = self.is_decisive().then_some(election.renew_deadline);
        cx.push(Effect::WriteLease { run, record: Box::new(record), exists, acts_for });
    }

    /// Lets others take the Lease at once.
    fn give_back(&mut self, cx: &mut Context) {
        let State::Holding(holding) = &self.state else { return };
        if !holding.exists || self.is_too_late(cx.now) {
            self.state = State::Over;
            return;
        }
        let record = LeaseRecord { holder: None, duration: Some(GIVEN_BACK), ..holding.record.clone() };
        let run = cx.ids.run();
        self.in_flight = Some((run, Step::GiveBack));
        cx.push(Effect::WriteLease { run, record: Box::new(record), exists: true, acts_for: None });
    }

    /// Goes on when the Lease was read.
    pub(crate) fn lease_read(
        &mut self,
        cx: &mut Context,
        run: RunId,
        outcome: Result<Option<LeaseRecord>, Failure>,
    ) -> Option<Turn> {
        let config = Arc::clone(&self.config);
        let election = config.election.as_ref().filter(|_| self.finish(run).is_some())?;
        let record = match outcome {
            Ok(record) => record,
            Err(failure) => {
                self.is_doubted = true;
                self.failed(cx, election, failure);
                return None;
            }
        };
        self.failure = None;
        if self.conflicts < 2 {
            self.due_at = cx.now;
        }
        let State::Holding(holding) = &mut self.state else {
            let turn = self.observe(cx, election, record);
            if turn.is_none() && matches!(self.state, State::Waiting) {
                if self.monitor.is_none() {
                    self.due_at = cx.now + election.retry_period;
                }
                self.take_if_free(cx, election);
            }
            return turn;
        };
        let holder = record.as_ref().and_then(|record| record.holder.clone());
        let is_ours = record.as_ref().is_some_and(|record| is_ours(record, &holding.record));
        if holder.is_some() && !is_ours {
            return self.lost(cx, election, record);
        }
        // Deleted, cleared or edited: it is ours until somebody else takes it, so it is written again.
        holding.exists = record.is_some();
        holding.record.version = record.map(|record| record.version).unwrap_or_default();
        None
    }

    /// Goes on when the Lease was written.
    pub(crate) fn lease_written(
        &mut self,
        cx: &mut Context,
        run: RunId,
        outcome: Result<Option<LeaseRecord>, Failure>,
    ) -> Option<Turn> {
        let config = Arc::clone(&self.config);
        let election = config.election.as_ref()?;
        let begun = match self.finish(run)? {
            Step::Take(begun) => begun,
            Step::GiveBack => {
                self.state = State::Over;
                return None;
            }
            Step::Read => return None,
        };
        let record = match outcome {
            Ok(Some(record)) => record,
            Ok(None) => {
                self.is_doubted = true;
                self.conflicts = self.conflicts.saturating_add(1);
                // One is usual where several want the Lease. Whoever goes on so must not keep the API server busy.
                let wait = if self.conflicts > 1 { election.retry_period.min(AGAIN) } else { Duration::ZERO };
                self.due_at = cx.now + wait;
                return None;
            }
            Err(failure) => {
                self.failed(cx, election, failure);
                return None;
            }
        };
        self.conflicts = 0;
        self.failure = None;
        self.rival = None;
        self.due_at = begun + election.retry_period;
        let until = begun + election.renew_deadline;
        let is_new = !matches!(self.state, State::Holding(_));
        self.seen = Some(Observation::of(Some(record.clone()), None, cx.now, self.times(election)));
        self.state = State::Holding(Holding { record, exists: true, until });
        if is_new && self.is_decisive() {
            let message =
                format!("{} holds Lease {} and leads from now on", election.identity, election.lease);
            cx.notify(Notice::ElectionChanged { message, warning: false });
        }
        is_new.then_some(Turn::Elected)
    }

    /// Returns the step that `run` was for, if it is awaited.
    fn finish(&mut self, run: RunId) -> Option<Step> {
        self.in_flight.take_if(|(awaited, _)| *awaited == run).map(|(_, step)| step)
    }

    /// Records what the Lease says while we do not hold it.
    fn observe(
        &mut self,
        cx: &mut Context,
        election: &ElectionConfig,
        record: Option<LeaseRecord>,
    ) -> Option<Turn> {
        let before = self.seen.take();
        let was_held_by = before.as_ref().and_then(Observation::holder).cloned();
        let renewed = |seen: &Observation| seen.record.as_ref().and_then(|record| record.renewed.clone());
        let last = before.as_ref().and_then(renewed);
        let seen = Observation::of(record, before.as_ref(), cx.now, self.times(election));
        let holder = seen.holder().cloned();
        // A record that is there says nothing of who wrote it: he may be dead. A new one does.
        let is_alive = before.is_some() && holder.is_some() && renewed(&seen) != last;
        self.seen = Some(seen);
        if election.mode == ElectionMode::Standby {
            if let Some(holder) = holder.filter(|holder| was_held_by.as_ref() != Some(holder)) {
                let message =
                    format!("this replica is a standby of {holder}, which holds Lease {}", election.lease);
                cx.notify(Notice::ElectionChanged { message, warning: false });
            }
            return None;
        }
        let holder = holder.filter(|_| is_alive)?;
        if election.mode == ElectionMode::Refuse {
            return Some(Turn::Abort(Abort::AnotherOperator(holder)));
        }
        if self.rival.as_ref() != Some(&holder) {
            let message = format!(
                "another operator is at work in namespace {}: {holder} renews Lease {}; both run all hooks, so end one of them, or start both with --ha",
                self.config.namespace, election.lease
            );
            cx.notify(Notice::ElectionChanged { message, warning: true });
        }
        self.rival = Some(holder);
        None
    }

    /// Goes on when somebody else holds the Lease that we held.
    fn lost(
        &mut self,
        cx: &mut Context,
        election: &ElectionConfig,
        record: Option<LeaseRecord>,
    ) -> Option<Turn> {
        if self.is_decisive() {
            return Some(self.abort());
        }
        // We wrote it last, so that what it says now was written by somebody who is alive.
        let turn = self.observe(cx, election, record);
        self.state = State::Waiting;
        self.due_at = cx.now + election.retry_period;
        turn
    }

    /// Gives up what this operator may do.
    pub(crate) fn abort(&mut self) -> Turn {
        self.state = State::Over;
        self.in_flight = None;
        Turn::Abort(Abort::LeadershipLost)
    }

    fn failed(&mut self, cx: &mut Context, election: &ElectionConfig, failure: Failure) {
        self.due_at = cx.now + election.retry_period.min(AGAIN);
        let is_forbidden = failure.kind == FailureKind::Forbidden;
        let is_known = self.failure.as_ref().is_some_and(|known| known.repeats(&failure));
        let lease = format!("Lease {}/{}", self.config.namespace, election.lease);
        if self.is_decisive() {
            if matches!(self.state, State::Waiting) {
                self.due_at = cx.now + election.retry_period;
            }
            if !is_known {
                let message = format!(
                    "{lease} can't be used, and nobody leads without it: {failure}; it is tried again"
                );
                cx.notify(Notice::ElectionChanged { message, warning: true });
            }
        } else if is_forbidden {
            // It may be allowed later, or was refused by mistake. Nothing depends on it, so it is asked rarely.
            self.due_at = cx.now + FORBIDDEN;
            if !is_known {
                let message = format!(
                    "{lease} may not be used, so that another operator in this namespace would not be seen: {failure}; allow get, create and update of leases, or start with --single-instance=off"
                );
                cx.notify(Notice::ElectionChanged { message, warning: true });
            }
        }
        self.failure = Some(Arc::new(failure));
    }

    /// Returns whether a watch is ours.
    pub(crate) fn owns(&self, monitor: MonitorId) -> bool {
        self.monitor == Some(monitor)
    }

    /// Returns what our watch is about, in words.
    pub(crate) fn watch_title(&self) -> String {
        let lease = self.election().map_or("", |election| &election.lease);
        format!("Lease {}/{lease}", self.config.namespace)
    }

    /// Records the Lease as a list has it.
    pub(crate) fn listed(&mut self, cx: &mut Context, objects: &Objects) -> Option<Turn> {
        let record = objects.first().map(|(_, item)| read_item(item));
        self.watched(cx, record)
    }

    /// Records how the Lease is now.
    pub(crate) fn lease_changed(&mut self, cx: &mut Context, is_gone: bool, item: &Item) -> Option<Turn> {
        self.watched(cx, (!is_gone).then(|| read_item(item)))
    }

    fn watched(&mut self, cx: &mut Context, record: Option<LeaseRecord>) -> Option<Turn> {
        let config = Arc::clone(&self.config);
        let election = config.election.as_ref()?;
        let is_taking = matches!(self.in_flight, Some((_, Step::Take(_))));
        let names_us =
            record.as_ref().and_then(|record| record.holder.as_deref()) == Some(&election.identity);
        match &self.state {
            // The watch may be faster than the answer.
            State::Waiting if is_taking && names_us => None,
            State::Waiting => {
                self.failure = None;
                self.observe(cx, election, record)
            }
            State::Holding(holding) => {
                // A watch may be behind, so it is asked who holds it.
                if !self.is_doubted && !record.is_some_and(|record| is_ours(&record, &holding.record)) {
                    self.is_doubted = true;
                    self.due_at = cx.now;
                }
                None
            }
            State::New | State::Over => None,
        }
    }

    /// Records that the Lease can't be watched.
    pub(crate) fn watch_failed(&mut self, cx: &mut Context, failure: Failure) {
        let config = Arc::clone(&self.config);
        if let (Some(election), State::Waiting) = (&config.election, &self.state) {
            self.failed(cx, election, failure);
        }
    }

    /// Returns when something is due.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        match &self.state {
            State::New | State::Over => None,
            State::Holding(holding) if self.is_decisive() => {
                Some(if self.in_flight.is_none() { self.due_at.min(holding.until) } else { holding.until })
            }
            State::Waiting | State::Holding(_) if self.in_flight.is_some() => None,
            State::Waiting if self.monitor.is_some() && !self.is_doubted => {
                Some(self.seen.as_ref()?.held_until.max(self.due_at))
            }
            State::Waiting | State::Holding(_) => Some(self.due_at),
        }
    }

    /// Returns whether nothing is under way, and the Lease is not ours.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.in_flight.is_none() && !matches!(self.state, State::Holding(_))
    }

    /// Returns a picture; `None` if there is no election.
    pub(crate) fn view(&self, now: Time) -> Option<ElectionView> {
        let election = self.election()?;
        let (role, acts_for) = match &self.state {
            State::Holding(holding) => (ElectionRole::Leader, Some(holding.until.since(now))),
            State::New | State::Waiting | State::Over if self.is_decisive() => (ElectionRole::Standby, None),
            State::New | State::Waiting | State::Over => (ElectionRole::Alone, None),
        };
        Some(ElectionView {
            role,
            is_decisive: self.is_decisive(),
            lease: format!("{}/{}", self.config.namespace, election.lease),
            identity: election.identity.clone(),
            holder: self.seen.as_ref().and_then(Observation::holder).map(ToString::to_string),
            free_in: self.seen.as_ref().map(|seen| seen.held_until.since(now)),
            acts_for,
            rival: self.rival.as_ref().map(ToString::to_string),
            failure: self.failure.clone(),
        })
    }

    /// Returns how many things are kept.
    pub(crate) fn entries(&self) -> usize {
        usize::from(self.seen.is_some())
    }
}

/// Returns whether a record goes on with what we wrote. A namesake took the Lease at another time.
fn is_ours(record: &LeaseRecord, own: &LeaseRecord) -> bool {
    record.holder == own.holder && record.acquired == own.acquired
}

/// Returns the record that a watch shows.
fn read_item(item: &Item) -> LeaseRecord {
    let lease = item.filter_result().and_then(|bytes| serde_json::from_slice(bytes).ok());
    LeaseRecord::of(&lease.unwrap_or_default())
}

//! Several operators and one Lease: whoever leads, and that there are never two at work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use engine::snapshot::{Item, Key};
use engine::view::ElectionRole;
use engine::{
    Abort, BrokerCallId, BrokerRequest, Catalog, Config, Effect, ElectionConfig, ElectionMode, Engine, Event,
    Failure, FailureKind, HookOutput, LeaseRecord, MonitorId, Notice, Restored, RunId, Time,
};
use serde_json::{Value, json};

use crate::build::{TICK, config as config_map, cron, files, reread};

/// How long a request takes, and a hook, in milliseconds.
const REQUEST: u64 = 20;
const HOOK: u64 = 1_500;
/// How much later than its deadline a process is killed that can't end itself.
const GRACE: u64 = 500;

const LEASE: u64 = 35_000;
const DEADLINE: u64 = 30_000;
const RETRY: u64 = 10_000;

fn millis(time: u64) -> Duration {
    Duration::from_millis(time)
}

fn config(name: &str, mode: ElectionMode) -> Config {
    let election = ElectionConfig {
        mode,
        lease: "leader".to_owned(),
        identity: name.to_owned(),
        lease_duration: millis(LEASE),
        renew_deadline: millis(DEADLINE),
        retry_period: millis(RETRY),
    };
    Config { namespace: "ops".to_owned(), election: Some(election), ..Config::default() }
}

/// One operator.
struct Replica {
    engine: Engine,
    name: String,
    /// When it was started. Its own clock counts from there.
    started: u64,
    monitor: Option<MonitorId>,
    running: BTreeSet<RunId>,
    /// Whether its process is stopped: nothing that happens reaches it.
    is_stopped: bool,
    /// Whether requests get no answer.
    is_cut_off: bool,
    /// Until when it may act, as its guard knows it.
    acts_until: Option<u64>,
    aborted: Option<Abort>,
    is_over: bool,
    notices: Vec<String>,
    /// How many requests it has sent about the Lease.
    requests: usize,
    /// What platforms were answered.
    answers: Vec<u16>,
}

/// Several operators and what they share.
#[derive(Default)]
struct Cluster {
    now: u64,
    lease: Option<LeaseRecord>,
    version: u64,
    replicas: Vec<Replica>,
    pending: BTreeMap<(u64, u64), (usize, Event)>,
    last: u64,
    /// Whether modules may come from sources.
    has_sources: bool,
    /// All modules, if others are registered than who starts knows.
    registered: Option<Catalog>,
    /// Whether platforms may ask.
    has_broker: bool,
    /// Whether the Lease may not be used.
    is_forbidden: bool,
    /// By how much clocks are wrong that times in the Lease come from, in milliseconds.
    clock_error: i64,
    /// Who ran a hook, one after the other.
    trace: Vec<String>,
    /// What was configured as hooks of modules ran: global, and of the module.
    configured: Vec<[Value; 2]>,
}

impl Cluster {
    fn start(&mut self, name: &str, mode: ElectionMode) -> usize {
        let files = files().global_hook("tick.sh", TICK);
        self.replicas.push(Replica {
            engine: Engine::new(
                Config {
                    source_workers: usize::from(self.has_sources),
                    has_broker: self.has_broker,
                    ..config(name, mode)
                },
                files.catalog(),
            ),
            name: name.to_owned(),
            started: self.now,
            monitor: None,
            running: BTreeSet::new(),
            is_stopped: false,
            is_cut_off: false,
            acts_until: None,
            aborted: None,
            is_over: false,
            notices: Vec::new(),
            requests: 0,
            answers: Vec::new(),
        });
        let index = self.replicas.len() - 1;
        self.handle(index, Event::Started);
        index
    }

    fn replica(&self, index: usize) -> &Replica {
        &self.replicas[index]
    }

    fn role(&self, index: usize) -> ElectionRole {
        self.replica(index).engine.view().election.unwrap().role
    }

    fn is_at_work(&self, index: usize) -> bool {
        let replica = self.replica(index);
        !replica.is_over && replica.engine.view().converge.first_started
    }

    fn leader(&self) -> Option<usize> {
        (0..self.replicas.len()).find(|index| self.is_at_work(*index) && !self.replica(*index).is_stopped)
    }

    fn send_in(&mut self, millis: u64, index: usize, event: Event) {
        self.last += 1;
        self.pending.insert((self.now + millis, self.last), (index, event));
    }

    fn handle(&mut self, index: usize, event: Event) {
        crate::coverage::saw_event(&event);
        let replica = &mut self.replicas[index];
        if replica.is_over {
            return;
        }
        if let Event::HookFinished { run, .. } = &event {
            replica.running.remove(run);
        }
        let now = Time::from_start(millis(self.now - replica.started));
        for effect in replica.engine.handle(now, event) {
            crate::coverage::saw_effect(&effect);
            self.carry_out(index, effect);
        }
    }

    #[expect(clippy::too_many_lines, reason = "effects, one after the other")]
    fn carry_out(&mut self, index: usize, effect: Effect) {
        let is_cut_off = self.replica(index).is_cut_off;
        let away = || Failure::new(FailureKind::Cluster, "no answer");
        match effect {
            Effect::Abort(abort) => {
                self.replicas[index].aborted = Some(abort);
                self.kill(index);
            }
            Effect::Exit => self.replicas[index].is_over = true,
            Effect::RunHook { run, values, .. } => {
                if let Some(module) = &values.module {
                    self.configured.push([(*values.global_config).clone(), (*module.config).clone()]);
                }
                self.replicas[index].running.insert(run);
                self.trace.push(self.replica(index).name.clone());
                self.send_in(
                    HOOK,
                    index,
                    Event::HookFinished { run, outcome: Ok(HookOutput::default()), usage: None },
                );
                self.assert_alone();
            }
            Effect::ListReleases { run, .. } => {
                self.send_in(REQUEST, index, Event::ReleasesListed { run, outcome: Ok(Vec::new()) });
            }
            Effect::Restore { run, .. } => {
                let restored = Restored { catalog: self.registered.clone(), ..Restored::default() };
                let outcome = if is_cut_off { Err(away()) } else { Ok(Box::new(restored)) };
                self.trace.push(format!("{} restores", self.replica(index).name));
                self.send_in(REQUEST, index, Event::Restored { run, outcome });
            }
            Effect::StartMonitor { monitor, .. } => {
                self.replicas[index].monitor = Some(monitor);
                self.list(index);
            }
            Effect::ReadLease { run } => {
                self.replicas[index].requests += 1;
                let outcome = if self.is_forbidden {
                    Err(Failure::new(FailureKind::Forbidden, "leases is forbidden"))
                } else if is_cut_off {
                    Err(away())
                } else {
                    Ok(self.lease.clone())
                };
                self.send_in(REQUEST, index, Event::LeaseRead { run, outcome });
            }
            Effect::WriteLease { run, record, exists, acts_for } => {
                self.replicas[index].requests += 1;
                if is_cut_off {
                    let outcome = Err(away());
                    return self.send_in(RETRY, index, Event::LeaseWritten { run, outcome });
                }
                let outcome = self.write(*record, exists);
                if let (Some(_), Some(time)) = (&outcome, acts_for) {
                    let time = u64::try_from(time.as_millis()).unwrap();
                    self.replicas[index].acts_until = Some(self.now + time);
                }
                self.send_in(REQUEST, index, Event::LeaseWritten { run, outcome: Ok(outcome) });
            }
            Effect::AnswerBroker { answer, .. } => self.replicas[index].answers.push(answer.status),
            Effect::RegisterBrokers { run, .. } => {
                self.send_in(REQUEST, index, Event::BrokersRegistered { run, outcome: Ok(false) });
            }
            Effect::ReadInstances { run } => {
                self.send_in(REQUEST, index, Event::InstancesRead { run, outcome: Ok(None) });
            }
            Effect::Notify(Notice::ElectionChanged { message, warning }) => {
                let sign = if warning { "! " } else { "" };
                self.replicas[index].notices.push(format!("{sign}{message}"));
            }
            _ => {}
        }
    }

    /// Writes as the API server does: nothing if somebody else was faster.
    fn write(&mut self, record: LeaseRecord, exists: bool) -> Option<LeaseRecord> {
        let known = self.lease.as_ref().map(|lease| lease.version.clone());
        if known != exists.then(|| record.version.clone()) {
            return None;
        }
        let acquired = record.acquired.clone().unwrap_or_else(|| format!("at {}", self.now));
        self.edit(Some(LeaseRecord { acquired: Some(acquired), ..record }));
        self.lease.clone()
    }

    /// Changes the Lease, and shows it to all who watch it.
    fn edit(&mut self, record: Option<LeaseRecord>) {
        self.version += 1;
        let clock = self.now.saturating_add_signed(self.clock_error);
        let (version, renewed) = (self.version.to_string(), Some(format!("at {clock}")));
        self.lease = record.map(|record| LeaseRecord { version, renewed, ..record });
        for index in 0..self.replicas.len() {
            let Some(monitor) = self.replica(index).monitor.filter(|_| !self.replica(index).is_cut_off)
            else {
                continue;
            };
            let key = Key::new("ops", "leader");
            let (is_gone, item) = (self.lease.is_none(), self.shown());
            let event = Event::ObjectChanged { key, is_gone, items: vec![(monitor, item)] };
            self.send_in(REQUEST / 2, index, event);
        }
    }

    /// Returns the Lease as a watch shows it.
    fn shown(&self) -> Arc<Item> {
        let record = self.lease.clone().unwrap_or_default();
        let lease = json!({
            "metadata": {"resourceVersion": record.version},
            "spec": {
                "holderIdentity": record.holder,
                "leaseDurationSeconds": record.duration.map(|time| time.as_secs()),
                "acquireTime": record.acquired,
                "renewTime": record.renewed,
                "leaseTransitions": record.transitions,
            },
        });
        Arc::new(Item::filtered(None, lease.to_string().into_bytes().into()))
    }

    fn list(&mut self, index: usize) {
        let Some(monitor) = self.replica(index).monitor else { return };
        if self.is_forbidden {
            let failure = Failure::new(FailureKind::Forbidden, "leases is forbidden");
            return self.send_in(REQUEST, index, Event::WatchFailed { monitor, failure });
        }
        let objects = self.lease.iter().map(|_| (Key::new("ops", "leader"), self.shown())).collect();
        self.send_in(REQUEST, index, Event::Listed { lists: vec![(monitor, objects)] });
    }

    /// Ends a process with all that it started.
    fn kill(&mut self, index: usize) {
        let replica = &mut self.replicas[index];
        replica.is_over = true;
        replica.running.clear();
    }

    fn stop(&mut self, index: usize) {
        self.replicas[index].is_stopped = true;
    }

    fn cut_off(&mut self, index: usize, is_cut_off: bool) {
        self.replicas[index].is_cut_off = is_cut_off;
        if !is_cut_off {
            self.list(index);
        }
    }

    fn assert_alone(&self) {
        let at_work: Vec<&str> = self
            .replicas
            .iter()
            .filter(|replica| !replica.running.is_empty())
            .map(|replica| replica.name.as_str())
            .collect();
        assert!(at_work.len() <= 1, "{at_work:?} run hooks at {} ms", self.now);
    }

    /// Lets time pass. Each second all are told that a minute is over, so that hooks run all the time.
    fn run(&mut self, time: u64) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    fn step(&mut self, end: u64) -> bool {
        let wakeup = |replica: &Replica| {
            let at = replica.engine.next_wakeup()?.since_start();
            Some(replica.started + u64::try_from(at.as_micros().div_ceil(1_000)).unwrap())
        };
        let living = |replica: &Replica| !replica.is_over && !replica.is_stopped;
        let event = self.pending.keys().next().map(|(at, _)| *at);
        let timers = self.replicas.iter().enumerate().filter(|(_, replica)| living(replica));
        let timer = timers.filter_map(|(index, replica)| Some((wakeup(replica)?.max(self.now), index))).min();
        let guarded = self.replicas.iter().enumerate().filter(|(_, replica)| !replica.is_over);
        let strike = guarded.filter_map(|(index, replica)| Some((replica.acts_until? + GRACE, index))).min();
        let at = event.into_iter().chain(timer.map(|(at, _)| at)).chain(strike.map(|(at, _)| at)).min();
        let Some(at) = at.filter(|at| *at <= end) else { return false };
        self.now = self.now.max(at);
        if let Some((_, index)) = strike.filter(|(time, _)| *time == at) {
            self.kill(index);
        } else if let Some((_, index)) = timer.filter(|(time, _)| *time == at) {
            self.handle(index, Event::TimerFired);
        } else if let Some((_, (index, event))) = self.pending.pop_first() {
            if self.replica(index).is_stopped {
                if matches!(event, Event::HookFinished { run, .. } if self.replicas[index].running.remove(&run))
                {
                    // The process of the hook has ended all the same.
                }
                self.last += 1;
                self.pending.insert((at + 1_000, self.last), (index, event));
                self.pending.retain(|_, (of, _)| *of != index || !self.replicas[index].is_over);
            } else {
                self.handle(index, event);
            }
        }
        true
    }

    /// Has hooks run on whoever leads, for some seconds.
    fn work(&mut self, seconds: u64) {
        for _ in 0..seconds {
            for index in 0..self.replicas.len() {
                if !self.replica(index).is_stopped {
                    self.handle(index, cron("* * * * *"));
                }
            }
            self.run(1_000);
        }
    }
}

/// Two replicas of which the first leads.
fn two() -> Cluster {
    let mut cluster = Cluster::default();
    cluster.start("a", ElectionMode::Standby);
    cluster.start("b", ElectionMode::Standby);
    cluster.work(5);
    cluster
}

#[test]
fn a_standby_answers_platforms_that_another_replica_leads_until_it_does() {
    let mut cluster = Cluster { has_broker: true, ..Cluster::default() };
    cluster.start("a", ElectionMode::Standby);
    cluster.start("b", ElectionMode::Standby);
    cluster.work(5);
    let (leader, standby) = (cluster.leader().unwrap(), 1 - cluster.leader().unwrap());
    let instance = "/cluster/v2/service_instances/i";
    let asks = |cluster: &mut Cluster, index: usize| {
        for (number, (method, path)) in
            [("GET", "/cluster/v2/catalog"), ("GET", instance), ("PUT", instance), ("DELETE", instance)]
                .into_iter()
                .enumerate()
        {
            let request = BrokerRequest {
                method: method.to_owned(),
                path: path.to_owned(),
                query: "accepts_incomplete=true&service_id=s&plan_id=p".to_owned(),
                api_version: Some("2.17".to_owned()),
                body: Some(Arc::new(json!({
                    "service_id": "s", "plan_id": "p", "organization_guid": "o", "space_guid": "s",
                }))),
            };
            let id = BrokerCallId::new(u64::try_from(number).unwrap());
            cluster.handle(index, Event::BrokerAsked { id, request });
        }
        std::mem::take(&mut cluster.replicas[index].answers)
    };
    // A change that is not begun is asked for again, and nothing is said of what only the leader knows.
    assert_eq!(asks(&mut cluster, standby), [503, 503, 422, 422]);
    assert_eq!(asks(&mut cluster, leader), [200, 404, 400, 410]);
    cluster.handle(leader, Event::ShutdownRequested);
    cluster.run(60_000);
    assert!(cluster.is_at_work(standby));
    assert_eq!(asks(&mut cluster, standby), [200, 404, 400, 410]);
}

#[test]
fn who_may_have_been_a_standby_reads_again_what_others_registered() {
    let mut cluster = Cluster { has_sources: true, ..Cluster::default() };
    let replica = cluster.start("a", ElectionMode::Standby);
    cluster.run(1_900);
    assert!(cluster.trace.is_empty());
    // It gets the Lease, and can't read what there is.
    cluster.run(130);
    cluster.cut_off(replica, true);
    cluster.run(1_000);
    assert_eq!(cluster.trace, ["a restores"]);
    assert!(!cluster.is_at_work(replica), "it does not know which modules there are");
    let notices = &cluster.replica(replica).notices;
    assert!(notices.last().unwrap().starts_with("! this replica leads, and begins when"), "{notices:?}");
    cluster.cut_off(replica, false);
    cluster.run(6_000);
    assert!(cluster.is_at_work(replica));
    assert_eq!(cluster.trace, ["a restores", "a restores"]);
}

#[test]
fn a_standby_that_leads_has_what_the_config_map_says_of_modules_that_it_did_not_know() {
    let new = files().global_hook("tick.sh", TICK).module(10, "hk").off().hook("say.sh", "beforeHelm: 1");
    let new = new.hooks_only();
    for is_told_by_files in [false, true] {
        let registered = Some(new.catalog()).filter(|_| !is_told_by_files);
        let mut cluster = Cluster { has_sources: true, registered, ..Cluster::default() };
        cluster.start("a", ElectionMode::Standby);
        cluster.run(5_000);
        let standby = cluster.start("b", ElectionMode::Standby);
        cluster.run(5_000);
        let said = [("hkEnabled", "true"), ("hk", "a: 1"), ("global", "b: 2")];
        cluster.handle(standby, config_map(7, &said));
        if is_told_by_files {
            cluster.handle(standby, reread(&new));
        }
        cluster.configured.clear();
        cluster.kill(0);
        cluster.run(60_000);
        assert!(cluster.is_at_work(standby));
        assert_eq!(cluster.configured, [[json!({"b": 2}), json!({"a": 1})]], "by files: {is_told_by_files}");
    }
}

pub(crate) fn tour() {
    let mut cluster = Cluster { has_sources: true, ..Cluster::default() };
    cluster.start("a", ElectionMode::Warn);
    cluster.start("b", ElectionMode::Refuse);
    cluster.run(30_000);
    let mut cluster = Cluster { has_sources: true, ..Cluster::default() };
    cluster.start("c", ElectionMode::Standby);
    cluster.run(30_000);
}

#[test]
fn one_replica_leads_and_the_other_is_ready() {
    let cluster = two();
    let leader = cluster.leader().unwrap();
    let standby = 1 - leader;
    assert_eq!((cluster.role(leader), cluster.role(standby)), (ElectionRole::Leader, ElectionRole::Standby));
    let name = &cluster.replica(leader).name;
    let view = cluster.replica(standby).engine.view();
    assert_eq!(view.converge.standby_of, Some(Some(name.clone())));
    assert!(!view.converge.first_started);
    // Nothing is known there about sources.
    let refusal = view.refusal().unwrap();
    assert_eq!(refusal.message, format!("this replica is a standby of {name}"));
    assert!(cluster.replica(leader).engine.view().refusal().is_none());
    assert_eq!(view.election.unwrap().holder.as_ref(), Some(name));
    assert!(cluster.replica(standby).notices[0].contains(&format!("standby of {name}")));
    assert!(!cluster.trace.is_empty() && cluster.trace.iter().all(|who| who == name), "{:?}", cluster.trace);
}

#[test]
fn a_standby_asks_nothing_and_a_leader_renews() {
    let mut cluster = two();
    let (leader, standby) = (cluster.leader().unwrap(), 1 - cluster.leader().unwrap());
    let before = [leader, standby].map(|index| cluster.replica(index).requests);
    cluster.work(600);
    let after = [leader, standby].map(|index| cluster.replica(index).requests);
    assert_eq!(after[0] - before[0], 60, "one in ten seconds");
    assert_eq!(after[1], before[1], "its watch is open");
    assert_eq!(cluster.leader(), Some(leader));
}

#[test]
fn f_h1_after_a_graceful_end_the_standby_leads_at_once() {
    let mut cluster = two();
    let (leader, standby) = (cluster.leader().unwrap(), 1 - cluster.leader().unwrap());
    cluster.handle(leader, cron("* * * * *"));
    cluster.handle(leader, Event::ShutdownRequested);
    cluster.run(HOOK / 2);
    assert!(!cluster.is_at_work(standby), "its hook runs still");
    cluster.run(HOOK / 2 + 2_000);
    assert!(cluster.replica(leader).is_over && cluster.replica(leader).aborted.is_none());
    assert!(cluster.is_at_work(standby));
    assert_eq!(cluster.lease.as_ref().unwrap().transitions, 1);
}

#[test]
fn f_h1_a_dead_leader_is_replaced_after_its_lease() {
    let mut cluster = two();
    cluster.work(60);
    let (leader, standby) = (cluster.leader().unwrap(), 1 - cluster.leader().unwrap());
    cluster.kill(leader);
    cluster.run(LEASE - RETRY - 2_000);
    assert!(!cluster.is_at_work(standby), "it may be alive");
    cluster.run(RETRY + 4_000);
    assert!(cluster.is_at_work(standby));
}

#[test]
fn a_clock_that_jumps_by_an_hour_changes_nothing() {
    for jump in [3_600_000, -3_600_000] {
        let mut cluster = two();
        let (leader, standby) = (cluster.leader().unwrap(), 1 - cluster.leader().unwrap());
        cluster.run(10_000_000);
        cluster.clock_error = jump;
        cluster.work(60);
        assert_eq!(cluster.leader(), Some(leader));
        cluster.kill(leader);
        cluster.run(LEASE - RETRY - 2_000);
        assert!(!cluster.is_at_work(standby), "{jump}: it may be alive");
        cluster.run(RETRY + 4_000);
        assert!(cluster.is_at_work(standby), "{jump}");
    }
}

#[test]
fn f_h1_a_leader_that_is_cut_off_stops_before_its_lease_can_be_taken() {
    let mut cluster = two();
    let (leader, standby) = (cluster.leader().unwrap(), 1 - cluster.leader().unwrap());
    cluster.cut_off(leader, true);
    cluster.work(LEASE / 1_000 + 12);
    assert_eq!(cluster.replica(leader).aborted, Some(Abort::LeadershipLost));
    assert!(cluster.is_at_work(standby));
}

#[test]
fn an_api_server_that_is_away_for_less_than_the_deadline_changes_nothing() {
    let mut cluster = two();
    let leader = cluster.leader().unwrap();
    for index in [0, 1] {
        cluster.cut_off(index, true);
    }
    cluster.work(15);
    for index in [0, 1] {
        cluster.cut_off(index, false);
    }
    cluster.work(60);
    assert_eq!(cluster.leader(), Some(leader));
    assert!(cluster.replica(leader).aborted.is_none());
}

#[test]
fn f_h1_a_leader_that_was_stopped_finds_out_before_it_does_anything() {
    let mut cluster = two();
    let (leader, standby) = (cluster.leader().unwrap(), 1 - cluster.leader().unwrap());
    // Without its guard, as in a container whose first process it is.
    cluster.replicas[leader].acts_until = None;
    cluster.stop(leader);
    cluster.work(60);
    assert!(cluster.is_at_work(standby));
    let ran = cluster.trace.len();
    cluster.replicas[leader].is_stopped = false;
    cluster.replicas[leader].acts_until = None;
    cluster.handle(leader, cron("* * * * *"));
    assert_eq!(cluster.replica(leader).aborted, Some(Abort::LeadershipLost));
    assert_eq!(cluster.trace.len(), ran);
    cluster.work(10);
    assert!(cluster.is_at_work(standby));
}

fn held_by(name: &str) -> LeaseRecord {
    LeaseRecord {
        holder: Some(name.into()),
        duration: Some(millis(LEASE)),
        acquired: Some("long ago".to_owned()),
        ..LeaseRecord::default()
    }
}

#[test]
fn a_leader_whose_lease_somebody_deletes_or_garbles_goes_on() {
    for record in [
        None,
        Some(LeaseRecord::default()),
        Some(LeaseRecord { holder: None, ..held_by("") }),
        Some(LeaseRecord {
            duration: Some(millis(1_000)),
            transitions: u32::MAX - 1,
            ..LeaseRecord::default()
        }),
    ] {
        let mut cluster = two();
        let leader = cluster.leader().unwrap();
        if record.as_ref().is_some_and(|record| record.duration == Some(millis(1_000))) {
            // This is how a Lease is given back, so the other may take it: the leader stops then.
            cluster.cut_off(1 - leader, true);
        }
        cluster.edit(record.clone());
        cluster.work(90);
        assert_eq!(cluster.leader(), Some(leader), "{record:?}");
        let lease = cluster.lease.clone().unwrap();
        assert_eq!(lease.holder.as_deref(), Some(cluster.replica(leader).name.as_str()), "{record:?}");
    }
}

#[test]
fn a_leader_whose_lease_names_somebody_else_ends_at_once() {
    for name in ["somebody", "a", "b"] {
        let mut cluster = two();
        let leader = cluster.leader().unwrap();
        cluster.edit(Some(held_by(name)));
        cluster.run(1_000);
        assert_eq!(cluster.replica(leader).aborted, Some(Abort::LeadershipLost), "{name}");
        assert_eq!(cluster.leader(), None, "{name}: whoever was written there may be at work");
        cluster.work(LEASE / 1_000 + 2);
        assert_eq!(cluster.leader(), Some(1 - leader), "{name}");
    }
}

#[test]
fn nobody_leads_without_the_rights_and_who_is_alone_works_with_one_warning() {
    let mut cluster = Cluster { is_forbidden: true, ..Cluster::default() };
    let replica = cluster.start("a", ElectionMode::Standby);
    cluster.work(120);
    assert!(!cluster.is_at_work(replica));
    let notices = &cluster.replica(replica).notices;
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].starts_with("! Lease ops/leader can't be used, and nobody leads"), "{notices:?}");
    assert!(cluster.replica(replica).engine.view().election.unwrap().failure.is_some());
    let alone = cluster.start("b", ElectionMode::Warn);
    cluster.work(120);
    assert!(cluster.is_at_work(alone));
    let notices = &cluster.replica(alone).notices;
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("--single-instance=off"), "{notices:?}");
    assert_eq!(cluster.replica(alone).requests, 2, "it asks once a minute");
    cluster.is_forbidden = false;
    cluster.work(120);
    let view = cluster.replica(alone).engine.view().election.unwrap();
    assert!(view.failure.is_none(), "what is allowed later is used: {view:?}");
}

#[test]
fn who_is_alone_starts_at_once_and_gives_the_lease_back() {
    let mut cluster = Cluster::default();
    let alone = cluster.start("a", ElectionMode::Warn);
    assert!(cluster.is_at_work(alone), "the Lease holds up nothing");
    cluster.work(5);
    assert_eq!(cluster.role(alone), ElectionRole::Leader);
    assert_eq!(cluster.replica(alone).requests, 2);
    cluster.handle(alone, Event::ShutdownRequested);
    cluster.run(HOOK + 1_000);
    assert_eq!((cluster.replica(alone).requests, cluster.lease.clone().unwrap().holder), (3, None));
    // After a death the next one is not warned by what the dead one left.
    let next = cluster.start("b", ElectionMode::Warn);
    cluster.run(1_000);
    cluster.kill(next);
    let last = cluster.start("c", ElectionMode::Warn);
    cluster.work(60);
    assert!(cluster.replica(last).notices.is_empty(), "{:?}", cluster.replica(last).notices);
    assert_eq!(cluster.role(last), ElectionRole::Leader);
}

#[test]
fn two_that_are_not_replicas_are_seen_by_the_later_one() {
    let mut cluster = Cluster::default();
    let first = cluster.start("a", ElectionMode::Warn);
    cluster.run(5_000);
    // Both run hooks, which is what the warning says.
    let second = cluster.start("b", ElectionMode::Warn);
    cluster.run(60_000);
    let notices = &cluster.replica(second).notices;
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(
        notices[0].starts_with("! another operator is at work in namespace ops: a renews"),
        "{notices:?}"
    );
    assert!(cluster.replica(first).notices.is_empty());
    assert_eq!(cluster.replica(second).engine.view().election.unwrap().rival.as_deref(), Some("a"));
    cluster.kill(first);
    cluster.run(60_000);
    assert_eq!(cluster.replica(second).engine.view().election.unwrap().rival, None);
}

#[test]
fn who_refuses_ends_when_another_one_is_alive_and_not_when_it_is_dead() {
    let mut cluster = Cluster::default();
    let first = cluster.start("a", ElectionMode::Refuse);
    cluster.run(5_000);
    assert!(cluster.is_at_work(first));
    let second = cluster.start("b", ElectionMode::Refuse);
    cluster.run(RETRY + 2_000);
    assert_eq!(cluster.replica(second).aborted, Some(Abort::AnotherOperator("a".into())));
    cluster.kill(first);
    let third = cluster.start("c", ElectionMode::Refuse);
    cluster.run(LEASE + 2_000);
    assert!(cluster.is_at_work(third));
}

#[test]
fn a_standby_that_ends_leaves_the_lease_alone() {
    let mut cluster = two();
    let (leader, standby) = (cluster.leader().unwrap(), 1 - cluster.leader().unwrap());
    let requests = cluster.replica(standby).requests;
    cluster.handle(standby, Event::ShutdownRequested);
    cluster.work(60);
    assert!(cluster.replica(standby).is_over);
    assert_eq!(cluster.replica(standby).requests, requests);
    assert_eq!(cluster.leader(), Some(leader));
}

/// A small generator of numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Does something to the cluster that flips its Lease, or may.
fn flip(cluster: &mut Cluster, random: &mut Random, number: usize) {
    if cluster.leader().is_none() {
        cluster.work(LEASE / 1_000 + 12);
    }
    let leader = cluster.leader().unwrap();
    match random.below(8) {
        0 => cluster.kill(leader),
        1 => cluster.stop(leader),
        2 => cluster.cut_off(leader, true),
        3 => cluster.edit(Some(held_by("somebody"))),
        4 => cluster.edit(None),
        5 => cluster.edit(Some(LeaseRecord { holder: None, ..held_by("") })),
        _ => cluster.handle(leader, Event::ShutdownRequested),
    }
    cluster.work(random.below(50));
    for index in 0..cluster.replicas.len() {
        cluster.replicas[index].is_stopped = false;
        cluster.cut_off(index, false);
    }
    cluster.work(random.below(50));
    let living = cluster.replicas.iter().filter(|replica| !replica.is_over).count();
    for more in living..3 {
        cluster.start(&format!("r{number}-{more}"), ElectionMode::Standby);
    }
    cluster.work(random.below(5));
}

#[test]
fn f_h1_a_thousand_flips_of_the_lease_and_never_two_at_work() {
    let mut flips = 0;
    for seed in 1..=50 {
        let mut random = Random(seed * 0x9e37_79b9);
        let mut cluster = Cluster::default();
        for name in ["a", "b", "c"] {
            cluster.start(name, ElectionMode::Standby);
        }
        cluster.work(5);
        for number in 0..20 {
            flip(&mut cluster, &mut random, number);
            flips += 1;
        }
        cluster.work(LEASE / 1_000 * 2 + 10);
        assert!(cluster.leader().is_some(), "seed {seed}: nobody leads in the end");
        let leaders: BTreeSet<&String> = cluster.trace.iter().collect();
        assert!(leaders.len() > 3, "seed {seed}: {leaders:?}");
    }
    assert_eq!(flips, 1_000);
}

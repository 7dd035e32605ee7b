//! A pretend outside: carries out effects after a fixed delay and writes a trace.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use engine::hook::{AdmissionKind, Trigger, WatchEvent};
use engine::snapshot::{Item, Key};
use engine::view::Format;
use engine::{
    Announcement, Basis, Config, ConfigData, ConfigObject, Digest, Effect, Engine, Event, Failure,
    FailureKind, HookOutput, Module, MonitorId, Notice, OwnedReleases, PatchAuthor, ReleaseAction,
    ReleaseOutcome, ReleaseTarget, ReviewId, ReviewRefusal, RunId, TakenFrom, TakenObject, TestReport, Time,
    ValuesInput, Verdict, View, WebhookRefusal, WebhookRegistration, WrittenVersions,
};

use crate::build::{Files, changed};
use crate::repositories::{Repositories, kept, links};

/// How long effects take, in milliseconds.
const HOOK: u64 = 10;
const SCRIPT: u64 = 10;
const LIST: u64 = 10;
/// What a list fails of that is not answered with objects.
const LIST_FAILED: &str = "the list failed";
const RELEASE: u64 = 50;
const OTHER: u64 = 5;

/// What a hook run comes to.
pub(crate) type HookOutcome = Result<HookOutput, Failure>;

/// What the enabled script of a module says to what it reads.
pub(crate) type Answers = Box<dyn Fn(&str, &ValuesInput) -> Result<bool, &'static str>>;

/// What a test wants an upgrade to do.
struct Planned {
    action: ReleaseAction,
    changed: Option<String>,
    taken_over: Vec<TakenObject>,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a switch of a test")]
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) now: Time,
    pub(crate) trace: String,
    pub(crate) notices: Vec<Notice>,
    pub(crate) announcements: Vec<Announcement>,
    /// Whether runs are cancelled too late: what they wrote comes all the same.
    pub(crate) cancels_late: bool,
    /// Events on their way to the engine. Equal times keep insertion order.
    pending: BTreeMap<(Time, u64), Event>,
    next_seq: u64,
    /// What each hook does, run by run. A hook without a plan succeeds.
    hooks: BTreeMap<String, VecDeque<HookOutcome>>,
    scripts: BTreeMap<String, VecDeque<Result<Verdict, Failure>>>,
    /// What scripts say that have no plan; yes if there is nothing else.
    answers: Option<Answers>,
    releases: BTreeMap<String, VecDeque<Result<Planned, Failure>>>,
    pub(crate) loads: BTreeMap<String, VecDeque<Arc<Module>>>,
    /// The modules whose hooks answer `--config` with garbage.
    pub(crate) broken_configurations: BTreeSet<String>,
    pub(crate) patching: VecDeque<Result<(), Failure>>,
    saving: VecDeque<Result<(), Failure>>,
    /// How the next registrations of webhooks end.
    pub(crate) registering: VecDeque<Result<(), Failure>>,
    /// The version of the object that was written last.
    version: u64,
    /// The webhooks that the API server refuses, and all others with them.
    pub(crate) refused_webhooks: BTreeSet<String>,
    /// Whether it does not say which ones are wrong.
    pub(crate) refuses_in_silence: bool,
    /// How the next attempts to take reviews end.
    pub(crate) serving: VecDeque<Result<engine::WebhookCertificate, Failure>>,
    /// The Lease of the operators of the namespace.
    lease: Option<engine::LeaseRecord>,
    /// How the next attempts to put objects right end; the others succeed.
    pub(crate) mends: VecDeque<Result<(), Failure>>,
    /// The answers to reviews, and what was registered.
    pub(crate) answers_to_reviews: Vec<(ReviewId, Result<Arc<serde_json::Value>, ReviewRefusal>)>,
    pub(crate) registrations: Vec<Arc<WebhookRegistration>>,
    /// How the next writes of credentials end.
    pub(crate) crediting: VecDeque<Result<(), Failure>>,
    /// The Secrets with credentials: the template of each, by module.
    pub(crate) credentials: BTreeMap<String, String>,
    durations: BTreeMap<String, u64>,
    /// The operator's own namespace.
    namespace: String,
    /// The namespaces in which nobody gave the `ServiceAccount` any rights.
    pub(crate) powerless: BTreeSet<String>,
    /// What the cluster holds, by the name of the release; in another namespace than the operator's by `namespace/name`.
    pub(crate) deployed: BTreeMap<String, (u32, u64)>,
    /// The content of the module that each release was made of last.
    contents: BTreeMap<String, u64>,
    objects: BTreeMap<String, BTreeMap<Key, Arc<Item>>>,
    missing_kinds: BTreeSet<String>,
    silent_kinds: BTreeSet<String>,
    /// The kinds whose lists fail, and of what, or hang; they are missing, too.
    failing_kinds: BTreeMap<String, Option<FailureKind>>,
    /// The kinds that releases bring, and those that charts need, by module.
    brought_kinds: BTreeMap<String, BTreeSet<String>>,
    needed_kinds: BTreeMap<String, BTreeSet<String>>,
    pub(crate) monitors: BTreeMap<MonitorId, String>,
    config: ConfigData,
    secret: ConfigData,
    config_version: u64,
    /// Effects in flight: what they are and whose queue they block.
    pub(crate) in_flight: BTreeMap<RunId, Option<String>>,
    /// The releases that are being changed.
    changing: BTreeMap<RunId, String>,
    /// Which content of a module is at work in a run.
    at_work: BTreeMap<RunId, (String, u64)>,
    /// Show values of hooks and charts in the trace.
    shows_values: bool,
    pub(crate) steps: usize,
    /// After how long the objects of releases are ready, in milliseconds; `None` for never.
    pub(crate) readies_after: Option<u64>,
    /// Writes no trace.
    pub(crate) is_quiet: bool,
    /// Sends every answer twice.
    pub(crate) repeats_answers: bool,
    /// The binding context files of all runs, each behind the name of its hook; `None` keeps none.
    pub(crate) context_files: Option<String>,
    /// What sources are about.
    pub(crate) repositories: Repositories,
    pub(crate) charts: crate::chart_world::Charts,
    /// What is about the broker.
    pub(crate) platform: crate::broker::Platform,
}

impl World {
    pub(crate) fn new(files: &Files) -> Self {
        Self::with_config(files, Config { namespace: "ops".to_owned(), ..Config::default() })
    }

    pub(crate) fn with_config(files: &Files, config: Config) -> Self {
        let namespace = config.namespace.clone();
        let mut world = Self {
            namespace,
            powerless: BTreeSet::new(),
            engine: Engine::new(config, files.catalog()),
            now: Time::START,
            trace: String::new(),
            notices: Vec::new(),
            announcements: Vec::new(),
            cancels_late: false,
            pending: BTreeMap::new(),
            next_seq: 0,
            hooks: BTreeMap::new(),
            scripts: BTreeMap::new(),
            answers: None,
            releases: BTreeMap::new(),
            loads: BTreeMap::new(),
            broken_configurations: BTreeSet::new(),
            patching: VecDeque::new(),
            saving: VecDeque::new(),
            registering: VecDeque::new(),
            version: 0,
            refused_webhooks: BTreeSet::new(),
            refuses_in_silence: false,
            serving: VecDeque::new(),
            lease: None,
            mends: VecDeque::new(),
            answers_to_reviews: Vec::new(),
            registrations: Vec::new(),
            crediting: VecDeque::new(),
            credentials: BTreeMap::new(),
            durations: BTreeMap::new(),
            deployed: BTreeMap::new(),
            contents: BTreeMap::new(),
            objects: BTreeMap::new(),
            missing_kinds: BTreeSet::new(),
            silent_kinds: BTreeSet::new(),
            failing_kinds: BTreeMap::new(),
            brought_kinds: BTreeMap::new(),
            needed_kinds: BTreeMap::new(),
            monitors: BTreeMap::new(),
            config: ConfigData::default(),
            secret: ConfigData::default(),
            config_version: 100,
            in_flight: BTreeMap::new(),
            changing: BTreeMap::new(),
            at_work: BTreeMap::new(),
            shows_values: false,
            steps: 0,
            readies_after: None,
            is_quiet: false,
            repeats_answers: false,
            context_files: None,
            repositories: Repositories::default(),
            charts: crate::chart_world::Charts::default(),
            platform: crate::broker::Platform::default(),
        };
        world.send_in(0, Event::Started);
        world
    }

    /// Starts with this ConfigMap.
    pub(crate) fn configured(self, pairs: &[(&str, &str)]) -> Self {
        self.configured_with(pairs, None)
    }

    /// Starts with this ConfigMap, and perhaps a Secret over it.
    pub(crate) fn configured_with(mut self, plain: &[(&str, &str)], secret: Option<&[(&str, &str)]>) -> Self {
        self.config = (*crate::build::data(plain)).clone();
        self.pending.clear();
        self.send_in(0, crate::build::config(100, plain));
        if let Some(secret) = secret {
            self.secret = (*crate::build::data(secret)).clone();
            self.send_in(0, crate::build::secret(100, secret));
        }
        self.send_in(0, Event::Started);
        self
    }

    /// Makes the next run of `hook` end like this.
    pub(crate) fn hook(mut self, hook: &str, outcome: HookOutcome) -> Self {
        self.hooks.entry(hook.to_owned()).or_default().push_back(outcome);
        self
    }

    /// Makes the next `times` runs of `hook` fail.
    pub(crate) fn fails(mut self, hook: &str, times: usize) -> Self {
        self.break_hook(hook, times);
        self
    }

    /// Does the same from now on.
    pub(crate) fn break_hook(&mut self, hook: &str, times: usize) {
        let failed = |_| Err(failure("exit status 1"));
        self.hooks.entry(hook.to_owned()).or_default().extend((0..times).map(failed));
    }

    /// Makes a hook fail no more.
    pub(crate) fn mend_hook(&mut self, hook: &str) {
        self.hooks.remove(hook);
    }

    /// Makes the next run of a module's enabled script end like this.
    pub(crate) fn script(mut self, module: &str, outcome: Result<bool, &str>) -> Self {
        let outcome = outcome.map(|enabled| Verdict { enabled, reason: None }).map_err(failure);
        self.scripts.entry(module.to_owned()).or_default().push_back(outcome);
        self
    }

    /// Makes the next run of a module's enabled script say no, for this reason.
    pub(crate) fn refuses(mut self, module: &str, reason: &str) -> Self {
        let verdict = Verdict { enabled: false, reason: Some(reason.to_owned()) };
        self.scripts.entry(module.to_owned()).or_default().push_back(Ok(verdict));
        self
    }

    /// Makes scripts without a plan say this to what they read.
    pub(crate) fn answering(
        mut self,
        answers: impl Fn(&str, &ValuesInput) -> Result<bool, &'static str> + 'static,
    ) -> Self {
        self.answers = Some(Box::new(answers));
        self
    }

    /// Lets lists of `kind` never be answered.
    pub(crate) fn never_lists(&mut self, kind: &str) {
        self.silent_kinds.insert(kind.to_owned());
    }

    /// Makes the next work on a release end like this.
    pub(crate) fn release(mut self, module: &str, outcome: Result<ReleaseAction, &str>) -> Self {
        let outcome = outcome.map_err(|message| Failure::new(FailureKind::Release, message));
        let planned = outcome.map(|action| Planned { action, changed: None, taken_over: Vec::new() });
        self.releases.entry(module.to_owned()).or_default().push_back(planned);
        self
    }

    /// Lets the next work on a release fail as often as this, and nothing after it.
    pub(crate) fn fails_releases(&mut self, module: &str, times: u64) {
        let failed = |_| Err(Failure::new(FailureKind::Release, "it does not start"));
        self.releases.insert(module.to_owned(), (0..times).map(failed).collect());
    }

    /// Lets the next work on a release fail, because its chart has a kind that does not exist.
    pub(crate) fn release_of_missing_kind(mut self, module: &str, kind: &str) -> Self {
        let failure = Failure::new(FailureKind::MissingKind, format!("{kind} is unknown"));
        self.releases.entry(module.to_owned()).or_default().push_back(Err(failure));
        self
    }

    /// Makes the next upgrade of a release render to something new at `place`.
    pub(crate) fn release_that_changes(mut self, module: &str, place: &str) -> Self {
        let changed = Some(place.to_owned());
        let planned = Planned { action: ReleaseAction::Upgraded, changed, taken_over: Vec::new() };
        self.releases.entry(module.to_owned()).or_default().push_back(Ok(planned));
        self
    }

    /// Lets the next work on a release take an object over from another release.
    pub(crate) fn taking_over(self, module: &str, object: &str, release: &str) -> Self {
        self.taking_over_from(module, object, TakenFrom::Release(release.to_owned()))
    }

    /// Lets the next work on a release take an object, or a field of it, over from somebody.
    pub(crate) fn taking_over_from(mut self, module: &str, object: &str, from: TakenFrom) -> Self {
        let taken_over = vec![TakenObject { object: object.to_owned(), from }];
        let planned = Planned { action: ReleaseAction::Installed, changed: None, taken_over };
        self.releases.entry(module.to_owned()).or_default().push_back(Ok(planned));
        self
    }

    /// Makes the next reading of a module's files find this.
    pub(crate) fn loads(mut self, module: Module) -> Self {
        self.loads.entry(module.name.to_string()).or_default().push_back(Arc::new(module));
        self
    }

    pub(crate) fn patching(mut self, outcome: Result<(), &str>) -> Self {
        self.patching.push_back(outcome.map_err(|message| Failure::new(FailureKind::Cluster, message)));
        self
    }

    pub(crate) fn saving(mut self, outcome: Result<(), &str>) -> Self {
        self.saving.push_back(outcome.map_err(|message| Failure::new(FailureKind::Cluster, message)));
        self
    }

    /// Makes each run of `hook` take `millis`.
    pub(crate) fn takes(mut self, hook: &str, millis: u64) -> Self {
        self.take(hook, millis);
        self
    }

    /// Does the same from now on.
    pub(crate) fn take(&mut self, hook: &str, millis: u64) {
        self.durations.insert(hook.to_owned(), millis);
    }

    /// Returns how long something takes, in milliseconds.
    pub(crate) fn takes_for(&self, what: &str, usual: u64) -> u64 {
        self.durations.get(what).copied().unwrap_or(usual)
    }

    /// Puts an object into the cluster before anything is listed.
    pub(crate) fn object(mut self, kind: &str, name: &str) -> Self {
        let objects = self.objects.entry(kind.to_owned()).or_default();
        objects.insert(crate::build::key(name), crate::build::item("old"));
        self
    }

    /// Puts an object into the cluster that watches see as this item.
    pub(crate) fn holds(mut self, kind: &str, key: Key, item: Item) -> Self {
        self.objects.entry(kind.to_owned()).or_default().insert(key, Arc::new(item));
        self
    }

    /// Keeps the binding context files of all runs.
    pub(crate) fn keeping_contexts(mut self) -> Self {
        self.context_files = Some(String::new());
        self
    }

    /// Makes the cluster one that does not know `kind`.
    pub(crate) fn without_kind(mut self, kind: &str) -> Self {
        self.missing_kinds.insert(kind.to_owned());
        self
    }

    /// Makes the cluster one in which the operator may not list `kind`.
    pub(crate) fn without_right(self, kind: &str) -> Self {
        self.failing_to_list(kind, Some(FailureKind::Forbidden))
    }

    /// Makes the cluster one in which lists of `kind` fail, or hang.
    pub(crate) fn failing_to_list(mut self, kind: &str, failure: Option<FailureKind>) -> Self {
        self.failing_kinds.insert(kind.to_owned(), failure);
        self.without_kind(kind)
    }

    /// Lets the release of a module mend what lists of a kind fail of, or hang for.
    pub(crate) fn mends(self, module: &str, kind: &str, failure: Option<FailureKind>) -> Self {
        self.brings(module, kind).failing_to_list(kind, failure)
    }

    /// Lets the release of a module grant the right to list a kind.
    pub(crate) fn grants(self, module: &str, kind: &str) -> Self {
        self.mends(module, kind, Some(FailureKind::Forbidden))
    }

    /// Lets the release of a module bring a kind that the cluster does not know before.
    pub(crate) fn brings(mut self, module: &str, kind: &str) -> Self {
        self.brought_kinds.entry(module.to_owned()).or_default().insert(kind.to_owned());
        self.without_kind(kind)
    }

    /// Lets the chart of a module have an object of this kind.
    pub(crate) fn needs(mut self, module: &str, kind: &str) -> Self {
        self.needed_kinds.entry(module.to_owned()).or_default().insert(kind.to_owned());
        self
    }

    /// Puts a release into the cluster that we own.
    pub(crate) fn deployed(mut self, name: &str) -> Self {
        self.deployed.insert(name.to_owned(), (1, 0));
        self
    }

    /// Shows values in the trace.
    pub(crate) fn showing_values(mut self) -> Self {
        self.shows_values = true;
        self
    }

    /// Sends `event` `millis` from now on, as one step of a chain.
    pub(crate) fn at(mut self, millis: u64, event: Event) -> Self {
        self.send_in(millis, event);
        self
    }

    /// Changes an object `millis` from now on, for everybody who watches `kind`.
    pub(crate) fn change(self, millis: u64, kind: &str, change: WatchEvent, name: &str) -> Self {
        // Monitors get their number in the order of the bindings; a change is for the first one of its kind.
        let monitor = MonitorId::new(u64::MAX);
        let text = format!("{kind} at {}", self.later(millis));
        let event =
            changed(monitor, change, crate::build::key(&format!("{kind}/{name}")), crate::build::item(&text));
        self.at(millis, event)
    }

    /// Runs until nothing is left to happen, or `millis` after the start, and returns the trace.
    pub(crate) fn run_until(&mut self, millis: u64) -> String {
        let end = Time::from_start(Duration::from_millis(millis));
        while let Some(event) = self.next_event(end) {
            self.take_in(event);
        }
        std::mem::take(&mut self.trace)
    }

    /// Runs for ten minutes at most and returns the trace.
    pub(crate) fn run(&mut self) -> String {
        self.run_until(600_000)
    }

    /// Runs until nothing is left to happen, or for `millis` from now on, and returns the trace.
    pub(crate) fn run_for(&mut self, millis: u64) -> String {
        self.run_until(self.later(millis))
    }

    /// Sends `event` `millis` from now on, runs and returns the trace.
    pub(crate) fn after(&mut self, millis: u64, event: Event) -> String {
        self.send_in(millis, event);
        self.run()
    }

    /// Runs everything and forgets the trace.
    pub(crate) fn settled(mut self) -> Self {
        self.run();
        self
    }

    /// Runs until `millis` after the start and forgets the trace.
    pub(crate) fn lived(mut self, millis: u64) -> Self {
        self.run_until(millis);
        self
    }

    /// Returns the time `millis` from now on, in milliseconds after the start.
    pub(crate) fn later(&self, millis: u64) -> u64 {
        u64::try_from(self.now.since_start().as_millis()).unwrap() + millis
    }

    /// Sends `event` `millis` from now on.
    pub(crate) fn send_in(&mut self, millis: u64, event: Event) {
        let at = self.now + Duration::from_millis(millis);
        self.pending.insert((at, self.next_seq), event);
        self.next_seq += 1;
    }

    fn next_event(&mut self, end: Time) -> Option<Event> {
        let event_at = self.pending.first_key_value().map(|((at, _), _)| *at);
        let wakeup = self.engine.next_wakeup();
        let (at, is_timer) = match (event_at, wakeup) {
            (None, None) => return None,
            (Some(at), None) => (at, false),
            (None, Some(wakeup)) => (wakeup, true),
            (Some(at), Some(wakeup)) => (at.min(wakeup), wakeup < at),
        };
        if at > end {
            return None;
        }
        self.now = self.now.max(at);
        if is_timer { Some(Event::TimerFired) } else { self.pending.pop_first().map(|(_, event)| event) }
    }

    pub(crate) fn take_in(&mut self, event: Event) {
        self.steps += 1;
        for event in self.addressed(event) {
            crate::coverage::saw_event(&event);
            if !self.is_quiet {
                let shown = shown_event(&event);
                writeln!(self.trace, "{} > {shown}", self.now).unwrap();
            }
            self.note_end(&event);
            let is_answer = self.note_answer(&event);
            let again = (is_answer && self.repeats_answers).then(|| event.clone());
            for effect in self.engine.handle(self.now, event) {
                crate::coverage::saw_effect(&effect);
                self.carry_out(effect);
            }
            if let Some(event) = again {
                let before = self.engine.view();
                let effects = self.engine.handle(self.now, event);
                assert!(effects.is_empty(), "a repeated answer led to {effects:?}");
                let after = self.engine.view();
                assert_eq!(View { stale_answers: before.stale_answers, ..after }, before);
            }
            self.check();
        }
    }

    /// Puts the numbers of monitors into events that name kinds.
    fn addressed(&mut self, event: Event) -> Vec<Event> {
        match event {
            Event::ObjectChanged { key, is_gone, items } if items[0].0.number() == u64::MAX => {
                let item = &items[0].1;
                let (kind, name) = key.name.split_once('/').unwrap();
                let key = crate::build::key(name);
                let objects = self.objects.entry(kind.to_owned()).or_default();
                if is_gone {
                    objects.remove(&key);
                } else {
                    objects.insert(key.clone(), Arc::clone(item));
                }
                let watching = self.monitors.iter().filter(|(_, watched)| *watched == kind);
                let event = |(monitor, _): (&MonitorId, &String)| {
                    let items = vec![(*monitor, Arc::clone(item))];
                    Event::ObjectChanged { key: key.clone(), is_gone, items }
                };
                watching.map(event).collect()
            }
            // It would have been tried with what came meanwhile.
            Event::WatchFailed { monitor, failure }
                if failure.message == LIST_FAILED
                    && !self
                        .monitors
                        .get(&monitor)
                        .is_some_and(|kind| self.failing_kinds.contains_key(kind)) =>
            {
                Vec::new()
            }
            other => vec![other],
        }
    }

    fn note_answer(&mut self, event: &Event) -> bool {
        if let Event::BundlesDropped { run, .. }
        | Event::BundlesKept { run, .. }
        | Event::BundlesRestored { run, .. }
        | Event::ChartResolved { run, .. }
        | Event::HookFinished { run, .. }
        | Event::IndexFetched { run, .. }
        | Event::ModulesLoaded { run, .. }
        | Event::ObjectMended { run, .. }
        | Event::ReleaseTested { run, .. }
        | Event::ObjectsPatched { run, .. }
        | Event::ConfigSaved { run, .. }
        | Event::CredentialsWritten { run, .. }
        | Event::CrdsEnsured { run, .. }
        | Event::ModuleLoaded { run, .. }
        | Event::PackagePinned { run, .. }
        | Event::PackageStored { run, .. }
        | Event::ReleaseFinished { run, .. }
        | Event::ReleasesListed { run, .. }
        | Event::ScriptFinished { run, .. }
        | Event::SourceFetched { run, .. } = event
        {
            self.in_flight.remove(run);
            true
        } else {
            false
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each effect")]
    fn carry_out(&mut self, effect: Effect) {
        if let Effect::Notify(notice) = effect {
            self.notices.push(notice);
            return;
        }
        if let Effect::Announce(announcement) = effect {
            self.announcements.push(announcement);
            return;
        }
        if !self.is_quiet {
            let shown = self.shown_effect(&effect);
            writeln!(self.trace, "{}     {shown}", self.now).unwrap();
        }
        self.mark(&effect);
        if let Effect::AnswerReview { id, outcome } = &effect {
            self.answers_to_reviews.push((*id, outcome.clone()));
        } else if let Effect::RegisterWebhooks { registration, .. } = &effect {
            self.registrations.push(Arc::clone(registration));
        }
        self.carry_out_broker(&effect);
        match effect {
            Effect::Abort(_)
            | Effect::Announce(_)
            | Effect::AnswerBroker { .. }
            | Effect::AnswerCommand { .. }
            | Effect::AnswerReview { .. }
            | Effect::AwaitRepositoryKinds
            | Effect::AwaitSourceKinds
            | Effect::Exit
            | Effect::ForgetRelease { .. }
            | Effect::KeepInstances { .. }
            | Effect::Notify(_)
            | Effect::ReadInstances { .. }
            | Effect::RegisterBrokers { .. }
            | Effect::SetSchedules { .. }
            | Effect::WatchChartMaps
            | Effect::WatchRelease { .. } => {}
            Effect::MendObject { run, .. } => {
                let outcome = self.mends.pop_front().unwrap_or(Ok(()));
                self.send_in(OTHER, Event::ObjectMended { run, outcome });
            }
            Effect::TestRelease { run, module, target, .. } => {
                let release = module.to_string();
                let report =
                    TestReport { release, namespace: target.namespace.to_string(), ..TestReport::default() };
                let takes = self.takes_for(&format!("test {module}"), OTHER);
                self.send_in(takes, Event::ReleaseTested { run, outcome: Ok(report) });
            }
            Effect::AwaitReadiness { run, module, .. } => {
                if let Some(delay) = self.readies_after {
                    self.send_in(delay, Event::ReadinessChanged { run, module, unready: Vec::new() });
                }
            }
            Effect::Restore { run, .. } => {
                self.send_in(OTHER, Event::Restored { run, outcome: Ok(Box::default()) });
            }
            Effect::ReadLease { run } => {
                self.send_in(OTHER, Event::LeaseRead { run, outcome: Ok(self.lease.clone()) });
            }
            Effect::WriteLease { run, record, .. } => {
                self.lease = Some(*record);
                self.send_in(OTHER, Event::LeaseWritten { run, outcome: Ok(self.lease.clone()) });
            }
            Effect::RegisterWebhooks { run, registration } => {
                let outcome = self.registering.pop_front().unwrap_or(Ok(()));
                let held = outcome.as_ref().map(|()| self.hold_configurations(&registration));
                let (refusals, versions) = held.unwrap_or_default();
                self.send_in(OTHER, Event::WebhooksRegistered { run, outcome, refusals, versions });
            }
            Effect::ServeWebhooks { run } => {
                let outcome =
                    self.serving.pop_front().unwrap_or_else(|| Ok(crate::webhooks::certificate("Y2E=", 100)));
                self.send_in(OTHER, Event::WebhooksServed { run, outcome });
            }
            // Its hook ends by itself at that moment.
            Effect::CancelRun { .. } if self.cancels_late => {}
            Effect::CancelRun { run } => {
                let failure = Failure::new(FailureKind::Cancelled, "ended by SIGTERM");
                let answer = self.pending.iter().find_map(|(at, event)| match event {
                    Event::HookFinished { run: its, .. } if *its == run => {
                        Some((*at, Event::HookFinished { run, outcome: Err(failure.clone()), usage: None }))
                    }
                    Event::ScriptFinished { run: its, .. } if *its == run => {
                        Some((*at, Event::ScriptFinished { run, outcome: Err(failure.clone()), usage: None }))
                    }
                    Event::ReleaseFinished { run: its, .. } if *its == run => {
                        Some((*at, Event::ReleaseFinished { run, outcome: Err(failure.clone()) }))
                    }
                    Event::ReleaseTested { run: its, .. } if *its == run => {
                        Some((*at, Event::ReleaseTested { run, outcome: Err(failure.clone()) }))
                    }
                    Event::SourceFetched { run: its, .. } if *its == run => {
                        Some((*at, Event::SourceFetched { run, outcome: Err(failure.clone()) }))
                    }
                    _ => None,
                });
                if let Some((at, event)) = answer {
                    self.pending.remove(&at);
                    self.send_in(OTHER, event);
                }
            }
            Effect::EnsureCrds { run, module } => {
                self.in_flight.insert(run, None);
                let broken = module.crds.iter().find(|file| file.ends_with("broken.yaml"));
                let broken = broken.map(|file| Failure::new(FailureKind::Release, format!("{file}: no CRD")));
                let outcome = self.charts.lost_package(&module).or(broken).map_or(Ok(()), Err);
                self.send_in(OTHER, Event::CrdsEnsured { run, outcome });
            }
            Effect::ListReleases { run, targets } => {
                self.in_flight.insert(run, None);
                let lists = targets.iter().map(|target| OwnedReleases {
                    target: target.clone(),
                    outcome: self.refusal(target).map_or_else(|| Ok(self.owned_releases(target)), Err),
                });
                let outcome = Ok(lists.collect());
                self.send_in(OTHER, Event::ReleasesListed { run, outcome });
            }
            Effect::LoadModule { run, module } => {
                self.in_flight.insert(run, None);
                let loaded = self.loads.get_mut(module.as_str()).and_then(VecDeque::pop_front);
                let is_broken = self.broken_configurations.contains(module.as_str());
                let loaded =
                    if is_broken { None } else { loaded.or_else(|| self.asks_bundle(module.as_str())) };
                let outcome = loaded.ok_or_else(|| {
                    Failure::new(FailureKind::Files, "hook 'x' answers --config with garbage")
                });
                let takes = self.takes_for(&format!("config {module}"), OTHER);
                self.send_in(takes, Event::ModuleLoaded { run, outcome });
            }
            Effect::DropBundles { run, registry, others } => {
                self.drop_bundles(run, &kept(&registry, &others));
            }
            Effect::FetchSource { run, source, spec, .. } => self.fetch_source(run, &source, &spec),
            Effect::KeepBundles { run, registry, lost } => self.keep_bundles(run, &registry, &lost),
            Effect::RestoreBundles { run, digests } => self.restore_bundles(run, &digests),
            Effect::LoadModules { run, registry, lost } => self.load_modules(run, &links(&registry, &lost)),
            Effect::PatchObjects { run, author: PatchAuthor::Source(source), patches } => {
                self.patch_source(run, &source, &patches);
            }
            Effect::PatchObjects { run, author: PatchAuthor::Repository(_), patches } => {
                self.patch_chart(run, &patches);
            }
            Effect::FetchIndex { run, request } => self.fetch_index(run, &request),
            Effect::PinPackage { run, module, pin } => self.pin_package(run, module, pin.map(|pin| *pin)),
            Effect::ResolveChart { run, request } => self.resolve_chart(run, &request),
            Effect::StorePackage { run, request } => self.store_package(run, &request),
            Effect::PatchObjects { run, .. } => {
                self.in_flight.insert(run, None);
                let outcome = self.patching.pop_front().unwrap_or(Ok(()));
                self.send_in(OTHER, Event::ObjectsPatched { run, outcome });
            }
            Effect::RunEnabledScript { run, module, values, .. } => {
                self.in_flight.insert(run, None);
                let name = module.name.as_str();
                let planned = self.scripts.get_mut(name).and_then(VecDeque::pop_front);
                let answer = || self.answers.as_ref().map_or(Ok(true), |answers| answers(name, &values));
                let verdict = |enabled| Verdict { enabled, reason: None };
                let outcome = planned.unwrap_or_else(|| answer().map(verdict).map_err(failure));
                let takes = self.takes_for(&format!("script {name}"), SCRIPT);
                self.send_in(takes, Event::ScriptFinished { run, outcome, usage: None });
            }
            Effect::RunHook { run, hook, labels, contexts, .. } => {
                if let Some(files) = &mut self.context_files {
                    let mut file = Vec::new();
                    contexts.write(&mut file).unwrap();
                    write!(files, "{} {}", hook.id, String::from_utf8(file).unwrap()).unwrap();
                }
                // Hooks that answer the API server are in no queue.
                let queue = labels.queue.to_string();
                self.in_flight.insert(run, Some(queue).filter(|queue| !queue.is_empty()));
                if let Some(module) = hook.id.scope.module() {
                    self.note_content(run, module.as_str(), hook.content);
                }
                let name = hook.id.to_string();
                let outcome = self.hooks.get_mut(&name).and_then(VecDeque::pop_front);
                let takes = self.takes_for(&name, HOOK);
                let outcome = outcome.unwrap_or_else(|| Ok(HookOutput::default()));
                self.send_in(takes, Event::HookFinished { run, outcome, usage: None });
            }
            Effect::SaveConfigValues { run, object, key, text, basis } => {
                self.save(run, (object, key), text.map(|text| text.0), &basis);
            }
            Effect::StartMonitor { monitor, spec } => {
                let kind = spec.selection.kind.clone();
                self.monitors.insert(monitor, kind.clone());
                if let Some(failure) = self.failing_kinds.get(&kind).copied() {
                    for (tried, kind) in [LIST, 800, 2_400, 5_600].into_iter().zip(failure.iter().cycle()) {
                        let failure = Failure::new(*kind, LIST_FAILED);
                        self.send_in(tried, Event::WatchFailed { monitor, failure });
                    }
                } else if self.missing_kinds.contains(&kind) {
                    self.send_in(LIST, Event::KindVanished { monitor, kind });
                } else if !self.silent_kinds.contains(&kind) {
                    self.list(monitor, &kind);
                }
            }
            Effect::StopMonitor { monitor } => {
                self.monitors.remove(&monitor);
            }
            Effect::UninstallRelease { run, release, target } => {
                self.uninstall(run, release.as_str(), &target);
            }
            Effect::UpgradeRelease { run, module, .. } if self.charts.lost_package(&module).is_some() => {
                self.in_flight.insert(run, None);
                let outcome = self.charts.lost_package(&module).map_or_else(|| unreachable!(), Err);
                self.send_in(OTHER, Event::ReleaseFinished { run, outcome });
            }
            Effect::UpgradeRelease { run, module, target, is_recorded: false, .. }
                if self.refusal(&target).is_none() =>
            {
                self.note_change(run, self.place(module.name.as_str(), &target));
                self.in_flight.insert(run, None);
                let (revision, checksum, changed, taken_over) = (0, 0, None, Vec::new());
                let action = ReleaseAction::Unrecorded;
                let outcome = Ok(ReleaseOutcome { action, revision, checksum, changed, taken_over });
                self.send_in(RELEASE, Event::ReleaseFinished { run, outcome });
            }
            Effect::UpgradeRelease { run, module, values, target, .. } => {
                self.note_unrecorded(&module, &target);
                let checksum =
                    values::Checksum::of(&(&*values.global, values.module.as_ref().map(|m| &*m.values)));
                self.upgrade(run, (&module, &target), &checksum.to_string());
            }
            Effect::WriteCredentials { run, module, template, .. } => {
                self.write_credentials(run, &module, template);
            }
        }
    }

    fn write_credentials(&mut self, run: RunId, module: &Module, template: Option<Arc<str>>) {
        self.in_flight.insert(run, None);
        let outcome = self.crediting.pop_front().unwrap_or(Ok(()));
        if outcome.is_ok() {
            let name = module.name.to_string();
            match template {
                Some(template) => drop(self.credentials.insert(name, template.to_string())),
                None => drop(self.credentials.remove(&name)),
            }
        }
        self.send_in(OTHER, Event::CredentialsWritten { run, outcome });
    }

    /// Answers a watch with all objects of its kind.
    pub(crate) fn list(&mut self, monitor: MonitorId, kind: &str) {
        let objects = self.objects.get(kind).cloned().unwrap_or_default();
        self.send_in(LIST, Event::Listed { lists: vec![(monitor, objects.into_iter().collect())] });
    }

    /// Returns the webhooks that the API server knows.
    pub(crate) fn known_webhooks(&self, kind: AdmissionKind) -> Vec<serde_json::Value> {
        let objects = self.objects.get(&format!("{kind}WebhookConfiguration"));
        let Some(item) = objects.and_then(|objects| objects.values().next()) else { return Vec::new() };
        let shown: serde_json::Value = serde_json::from_slice(item.filter_result().unwrap()).unwrap();
        shown["said"].as_array().unwrap().clone()
    }

    /// Returns the version of the next object that is written. Each is larger than those before it.
    pub(crate) fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// Holds what the API server was told of webhooks, for who lists it. Returns what it refuses of that, and the versions of the rest.
    fn hold_configurations(
        &mut self,
        registration: &WebhookRegistration,
    ) -> (Vec<WebhookRefusal>, WrittenVersions) {
        let (mut refusals, mut versions) = (Vec::new(), WrittenVersions::default());
        for crd in registration.conversions.keys() {
            versions.definitions.insert(crd.clone(), self.next_version());
        }
        let kinds = [
            (AdmissionKind::Validating, &registration.validating),
            (AdmissionKind::Mutating, &registration.mutating),
        ];
        for (kind, object) in kinds {
            let known = self.known_webhooks(kind);
            let name_of = |webhook: &serde_json::Value| webhook["name"].as_str().unwrap().to_owned();
            let is_known = |name: &String| known.iter().any(|known| name_of(known) == *name);
            let webhooks: Vec<_> = if let Some(narrowing) = registration.narrowed.get(&kind) {
                let stays = |webhook: &&serde_json::Value| {
                    narrowing.stay.as_ref().is_none_or(|stay| stay.contains(&name_of(webhook)))
                };
                let mut stay: Vec<_> = known.iter().filter(stays).cloned().collect();
                for webhook in &mut stay {
                    webhook["failurePolicy"] = "Ignore".into();
                }
                stay
            } else {
                let wanted = object.as_ref().map(|object| object["webhooks"].as_array().unwrap().clone());
                let mut wanted = wanted.unwrap_or_default();
                let is_named = |name: &String| wanted.iter().any(|webhook| name_of(webhook) == *name);
                let mut others: Vec<_> =
                    known.iter().filter(|webhook| !is_named(&name_of(webhook))).cloned().collect();
                others.retain(|_| registration.keeps_others);
                for webhook in &mut others {
                    webhook["failurePolicy"] = "Ignore".into();
                }
                wanted.retain(|webhook| {
                    let name = name_of(webhook);
                    !registration.kept.contains(&(kind, name.clone())) || is_known(&name)
                });
                wanted.extend(others);
                let wrong = wanted.iter().map(name_of).filter(|name| self.refused_webhooks.contains(name));
                let wrong: BTreeMap<_, _> = wrong.map(|name| (name, "Invalid value".to_owned())).collect();
                if !wrong.is_empty() {
                    let failure = Failure::new(FailureKind::Cluster, "it is invalid");
                    let webhooks = if self.refuses_in_silence { BTreeMap::new() } else { wrong };
                    refusals.push(WebhookRefusal { kind, failure, webhooks });
                    continue;
                }
                wanted
            };
            let version = self.next_version();
            let objects = self.objects.entry(format!("{kind}WebhookConfiguration")).or_default();
            objects.clear();
            if !webhooks.is_empty() {
                versions.configurations.insert(kind, version);
                let shown =
                    serde_json::json!({"said": webhooks, "version": version.to_string(), "writers": []});
                let shown = shown.to_string();
                objects
                    .insert(Key::new("", "ours"), Arc::new(Item::filtered(None, shown.into_bytes().into())));
            }
        }
        (refusals, versions)
    }

    /// Changes an object for everybody who watches its kind.
    pub(crate) fn watched(&mut self, kind: &str, key: Key, is_gone: bool, item: &Arc<Item>) {
        let objects = self.objects.entry(kind.to_owned()).or_default();
        if is_gone {
            objects.remove(&key);
        } else {
            objects.insert(key.clone(), Arc::clone(item));
        }
        if let Some(event) = self.shown_to_watches(kind, key, is_gone, item) {
            // A watch begins where its list ends.
            self.send_in(LIST + 1, event);
        }
    }

    /// Returns what those are told who watch a kind: how an object of it is now. There is nothing if nobody does.
    pub(crate) fn shown_to_watches(
        &self,
        kind: &str,
        key: Key,
        is_gone: bool,
        item: &Arc<Item>,
    ) -> Option<Event> {
        let watching = self.monitors.iter().filter(|(_, watched)| *watched == kind);
        let items: Vec<_> = watching.map(|(monitor, _)| (*monitor, Arc::clone(item))).collect();
        (!items.is_empty()).then_some(Event::ObjectChanged { key, is_gone, items })
    }

    /// Forgets what is on its way and what is watched: another operator starts.
    pub(crate) fn forgets_everything(&mut self) {
        self.pending.clear();
        self.in_flight.clear();
        self.changing.clear();
        self.monitors.clear();
    }

    /// Makes `kind` exist now.
    pub(crate) fn kind_appears(&mut self, kind: &str) {
        self.kind_appears_in(0, kind);
    }

    /// Makes `kind` exist `millis` from now on.
    fn kind_appears_in(&mut self, millis: u64, kind: &str) {
        self.missing_kinds.remove(kind);
        let waiting: Vec<MonitorId> =
            self.monitors.iter().filter(|(_, its)| *its == kind).map(|(id, _)| *id).collect();
        let objects = self.objects.get(kind).cloned().unwrap_or_default();
        let was_failing = self.failing_kinds.remove(kind);
        for monitor in waiting {
            let lists = vec![(monitor, objects.clone().into_iter().collect())];
            if was_failing.is_none() {
                self.send_in(millis, Event::KindAppeared { monitor });
            }
            self.send_in(millis + LIST, Event::Listed { lists });
            if was_failing.flatten().is_some() {
                self.send_in(millis + LIST, Event::WatchRestored { monitor });
            }
        }
    }

    fn save(
        &mut self,
        run: RunId,
        (object, key): (ConfigObject, String),
        text: Option<String>,
        basis: &Basis,
    ) {
        self.in_flight.insert(run, None);
        if let Basis::Text(was) = basis
            && was.as_ref().map(|was| &was.0) != self.config_of(object).0.get(&key)
        {
            let failure = Failure::new(FailureKind::Cluster, "somebody else changed the key");
            self.send_in(OTHER, Event::ConfigSaved { run, outcome: Err(failure) });
            return;
        }
        if let Some(Err(failure)) = self.saving.pop_front() {
            self.send_in(OTHER, Event::ConfigSaved { run, outcome: Err(failure) });
            return;
        }
        match text {
            Some(text) => self.config_of(object).0.insert(key, text),
            None => self.config_of(object).0.remove(&key),
        };
        self.config_version += 1;
        let version = self.config_version.to_string();
        self.send_in(OTHER, Event::ConfigSaved { run, outcome: Ok(version.clone()) });
        let data = Some(Arc::new(self.config_of(object).clone()));
        self.send_in(OTHER + 1, Event::ConfigChanged { object, version, data });
    }

    /// Returns what is in the ConfigMap or in the Secret over it.
    fn config_of(&mut self, object: ConfigObject) -> &mut ConfigData {
        match object {
            ConfigObject::ConfigMap => &mut self.config,
            ConfigObject::Secret => &mut self.secret,
        }
    }

    /// Changes a key of the ConfigMap as a person does.
    pub(crate) fn edits_config(&mut self, key: &str, text: &str) {
        self.config.0.insert(key.to_owned(), text.to_owned());
        self.rereads_config();
    }

    /// Sends the ConfigMap and the Secret as they are.
    pub(crate) fn rereads_config(&mut self) {
        for object in [ConfigObject::ConfigMap, ConfigObject::Secret] {
            self.config_version += 1;
            let version = self.config_version.to_string();
            let data = Some(Arc::new(self.config_of(object).clone()));
            self.send_in(0, Event::ConfigChanged { object, version, data });
        }
    }

    /// Returns what a key says in the ConfigMap, and in the Secret.
    pub(crate) fn config_text(&self, key: &str) -> (Option<String>, Option<String>) {
        (self.config.0.get(key).cloned(), self.secret.0.get(key).cloned())
    }

    /// Returns how the world calls a release.
    pub(crate) fn place(&self, name: &str, target: &ReleaseTarget) -> String {
        let ReleaseTarget { namespace, account } = target;
        if **namespace == *self.namespace && account.is_none() {
            name.to_owned()
        } else {
            format!("{namespace}/{name}")
        }
    }

    fn refusal(&self, target: &ReleaseTarget) -> Option<Failure> {
        let is_powerless = target.account.is_some() && self.powerless.contains(&*target.namespace);
        is_powerless.then(|| Failure::new(FailureKind::Cluster, "secrets is forbidden"))
    }

    /// No two contents of a module are at work at the same time, and none that was refused ever is.
    fn note_content(&mut self, run: RunId, module: &str, content: u64) {
        let in_flight = &self.in_flight;
        self.at_work.retain(|run, _| in_flight.contains_key(run));
        if self.at_work.values().any(|(other, its)| other == module && *its != content) {
            self.repositories.faults.push(format!("two versions of module {module} are at work"));
        }
        if self.repositories.refused.contains(&content) {
            self.repositories
                .faults
                .push(format!("bundle {content} of module {module} was refused, and runs"));
        }
        self.at_work.insert(run, (module.to_owned(), content));
    }

    /// Nobody changes a release that another one is changing.
    fn note_change(&mut self, run: RunId, place: String) {
        let in_flight = &self.in_flight;
        self.changing.retain(|run, _| in_flight.contains_key(run));
        if self.changing.values().any(|other| *other == place) {
            self.repositories.faults.push(format!("release {place} is changed twice at the same time"));
        }
        self.changing.insert(run, place);
    }

    /// No release of a namespace is begun before it is on record that there may be one.
    fn note_unrecorded(&mut self, module: &Module, target: &ReleaseTarget) {
        let is_unrecorded = |addon: &engine::RegisteredAddon| {
            let is_its = addon.bundle.name == module.name && addon.source.namespace == target.namespace;
            is_its && addon.is_unreleased
        };
        let is_allowed = target.account.is_some() && self.refusal(target).is_none();
        if is_allowed && self.repositories.registry.addons.iter().any(is_unrecorded) {
            self.repositories.faults.push(format!("release {} is begun and not on record", module.name));
        }
    }

    fn uninstall(&mut self, run: RunId, name: &str, target: &ReleaseTarget) {
        self.note_change(run, self.place(name, target));
        // What has no module any more is removed beside the queues.
        let is_known = self.view().modules.iter().any(|module| module.name.as_str() == name);
        let is_aside = target.account.is_some() || !is_known;
        self.in_flight.insert(run, (!is_aside).then(|| "main".to_owned()));
        let planned = self.releases.get_mut(name).and_then(VecDeque::pop_front);
        let outcome = if let Some(Err(failure)) = planned {
            Err(failure)
        } else if let Some(refusal) = self.refusal(target) {
            Err(refusal)
        } else {
            let known = self.deployed.remove(&self.place(name, target)).is_some();
            self.credentials.remove(name);
            let action = if known { ReleaseAction::Uninstalled } else { ReleaseAction::Absent };
            Ok(ReleaseOutcome { action, revision: 0, checksum: 0, changed: None, taken_over: Vec::new() })
        };
        let takes = self.takes_for(&format!("uninstall {name}"), RELEASE);
        self.send_in(takes, Event::ReleaseFinished { run, outcome });
    }

    fn upgrade(&mut self, run: RunId, (module, target): (&Module, &ReleaseTarget), checksum: &str) {
        self.note_change(run, self.place(module.name.as_str(), target));
        self.in_flight.insert(run, None);
        // What a namespace had of a name that went to the cluster ends elsewhere.
        let whose = target.account.as_ref().map(|_| self.place(module.name.as_str(), target));
        self.note_content(run, whose.as_deref().unwrap_or(module.name.as_str()), module.content);
        let checksum = u64::from_str_radix(&checksum[..15], 16).unwrap();
        let name = module.name.to_string();
        let planned = self.releases.get_mut(&name).and_then(VecDeque::pop_front);
        let mut needed = self.needed_kinds.get(&name).into_iter().flatten();
        let lacked = needed.find(|kind| self.missing_kinds.contains(*kind));
        let (place, refusal) = (self.place(&name, target), self.refusal(target));
        let outcome = match (lacked, planned) {
            (None, _) if refusal.is_some() => Err(refusal.unwrap()),
            (Some(kind), _) => {
                Err(Failure::new(FailureKind::MissingKind, format!("no matches for kind {kind}")))
            }
            (None, Some(Err(failure))) => Err(failure),
            (None, planned) => {
                for kind in self.brought_kinds.get(&name).cloned().unwrap_or_default() {
                    if self.missing_kinds.contains(&kind) {
                        self.kind_appears_in(RELEASE, &kind);
                    }
                }
                let known = self.deployed.get(&place).copied();
                let real = match known {
                    None => ReleaseAction::Installed,
                    Some((_, its)) if its == checksum => ReleaseAction::Unchanged,
                    Some(_) => ReleaseAction::Upgraded,
                };
                let planned = planned.and_then(Result::ok);
                let (action, changed, taken_over) = match planned {
                    Some(Planned { action, changed, taken_over }) => (action, changed, taken_over),
                    None => (real, None, Vec::new()),
                };
                let revision =
                    known.map_or(0, |(revision, _)| revision) + u32::from(action != ReleaseAction::Unchanged);
                // What is said to have changed does so each time.
                let checksum = checksum + if changed.is_some() { u64::from(revision) } else { 0 };
                self.contents.insert(place.clone(), module.content);
                self.deployed.insert(place, (revision, checksum));
                Ok(ReleaseOutcome { action, revision, checksum, changed, taken_over })
            }
        };
        let takes = self.takes_for(&format!("release {}", module.name), RELEASE);
        self.send_in(takes, Event::ReleaseFinished { run, outcome });
    }

    /// Returns the bundle that the release of a module was made of last.
    pub(crate) fn released(&self, name: &str) -> Option<Digest> {
        self.contents.get(name).map(|content| crate::repositories::digest(*content))
    }

    pub(crate) fn view(&self) -> View {
        self.engine.view()
    }

    /// Returns what is told of the picture of now.
    pub(crate) fn told<T>(&self, tell: impl Fn(&View, Format<'_>) -> T) -> T {
        let view = self.engine.view_at(self.now);
        let at = |ago: Duration| Time::from_start(view.now.since_start().saturating_sub(ago)).to_string();
        tell(&view, Format { show: &|text| text.to_owned(), at: &at })
    }

    /// Returns how many notices are like this.
    pub(crate) fn noticed(&self, is: impl Fn(&Notice) -> bool) -> usize {
        self.notices.iter().filter(|notice| is(notice)).count()
    }

    /// The lines of a queue as the reference operator prints them.
    pub(crate) fn queue(&self, name: &str) -> Vec<String> {
        let view = self.view();
        let queue = view.queues.iter().find(|queue| queue.name.as_str() == name);
        let lines = queue.into_iter().flat_map(|queue| &queue.tasks);
        lines
            .map(|task| task.line(&task.last_failure.as_ref().map(ToString::to_string).unwrap_or_default()))
            .collect()
    }

    /// Facts that hold after every event, whatever the events were.
    fn check(&mut self) {
        let busy =
            self.in_flight.values().flatten().fold(BTreeMap::<&String, usize>::new(), |mut busy, queue| {
                *busy.entry(queue).or_default() += 1;
                busy
            });
        for (queue, count) in busy {
            assert!(count <= 1, "{count} effects of queue {queue} are in flight");
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each effect")]
    fn shown_effect(&self, effect: &Effect) -> String {
        match effect {
            Effect::Abort(abort) => format!("abort {abort:?}"),
            Effect::Restore { run, .. } => format!("restore {run}"),
            Effect::ReadLease { run } => format!("read Lease {run}"),
            Effect::WriteLease { run, record, .. } => {
                format!("write Lease {run} for {}", record.holder.as_deref().unwrap_or("nobody"))
            }
            Effect::Announce(_) | Effect::Notify(_) => String::new(),
            Effect::AnswerBroker { id, answer } => format!("answer {id} {}", answer.status),
            Effect::KeepInstances { run, .. } => format!("keep instances {run}"),
            Effect::ReadInstances { run } => format!("read instances {run}"),
            Effect::RegisterBrokers { run, .. } => format!("register brokers {run}"),
            Effect::AnswerCommand { id, outcome: Ok(text) } => format!("answer {id} {text}"),
            Effect::AnswerCommand { id, outcome: Err(failure) } => format!("refuse {id} {failure}"),
            Effect::AnswerReview { id, outcome } => {
                format!("answer {id} {}", if outcome.is_ok() { "ok" } else { "failed" })
            }
            Effect::RegisterWebhooks { run, registration } => {
                let narrowed = registration.narrowed.keys().map(|kind| format!(" narrow {kind}"));
                let narrowed: String = narrowed.collect();
                let kinds = [("validating", &registration.validating), ("mutating", &registration.mutating)];
                let kinds =
                    kinds.iter().filter_map(|(kind, object)| object.as_ref().map(|object| (kind, object)));
                let shown = |(kind, object): (&&str, &serde_json::Value)| {
                    let webhooks = object["webhooks"].as_array().unwrap();
                    let one = |webhook: &serde_json::Value| {
                        format!(
                            " {}:{}",
                            webhook["name"].as_str().unwrap(),
                            webhook["failurePolicy"].as_str().unwrap()
                        )
                    };
                    format!(" {kind}{}", webhooks.iter().map(one).collect::<String>())
                };
                let crds = registration.conversions.iter().map(|(crd, conversion)| {
                    format!(" {}{crd}", if conversion.is_some() { "convert " } else { "give back " })
                });
                format!(
                    "register{}{}{narrowed} {run}",
                    kinds.map(shown).collect::<String>(),
                    crds.collect::<String>()
                )
            }
            Effect::ServeWebhooks { run } => format!("serve webhooks {run}"),
            Effect::CancelRun { run } => format!("cancel {run}"),
            Effect::AwaitReadiness { run, module, .. } => format!("await objects of {module} {run}"),
            Effect::AwaitRepositoryKinds => "await kinds of charts".to_owned(),
            Effect::AwaitSourceKinds => "await kinds of sources".to_owned(),
            Effect::WatchChartMaps => "watch maps of charts".to_owned(),
            Effect::FetchIndex { run, request } => {
                format!("fetch index of {} {run}", request.repository.name)
            }
            Effect::PinPackage { run, module, .. } => format!("pin {module} {run}"),
            Effect::ResolveChart { run, request } => format!("resolve {} {run}", request.chart),
            Effect::StorePackage { run, request } => {
                format!("store {} {} {run}", request.chart, request.version.version)
            }
            Effect::DropBundles { run, registry, others } => {
                format!("drop bundles but {} {run}", kept(registry, others).len())
            }
            Effect::FetchSource { run, source, .. } => format!("fetch {source} {run}"),
            Effect::KeepBundles { run, registry, .. } => {
                format!("keep {} bundles {run}", registry.addons.len())
            }
            Effect::RestoreBundles { run, digests } => format!("restore {} bundles {run}", digests.len()),
            Effect::LoadModules { run, registry, lost } => {
                let links = links(registry, lost);
                let names: Vec<_> = links.iter().map(|link| link.name.as_str()).collect();
                format!("load modules [{}] {run}", names.join(" "))
            }
            Effect::EnsureCrds { run, module } => format!("ensure CRDs of {} {run}", module.name),
            Effect::Exit => "exit".to_owned(),
            Effect::ForgetRelease { module, target } => {
                format!("forget release {}", self.place(module.as_str(), target))
            }
            Effect::ListReleases { run, targets } => {
                let others = targets.iter().skip(1).map(ToString::to_string).collect::<Vec<_>>();
                let others = others.join(" and in ");
                let and = if others.is_empty() { "" } else { " and in " };
                format!("list releases {run}{and}{others}")
            }
            Effect::LoadModule { run, module } => format!("load module {module} {run}"),
            Effect::PatchObjects { run, author: PatchAuthor::Hook(hook), patches } => {
                format!("patch {} objects for {hook} {run}", patches.len())
            }
            Effect::PatchObjects { run, author, patches } => {
                format!("patch {} objects for {author} {run}", patches.len())
            }
            Effect::RunEnabledScript { run, module, values, .. } => {
                let so_far: Vec<&str> = values
                    .enabled_modules
                    .iter()
                    .flat_map(|names| names.iter())
                    .map(engine::ModuleName::as_str)
                    .collect();
                format!("run enabled script of {} {run} after [{}]", module.name, so_far.join(" "))
            }
            Effect::RunHook { run, hook, contexts, values, labels, .. } => {
                let contexts: Vec<String> = contexts.contexts().iter().map(shown_context).collect();
                let queue =
                    if labels.queue.is_main() { String::new() } else { format!(" in {}", labels.queue) };
                let values = match &values.module {
                    _ if !self.shows_values => String::new(),
                    Some(module) => format!(" {} {}", values.global, module.values),
                    None => format!(" {}", values.global),
                };
                format!("run hook {} {run} [{}]{queue}{values}", hook.id, contexts.join(", "))
            }
            Effect::SaveConfigValues { run, object, key, text, .. } => {
                let place = match object {
                    ConfigObject::ConfigMap => "",
                    ConfigObject::Secret => "in the Secret ",
                };
                format!(
                    "save {key} {place}{run} {:?}",
                    text.as_ref().map_or("nothing", |text| text.0.as_str())
                )
            }
            Effect::SetSchedules { lines } => {
                let lines: Vec<&str> = lines.iter().map(engine::CronLine::as_str).collect();
                format!("set schedules [{}]", lines.join(", "))
            }
            Effect::StartMonitor { monitor, spec } => {
                format!("start monitor {monitor} of {}", spec.selection.kind)
            }
            Effect::StopMonitor { monitor } => format!("stop monitor {monitor}"),
            Effect::UninstallRelease { run, release, target } => {
                format!("uninstall {} {run}", self.place(release.as_str(), target))
            }
            Effect::UpgradeRelease { run, module, values, maintenance, target, .. } => {
                let note = if *maintenance { " in maintenance" } else { "" };
                let values = match &values.module {
                    Some(module) if self.shows_values => format!(" {} {}", values.global, module.values),
                    _ => String::new(),
                };
                format!("upgrade {} {run}{note}{values}", self.place(module.name.as_str(), target))
            }
            Effect::MendObject { run, module, object, target } => {
                format!("mend {object} of {} {run}", self.place(module.as_str(), target))
            }
            Effect::TestRelease { run, module, target, .. } => {
                format!("test {} {run}", self.place(module.as_str(), target))
            }
            Effect::WatchRelease { module, target, .. } => {
                format!("watch release {}", self.place(module.as_str(), target))
            }
            Effect::WriteCredentials { run, module, template: Some(template), revision, .. } => {
                format!("write credentials of {} revision {revision} {run} from {template}", module.name)
            }
            Effect::WriteCredentials { run, module, .. } => {
                format!("remove credentials of {} {run}", module.name)
            }
        }
    }
}

fn shown_context(context: &engine::hook::BindingContext) -> String {
    match &context.trigger {
        Trigger::Event { event, key, .. } => format!("{} {event} {key}", context.binding),
        Trigger::Lifecycle(point) => point.to_string(),
        Trigger::Review { kind, .. } => format!("{} {kind}", context.binding),
        Trigger::Conversion { from, to, .. } => format!("{} {from} to {to}", context.binding),
        Trigger::Reconcile(one) => format!("{} {} {}", context.binding, one.type_name(), one.key),
        Trigger::Schedule => format!("{} Schedule", context.binding),
        Trigger::Synchronization { .. } => format!("{} Synchronization", context.binding),
    }
}

fn end<T>(outcome: &Result<T, Failure>) -> String {
    match outcome {
        Ok(_) => "ok".to_owned(),
        Err(failure) => format!("failed: {failure}"),
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each event")]
fn shown_event(event: &Event) -> String {
    match event {
        Event::BrokerAsked { id, request } => format!("{id} asks {request:?}"),
        Event::BrokersRegistered { outcome, .. } => format!("brokers {}", end(outcome)),
        Event::InstancesKept { outcome, .. } => {
            format!("instances kept {}", end(outcome))
        }
        Event::InstancesRead { outcome, .. } => {
            format!("instances read {}", end(outcome))
        }
        Event::Started => "started".to_owned(),
        Event::BundlesDropped { run, outcome } => format!("bundles dropped {run} {}", end(outcome)),
        Event::BundlesRestored { run, lost } => format!("bundles restored {run} but {}", lost.len()),
        Event::BundlesKept { run, outcome: Ok(()) } => format!("bundles kept {run} ok"),
        Event::BundlesKept { run, outcome: Err(error) } => format!("bundles kept {run} failed: {error:?}"),
        Event::ModulesLoaded { run, outcome } => format!("modules loaded {run} {}", end(outcome)),
        Event::SourceFetched { run, outcome } => format!("fetched {run} {}", end(outcome)),
        Event::CatalogChanged { .. } => "files changed".to_owned(),
        Event::CatalogRejected { .. } => "files rejected".to_owned(),
        Event::CommandAbandoned { id } => format!("command {id} abandoned"),
        Event::Commanded { id, command } => format!("command {id} {command:?}"),
        Event::ConfigChanged { object, version, data } => {
            let keys: Vec<&str> = data.iter().flat_map(|data| data.0.keys()).map(String::as_str).collect();
            format!("{object} rv {version} [{}]", keys.join(" "))
        }
        Event::ConfigRejected { object, failure } => format!("{object} rejected: {failure}"),
        Event::ConfigSaved { run, outcome } => format!("saved {run} {}", end(outcome)),
        Event::CredentialsWritten { run, outcome } => format!("credentials {run} {}", end(outcome)),
        Event::CrdsEnsured { run, outcome } => format!("CRDs {run} {}", end(outcome)),
        Event::CronFired { line } => format!("cron {line}"),
        Event::HookFinished { run, outcome, .. } => format!("hook {run} {}", end(outcome)),
        Event::KeyRequested { kind, key } => format!("{kind} {key} is asked for"),
        Event::KindAppeared { monitor } => format!("kind of {monitor} appeared"),
        Event::KindIsClusterWide { monitor } => format!("kind of {monitor} is cluster-wide"),
        Event::KindVanished { monitor, kind } => format!("kind {kind} of {monitor} is missing"),
        Event::Restored { run, outcome } => format!("restored {run} {}", end(outcome)),
        Event::LeaseRead { run, outcome } => format!("Lease read {run} {}", end(outcome)),
        Event::LeaseWritten { run, outcome } => format!("Lease written {run} {}", end(outcome)),
        Event::Listed { lists } => {
            let told =
                lists.iter().map(|(monitor, objects)| format!("listed {} for {monitor}", objects.len()));
            told.collect::<Vec<_>>().join(", ")
        }
        Event::ModuleLoaded { run, outcome } => format!("loaded {run} {}", end(outcome)),
        Event::NamespaceListed { monitor, namespace, objects } => {
            format!("namespace {namespace} with {} for {monitor}", objects.len())
        }
        Event::ObjectChanged { key, is_gone, items } => {
            let monitors: Vec<_> = items.iter().map(|(monitor, _)| monitor.to_string()).collect();
            let what = if *is_gone { "is gone" } else { "changed" };
            format!("object {key} {what} for {}", monitors.join(" and "))
        }
        Event::ObjectMended { run, outcome } => format!("mended {run} {}", end(outcome)),
        Event::ObjectsPatched { run, outcome } => format!("patched {run} {}", end(outcome)),
        Event::ReadinessChanged { run, module, unready } => {
            format!("objects of {module} {run} not ready [{}]", unready.join(", "))
        }
        Event::ReleaseDrifted { module, drift } => format!("release {module} drifted: {drift:?}"),
        Event::ReleaseTested { run, outcome } => format!("tested {run} {}", end(outcome)),
        Event::ReleaseUnwatched { module, kinds } => {
            let kinds: Vec<_> = kinds.iter().map(|unwatched| unwatched.kind.as_str()).collect();
            format!("release {module} not watched [{}]", kinds.join(" "))
        }
        Event::ReleaseWaits { run, what } => format!("release {run} waits for {what:?}"),
        Event::ReleaseFinished { run, outcome: Ok(outcome) } => format!("release {run} {:?}", outcome.action),
        Event::ReleaseFinished { run, outcome: Err(failure) } => format!("release {run} failed: {failure}"),
        Event::OwnWatchChanged { watch, failure: None } => format!("watch of {watch} works"),
        Event::OwnWatchChanged { watch, failure: Some(failure) } => {
            format!("watch of {watch} failed: {failure}")
        }
        Event::ReleasesListed { run, outcome } => {
            let lists = outcome.iter().flatten().flat_map(|list| list.outcome.iter().flatten());
            let names: Vec<&str> = lists.map(|owned| owned.name.as_str()).collect();
            format!("releases {run} [{}]", names.join(" "))
        }
        Event::ReviewAbandoned { id } => format!("review {id} abandoned"),
        Event::WebhookCertificateKept { outcome } => format!("certificate kept {}", end(outcome)),
        Event::WebhookCertificateRenewed { .. } => "certificate renewed".to_owned(),
        Event::WebhooksRegistered { run, outcome, .. } => format!("registered {run} {}", end(outcome)),
        Event::WebhooksServed { run, outcome } => format!("webhooks served {run} {}", end(outcome)),
        Event::ReviewRequested { id, webhook, .. } => format!("review {id} of {webhook}"),
        Event::ScriptFinished { run, outcome: Ok(verdict), .. } => {
            format!("script {run} {}", verdict.enabled)
        }
        Event::ScriptFinished { run, outcome: Err(failure), .. } => format!("script {run} failed: {failure}"),
        Event::ShutdownRequested => "shutdown".to_owned(),
        Event::MemoryChanged { used, limit } => format!("memory {used} of {limit}"),
        Event::TimerFired => "timer".to_owned(),
        Event::WatchFailed { monitor, failure } => format!("watch {monitor} failed: {failure}"),
        Event::ChartMapsLost { maps } => format!("{} maps of charts are lost", maps.len()),
        Event::ChartResolved { run, outcome } => format!("resolved {run} {}", end(outcome)),
        Event::IndexFetched { run, outcome } => format!("index fetched {run} {}", end(outcome)),
        Event::PackagePinned { run, outcome } => format!("pinned {run} {}", end(outcome)),
        Event::PackageStored { run, outcome } => format!("stored {run} {}", end(outcome)),
        Event::RepositoryKindsServed => "kinds of charts are served".to_owned(),
        Event::SourceKindsServed => "kinds of sources are served".to_owned(),
        Event::WatchRestored { monitor } => format!("watch {monitor} works"),
    }
}

pub(crate) fn failure(message: &str) -> Failure {
    Failure::new(FailureKind::HookExit, message)
}

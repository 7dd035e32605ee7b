//! A pretend API server with one hook that is a controller: it holds objects as JSON and carries out what the engine asks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::hook::reconcile::is_child_of_same;
use engine::hook::{MonitorSpec, Trigger};
use engine::object_patch::{ObjectPatch, Operation, Purpose};
use engine::snapshot::{Item, Key};
use engine::{
    Announcement, Config, Effect, Engine, Event, Failure, FailureKind, HookOutput, MonitorId, Notice,
    OwnedRelease, OwnedReleases, ReleaseAction, ReleaseOutcome, ReleaseTarget, RunId, Time,
};
use serde_json::{Value, json};

use crate::build::Files;
use crate::random::Random;

/// What the hook says to a context.
pub(crate) type Hook = fn(&Value) -> Result<Value, &'static str>;

/// A kind and where the object is.
type Address = (String, Key);

/// How a request ends that is carried out, and whose answer is lost.
pub(crate) const LOST: &str = "the connection was closed";

/// How a request ends that is carried out but for fields that the kind does not have.
pub(crate) const DROPPED: &str = "the kind has no such field";

const CONFLICT: &str = "conflict";

/// How a request ends in a namespace that is being deleted.
pub(crate) const TERMINATING: &str = "its namespace is being deleted";

/// What will happen.
#[expect(clippy::large_enum_variant, reason = "few of them exist at a time")]
enum Coming {
    Event(Event),
    /// A request is carried out, and answered.
    Patch(RunId, Arc<[ObjectPatch]>),
}

pub(crate) struct ControlPlane {
    files: Files,
    pub(crate) engine: Engine,
    pub(crate) now: Time,
    hook: Hook,
    monitors: BTreeMap<MonitorId, Arc<MonitorSpec>>,
    pub(crate) missing_kinds: BTreeSet<String>,
    pub(crate) objects: BTreeMap<Address, Value>,
    version: u64,
    pending: BTreeMap<(Time, u64), Coming>,
    next_seq: u64,
    /// The objects for which the hook runs, with its binding.
    running: BTreeMap<RunId, (String, Key)>,
    /// What happened, in words.
    pub(crate) log: Vec<String>,
    /// The names of the children that the hook asked for last, by binding and parent.
    wanted: BTreeMap<(String, Key), BTreeSet<String>>,
    /// The identities of the objects of which the hook said that they are finalized.
    finalized: BTreeSet<String>,
    /// The identities of the objects that say so themselves.
    ended: BTreeSet<String>,
    /// The identities of the objects whose finalizer was removed.
    released: BTreeSet<String>,
    /// How the next requests end.
    pub(crate) refusals: VecDeque<Option<&'static str>>,
    pub(crate) failures: usize,
    pub(crate) announcements: Vec<Announcement>,
    /// How long the engine took, if that is measured.
    pub(crate) spent: Option<Duration>,
    /// Draws how long everything takes.
    pub(crate) random: Option<Random>,
    /// How many milliseconds a watch takes to tell, if nothing is drawn.
    pub(crate) watch_lag: u64,
    /// Whether something takes all labels from what is applied.
    pub(crate) strips_labels: bool,
    /// Whether there are other finalizers than one, and objects are let go without a word of their hook.
    pub(crate) lets_go: bool,
    /// The modules that have a release, and what is in it.
    released_modules: BTreeSet<String>,
    pub(crate) release: BTreeMap<Address, Value>,
    /// How many writes were refused because the object was another one.
    pub(crate) conflicts: usize,
}

impl ControlPlane {
    pub(crate) fn new(files: &Files, hook: Hook) -> Self {
        let mut plane = Self {
            files: files.clone(),
            engine: Engine::new(Config::default(), files.catalog()),
            now: Time::START,
            hook,
            monitors: BTreeMap::new(),
            missing_kinds: BTreeSet::new(),
            objects: BTreeMap::new(),
            version: 0,
            pending: BTreeMap::new(),
            next_seq: 0,
            running: BTreeMap::new(),
            log: Vec::new(),
            wanted: BTreeMap::new(),
            finalized: BTreeSet::new(),
            ended: BTreeSet::new(),
            released: BTreeSet::new(),
            refusals: VecDeque::new(),
            failures: 0,
            announcements: Vec::new(),
            spent: None,
            random: None,
            watch_lag: 1,
            strips_labels: false,
            lets_go: false,
            released_modules: BTreeSet::new(),
            release: BTreeMap::new(),
            conflicts: 0,
        };
        plane.send(Event::Started);
        plane
    }

    /// Ends the operator at this moment, whatever it does, and starts another one. Requests that are under way may arrive.
    pub(crate) fn restart(&mut self) {
        for coming in std::mem::take(&mut self.pending).into_values() {
            let arrives = self.random.as_mut().is_some_and(|random| random.below(2) == 0);
            if let (Coming::Patch(run, patches), true) = (coming, arrives) {
                self.carry_out(run, &patches);
            }
        }
        self.engine = Engine::new(Config::default(), self.files.catalog());
        self.now = Time::START;
        self.monitors.clear();
        self.running.clear();
        self.pending.clear();
        self.send(Event::Started);
    }

    /// Starts the operator again, with other files.
    pub(crate) fn replace(&mut self, files: &Files) {
        self.files = files.clone();
        // Bindings may have other names now.
        self.wanted.clear();
        self.restart();
    }

    /// Changes the files while the operator runs.
    pub(crate) fn reload(&mut self, files: &Files) {
        self.files = files.clone();
        self.send(Event::CatalogChanged { catalog: files.catalog() });
    }

    /// Has an event happen now.
    pub(crate) fn send(&mut self, event: Event) {
        self.come(0, Coming::Event(event));
    }

    fn come(&mut self, millis: u64, coming: Coming) {
        let millis = match &mut self.random {
            Some(random) => random.below(millis.max(1) * 3),
            None => millis,
        };
        self.pending.insert((self.now + Duration::from_millis(millis), self.next_seq), coming);
        self.next_seq += 1;
    }

    /// Breaks all watches: what they did not tell yet is never told, but lists show what is.
    pub(crate) fn relist(&mut self) {
        let is_told = |coming: &Coming| matches!(coming, Coming::Event(Event::ObjectChanged { .. }));
        self.pending.retain(|_, coming| !is_told(coming));
        for monitor in self.monitors.keys().copied().collect::<Vec<_>>() {
            self.list(monitor);
        }
    }

    /// Runs until nothing happens by itself, or for this long, and returns what happened.
    pub(crate) fn run_for(&mut self, seconds: u64) -> Vec<String> {
        self.run_for_millis(seconds * 1_000)
    }

    pub(crate) fn run_for_millis(&mut self, millis: u64) -> Vec<String> {
        let end = self.now + Duration::from_millis(millis);
        loop {
            let timer = self.engine.next_wakeup();
            let event = self.pending.keys().next().map(|(at, _)| *at);
            let is_timer = timer.is_some_and(|timer| event.is_none_or(|event| timer < event));
            let Some(at) = (if is_timer { timer } else { event }).filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            if is_timer {
                self.handle(Event::TimerFired);
                continue;
            }
            match self.pending.pop_first().unwrap().1 {
                Coming::Event(event) => {
                    if let Event::HookFinished { run, .. } = &event {
                        self.running.remove(run);
                    }
                    self.handle(event);
                }
                Coming::Patch(run, patches) => self.carry_out(run, &patches),
            }
        }
        self.now = end;
        std::mem::take(&mut self.log)
    }

    #[expect(clippy::disallowed_methods, reason = "what is measured is time")]
    fn handle(&mut self, event: Event) {
        crate::coverage::saw_event(&event);
        let effects = match &mut self.spent {
            Some(spent) => {
                let begun = Instant::now();
                let effects = self.engine.handle(self.now, event);
                *spent += begun.elapsed();
                effects
            }
            None => self.engine.handle(self.now, event),
        };
        for effect in effects {
            crate::coverage::saw_effect(&effect);
            match effect {
                Effect::StartMonitor { monitor, spec } => {
                    self.monitors.insert(monitor, spec);
                    self.list(monitor);
                }
                Effect::StopMonitor { monitor } => drop(self.monitors.remove(&monitor)),
                Effect::ListReleases { run, targets } => {
                    let releases: Vec<OwnedRelease> = self
                        .released_modules
                        .iter()
                        .map(|name| OwnedRelease { name: name.as_str().into(), is_sourced: false })
                        .collect();
                    let list = |target: &ReleaseTarget| OwnedReleases {
                        target: target.clone(),
                        outcome: Ok(releases.clone()),
                    };
                    let lists =
                        if releases.is_empty() { Vec::new() } else { targets.iter().map(list).collect() };
                    self.come(1, Coming::Event(Event::ReleasesListed { run, outcome: Ok(lists) }));
                }
                Effect::UpgradeRelease { run, module, .. } => {
                    self.released_modules.insert(module.name.to_string());
                    for (address, object) in self.release.clone() {
                        if !self.objects.contains_key(&address) {
                            self.put(&address, object);
                        }
                    }
                    self.release_finished(run, ReleaseAction::Installed);
                }
                Effect::UninstallRelease { run, release, .. } => {
                    self.log.push(format!("uninstall {release}"));
                    self.released_modules.remove(release.as_str());
                    for (kind, key) in self.release.clone().into_keys() {
                        self.delete(&kind, &key);
                    }
                    self.release_finished(run, ReleaseAction::Uninstalled);
                }
                Effect::RunHook { run, contexts, .. } => {
                    let mut file = Vec::new();
                    contexts.write(&mut file).unwrap();
                    let all: Value = serde_json::from_slice(&file).unwrap();
                    match &contexts.contexts()[0].trigger {
                        Trigger::Reconcile(one) => self.run_hook(run, &one.key, &all[0]),
                        Trigger::Lifecycle(_) => self.delete_and_wait(run),
                        _ => panic!("{all}"),
                    }
                }
                Effect::PatchObjects { run, patches, .. } => self.come(5, Coming::Patch(run, patches)),
                Effect::Announce(announcement) => self.announcements.push(announcement),
                Effect::Notify(Notice::TaskFinished { failure: Some(failure), .. }) => {
                    self.failures += 1;
                    self.log.push(format!("failed: {failure}"));
                }
                _ => {}
            }
        }
    }

    fn release_finished(&mut self, run: RunId, action: ReleaseAction) {
        let outcome =
            Ok(ReleaseOutcome { action, revision: 1, checksum: 1, changed: None, taken_over: Vec::new() });
        self.come(20, Coming::Event(Event::ReleaseFinished { run, outcome }));
    }

    /// Runs a hook that deletes a Site and fails while that is there.
    fn delete_and_wait(&mut self, run: RunId) {
        let site = Key::new("ns", "hooked");
        self.log.push("lifecycle".to_owned());
        self.delete("Site", &site);
        let is_there = self.objects.contains_key(&("Site".to_owned(), site));
        let failure = || Failure::new(FailureKind::HookExit, "it is still there");
        let outcome = if is_there { Err(failure()) } else { Ok(HookOutput::default()) };
        self.come(100, Coming::Event(Event::HookFinished { run, outcome, usage: None }));
    }

    fn run_hook(&mut self, run: RunId, key: &Key, context: &Value) {
        let doer = (context["binding"].as_str().unwrap().to_owned(), key.clone());
        assert!(!self.running.values().any(|other| *other == doer), "{key} runs twice at once");
        self.running.insert(run, doer.clone());
        let uid = context["object"]["metadata"]["uid"].as_str().unwrap();
        let kind = context["type"].as_str().unwrap();
        assert!(kind == "Reconcile" || !self.released.contains(uid), "{key} is finalized after its end");
        let is_ended = self.ended.contains(uid) && !self.lets_go;
        assert!(!is_ended, "{key}: its hook is asked again after it said that it is finalized");
        let finalizers = &context["object"]["metadata"]["finalizers"];
        assert!(
            self.lets_go || finalizers.is_null() || *finalizers == json!(["example.com/site"]),
            "{context}"
        );
        self.log.push(format!("{kind} {key}"));
        let outcome = match (self.hook)(context) {
            Ok(result) => {
                let names = result["children"].as_array().map(|children| {
                    children
                        .iter()
                        .map(|child| child["metadata"]["name"].as_str().unwrap().to_owned())
                        .collect()
                });
                if let Some(names) = names {
                    self.wanted.insert(doer.clone(), names);
                }
                if result["finalized"] == true {
                    self.finalized.insert(uid.to_owned());
                    self.wanted.insert(doer, BTreeSet::new());
                }
                let reconcile = engine::hook::reconcile::parse(result.to_string().as_bytes()).unwrap();
                Ok(HookOutput { reconcile: Box::new(reconcile), ..HookOutput::default() })
            }
            Err(message) => Err(Failure::new(FailureKind::HookExit, message)),
        };
        self.come(10, Coming::Event(Event::HookFinished { run, outcome, usage: None }));
    }

    fn list(&mut self, monitor: MonitorId) {
        let spec = Arc::clone(&self.monitors[&monitor]);
        let kind = spec.selection.kind.clone();
        if self.missing_kinds.contains(&kind) {
            return self.come_next(Event::KindVanished { monitor, kind });
        }
        if kind == "Namespace" {
            self.come_next(Event::KindIsClusterWide { monitor });
        }
        let objects =
            self.objects.iter().filter(|((of, _), object)| *of == kind && is_selected(&spec, object));
        let objects = objects.map(|((_, key), object)| (key.clone(), item(&spec, object))).collect();
        self.come_next(Event::Listed { lists: vec![(monitor, objects)] });
    }

    /// Has a watch tell something now: what changes later is told later.
    fn come_next(&mut self, event: Event) {
        self.pending.insert((self.now, self.next_seq), Coming::Event(event));
        self.next_seq += 1;
    }

    /// Takes a kind away, with all objects of it.
    pub(crate) fn lose(&mut self, kind: &str) {
        self.missing_kinds.insert(kind.to_owned());
        self.objects.retain(|(of, _), _| of != kind);
        self.relist();
    }

    /// Makes a kind known that was missing.
    pub(crate) fn bring(&mut self, kind: &str) {
        self.missing_kinds.remove(kind);
        let waiting: Vec<MonitorId> =
            self.monitors.iter().filter(|(_, spec)| spec.selection.kind == kind).map(|(id, _)| *id).collect();
        for monitor in waiting {
            self.come_next(Event::KindAppeared { monitor });
            self.list(monitor);
        }
    }

    /// Carries out a request and answers it.
    fn carry_out(&mut self, run: RunId, patches: &[ObjectPatch]) {
        let refusal = self.refusals.pop_front().flatten();
        let mut outcome = Ok(());
        for patch in patches {
            let done = match refusal {
                // It is done, and nobody is told.
                Some(LOST) => {
                    let released = self.released.clone();
                    let done = self.patch(patch).and(Err(LOST.to_owned()));
                    self.released = released;
                    done
                }
                Some(DROPPED) => self.patch(patch).and(Err(DROPPED.to_owned())),
                Some(refusal) => Err(refusal.to_owned()),
                None => self.patch(patch),
            };
            if let Err(text) = done {
                let kind = match text.as_str() {
                    CONFLICT => FailureKind::Conflict,
                    DROPPED => FailureKind::Dropped,
                    TERMINATING => FailureKind::Terminating,
                    _ => FailureKind::Cluster,
                };
                outcome = Err(Failure::new(kind, text));
                if patch.purpose == Purpose::Child {
                    break;
                }
            }
        }
        self.come(3, Coming::Event(Event::ObjectsPatched { run, outcome }));
    }

    fn patch(&mut self, patch: &ObjectPatch) -> Result<(), String> {
        let target = &patch.target;
        let is_cluster_wide = target.kind == "Namespace";
        let key = Key::new(if is_cluster_wide { "" } else { &target.namespace }, &target.name);
        let address = (target.kind.clone(), key.clone());
        let known = self.objects.get(&address).cloned();
        match (&patch.operation, known) {
            _ if self.missing_kinds.contains(&target.kind) => {
                Err(format!("kind {} does not exist", target.kind))
            }
            (
                Operation::Apply { object, .. }
                | Operation::ApplyChild { object }
                | Operation::TryCreate { object },
                _,
            ) if object["spec"]["text"] == "invalid" => Err(format!("{key}: spec.text is invalid")),
            (Operation::TryCreate { .. }, _) => Ok(()),
            (Operation::ApplyChild { object }, Some(known)) if !is_child_of_same(&known, object) => {
                Err(format!("{key} is there already, and is not a child of it"))
            }
            (Operation::Apply { object, .. } | Operation::ApplyChild { object }, known) => {
                self.log.push(format!("apply {} {key}", target.kind));
                let mut new = with_what_stays(object, known.as_ref());
                if self.strips_labels {
                    new["metadata"]["labels"] = Value::Null;
                }
                let is_owned = !new["metadata"]["ownerReferences"].is_null();
                self.put(&address, new);
                if is_cluster_wide && is_owned {
                    // The garbage collector finds no such owner.
                    self.delete(&target.kind, &key);
                }
                Ok(())
            }
            (Operation::Delete(_), known) => {
                self.log.push(format!("delete {} {key}", target.kind));
                if let Some(known) = known {
                    self.check_deletion(&address, &known);
                    self.delete(&target.kind, &key);
                }
                Ok(())
            }
            (_, None) if patch.ignore_missing_object => Ok(()),
            (_, None) => Err("not found".to_owned()),
            (Operation::MergePatch { patch }, Some(known)) => self.merge_patch(&address, known, patch),
            (Operation::Create { .. } | Operation::JsonPatch { .. } | Operation::Jq { .. }, Some(_)) => {
                panic!("{patch:?}")
            }
        }
    }

    /// Merges a patch into an object.
    fn merge_patch(&mut self, address: &Address, mut known: Value, patch: &Value) -> Result<(), String> {
        let key = &address.1;
        let finalizers = patch["metadata"].get("finalizers");
        let seen = patch["metadata"].get("resourceVersion");
        if seen.is_some_and(|seen| *seen != known["metadata"]["resourceVersion"]) {
            self.conflicts += 1;
            return Err(CONFLICT.to_owned());
        }
        if let Some(annotations) = patch["metadata"].get("annotations").filter(|_| finalizers.is_none()) {
            self.log.push(format!("annotations {annotations} of {key}"));
            merge(&mut known["metadata"]["annotations"], annotations);
            if !annotations["addon-operator.io/finalized"].is_null() {
                self.ended.insert(known["metadata"]["uid"].as_str().unwrap().to_owned());
            }
            self.put(address, known);
            return Ok(());
        }
        if let Some(finalizers) = finalizers {
            self.log.push(format!("finalizers {finalizers} of {key}"));
            if let Some(annotations) = patch["metadata"].get("annotations") {
                merge(&mut known["metadata"]["annotations"], annotations);
            }
            if *finalizers == json!([]) && !self.lets_go {
                let uid = known["metadata"]["uid"].as_str().unwrap().to_owned();
                assert!(self.finalized.contains(&uid), "{key} is let go before its end");
                self.released.insert(uid);
            }
            known["metadata"]["finalizers"] = finalizers.clone();
            self.put(address, known);
            return Ok(());
        }
        if let Some(spec) = patch.get("spec") {
            self.log.push(format!("spec {spec} of {key}"));
            merge(&mut known["spec"], spec);
            self.put(address, known);
            return Ok(());
        }
        merge(&mut known["status"], &patch["status"]);
        if patch["status"]["observedGeneration"].is_number() {
            let fields = json!({"f:status": {"f:observedGeneration": {}}});
            known["metadata"]["managedFields"] = json!([{"manager": "addon-operator", "fieldsV1": fields}]);
        }
        self.log.push(format!("status {} of {key}", without_times(&known["status"])));
        self.put(address, known);
        Ok(())
    }

    /// Checks that nobody wants a child that is to be deleted.
    fn check_deletion(&self, (kind, key): &Address, known: &Value) {
        // One in another namespace than its parent names it.
        let far = known["metadata"]["annotations"]["addon-operator.io/owned-by"].as_str();
        let far = far.and_then(|parent| parent.strip_prefix("Site.example.com/")?.split_once('/'));
        let near = known["metadata"]["ownerReferences"][0]["name"].as_str();
        let Some((namespace, parent)) = far.or(near.map(|parent| (&*key.namespace, parent))) else { return };
        let parent = Key::new(namespace, parent);
        let is_wanted =
            self.wanted.iter().any(|((_, of), names)| *of == parent && names.contains(&*key.name));
        // A Service is recreated.
        assert!(!is_wanted || kind == "Service", "{key} is deleted, and {parent} wants it");
    }

    /// Writes an object, and tells of it if it differs.
    pub(crate) fn put(&mut self, address: &Address, mut object: Value) {
        let known = self.objects.get(address).cloned();
        if object["metadata"]["uid"].is_null() {
            self.version += 1;
            object["metadata"]["uid"] = format!("uid-{}", self.version).into();
        }
        let without_version = |object: &Value| {
            let mut object = object.clone();
            object["metadata"]["resourceVersion"] = Value::Null;
            object
        };
        if known.as_ref().is_some_and(|known| without_version(known) == without_version(&object)) {
            return;
        }
        if known.as_ref().is_none_or(|known| known["spec"] != object["spec"]) {
            let generation = known
                .as_ref()
                .map_or(0, |known| known["metadata"]["generation"].as_u64().unwrap_or_default());
            object["metadata"]["generation"] = (generation + 1).into();
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let is_over = !object["metadata"]["deletionTimestamp"].is_null()
            && object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if is_over {
            self.objects.remove(address);
        } else {
            self.objects.insert(address.clone(), object.clone());
        }
        self.tell(address, &object, is_over, known.as_ref());
        if is_over || object["metadata"]["ownerReferences"].is_array() {
            self.collect_garbage();
        }
    }

    /// Deletes what belongs to objects that are gone.
    fn collect_garbage(&mut self) {
        let uids: BTreeSet<&str> =
            self.objects.values().filter_map(|object| object["metadata"]["uid"].as_str()).collect();
        let is_orphan = |object: &Value| {
            let owner = object["metadata"]["ownerReferences"][0]["uid"].as_str();
            owner.is_some_and(|owner| !uids.contains(owner))
        };
        let orphans = self.objects.iter().filter(|(_, object)| is_orphan(object));
        let orphans: Vec<Address> = orphans.map(|(address, _)| address.clone()).collect();
        for (kind, key) in orphans {
            self.delete(&kind, &key);
        }
    }

    /// Deletes an object: at once, or when its finalizers are gone.
    pub(crate) fn delete(&mut self, kind: &str, key: &Key) {
        let address = (kind.to_owned(), key.clone());
        let Some(mut object) = self.objects.get(&address).cloned() else { return };
        if object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["deletionTimestamp"] = "now".into();
            self.put(&address, object);
        }
    }

    fn tell(&mut self, address: &Address, object: &Value, is_gone: bool, known: Option<&Value>) {
        let (kind, key) = address;
        let watching = self.monitors.iter().filter(|(_, spec)| spec.selection.kind == *kind);
        // To a watch that does not select it any more, an object is gone.
        let (seeing, losing): (Vec<_>, Vec<_>) = watching.partition(|(_, spec)| is_selected(spec, object));
        let losing =
            losing.into_iter().filter(|(_, spec)| known.is_some_and(|known| is_selected(spec, known)));
        let losing = losing.map(|(id, spec)| (*id, item(spec, object))).collect();
        let seeing = seeing.into_iter().map(|(id, spec)| (*id, item(spec, object))).collect();
        self.tell_all(key, true, losing);
        self.tell_all(key, is_gone, seeing);
    }

    fn tell_all(&mut self, key: &Key, is_gone: bool, items: Vec<(MonitorId, Arc<Item>)>) {
        if items.is_empty() {
            return;
        }
        let event = Event::ObjectChanged { key: key.clone(), is_gone, items };
        // A watch tells in order, sooner or later than the answer to who made the change.
        let last = self.pending.iter().rev().find_map(|((at, _), coming)| {
            matches!(coming, Coming::Event(Event::ObjectChanged { .. })).then_some(*at)
        });
        let delay = self.random.as_mut().map_or(self.watch_lag, |random| random.below(12));
        let at = (self.now + Duration::from_millis(delay)).max(last.unwrap_or(self.now));
        self.pending.insert((at, self.next_seq), Coming::Event(event));
        self.next_seq += 1;
    }

    /// Returns the names of the children that there are of a parent.
    pub(crate) fn children(&self, parent: &str) -> Vec<&str> {
        let is_child = |object: &Value| object["metadata"]["ownerReferences"][0]["name"] == parent;
        self.objects.iter().filter(|(_, object)| is_child(object)).map(|((_, key), _)| &*key.name).collect()
    }

    pub(crate) fn get(&self, kind: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(kind.to_owned(), Key::new("ns", name)))
    }

    /// Returns how many watches there are.
    pub(crate) fn watches(&self) -> usize {
        self.monitors.len()
    }

    /// Returns how many of the engine's own things are kept.
    pub(crate) fn has_work(&self) -> bool {
        self.engine.view().queues.iter().any(|queue| !queue.tasks.is_empty())
    }
}

/// Returns an object as a watch shows it. A filter is a path, `.status.ready`.
fn item(spec: &MonitorSpec, object: &Value) -> Arc<Item> {
    let metadata = spec.selection.only_metadata.then(|| json!({"metadata": object["metadata"]}));
    let text = metadata.as_ref().unwrap_or(object).to_string();
    Arc::new(match &spec.jq_filter {
        None => Item::unfiltered(text.as_bytes().into(), true),
        Some(path) => {
            let result = object.pointer(&path.replace('.', "/")).unwrap_or(&Value::Null).to_string();
            Item::filtered(Some(text.as_bytes().into()), result.as_bytes().into())
        }
    })
}

fn is_selected(spec: &MonitorSpec, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    spec.selection.labels.match_labels.iter().all(|(key, value)| labels[key] == value.as_str())
}

fn without_times(status: &Value) -> Value {
    let mut status = status.clone();
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        condition.as_object_mut().unwrap().remove("lastTransitionTime");
    }
    status
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}

/// Returns what an object is that is applied: what the one in its place is, and who holds it, stays.
fn with_what_stays(object: &Value, known: Option<&Value>) -> Value {
    let mut new = object.clone();
    for field in ["uid", "finalizers", "deletionTimestamp"] {
        if let Some(value) = known.and_then(|known| known["metadata"].get(field)) {
            new["metadata"][field] = value.clone();
        }
    }
    new
}

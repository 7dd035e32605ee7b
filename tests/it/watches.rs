//! Watches against the embedded API server: what hooks would hear, through every fault.

#![expect(clippy::wildcard_enum_match_arm, reason = "watches tell few of all events")]

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use addon_operator::cluster::{Discovery, WatchHealths};
use addon_operator::driver::{self, Channels, Inbox};
use addon_operator::kube::Monitors;
use apiserver::{ApiServer, FaultPlan};
use bytes::Bytes;
use engine::hook::WatchEvent;
use engine::hook::selection::{LabelSelector, MonitorSpec, Namespaces, Selection};
use engine::snapshot::{Change, Key, Snapshot};
use engine::{Event, MonitorId};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::Client;
use kube::client::Body as RequestBody;
use serde_json::{Value, json};
use tower::{Service as _, ServiceExt as _};

use crate::support::server;

/// What one monitor told.
#[derive(Default)]
struct Seen {
    snapshot: Snapshot,
    listed: bool,
    changes: Vec<String>,
    failures: Vec<String>,
    kinds: Vec<String>,
}

impl Seen {
    fn note(&mut self, change: Option<Change>) {
        self.changes.extend(change.map(|change| format!("{} {}", change.event, change.key)));
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Listed { lists } => {
                for (_, list) in lists {
                    for change in self.snapshot.replace(list.into_iter().collect()) {
                        if self.listed {
                            self.note(Some(change));
                        }
                    }
                }
                self.listed = true;
            }
            Event::ObjectChanged { change: WatchEvent::Deleted, key, items } => {
                for (_, item) in items {
                    let change = self.snapshot.remove(&key, Some(item));
                    self.note(change);
                }
            }
            Event::ObjectChanged { key, items, .. } => {
                for (_, item) in items {
                    let change = self.snapshot.put(key.clone(), item);
                    self.note(change);
                }
            }
            Event::NamespaceListed { namespace, objects, .. } => {
                self.snapshot.replace_namespace(&namespace, objects);
            }
            Event::WatchFailed { failure, .. } => self.failures.push(failure.to_string()),
            Event::KindVanished { kind, .. } => self.kinds.push(format!("no {kind}")),
            Event::KindAppeared { .. } => self.kinds.push("there".to_owned()),
            other => panic!("watches do not tell {other:?}"),
        }
    }

    fn keys(&self) -> Vec<String> {
        self.snapshot.iter().map(|(key, _)| key.to_string()).collect()
    }
}

/// Returns what each monitor hears of an event.
fn heard(event: Event) -> Vec<(MonitorId, Event)> {
    match event {
        Event::Listed { lists } => {
            let alone = |list: (MonitorId, _)| (list.0, Event::Listed { lists: vec![list] });
            lists.into_iter().map(alone).collect()
        }
        Event::ObjectChanged { change, key, items } => {
            let alone = |item: (MonitorId, _)| {
                (item.0, Event::ObjectChanged { change, key: key.clone(), items: vec![item] })
            };
            items.into_iter().map(alone).collect()
        }
        Event::NamespaceListed { monitor, .. }
        | Event::WatchFailed { monitor, .. }
        | Event::KindVanished { monitor, .. }
        | Event::KindAppeared { monitor } => vec![(monitor, event)],
        other => panic!("watches do not tell {other:?}"),
    }
}

struct Fixture {
    server: ApiServer,
    monitors: Monitors,
    health: WatchHealths,
    inbox: Inbox,
    channels: Channels,
    seen: BTreeMap<MonitorId, Seen>,
}

impl Fixture {
    fn new() -> Self {
        Self::with(|server| Client::new(server.service(), "default"))
    }

    /// Returns one whose monitors use the client that `connect` makes.
    fn with(connect: impl FnOnce(&ApiServer) -> Client) -> Self {
        let server = ApiServer::builder().seed(1).simulate(Duration::ZERO).build().unwrap();
        let client = connect(&server);
        let monitors = Monitors::new(client.clone(), Discovery::new(client));
        let (inbox, _, channels) = driver::channels();
        let health = monitors.health();
        Self { server, monitors, health, inbox, channels, seen: BTreeMap::new() }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        server::send(&self.server, method, path, body).await
    }

    async fn ok(&self, method: Method, path: &str, body: &Value) -> Value {
        server::ok(&self.server, method, path, body).await
    }

    async fn namespace(&self, name: &str, labels: &Value) {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        self.ok(Method::POST, "/api/v1/namespaces", &object).await;
    }

    async fn label(&self, namespace: &str, labels: &Value) {
        let patch = json!({"metadata": {"labels": labels}});
        self.ok(Method::PATCH, &format!("/api/v1/namespaces/{namespace}"), &patch).await;
    }

    async fn put(&self, namespace: &str, name: &str, data: &str) {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"of": "test"}}, "data": {"is": data}});
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        if self.send(Method::POST, &path, &object).await.0 == 409 {
            self.ok(Method::PUT, &format!("{path}/{name}"), &object).await;
        }
    }

    async fn delete(&self, namespace: &str, name: &str) {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
        self.ok(Method::DELETE, &path, &Value::Null).await;
    }

    fn start(&mut self, monitor: u64, selection: Selection, filter: Option<&str>) -> MonitorId {
        let spec = MonitorSpec { selection, jq_filter: filter.map(ToOwned::to_owned), keep_objects: false };
        let monitor = MonitorId::new(monitor);
        self.monitors.start(monitor, &spec, &self.inbox);
        self.seen.insert(monitor, Seen::default());
        monitor
    }

    /// Starts a monitor and waits for its first list.
    async fn listed(&mut self, monitor: u64, selection: Selection, filter: Option<&str>) -> MonitorId {
        let monitor = self.start(monitor, selection, filter);
        self.until("the first list", |seen| seen[&monitor].listed).await;
        monitor
    }

    /// Takes in what comes until `wanted` holds.
    async fn until(&mut self, what: &str, wanted: impl Fn(&BTreeMap<MonitorId, Seen>) -> bool) {
        let waiting = async {
            while !wanted(&self.seen) {
                let event = self.channels.next_event().await.unwrap();
                for (monitor, event) in heard(event) {
                    self.seen.entry(monitor).or_default().take(event);
                }
            }
        };
        let outcome = tokio::time::timeout(Duration::from_secs(20), waiting).await;
        if outcome.is_err() {
            let all: Vec<_> =
                self.seen.values().map(|s| (s.keys(), &s.changes, &s.failures, &s.kinds)).collect();
            panic!("{what} did not come; seen {all:?}");
        }
    }

    /// Takes in all that comes before a new object `default/sync-<n>` is seen by `monitor`, and forgets that object.
    async fn sync(&mut self, monitor: MonitorId, namespace: &str, name: &str) {
        self.put(namespace, name, "1").await;
        let key = format!("{namespace}/{name}");
        self.until(&key, |seen| seen[&monitor].keys().contains(&key)).await;
        self.delete(namespace, name).await;
        self.until("its end", |seen| !seen[&monitor].keys().contains(&key)).await;
        if let Some(seen) = self.seen.get_mut(&monitor) {
            seen.changes.retain(|change| !change.ends_with(&key));
        }
    }

    fn changes(&mut self, monitor: MonitorId) -> Vec<String> {
        std::mem::take(&mut self.seen.get_mut(&monitor).unwrap().changes)
    }
}

fn config_maps() -> Selection {
    // The server makes ConfigMaps of its own.
    let labels = LabelSelector {
        match_labels: BTreeMap::from([("of".to_owned(), "test".to_owned())]),
        match_expressions: Vec::new(),
    };
    Selection { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned(), labels, ..Selection::default() }
}

fn labelled(key: &str, value: &str) -> Selection {
    let labels = LabelSelector {
        match_labels: BTreeMap::from([(key.to_owned(), value.to_owned())]),
        match_expressions: Vec::new(),
    };
    Selection { namespaces: Namespaces::Labelled(labels), ..config_maps() }
}

#[tokio::test]
async fn a_kind_without_namespaces_is_not_looked_for_in_one() {
    let mut world = Fixture::new();
    let all = Selection { kind: "Namespace".to_owned(), ..Selection::default() };
    let named = Namespaces::Named(std::iter::once("default".to_owned()).collect());
    let labelled = labelled("team", "a").namespaces;
    for (monitor, namespaces) in [(1, named), (2, labelled)] {
        let monitor = world.start(monitor, Selection { namespaces, ..all.clone() }, None);
        world.until("the failure", |seen| !seen[&monitor].failures.is_empty()).await;
        assert_eq!(
            world.seen[&monitor].failures,
            ["kind Namespace has no namespaces: remove `namespace` from the binding"]
        );
        assert!(!world.seen[&monitor].listed, "it was listed");
    }
    assert!(world.health.all().iter().all(|watch| watch.error.is_none()), "a restart would not help");
    world.listed(3, all, None).await;
}

#[tokio::test]
async fn f_c9_objects_come_and_go_with_their_namespaces_without_events() {
    let mut world = Fixture::new();
    world.namespace("in", &json!({"team": "a"})).await;
    world.namespace("out", &json!({"team": "b"})).await;
    world.put("in", "one", "1").await;
    world.put("out", "two", "1").await;
    let monitor = world.listed(1, labelled("team", "a"), None).await;
    assert_eq!(world.seen[&monitor].keys(), ["in/one"]);
    world.label("out", &json!({"team": "a"})).await;
    world.until("the namespace", |seen| seen[&monitor].keys().len() == 2).await;
    world.put("out", "three", "1").await;
    world.until("an event", |seen| !seen[&monitor].changes.is_empty()).await;
    assert_eq!(world.changes(monitor), ["Added out/three"]);
    world.put("out", "two", "2").await;
    world.until("an event", |seen| !seen[&monitor].changes.is_empty()).await;
    assert_eq!(world.changes(monitor), ["Modified out/two"]);
    world.label("in", &json!({"team": null})).await;
    world.until("the end", |seen| !seen[&monitor].keys().contains(&"in/one".to_owned())).await;
    world.put("in", "four", "1").await;
    world.sync(monitor, "out", "sync").await;
    assert!(world.changes(monitor).is_empty());
    assert_eq!(world.seen[&monitor].keys(), ["out/three", "out/two"]);
}

#[tokio::test]
async fn f_c9_objects_of_a_namespace_that_is_deleted_are_told_before_they_are_forgotten() {
    let mut world = Fixture::new();
    world.namespace("stays", &json!({"team": "a"})).await;
    world.namespace("goes", &json!({"team": "a"})).await;
    world.put("goes", "one", "1").await;
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "labels": {"of": "test"}, "finalizers": ["x/y"]}});
    world.ok(Method::POST, "/api/v1/namespaces/goes/configmaps", &held).await;
    let monitor = world.listed(1, labelled("team", "a"), None).await;
    world.ok(Method::DELETE, "/api/v1/namespaces/goes", &Value::Null).await;
    world.until("a deletion", |seen| seen[&monitor].changes.iter().any(|c| c == "Deleted goes/one")).await;
    assert!(world.seen[&monitor].keys().contains(&"goes/held".to_owned()));
    let free = json!({"metadata": {"finalizers": null}});
    world.ok(Method::PATCH, "/api/v1/namespaces/goes/configmaps/held", &free).await;
    world.until("the last one", |seen| seen[&monitor].changes.iter().any(|c| c == "Deleted goes/held")).await;
    assert!(!world.seen[&monitor].keys().iter().any(|key| key.starts_with("goes/")));
}

#[tokio::test]
async fn f_c4_after_a_forgotten_version_only_the_difference_is_told() {
    let mut world = Fixture::new();
    for name in ["a", "b", "c"] {
        world.put("default", name, "1").await;
    }
    let monitor = world.listed(1, config_maps(), Some(".data")).await;
    world.sync(monitor, "default", "sync").await;
    // While no watch can be opened, things happen, and their versions are forgotten.
    let watches = "/api/v1/configmaps?*watch=true*";
    world.server.faults().add(FaultPlan::on(Method::GET, watches).times(2).fail(500));
    world.server.faults().drop_watches();
    world.delete("default", "a").await;
    world.put("default", "b", "2").await;
    world.put("default", "d", "1").await;
    world.server.faults().expire_revisions();
    world.until("the difference", |seen| seen[&monitor].changes.len() >= 3).await;
    world.sync(monitor, "default", "sync-again").await;
    assert_eq!(world.changes(monitor), ["Deleted default/a", "Modified default/b", "Added default/d"]);
}

#[tokio::test]
async fn f_c5_monitors_of_one_selection_share_a_watch_and_leave_it_one_by_one() {
    let mut world = Fixture::new();
    world.put("default", "a", "1").await;
    let first = world.listed(1, config_maps(), None).await;
    // One that joins later gets its list, and the others hear nothing of it.
    let second = world.listed(2, config_maps(), Some(".data.is")).await;
    assert!(world.changes(first).is_empty());
    assert_eq!(world.health.all().len(), 1);
    world.put("default", "b", "1").await;
    world.until("both", |seen| seen.values().all(|seen| seen.changes == ["Added default/b"])).await;
    world.monitors.stop(first);
    world.changes(second);
    world.delete("default", "a").await;
    world.until("the end", |seen| seen[&second].changes == ["Deleted default/a"]).await;
    world.monitors.stop(second);
    assert!(world.health.all().is_empty());
}

#[tokio::test]
async fn a_filter_that_fails_on_one_object_does_not_hurt_others_of_the_same_watch() {
    let mut world = Fixture::new();
    world.put("default", "a", "x").await;
    let bad = world.start(1, config_maps(), Some(".data.is | tonumber"));
    let good = world.start(2, config_maps(), Some(".data.is"));
    world.until("the good list", |seen| seen[&good].listed && !seen[&bad].failures.is_empty()).await;
    assert!(!world.seen[&bad].listed);
    let failure = &world.seen[&bad].failures[0];
    assert!(failure.contains("filter of object default/a: tonumber cannot be applied"), "{failure}");
    world.put("default", "b", "1").await;
    world.until("an event", |seen| seen[&good].changes == ["Added default/b"]).await;
    assert!(world.health.all().iter().all(|health| health.error.is_none()));
    // An object that is mended is listed at the next attempt.
    world.put("default", "a", "1").await;
    world.until("the other list", |seen| seen[&bad].listed).await;
    assert_eq!(world.seen[&bad].keys(), ["default/a", "default/b"]);
}

#[tokio::test]
async fn a_filter_without_end_is_stopped_and_its_watch_goes_on() {
    let mut world = Fixture::new();
    world.put("default", "a", "x").await;
    let bad = world.start(1, config_maps(), Some("def f: f; f"));
    let good = world.start(2, config_maps(), Some(".data.is"));
    world.until("its failure", |seen| !seen[&bad].failures.is_empty() && seen[&good].listed).await;
    let failure = &world.seen[&bad].failures[0];
    // Other tests of this process may let its memory grow meanwhile.
    let is_limit = failure.contains("longer than 5 s") || failure.contains("MiB");
    assert!(is_limit && failure.contains("filter of object default/a: the filter"), "{failure}");
    world.put("default", "b", "1").await;
    world.until("an event", |seen| seen[&good].changes == ["Added default/b"]).await;
}

#[tokio::test]
async fn f_c6_monitors_that_start_and_stop_a_thousand_times_leave_no_watch_behind() {
    let mut world = Fixture::new();
    world.put("default", "a", "1").await;
    for round in 0..1_000 {
        let monitor = world.start(round, config_maps(), None);
        if round % 7 == 0 {
            world.until("a list", |seen| seen[&monitor].listed).await;
        }
        world.monitors.stop(monitor);
        world.seen.clear();
    }
    assert!(world.health.all().is_empty());
    let monitor = world.start(1_000, config_maps(), None);
    world.until("a list", |seen| seen.get(&monitor).is_some_and(|seen| seen.listed)).await;
    assert_eq!(world.seen[&monitor].keys(), ["default/a"]);
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

/// A client that notes the paths of its requests.
fn noting(server: &ApiServer, paths: &Arc<std::sync::Mutex<Vec<String>>>) -> Client {
    let paths = Arc::clone(paths);
    let service = server.service().map_request(move |request: Request<RequestBody>| {
        paths.lock().unwrap().push(request.uri().to_string());
        request
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn crds_are_watched_only_for_kinds_that_can_come_and_go() {
    let paths = Arc::default();
    let mut world = Fixture::with(|server| noting(server, &paths));
    let asked = || paths.lock().unwrap().iter().any(|path| path.contains("customresourcedefinitions"));
    world.listed(1, config_maps(), None).await;
    assert!(!asked());
    let things = Selection { kind: "Thing".to_owned(), ..Selection::default() };
    let monitor = world.start(2, things, None);
    world.until("the missing kind", |seen| seen[&monitor].kinds == ["no Thing"]).await;
    world.ok(Method::POST, CRDS, &crd()).await;
    world.until("the kind", |seen| seen[&monitor].listed).await;
    assert!(asked());
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}});
    world.ok(Method::POST, "/apis/example.com/v1/namespaces/default/things", &thing).await;
    world.until("an event", |seen| seen[&monitor].changes == ["Added default/x"]).await;
    world.ok(Method::DELETE, &format!("{CRDS}/things.example.com"), &Value::Null).await;
    world.until("the end", |seen| seen[&monitor].kinds == ["no Thing", "there", "no Thing"]).await;
    world.ok(Method::POST, CRDS, &crd()).await;
    world.until("the kind again", |seen| seen[&monitor].kinds.len() == 4).await;
}

type AnyBody = http_body_util::combinators::UnsyncBoxBody<Bytes, tower::BoxError>;

/// Returns an answer whose body may be any.
fn passed_on<B>(response: Response<B>) -> Response<AnyBody>
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    response.map(|body| body.map_err(Into::into).boxed_unsync())
}

/// A client that is told of the groups that there were at its first question, `lag` more times.
fn lagging(server: &ApiServer, lag: &Arc<AtomicUsize>) -> Client {
    let (server, lag) = (server.service(), Arc::clone(lag));
    let first = Arc::new(tokio::sync::Mutex::new(None));
    let service = tower::service_fn(move |request: Request<RequestBody>| {
        let (mut server, lag, first) = (server.clone(), Arc::clone(&lag), Arc::clone(&first));
        async move {
            let asks_for_groups = request.uri().path() == "/apis";
            let response = server.call(request).await?;
            if !asks_for_groups {
                return Ok::<_, tower::BoxError>(passed_on(response));
            }
            let (head, body) = response.into_parts();
            let now = body.collect().await?.to_bytes();
            let old: Bytes = first.lock().await.get_or_insert_with(|| now.clone()).clone();
            let is_behind =
                lag.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
            let body = Full::new(if is_behind { old } else { now });
            Ok(passed_on(Response::from_parts(head, body)))
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_served_later_than_its_crd_is_told_of_is_found_soon() {
    let lag = Arc::new(AtomicUsize::new(0));
    let mut world = Fixture::with(|server| lagging(server, &lag));
    let things = Selection { kind: "Thing".to_owned(), ..Selection::default() };
    let monitor = world.start(1, things, None);
    world.until("the missing kind", |seen| seen[&monitor].kinds == ["no Thing"]).await;
    // So long that it is looked for once a minute only.
    tokio::time::sleep(Duration::from_mins(10)).await;
    lag.store(7, Ordering::SeqCst);
    world.ok(Method::POST, CRDS, &crd()).await;
    world.until("the kind", |seen| seen[&monitor].listed).await;
    assert_eq!(lag.load(Ordering::SeqCst), 0, "the API server was behind");
}

/// A body of a watch that says nothing, and never ends.
struct Silence;

impl hyper::body::Body for Silence {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, std::io::Error>>> {
        Poll::Pending
    }
}

/// A client whose connections die when `dead` becomes true: watches become silent, new requests get no answer.
fn dying(server: &ApiServer, dead: &Arc<AtomicBool>) -> Client {
    let (server, dead) = (server.service(), Arc::clone(dead));
    let service = tower::service_fn(move |request: Request<RequestBody>| {
        let (mut server, dead) = (server.clone(), Arc::clone(&dead));
        async move {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            if dead.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            if is_watch {
                return Ok::<_, tower::BoxError>(passed_on(Response::new(Silence)));
            }
            Ok(passed_on(server.call(request).await?))
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn f_c2_a_connection_that_died_in_silence_is_found_within_a_minute() {
    let dead = Arc::new(AtomicBool::new(false));
    let mut world = Fixture::with(|server| dying(server, &dead));
    world.listed(1, config_maps(), None).await;
    let begun = tokio::time::Instant::now();
    dead.store(true, Ordering::SeqCst);
    let broken = loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let broken = world.health.all().into_iter().find(|health| health.error.is_some());
        if let Some(broken) = broken {
            break broken;
        }
        assert!(begun.elapsed() < Duration::from_secs(61), "nobody has noticed");
    };
    assert_eq!(broken.name, "v1/ConfigMap, labels of=test");
    assert!(broken.error.unwrap().contains("silent"));
    // What counts for health is the last sign of life.
    assert!(broken.since.duration_since(begun) < Duration::from_secs(1));
    dead.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert!(world.health.all().iter().all(|health| health.error.is_none()), "it did not recover");
}

#[tokio::test(start_paused = true)]
async fn f_c3_a_binding_that_fails_a_thousand_times_delays_no_other() {
    const ROUNDS: usize = 1_000;
    const FIFTHS: usize = 5;
    let (mut alone, mut beside) = (Fixture::new(), Fixture::new());
    let secrets = Selection { kind: "Secret".to_owned(), ..config_maps() };
    let monitor = alone.listed(1, config_maps(), None).await;
    assert_eq!(beside.listed(1, config_maps(), None).await, monitor);
    beside.server.faults().add(FaultPlan::on(Method::GET, "/api/v1/secrets*").times(u64::MAX).fail(403));
    let bad = beside.start(2, secrets, None);
    let (mut times_alone, mut times_beside) = (Vec::new(), Vec::new());
    // One after the other, so that both meet the same moods of the machine.
    for round in 0..ROUNDS {
        times_alone.push(latency(&mut alone, monitor, round).await);
        times_beside.push(latency(&mut beside, monitor, round).await);
    }
    let failures = beside.seen[&bad].failures.len();
    assert!(failures >= ROUNDS, "{failures}");
    // The machine has moods that last; a delay that the other binding makes would show in every fifth.
    let calm = times_alone
        .chunks_mut(ROUNDS / FIFTHS)
        .zip(times_beside.chunks_mut(ROUNDS / FIFTHS))
        .map(|(alone, beside)| (at(alone, 99), at(beside, 99)))
        .filter(|(alone, beside)| {
            eprintln!("p99 {alone:?} alone, {beside:?} beside one that fails");
            *beside <= alone.mul_f64(1.2)
        })
        .count();
    assert!(calm >= 2, "in {calm} of {FIFTHS} parts of the time the p99 stayed within 1.2 times");
    let (alone, beside) = (at(&mut times_alone, 50), at(&mut times_beside, 50));
    assert!(beside <= alone.mul_f64(1.2) + Duration::from_millis(1), "{alone:?} alone, {beside:?} beside");
}

/// Returns the time within which so many of a hundred were done.
fn at(times: &mut [Duration], percent: usize) -> Duration {
    let place = (times.len() - 1) * percent / 100;
    *times.select_nth_unstable(place).1
}

/// Returns how long a change took. Before it so much pretended time passes that whatever fails is tried again.
async fn latency(world: &mut Fixture, monitor: MonitorId, round: usize) -> Duration {
    tokio::time::sleep(Duration::from_secs(37)).await;
    let key = Key::new("default", "x");
    let state = |seen: &BTreeMap<MonitorId, Seen>| {
        seen.get(&monitor).and_then(|seen| seen.snapshot.get(&key)).map(|item| item.checksum())
    };
    let before = state(&world.seen);
    let begun = std::time::Instant::now();
    world.put("default", "x", &round.to_string()).await;
    world.until("a change", |seen| state(seen) != before).await;
    begun.elapsed()
}

/// A client whose watch of config maps tells `events` changes of ten objects, as fast as anybody reads them.
fn flood(server: &ApiServer, events: usize, told: &Arc<AtomicUsize>) -> Client {
    use futures::StreamExt as _;

    let (server, told) = (server.service(), Arc::clone(told));
    let service = tower::service_fn(move |request: Request<RequestBody>| {
        let (mut server, told) = (server.clone(), Arc::clone(&told));
        async move {
            let uri = request.uri().to_string();
            if !uri.contains("configmaps") || !uri.contains("watch=true") {
                return Ok::<_, tower::BoxError>(passed_on(server.call(request).await?));
            }
            let chunks = (0..events / 100).map(move |chunk| {
                let lines: String = (chunk * 100..chunk * 100 + 100).map(flood_line).collect();
                told.fetch_add(100, Ordering::SeqCst);
                Ok::<_, tower::BoxError>(hyper::body::Frame::data(Bytes::from(lines)))
            });
            let chunks = futures::stream::iter(chunks).chain(futures::stream::pending());
            Ok(passed_on(Response::new(StreamBody::new(chunks))))
        }
    });
    Client::new(service, "default")
}

/// Every hundredth round an object goes, and comes back.
fn flood_line(n: usize) -> String {
    let (name, round) = (n % 10, n / 10);
    let event = match round % 100 {
        98 => "DELETED",
        99 => "ADDED",
        _ => "MODIFIED",
    };
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"round": round.to_string()},
        "metadata": {"name": format!("o{name}"), "namespace": "default", "resourceVersion": (1_000_000 + n).to_string()}});
    format!("{}\n", json!({"type": event, "object": object}))
}

#[tokio::test]
async fn a_flood_of_events_ends_in_the_right_snapshot_and_loses_no_deletion() {
    const EVENTS: usize = 50_000;
    let told = Arc::default();
    let mut world = Fixture::with(|server| flood(server, EVENTS, &told));
    let monitor = world.listed(1, config_maps(), Some(".data.round | tonumber")).await;
    // Nobody reads for a while: the flood has to wait outside.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(told.load(Ordering::SeqCst) < EVENTS / 2, "{} were taken", told.load(Ordering::SeqCst));
    let last = (EVENTS / 10 - 1).to_string();
    let done = |seen: &BTreeMap<MonitorId, Seen>| {
        let all: Vec<_> = seen[&monitor].snapshot.iter().collect();
        all.len() == 10 && all.iter().all(|(_, item)| item.filter_result() == Some(last.as_bytes()))
    };
    world.until("the last state", done).await;
    let changes = world.changes(monitor);
    let deletions = changes.iter().filter(|change| change.starts_with("Deleted")).count();
    assert_eq!(deletions, EVENTS / 1_000 * 10);
    let of_one: Vec<&str> = changes.iter().filter_map(|change| change.strip_suffix(" default/o3")).collect();
    for pair in of_one.windows(2) {
        assert_eq!(pair[0] == "Deleted", pair[1] == "Added", "{pair:?}");
    }
}

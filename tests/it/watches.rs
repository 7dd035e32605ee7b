//! Watches against the embedded API server: what hooks would hear, through every fault.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use apiserver::{ApiServer, FaultPlan};
use bytes::Bytes;
use engine::MonitorId;
use engine::hook::selection::{Namespaces, Selection};
use engine::snapshot::Key;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::Client;
use kube::client::Body as RequestBody;
use serde_json::{Value, json};
use tower::Service as _;

use crate::support::server::crd;
use crate::support::watching::{Fixture, Seen, config_maps, labelled, noting};

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
    assert!(world.seen.values().all(|seen| !seen.is_broken), "it is the binding that is wrong");
    world.listed(3, all, None).await;
}

#[tokio::test]
async fn a_watch_of_metadata_is_shown_nothing_else_of_what_is_there_and_of_what_comes() {
    let mut world = Fixture::new();
    world.namespace("in", &json!({})).await;
    world.put("in", "one", "1").await;
    let selection = Selection { only_metadata: true, ..config_maps() };
    let monitor = world.listed(1, selection, Some("[.metadata.name, .data]")).await;
    world.put("in", "two", "1").await;
    world.until("an event", |seen| !seen[&monitor].changes.is_empty()).await;
    for name in ["one", "two"] {
        let item = world.seen[&monitor].snapshot.get(&Key::new("in", name)).unwrap().clone();
        let shown: Value = serde_json::from_slice(item.filter_result().unwrap()).unwrap();
        assert_eq!(shown, json!([name, null]));
    }
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

#[tokio::test(start_paused = true)]
async fn f_c4_what_can_not_be_watched_from_its_version_is_listed_anew() {
    let mut world = Fixture::new();
    for name in ["a", "b", "c"] {
        world.put("default", name, "1").await;
    }
    let monitor = world.listed(1, config_maps(), Some(".data")).await;
    world.sync(monitor, "default", "sync").await;
    // As an API server answers to whom it has not reached the version yet, and never will: it was set back.
    let watches = "/api/v1/configmaps?*watch=true*";
    world.server.faults().add(FaultPlan::on(Method::GET, watches).times(u64::MAX).fail(504));
    world.server.faults().drop_watches();
    world.delete("default", "a").await;
    world.put("default", "b", "2").await;
    world.put("default", "d", "1").await;
    world.until("the difference", |seen| seen[&monitor].changes.len() >= 3).await;
    world.during(Duration::from_mins(5)).await;
    assert_eq!(world.changes(monitor), ["Deleted default/a", "Modified default/b", "Added default/d"]);
}

#[tokio::test]
async fn f_c5_monitors_of_one_selection_share_a_watch_and_leave_it_one_by_one() {
    let paths = Arc::default();
    let mut world = Fixture::with(|server| noting(server, &paths));
    let opened = || paths.lock().unwrap().iter().filter(|path| path.contains("watch=true")).count();
    world.put("default", "a", "1").await;
    let first = world.listed(1, config_maps(), None).await;
    // One that joins later gets its list, and the others hear nothing of it.
    let second = world.listed(2, config_maps(), Some(".data.is")).await;
    assert!(world.changes(first).is_empty());
    world.put("default", "b", "1").await;
    world.until("both", |seen| seen.values().all(|seen| seen.changes == ["Added default/b"])).await;
    assert_eq!(opened(), 1);
    world.monitors.stop(first);
    world.changes(second);
    world.delete("default", "a").await;
    world.until("the end", |seen| seen[&second].changes == ["Deleted default/a"]).await;
    world.monitors.stop(second);
    world.seen.clear();
    world.put("default", "c", "1").await;
    world.during(Duration::from_millis(50)).await;
    assert!(world.seen.is_empty(), "it lives on");
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
    assert!(world.seen.values().all(|seen| !seen.is_broken));
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
    let paths = Arc::default();
    let mut world = Fixture::with(|server| noting(server, &paths));
    world.put("default", "a", "1").await;
    for round in 0..1_000 {
        let monitor = world.start(round, config_maps(), None);
        if round % 7 == 0 {
            world.until("a list", |seen| seen[&monitor].listed).await;
        }
        world.monitors.stop(monitor);
        world.seen.clear();
    }
    // What is left of a watch would be opened again within a minute.
    world.during(Duration::from_millis(1)).await;
    paths.lock().unwrap().clear();
    tokio::time::pause();
    world.during(Duration::from_mins(2)).await;
    assert_eq!(paths.lock().unwrap().len(), 0);
    let monitor = world.start(1_000, config_maps(), None);
    world.until("a list", |seen| seen.get(&monitor).is_some_and(|seen| seen.listed)).await;
    assert_eq!(world.seen[&monitor].keys(), ["default/a"]);
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

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
    let monitor = world.listed(1, config_maps(), None).await;
    let begun = tokio::time::Instant::now();
    dead.store(true, Ordering::SeqCst);
    world.until("a failure", |seen| seen[&monitor].is_broken).await;
    assert!(begun.elapsed() < Duration::from_secs(61), "nobody has noticed for {:?}", begun.elapsed());
    let failure = world.seen[&monitor].failures.concat();
    assert!(
        failure.contains("watch of v1/ConfigMap, labels of=test") && failure.contains("silent"),
        "{failure}"
    );
    dead.store(false, Ordering::SeqCst);
    world.during(Duration::from_secs(40)).await;
    assert!(!world.seen[&monitor].is_broken, "it did not recover");
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

#[tokio::test(start_paused = true)]
async fn f_c3_a_kind_that_is_gone_for_good_delays_no_other_binding() {
    let mut world = Fixture::new();
    world.ok(Method::POST, CRDS, &crd()).await;
    let things = Selection { kind: "Thing".to_owned(), ..Selection::default() };
    let gone = world.listed(2, things, None).await;
    let monitor = world.listed(1, config_maps(), None).await;
    world.ok(Method::DELETE, &format!("{CRDS}/things.example.com"), &Value::Null).await;
    world.until("the end of the kind", |seen| seen[&gone].kinds == ["no Thing"]).await;
    for round in 0..100 {
        // Long enough for the kind to be looked for again.
        tokio::time::sleep(Duration::from_secs(37)).await;
        let begun = tokio::time::Instant::now();
        world.put("default", "x", &round.to_string()).await;
        world.until("a change", |seen| !seen[&monitor].changes.is_empty()).await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "the change of round {round} had to wait");
        world.changes(monitor);
    }
    world.ok(Method::POST, CRDS, &crd()).await;
    world.until("the kind", |seen| seen[&gone].kinds == ["no Thing", "there"]).await;
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
        // The list was empty.
        _ if round == 0 => "ADDED",
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
    assert_eq!(of_one[..2], ["Added", "Modified"], "a hook on one of the two types misses nothing");
    for pair in of_one.windows(2) {
        assert_eq!(pair[0] == "Deleted", pair[1] == "Added", "{pair:?}");
    }
}

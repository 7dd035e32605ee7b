//! Watches that the API server refuses, ends or forgets: how often it is asked, and what hooks miss.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_operator::cluster::{Discovery, RateLimit, connect_in_process};
use addon_operator::config::Parameters;
use addon_operator::driver;
use addon_operator::kube::ConfigSource;
use apiserver::{ApiServer, FaultPlan};
use engine::ConfigObject;
use engine::hook::selection::Selection;
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tower::{Layer as _, Service as _};

use crate::support::server::crd;
use crate::support::watching::{Fixture, Seen, config_maps, labelled, noting};

const LISTS: &str = "/api/v1/configmaps?limit=*";
const WATCHES: &str = "/api/v1/configmaps?*watch=true*";

#[tokio::test(start_paused = true)]
async fn slip_02_what_the_api_server_refuses_is_asked_for_ever_more_seldom_and_comes_back() {
    let faults = [
        ("a watch that is forbidden", FaultPlan::on(Method::GET, WATCHES).fail(403)),
        ("a list that is forbidden", FaultPlan::on(Method::GET, LISTS).fail(403)),
        ("a version that is forgotten again and again", FaultPlan::on(Method::GET, WATCHES).fail(410)),
        ("a list that is forgotten again and again", FaultPlan::on(Method::GET, LISTS).fail(410)),
        ("a kind that can't be watched", FaultPlan::on(Method::GET, WATCHES).fail(405)),
        ("a kind that is found but not served", FaultPlan::on(Method::GET, WATCHES).fail(404)),
        ("too many requests", FaultPlan::on(Method::GET, WATCHES).too_many_requests(1)),
        ("a broken API server", FaultPlan::on(Method::GET, WATCHES).fail(500)),
        ("a connection that is cut", FaultPlan::on(Method::GET, WATCHES).cut()),
    ];
    for (what, fault) in faults {
        let paths: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut world = Fixture::with(|server| noting(server, &paths));
        let monitor = world.listed(1, config_maps(), None).await;
        world.sync(monitor, "default", "sync").await;
        // A fault that begins while all is well begins with the next watch.
        world.server.faults().add(fault.times(u64::MAX));
        if what.starts_with("a list") {
            world.server.faults().add(FaultPlan::on(Method::GET, WATCHES).fail(410));
        }
        world.server.faults().drop_watches();
        world.server.faults().expire_revisions();
        paths.lock().unwrap().clear();
        world.during(Duration::from_mins(10)).await;
        assert!(world.seen[&monitor].is_broken, "{what} is shown nowhere");
        assert_eq!(world.seen[&monitor].is_forbidden, what.ends_with("forbidden"), "{what}");
        let asked = paths.lock().unwrap().iter().filter(|path| path.contains("configmaps")).count();
        // As client-go: after 0.8 s, 1.6 s … and then twice a minute; a round may be a list and a watch.
        assert!((10..=64).contains(&asked), "{what}: {asked} requests in ten minutes");
        world.server.faults().clear();
        world.put("default", "late", "1").await;
        let is_seen = |keys: Vec<String>| keys.contains(&"default/late".to_owned());
        world.until("the object", |seen| is_seen(seen[&monitor].keys())).await;
        world.until("the end of the trouble", |seen| !seen[&monitor].is_broken).await;
    }
}

#[tokio::test(start_paused = true)]
async fn slip_01_a_monitor_that_joins_a_watch_of_a_missing_kind_is_told_so_at_once() {
    let mut world = Fixture::new();
    let things =
        Selection { api_version: "example.com/v1".into(), kind: "Thing".into(), ..Selection::default() };
    let first = world.start(1, things.clone(), None);
    let is_told = |seen: &Seen| seen.kinds == ["no example.com/v1/Thing"];
    world.until("the missing kind", |seen| is_told(&seen[&first])).await;
    for (late, nth) in [(2, 1), (3, 40)] {
        // The kind was looked for a few times, and each time it was missing.
        world.during(Duration::from_secs(nth)).await;
        let begun = tokio::time::Instant::now();
        let late = world.start(late, things.clone(), Some(".spec"));
        world.until("what the first one was told", |seen| is_told(&seen[&late])).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
    world.during(Duration::from_mins(5)).await;
    assert!(world.seen.values().all(is_told), "nobody is told twice");
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    world.ok(Method::POST, crds, &crd()).await;
    world.until("all lists", |seen| seen.values().all(|seen| seen.listed && seen.kinds.len() == 2)).await;
}

#[tokio::test(start_paused = true)]
async fn slip_01_a_monitor_that_joins_a_watch_that_is_refused_is_told_so_at_once() {
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut world = Fixture::with(|server| noting(server, &paths));
    world.server.faults().add(FaultPlan::on(Method::GET, LISTS).times(u64::MAX).fail(403));
    let first = world.start(1, config_maps(), None);
    world.until("the refusal", |seen| seen[&first].is_forbidden).await;
    world.during(Duration::from_mins(5)).await;
    let (told, asked) = (world.seen[&first].failures.len(), paths.lock().unwrap().len());
    let begun = tokio::time::Instant::now();
    let late = world.start(2, config_maps(), Some(".data"));
    world.until("the refusal", |seen| seen[&late].is_forbidden).await;
    // The API server is not asked more often for it.
    assert_eq!((begun.elapsed(), paths.lock().unwrap().len()), (Duration::ZERO, asked));
    assert_eq!(world.seen[&first].failures.len(), told);
    world.server.faults().clear();
    world.until("both lists", |seen| seen.values().all(|seen| seen.listed)).await;
}

#[tokio::test(start_paused = true)]
async fn slip_02_one_forgotten_version_and_a_watch_that_ends_now_and_then_are_no_trouble() {
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut world = Fixture::with(|server| noting(server, &paths));
    let monitor = world.listed(1, config_maps(), None).await;
    for _ in 0..20 {
        world.during(Duration::from_mins(3)).await;
        world.server.faults().drop_watches();
        world.during(Duration::from_mins(3)).await;
        world.server.faults().add(FaultPlan::on(Method::GET, WATCHES).fail(410));
    }
    assert_eq!(world.seen[&monitor].failures, Vec::<String>::new());
    let lists = paths.lock().unwrap().iter().filter(|path| path.contains("configmaps?limit")).count();
    assert_eq!(lists, 20, "one, and one for each version that was forgotten but the last");
}

#[tokio::test(start_paused = true)]
async fn slip_02_the_config_map_is_asked_for_ever_more_seldom_and_its_watch_is_told_of() {
    let server = ApiServer::builder().seed(1).build().unwrap();
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    let client = noting(&server, &paths);
    server.faults().add(FaultPlan::on(Method::GET, "*watch=true*").times(u64::MAX).fail(410));
    server.faults().add(FaultPlan::on(Method::GET, "/api/v1/*?*watch=true*").times(u64::MAX).fail(410));
    let (inbox, _, mut channels) = driver::channels();
    let told: Arc<Mutex<Vec<(String, bool)>>> = Arc::default();
    let discovery = Discovery::new(client.clone());
    let telling = Arc::clone(&told);
    discovery.watch_reports().listen(move |watch, error| {
        telling.lock().unwrap().push((watch.to_owned(), error.is_some()));
    });
    let source = ConfigSource::new(ConfigObject::ConfigMap, client, "default", "addon-operator");
    let parameters = Parameters::new(tracing::Level::INFO, |_| {});
    tokio::spawn(source.feed(&discovery.watch_reports()).follow(inbox, parameters));
    let drain = async { while channels.next_event().await.is_some() {} };
    let _ = tokio::time::timeout(Duration::from_mins(10), drain).await;
    let asked = paths.lock().unwrap().len();
    assert!((10..=64).contains(&asked), "{asked} requests in ten minutes");
    server.faults().clear();
    let drain = async { while channels.next_event().await.is_some() {} };
    let _ = tokio::time::timeout(Duration::from_mins(1), drain).await;
    let told = told.lock().unwrap();
    assert!(told.iter().all(|(watch, _)| watch == "ConfigMap default/addon-operator"), "{told:?}");
    assert_eq!(told.first().map(|(_, broken)| *broken), Some(true));
    assert_eq!(told.iter().filter(|(_, broken)| !broken).count(), 1, "{told:?}");
    assert_eq!(told.last().map(|(_, broken)| *broken), Some(false), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_works_for_moments_only_is_told_until_it_lasts() {
    let mut world = Fixture::new();
    let monitor = world.listed(1, config_maps(), None).await;
    for round in 0..60 {
        world.put("default", "busy", &round.to_string()).await;
        world.during(Duration::from_secs(3)).await;
        world.server.faults().drop_watches();
        // A few short lives are no news. Behind them it never counts as one that works.
        assert!(round < 6 || world.seen[&monitor].is_broken, "after {round} rounds");
        assert!(round > 3 || world.seen[&monitor].failures.is_empty(), "after {round} rounds");
    }
    let told = world.seen[&monitor].failures.concat();
    assert!(told.contains("ends the watch within 30 s, again and again"), "{told}");
    let begun = tokio::time::Instant::now();
    world.until("the end of the trouble", |seen| !seen[&monitor].is_broken).await;
    assert!((25..40).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    // Nothing was lost meanwhile.
    world.put("default", "busy", "last").await;
    world.until("the last change", |seen| seen[&monitor].changes.len() == 61).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_the_operator_itself_that_works_for_moments_only_is_told_until_it_lasts() {
    let server = ApiServer::builder().seed(1).build().unwrap();
    let (inbox, _questions, mut channels) = driver::channels();
    let told: Arc<Mutex<Vec<bool>>> = Arc::default();
    let client = Client::new(server.service(), "default");
    let discovery = Discovery::new(client.clone());
    let telling = Arc::clone(&told);
    discovery.watch_reports().listen(move |_, error| telling.lock().unwrap().push(error.is_some()));
    let source = ConfigSource::new(ConfigObject::ConfigMap, client, "default", "addon-operator");
    let parameters = Parameters::new(tracing::Level::INFO, |_| {});
    tokio::spawn(source.feed(&discovery.watch_reports()).follow(inbox, parameters));
    let mut pass = async |seconds: u64| {
        let drain = async { while channels.next_event().await.is_some() {} };
        let _ = tokio::time::timeout(Duration::from_secs(seconds), drain).await;
    };
    for _ in 0..40 {
        pass(3).await;
        server.faults().drop_watches();
    }
    assert!(told.lock().unwrap().len() > 30 && told.lock().unwrap().iter().all(|broken| *broken));
    pass(60).await;
    assert_eq!(told.lock().unwrap().last(), Some(&false));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_our_own_limit_is_no_failure_of_the_api_server() {
    // The kinds and the list pass at once; the watch has to wait for longer than an answer may take.
    let limit = RateLimit::new(0.02, 3);
    let mut world = Fixture::with(|server| connect_in_process(limit.layer(server.service()), "default"));
    let begun = tokio::time::Instant::now();
    let monitor = world.listed(1, config_maps(), None).await;
    world.put("default", "late", "1").await;
    world.until("the change", |seen| !seen[&monitor].changes.is_empty()).await;
    assert!(begun.elapsed() > Duration::from_secs(45), "{:?}", begun.elapsed());
    assert_eq!(world.seen[&monitor].failures, Vec::<String>::new());
}

/// A client whose first watch panics, and the second list.
fn panicking(server: &ApiServer) -> Client {
    let (server, counts) = (server.service(), Arc::new(Mutex::new([0, 0])));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (mut server, counts) = (server.clone(), Arc::clone(&counts));
        async move {
            let uri = request.uri().to_string();
            if uri.contains("configmaps") {
                let place = usize::from(uri.contains("watch=true"));
                let count = {
                    let mut counts = counts.lock().unwrap();
                    counts[place] += 1;
                    counts[place]
                };
                assert!(count != 2 - place, "a bug");
            }
            server.call(request).await
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn slip_02_a_watch_that_panics_is_begun_again() {
    let mut world = Fixture::with(panicking);
    let monitor = world.listed(1, config_maps(), None).await;
    world.until("two failures", |seen| seen[&monitor].failures.len() == 2).await;
    assert!(world.seen[&monitor].failures[0].contains("a bug"), "{:?}", world.seen[&monitor].failures);
    world.put("default", "late", "1").await;
    world.until("the object", |seen| seen[&monitor].changes == ["Added default/late"]).await;
    world.until("the end of the trouble", |seen| !seen[&monitor].is_broken).await;
}

#[tokio::test(start_paused = true)]
async fn slip_02_events_do_not_keep_the_watch_of_namespaces_from_being_opened() {
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut world = Fixture::with(|server| noting(server, &paths));
    world.namespace("in", &json!({"team": "a"})).await;
    world.namespace("out", &json!({"team": "b"})).await;
    let slow = FaultPlan::on(Method::GET, "/api/v1/namespaces?*watch=true*");
    world.server.faults().add(slow.times(u64::MAX).delay(Duration::from_secs(3)));
    let monitor = world.listed(1, labelled("team", "a"), None).await;
    world.put("out", "one", "1").await;
    world.label("out", &json!({"team": "a"})).await;
    let mut is_seen = false;
    for round in 0..30 {
        world.put("in", "busy", &round.to_string()).await;
        world.during(Duration::from_secs(1)).await;
        is_seen |= world.seen[&monitor].keys().contains(&"out/one".to_owned());
    }
    let opened = paths.lock().unwrap().iter().filter(|path| path.contains("/namespaces?watch")).count();
    assert!(is_seen && opened <= 2, "seen: {is_seen}; the watch was asked for {opened} times");
}

#[tokio::test]
async fn slip_16_an_object_whose_filter_failed_when_it_was_added_is_modified_later() {
    let mut world = Fixture::new();
    let monitor = world.listed(1, config_maps(), Some(".data.is | tonumber")).await;
    world.put("default", "a", "x").await;
    world.until("the failure", |seen| seen[&monitor].failures.len() == 1).await;
    assert!(world.seen[&monitor].keys().is_empty(), "there is nothing to show of it");
    world.put("default", "a", "1").await;
    world.until("the change", |seen| !seen[&monitor].changes.is_empty()).await;
    assert_eq!(world.changes(monitor), ["Modified default/a"]);
    // One that never had a result is gone as any other.
    world.put("default", "b", "x").await;
    world.until("the failure", |seen| seen[&monitor].failures.len() == 2).await;
    world.delete("default", "b").await;
    world.until("the end", |seen| !seen[&monitor].changes.is_empty()).await;
    assert_eq!(world.changes(monitor), ["Deleted default/b"]);
}

#[tokio::test]
async fn slip_16_a_new_list_knows_the_objects_whose_filter_failed_and_stops_no_others() {
    let mut world = Fixture::new();
    world.put("default", "good", "1").await;
    let monitor = world.listed(1, config_maps(), Some(".data.is | tonumber")).await;
    for name in ["mended", "gone", "bad"] {
        world.put("default", name, "x").await;
    }
    world.until("the failures", |seen| seen[&monitor].failures.len() == 3).await;
    // A gap in the watch, and a new list.
    world.server.faults().add(FaultPlan::on(Method::GET, WATCHES).fail(410));
    world.server.faults().drop_watches();
    world.put("default", "mended", "2").await;
    world.delete("default", "gone").await;
    world.until("the difference", |seen| seen[&monitor].changes.len() == 2).await;
    assert_eq!(world.changes(monitor), ["Deleted default/gone", "Modified default/mended"]);
    // The object whose filter still fails keeps nobody waiting.
    world.put("default", "good", "3").await;
    world.until("the change", |seen| !seen[&monitor].changes.is_empty()).await;
    assert_eq!(world.changes(monitor), ["Modified default/good"]);
    world.put("default", "bad", "4").await;
    world.until("the change", |seen| !seen[&monitor].changes.is_empty()).await;
    assert_eq!(world.changes(monitor), ["Modified default/bad"]);
}

//! Kubernetes Events about modules, as the API server keeps them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use addon_operator::app::{self, Outcome};
use addon_operator::kube::EventRecorder;
use apiserver::{ApiServer, FaultPlan};
use engine::{Announcement, SourceKey, SourceKind, SourceReference};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace};
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::support::DEADLINE;
use crate::support::in_process::{Cluster, observed};
use crate::support::pause::pause;

/// Method and path of each request to an API server.
#[derive(Clone, Default)]
struct Requests(Arc<Mutex<Vec<String>>>);

impl Requests {
    /// Returns a client of `server` whose requests are recorded.
    fn client(&self, server: &ApiServer, namespace: &str) -> Client {
        let requests = Arc::clone(&self.0);
        observed(server, namespace, move |request| {
            requests.lock().unwrap().push(format!("{} {}", request.method(), request.uri().path()));
        })
    }

    /// Returns the requests since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[tokio::test]
async fn a_module_that_fails_is_told_on_the_config_map() {
    let server = ApiServer::builder().build().unwrap();
    let client = Client::new(server.service(), "default");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let metadata = ObjectMeta { name: Some("addon-operator".to_owned()), ..ObjectMeta::default() };
    let map =
        maps.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await.unwrap();
    let events = EventRecorder::start(client.clone(), "default", "addon-operator");
    let message = format!("module web is failed: {}", "x".repeat(3_000));
    events.record(Announcement {
        module: Some("web".into()),
        source: None,
        object: None,
        warning: true,
        reason: "ModuleFailed",
        message,
    });
    let written: Api<Event> = Api::namespaced(client, "default");
    let seen = watcher(written, watcher::Config::default()).applied_objects();
    let mut seen = std::pin::pin!(seen);
    let event = tokio::time::timeout(DEADLINE, seen.try_next()).await.unwrap().unwrap().unwrap();
    let about = event.involved_object;
    assert_eq!((about.kind.as_deref(), about.name.as_deref()), (Some("ConfigMap"), Some("addon-operator")));
    assert_eq!(about.uid, map.metadata.uid, "kubectl describe looks for the identity");
    assert_eq!((event.type_.as_deref(), event.reason.as_deref()), (Some("Warning"), Some("ModuleFailed")));
    let message = event.message.unwrap();
    assert!(message.starts_with("module web is failed: xxx") && message.len() <= 1024, "{message}");
}

#[tokio::test]
async fn what_happens_to_a_source_is_told_on_its_object() {
    let server = ApiServer::builder().build().unwrap();
    let requests = Requests::default();
    let events = EventRecorder::start(requests.client(&server, "ops"), "ops", "addon-operator");
    let client = Client::new(server.service(), "default");
    for name in ["ops", "team"] {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    }
    let of_team = SourceKey { kind: SourceKind::Namespaced, namespace: "team".into(), name: "tools".into() };
    for (key, warning) in [(SourceKey::cluster("platform"), false), (of_team, true)] {
        let message = format!("{key} changed");
        let source = Some(SourceReference { key, uid: "some-uid".to_owned() });
        events.record(Announcement {
            module: None,
            source,
            object: None,
            warning,
            reason: "SourceReady",
            message,
        });
    }
    drop(events);
    // What belongs to no namespace has its Events where kubectl looks for them.
    for (namespace, own, kind, name, sort) in [
        ("default", None, "ClusterAddonsConfiguration", "platform", "Normal"),
        ("team", Some("team"), "AddonsConfiguration", "tools", "Warning"),
    ] {
        reasons(&client, namespace, 1).await;
        let written: Api<Event> = Api::namespaced(client.clone(), namespace);
        let event = written.list(&ListParams::default()).await.unwrap().items.remove(0);
        let about = event.involved_object;
        assert_eq!(about.api_version.as_deref(), Some("addons.kyma-project.io/v1alpha1"));
        assert_eq!((about.kind.as_deref(), about.name.as_deref()), (Some(kind), Some(name)));
        assert_eq!((about.namespace.as_deref(), about.uid.as_deref()), (own, Some("some-uid")));
        assert_eq!(event.type_.as_deref(), Some(sort));
        assert!(event.metadata.name.unwrap().starts_with(&format!("{name}.")));
    }
    assert!(
        requests.take().iter().all(|asked| asked.starts_with("POST ")),
        "the ConfigMap is not looked for"
    );
}

/// Waits until there are `count` Events in `namespace`, and returns their reasons.
async fn reasons(client: &Client, namespace: &str, count: usize) -> Vec<String> {
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let begun = Instant::now();
    loop {
        let list = events.list(&ListParams::default()).await.unwrap();
        if list.items.len() >= count {
            let mut reasons: Vec<String> = list.into_iter().filter_map(|event| event.reason).collect();
            reasons.sort();
            return reasons;
        }
        assert!(begun.elapsed() < DEADLINE, "{} of {count} Events came", list.items.len());
        pause().await;
    }
}

#[tokio::test]
async fn slip_15_without_a_config_map_it_is_looked_for_once_however_many_events_wait() {
    let server = ApiServer::builder().build().unwrap();
    let requests = Requests::default();
    let events = EventRecorder::start(requests.client(&server, "default"), "default", "absent");
    for n in 0..50 {
        let message = format!("module web was upgraded: revision {n} of its release is deployed");
        let module = Some("web".into());
        events.record(Announcement {
            module,
            source: None,
            object: None,
            warning: false,
            reason: "ModuleUpgraded",
            message,
        });
    }
    drop(events);
    reasons(&Client::new(server.service(), "default"), "default", 50).await;
    let looks = requests.take().into_iter().filter(|asked| asked.starts_with("GET ")).count();
    assert_eq!(looks, 1);
}

/// Runs an operator until it has converged. Returns what it asked the API server for.
async fn converged(world: &Cluster) -> Vec<String> {
    let requests = Requests::default();
    let (_keep, ended) = watch::channel(false);
    let around = world.around(requests.client(&world.server, "ops"), true, ended, &[]);
    assert_eq!(app::run(around, drop).await.unwrap(), Outcome::Done);
    requests.take()
}

#[tokio::test(flavor = "multi_thread")]
async fn slip_15_a_start_that_changes_nothing_writes_nothing() {
    let world = Cluster::new().await;
    let chart = |text: &str| {
        let object =
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {{text: {text}}}\n");
        world.write("modules/010-web/templates/map.yaml", &object);
    };
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write("modules/010-web/Chart.yaml", "name: web\nversion: 0.1.0\n");
    chart("first");
    converged(&world).await;
    assert_eq!(reasons(&world.client(), "ops", 1).await, ["ConvergeFinished"]);
    for _ in 0..2 {
        let asked = converged(&world).await;
        // The Lease is taken and given back, so that a second operator by mistake is seen.
        let is_of_lease = |asked: &&String| asked.starts_with("PUT ") && asked.contains("/leases/");
        let writes = asked.iter().filter(|asked| !asked.starts_with("GET "));
        let (of_lease, others): (Vec<&String>, Vec<_>) = writes.partition(is_of_lease);
        assert!(others.is_empty() && of_lease.len() == 2, "{others:?} {of_lease:?}");
        let is_read = |asked: &&String| asked.contains("/configmaps/addon-operator");
        assert_eq!(asked.iter().filter(is_read).count(), 0, "its list is enough: {asked:?}");
        let lists = asked.iter().filter(|asked| asked.ends_with("/namespaces/ops/configmaps")).count();
        assert!((1..=2).contains(&lists), "the ConfigMap is listed, and perhaps watched: {asked:?}");
    }
    chart("second");
    converged(&world).await;
    // The Events of the starts between would have been written before these.
    let upgraded = ["ConvergeFinished", "ConvergeFinished", "ModuleUpgraded"];
    assert_eq!(reasons(&world.client(), "ops", 3).await, upgraded);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_about_the_last_changes_are_written_before_the_end() {
    let world = Cluster::new().await;
    world.write_web();
    // The recorder alone would be late.
    let slow = FaultPlan::on(http::Method::POST, "/api/v1/namespaces/ops/events");
    world.server.faults().add(slow.times(u64::MAX).delay(Duration::from_millis(300)));
    converged(&world).await;
    let events: Api<Event> = Api::namespaced(world.client(), "ops");
    let written = events.list(&ListParams::default()).await.unwrap();
    let reasons: Vec<String> = written.into_iter().filter_map(|event| event.reason).collect();
    assert_eq!(reasons, ["ConvergeFinished"]);
}

/// A client whose second write panics, where its answer is waited for.
fn panicking(server: &ApiServer) -> Client {
    let (server, writes) = (server.service(), Arc::new(AtomicUsize::new(0)));
    Client::new(
        tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (server, writes) = (server.clone(), Arc::clone(&writes));
            async move {
                let is_write = request.method() == http::Method::POST;
                assert!(!is_write || writes.fetch_add(1, Ordering::SeqCst) != 1, "a bug");
                server.oneshot(request).await
            }
        }),
        "default",
    )
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_recorder_costs_the_event_that_it_met_and_no_other() {
    let server = ApiServer::builder().build().unwrap();
    let events = EventRecorder::start(panicking(&server), "default", "addon-operator");
    for reason in ["First", "Second", "Third"] {
        events.record(Announcement {
            module: None,
            source: None,
            object: None,
            warning: false,
            reason,
            message: reason.to_owned(),
        });
    }
    let written = events.written();
    drop(events);
    written.all().await;
    assert_eq!(reasons(&Client::new(server.service(), "default"), "default", 2).await, ["First", "Third"]);
}

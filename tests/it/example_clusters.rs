//! Hosted clusters with what the files of their tests can't show: each moment of a roll-out, metrics, refused writes, and kinds that
//! come late.

use std::fs;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use addon_operator::app;
use apiserver::ApiServer;
use http::Method;
use kube::Api;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::DEADLINE;
use crate::support::files::{copy, root};
use crate::support::in_process::Cluster;
use crate::support::pause::{long_pause, pause};
use crate::support::program::get as http_get;
use crate::support::server::{get, ok};

pub(crate) const CLUSTERS: &str = "/apis/hypershift.openshift.io/v1alpha1/namespaces/clusters/hostedclusters";
pub(crate) const POOLS: &str = "/apis/hypershift.openshift.io/v1alpha1/namespaces/clusters/nodepools";
pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const EXAMPLE: &str = "examples/300-hypershift/modules";

/// An operator with the modules of the example.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
}

impl World {
    pub(crate) async fn new() -> Self {
        let world = Self::on(ApiServer::builder());
        for name in ["ops", "clusters"] {
            world.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
        }
        world
    }

    /// Returns one with a cluster that is set up like this.
    pub(crate) fn on(server: apiserver::Builder) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("global-hooks")).unwrap();
        copy(&root().join(EXAMPLE), dir.path());
        let framework = dir.path().join("framework");
        let operator = env!("CARGO_BIN_EXE_addon-operator");
        let written = Command::new(operator).args(["hook", "framework"]).arg(&framework).output().unwrap();
        assert!(written.status.success(), "{written:?}");
        let library = framework.join("shell_lib.sh");
        for module in fs::read_dir(dir.path().join("modules")).unwrap() {
            let Ok(hooks) = fs::read_dir(module.unwrap().path().join("hooks")) else { continue };
            for hook in hooks {
                let hook = hook.unwrap().path();
                let text = fs::read_to_string(&hook).unwrap();
                fs::write(hook, text.replace("/shell_lib.sh", library.to_str().unwrap())).unwrap();
            }
        }
        let server = server.simulate(Duration::ZERO).impersonation().build().unwrap();
        Self { cluster: Cluster { dir, server } }
    }

    pub(crate) async fn post(&self, path: &str, object: Value) -> Value {
        ok(&self.cluster.server, Method::POST, path, &object).await
    }

    pub(crate) async fn patch(&self, path: &str, change: Value) {
        ok(&self.cluster.server, Method::PATCH, path, &change).await;
    }

    pub(crate) async fn delete(&self, path: &str) {
        ok(&self.cluster.server, Method::DELETE, path, &Value::Null).await;
    }

    /// Waits until what is at `path` fits; nothing is null.
    pub(crate) async fn settled(&self, path: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let found = get(&self.cluster.server, path).await.unwrap_or_default();
            if fits(&found) {
                return found;
            }
            assert!(begun.elapsed() < 2 * DEADLINE, "{path} is {found:#}");
            self.changed(path, &found).await;
        }
    }

    /// Waits until what is at `path` is another than this, a second at most.
    async fn changed(&self, path: &str, seen: &Value) {
        let parts: Vec<&str> = path.trim_start_matches("/apis/").trim_start_matches('/').split('/').collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            [group, version, rest @ ..] => (*group, *version, rest),
            _ => panic!("{path} is no path of an object"),
        };
        let of = |plural: &str| ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") },
            kind: String::new(),
            plural: plural.to_owned(),
        };
        let client = self.cluster.client();
        let (api, name): (Api<DynamicObject>, &str) = match rest {
            ["namespaces", namespace, plural, name] => {
                (Api::namespaced_with(client, namespace, &of(plural)), name)
            }
            [plural, name] => (Api::all_with(client, &of(plural)), name),
            // A list has no name to watch.
            _ => return pause().await,
        };
        let is_other = |object: Option<&DynamicObject>| {
            let version = object.and_then(|object| object.metadata.resource_version.as_deref());
            version != seen["metadata"]["resourceVersion"].as_str()
        };
        let change = kube::runtime::wait::await_condition(api, name, is_other);
        let _ = tokio::time::timeout(Duration::from_secs(1), change).await;
    }

    /// Waits until the kinds of the example are served.
    pub(crate) async fn kinds(&self) {
        for name in ["hostedclusters", "nodepools"] {
            let path = format!("{CRDS}/{name}.hypershift.openshift.io");
            self.settled(&path, |crd| !crd["status"]["conditions"].is_null()).await;
        }
    }

    pub(crate) async fn create(&self, name: &str, spec: Value) {
        self.kinds().await;
        self.begin(name, spec).await;
    }

    /// Creates a cluster whose kind is there.
    pub(crate) async fn begin(&self, name: &str, spec: Value) {
        let mut all = json!({"release": {"image": "registry.local/release:1.0"}, "initialComputeReplicas": 1, "infraID": name});
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let object = json!({
            "apiVersion": "hypershift.openshift.io/v1alpha1", "kind": "HostedCluster",
            "metadata": {"name": name, "namespace": "clusters"}, "spec": all,
        });
        self.post(CLUSTERS, object).await;
    }

    pub(crate) async fn ready(&self, name: &str) {
        self.settled(&format!("{CLUSTERS}/{name}"), |cluster| cluster["status"]["ready"] == true).await;
        self.settled(&format!("{POOLS}/{name}"), |pool| pool["status"]["nodeCount"] == 1).await;
    }

    pub(crate) async fn gone(&self, name: &str) {
        self.settled(&format!("{CLUSTERS}/{name}"), Value::is_null).await;
        self.settled(&format!("/api/v1/namespaces/clusters-{name}"), Value::is_null).await;
    }

    /// Has a cluster made and removed again.
    async fn live(&self) {
        self.create("demo", json!({})).await;
        self.ready("demo").await;
        self.delete(&format!("{CLUSTERS}/demo")).await;
        self.gone("demo").await;
    }

    /// Returns what the port of an operator answers, without the sizes of chunks, which cut lines in two.
    pub(crate) async fn asked(&self, port: u16, path: &'static str) -> String {
        let port = port.to_string();
        let answer = tokio::task::spawn_blocking(move || http_get(&port, path)).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        if !head.to_lowercase().contains("transfer-encoding: chunked") {
            return body.to_owned();
        }
        body.split("\r\n").filter(|part| u64::from_str_radix(part, 16).is_err()).collect()
    }

    /// Returns whether no queue has a task.
    pub(crate) async fn is_idle(&self, port: u16) -> bool {
        let metrics = self.asked(port, "/metrics").await;
        let mut lengths =
            metrics.lines().filter(|line| line.starts_with("addon_operator_tasks_queue_length{")).peekable();
        lengths.peek().is_some() && lengths.all(|line| line.ends_with(" 0"))
    }
}

/// Collects all states of the objects of a kind of the example from now on.
pub(crate) async fn states(world: &World, kind: &str, namespace: &str) -> Arc<Mutex<Vec<Value>>> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("hypershift.openshift.io", "v1alpha1", kind));
    let api: Api<DynamicObject> = Api::namespaced_with(world.cluster.client(), namespace, &resource);
    let version = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let sink = Arc::clone(&seen);
    tokio::spawn(async move {
        use futures::StreamExt as _;
        let changes = api.watch(&WatchParams::default(), &version).await.unwrap();
        let mut changes = std::pin::pin!(changes);
        while let Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) = changes.next().await {
            sink.lock().unwrap().push(serde_json::to_value(object).unwrap());
        }
    });
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn c07_a_cluster_is_ready_at_each_moment_of_a_roll_out() {
    let world = World::new().await;
    let operator = world.cluster.start(&[]).await;
    world.create("demo", json!({})).await;
    world.ready("demo").await;
    let (clusters, planes) = (
        states(&world, "HostedCluster", "clusters").await,
        states(&world, "HostedControlPlane", "clusters-demo").await,
    );
    world
        .patch(
            &format!("{CLUSTERS}/demo"),
            json!({"spec": {"release": {"image": "registry.local/release:1.1"}}}),
        )
        .await;
    let is_through = |cluster: &Value| {
        cluster["status"]["version"]["history"][0]
            == json!({
                "state": "Completed", "version": "1.1", "image": "registry.local/release:1.1",
                "startedTime": cluster["status"]["version"]["history"][0]["startedTime"],
                "completionTime": cluster["status"]["version"]["history"][0]["completionTime"],
            })
    };
    world.settled(&format!("{CLUSTERS}/demo"), is_through).await;
    crate::support::server::until("the end of the roll-out in the watch", || {
        clusters.lock().unwrap().iter().any(is_through)
    })
    .await;
    let told = |seen: &Arc<Mutex<Vec<Value>>>| -> Vec<Value> {
        seen.lock().unwrap().iter().map(|object| object["status"].clone()).collect()
    };
    let (clusters, planes) = (told(&clusters), told(&planes));
    // The new version is not told before all components run it.
    let first = planes.iter().position(|status| status["version"] == "1.1").unwrap();
    let waited = |status: &Value| {
        status["conditions"].to_string().contains("rolls out hosted-cluster-config-operator")
    };
    assert!(planes[..first].iter().any(waited), "{planes:#?}");
    let partial = clusters.iter().any(|status| status["version"]["history"][0]["state"] == "Partial");
    let progressing = clusters.iter().any(|status| {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|one| one["type"] == "Progressing" && one["status"] == "True")
    });
    assert!(partial && progressing, "{clusters:#?}");
    assert!(clusters.iter().all(|status| status["ready"] == true), "{clusters:#?}");
    assert!(planes.iter().all(|status| status["ready"] == true) && planes.len() >= 3, "{planes:#?}");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn out_of_a_roll_out_a_control_plane_that_is_down_is_not_ready() {
    let world = World::new().await;
    let operator = world.cluster.start(&[]).await;
    world.create("demo", json!({})).await;
    world.ready("demo").await;
    let path = "/apis/apps/v1/namespaces/clusters-demo/deployments/etcd";
    let seen = states(&world, "HostedControlPlane", "clusters-demo").await;
    world.delete(path).await;
    crate::support::server::until("a plane that is not ready", || {
        seen.lock().unwrap().iter().any(|plane| plane["status"]["ready"] == false)
    })
    .await;
    world.ready("demo").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c17_an_operator_in_the_namespace_of_a_control_plane_looks_after_that_one_only() {
    let world = World::new().await;
    let (module, inner) = ("modules/030-control-plane-operator", tempfile::tempdir().unwrap());
    for name in ["modules", "global-hooks"] {
        fs::create_dir(inner.path().join(name)).unwrap();
    }
    fs::rename(world.cluster.path(module), inner.path().join(module)).unwrap();
    fs::copy(world.cluster.path("modules/values.yaml"), inner.path().join("modules/values.yaml")).unwrap();
    // What the Deployment of the operator would say.
    for script in ["hooks/hosted-control-plane.sh", "enabled"] {
        let path = inner.path().join(module).join(script);
        let text = fs::read_to_string(&path).unwrap();
        let set = "#!/usr/bin/env bash\nexport HOSTED_CONTROL_PLANE_NAMESPACE=clusters-demo\n";
        fs::write(path, text.replacen("#!/usr/bin/env bash\n", set, 1)).unwrap();
    }
    let operator = world.cluster.start(&[]).await;
    for name in ["other", "demo"] {
        world.create(name, json!({})).await;
        let plane = format!(
            "/apis/hypershift.openshift.io/v1alpha1/namespaces/clusters-{name}/hostedcontrolplanes/{name}"
        );
        world.settled(&plane, |plane| !plane.is_null()).await;
    }
    let inner = Cluster { dir: inner, server: world.cluster.server.clone() };
    let within = inner.start(&[("namespace", "clusters-demo")]).await;
    world.ready("demo").await;
    let metrics = world.asked(within.port, "/metrics").await;
    let keys = metrics.lines().find(|line| line.starts_with("addon_operator_reconcile_keys{")).unwrap();
    assert!(keys.ends_with(" 1"), "{keys}");
    let other = "/apis/hypershift.openshift.io/v1alpha1/namespaces/clusters-other/hostedcontrolplanes/other";
    let other = get(&world.cluster.server, other).await.unwrap();
    assert_eq!((&other["metadata"]["finalizers"], &other["status"]), (&Value::Null, &Value::Null));
    world.delete(&format!("{CLUSTERS}/demo")).await;
    world.settled(&format!("{CLUSTERS}/demo"), Value::is_null).await;
    within.stop().await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hooks_count_clusters_and_machines_in_metrics() {
    let world = World::new().await;
    let operator = world.cluster.start(&[]).await;
    world.create("demo", json!({})).await;
    world.create("wrong", json!({"release": {"image": "registry.local/release:9"}})).await;
    world.ready("demo").await;
    let has = |metrics: &str, name: &str, label: &str, value: &str| {
        metrics.lines().any(|line| {
            let is_value = value.is_empty() || line.ends_with(&format!(" {value}"));
            line.starts_with(name) && line.contains(label) && is_value
        })
    };
    let begun = Instant::now();
    loop {
        let metrics = world.asked(operator.port, "/metrics/hooks").await;
        let is_told = has(&metrics, "hosted_clusters{", "phase=\"Ready\"", "1")
            && has(&metrics, "hosted_clusters{", "phase=\"Invalid\"", "1")
            && has(&metrics, "hosted_clusters{", "phase=\"Deleting\"", "0")
            && has(&metrics, "node_pool_machines{", "state=\"ready\"", "1")
            && has(&metrics, "node_pool_machines{", "state=\"waiting\"", "0")
            && has(&metrics, "hosted_cluster_ready_seconds{", "cluster=\"clusters/demo\"", "");
        if is_told {
            break;
        }
        let ours: Vec<&str> = metrics
            .lines()
            .filter(|line| line.contains("hosted_cluster") || line.contains("node_pool"))
            .collect();
        assert!(begun.elapsed() < DEADLINE, "{ours:#?}");
        long_pause().await;
    }
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_kinds_of_the_cluster_api_clusters_wait_for_them_and_say_so() {
    let world = World::new().await;
    let crds = world.cluster.path("modules/010-hypershift-crds/crds");
    let late = ["cluster.yaml", "machine.yaml", "machineset.yaml"];
    let texts = late.map(|name| fs::read_to_string(crds.join(name)).unwrap());
    for name in late {
        fs::remove_file(crds.join(name)).unwrap();
    }
    let operator = world.cluster.start(&[]).await;
    world.create("demo", json!({})).await;
    let begun = Instant::now();
    loop {
        let queue = world.asked(operator.port, "/queue").await;
        if queue.contains("HostedCluster clusters/demo") && queue.contains("does not exist yet") {
            break;
        }
        assert!(begun.elapsed() < DEADLINE, "{queue}");
        long_pause().await;
    }
    let stalled = |cluster: &Value| -> Option<Value> {
        let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == "Stalled")
    };
    let path = format!("{CLUSTERS}/demo");
    let waiting = world.settled(&path, |cluster| stalled(cluster).is_some()).await;
    let condition = stalled(&waiting).unwrap();
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("True"), &json!("KindMissing")));
    let message = condition["message"].as_str().unwrap();
    assert!(message.contains("cluster.x-k8s.io") && message.ends_with("does not exist yet"), "{message}");
    let is_told = |events: &Value| {
        let mut all = events["items"].as_array().into_iter().flatten();
        all.any(|event| event["reason"] == "ReconcileWaiting" && event["involvedObject"]["name"] == "demo")
    };
    world.settled("/api/v1/namespaces/clusters/events", is_told).await;
    // What needs no such kind goes on.
    let stray = json!({"apiVersion": "hypershift.openshift.io/v1alpha1", "kind": "ExternalInfraCluster",
        "metadata": {"name": "stray", "namespace": "clusters"}, "spec": {}});
    let stray_path = CLUSTERS.replace("hostedclusters", "externalinfraclusters");
    world.post(&stray_path, stray).await;
    world.settled(&format!("{stray_path}/stray"), |stray| stray["status"]["observedGeneration"] == 1).await;
    for text in texts {
        world.post(CRDS, values::yaml::parse_all(&text).unwrap().remove(0)).await;
    }
    world.ready("demo").await;
    world.settled(&path, |cluster| stalled(cluster).is_none()).await;
    // A finalizer that somebody takes away comes back.
    world.patch(&format!("{CLUSTERS}/demo"), json!({"metadata": {"finalizers": null}})).await;
    let is_back =
        |cluster: &Value| cluster["metadata"]["finalizers"] == json!(["hypershift.openshift.io/finalizer"]);
    world.settled(&format!("{CLUSTERS}/demo"), is_back).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_write_of_a_life_leaves_an_object_as_it_was() {
    use tower::ServiceExt as _;
    let world = World::new().await;
    let idle: Arc<Mutex<Vec<String>>> = Arc::default();
    let (server, sink) = (world.cluster.server.clone(), Arc::clone(&idle));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (server, sink) = (server.clone(), Arc::clone(&sink));
        async move {
            let path = request.uri().path().to_owned();
            let is_ours = request.method() == Method::PATCH
                && ["hypershift", "cluster.x-k8s.io", "/apps/", "namespaces/clusters"]
                    .iter()
                    .any(|part| path.contains(part))
                && !path.contains("customresourcedefinitions");
            let object = path.strip_suffix("/status").unwrap_or(&path).to_owned();
            let version = async || {
                let found = get(&server, &object).await.unwrap_or_default();
                found["metadata"]["resourceVersion"].clone()
            };
            let before = if is_ours { version().await } else { Value::Null };
            let answer = server.service().oneshot(request).await;
            let is_done = answer.as_ref().is_ok_and(|answer| answer.status().is_success());
            if is_ours && is_done && !before.is_null() && version().await == before {
                sink.lock().unwrap().push(path);
            }
            answer
        }
    });
    let client = addon_operator::cluster::connect_in_process(service, "ops");
    let (shutdown, ended) = watch::channel(false);
    let running = tokio::spawn(app::run(world.cluster.around(client, false, ended, &[]), drop));
    world.live().await;
    shutdown.send_replace(true);
    running.await.unwrap().unwrap();
    let idle = idle.lock().unwrap();
    assert!(idle.is_empty(), "{idle:#?}");
}

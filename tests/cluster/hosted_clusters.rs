//! Hosted clusters (`examples/300-hypershift`, which are reconcile bindings: C18) on a real API server, with the operator outside of it.
//!
//! Clusters of a test are in a namespace of their own, so what an earlier test left behind is in nobody's way.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::operator::Running;
use super::stand_in::StandIn;

/// How long a fact is waited for before the test fails.
const DEADLINE: Duration = Duration::from_mins(2);

const FOREIGN: &str = "example.com/held";

struct World {
    client: Client,
    dir: TempDir,
    /// The namespace of the clusters, and what the names of all others begin with.
    home: String,
    stand_in: JoinHandle<()>,
}

/// Copies a directory.
fn copy(from: &Path, into: &Path) {
    let done = Command::new("cp").arg("-r").arg(from).arg(into).status().unwrap();
    assert!(done.success());
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let unique = dir.path().file_name().unwrap().to_str().unwrap().to_lowercase();
        let home = format!("hc{}", unique.replace(|c: char| !c.is_ascii_alphanumeric(), ""));
        std::fs::create_dir(dir.path().join("global-hooks")).unwrap();
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/300-hypershift/modules"), dir.path());
        let framework = dir.path().join("framework");
        let operator = env!("CARGO_BIN_EXE_addon-operator");
        let written = Command::new(operator).args(["hook", "framework"]).arg(&framework).status().unwrap();
        assert!(written.success());
        let library = framework.join("shell_lib.sh");
        for module in std::fs::read_dir(dir.path().join("modules")).unwrap() {
            let Ok(hooks) = std::fs::read_dir(module.unwrap().path().join("hooks")) else { continue };
            for hook in hooks {
                let hook = hook.unwrap().path();
                let text = std::fs::read_to_string(&hook).unwrap();
                std::fs::write(hook, text.replace("/shell_lib.sh", library.to_str().unwrap())).unwrap();
            }
        }
        let client = super::client().await;
        let namespaces: Api<DynamicObject> = Api::all_with(
            client.clone(),
            &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace")),
        );
        for name in [home.clone(), format!("{home}-ops")] {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            namespaces
                .create(&PostParams::default(), &serde_json::from_value(object).unwrap())
                .await
                .unwrap();
        }
        let stand_in = StandIn::new(client.clone(), &home).await;
        Self { client, dir, home, stand_in: tokio::spawn(stand_in.run()) }
    }

    /// Starts an operator. These are values of modules in its `ConfigMap`.
    async fn start(&self, values: &[(&str, &str)]) -> Running {
        self.configure(values).await;
        let namespace = format!("{}-ops", self.home);
        let running = Running::start(&self.client, self.dir.path(), &namespace, &[]).await;
        let definitions = self.api("apiextensions.k8s.io", "v1", "CustomResourceDefinition", None);
        for kind in ["hostedclusters", "nodepools"] {
            let name = format!("{kind}.hypershift.openshift.io");
            settled(&definitions, &name, |crd| {
                let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
                conditions.iter().any(|its| its["type"] == "Established" && its["status"] == "True")
            })
            .await;
        }
        running
    }

    async fn configure(&self, values: &[(&str, &str)]) {
        let data: serde_json::Map<String, Value> =
            values.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon-operator"}, "data": data});
        let maps = self.api("", "v1", "ConfigMap", Some(&format!("{}-ops", self.home)));
        let params = PatchParams::apply("a-person").force();
        maps.patch("addon-operator", &params, &Patch::Apply(&map)).await.unwrap();
    }

    fn api(&self, group: &str, version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Returns the kinds of people in the namespace of the clusters.
    fn of(&self, kind: &str) -> Api<DynamicObject> {
        self.api("hypershift.openshift.io", "v1alpha1", kind, Some(&self.home))
    }

    fn space(&self, cluster: &str) -> String {
        format!("{}-{cluster}", self.home)
    }

    /// Returns a kind in the namespace of a control plane.
    fn within(&self, cluster: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = match kind {
            "Deployment" => ("apps", "v1"),
            "HostedControlPlane" | "ExternalInfraCluster" => ("hypershift.openshift.io", "v1alpha1"),
            "SimMachineTemplate" | "SimMachine" => ("infrastructure.cluster.x-k8s.io", "v1alpha4"),
            "Secret" | "ConfigMap" => ("", "v1"),
            _ => ("cluster.x-k8s.io", "v1alpha4"),
        };
        self.api(group, version, kind, Some(&self.space(cluster)))
    }

    async fn create(&self, name: &str, spec: Value) {
        let mut all = json!({"release": {"image": "registry.local/release:1.0"}, "initialComputeReplicas": 1,
            "infraID": format!("{}-{name}", self.home), "platform": {"aws": {"region": "eu-1"}}});
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        self.post("HostedCluster", name, all).await;
    }

    async fn post(&self, kind: &str, name: &str, spec: Value) {
        let object = json!({"apiVersion": "hypershift.openshift.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
        let object = serde_json::from_value(object).unwrap();
        self.of(kind).create(&PostParams::default(), &object).await.unwrap();
    }

    async fn is_ready(&self, name: &str, machines: u64) {
        settled(&self.of("HostedCluster"), name, |cluster| cluster["status"]["ready"] == true).await;
        settled(&self.of("NodePool"), name, |pool| pool["status"]["nodeCount"] == machines).await;
    }

    async fn delete(&self, name: &str) {
        self.of("HostedCluster").delete(name, &DeleteParams::default()).await.unwrap();
    }

    async fn is_gone(&self, name: &str) {
        settled(&self.of("HostedCluster"), name, Value::is_null).await;
        let namespaces = self.api("", "v1", "Namespace", None);
        settled(&namespaces, &self.space(name), Value::is_null).await;
    }

    async fn ended(self, operator: Running) {
        operator.stop().await;
        let namespaces = self.api("", "v1", "Namespace", None);
        for name in [self.home.clone(), format!("{}-ops", self.home)] {
            namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
            settled(&namespaces, &name, Value::is_null).await;
        }
        self.stand_in.abort();
    }
}

/// Waits until an object `fits`, and returns it; one that is not there is null.
async fn settled(api: &Api<DynamicObject>, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let check = |object: Option<&DynamicObject>| fits(&serde_json::to_value(object).unwrap());
    let waiting = await_condition(api.clone(), name, check);
    let Ok(found) = tokio::time::timeout(DEADLINE, waiting).await else {
        panic!("{name} did not settle: {:#}", json!(api.get_opt(name).await.unwrap()));
    };
    serde_json::to_value(found.unwrap()).unwrap()
}

async fn get(api: &Api<DynamicObject>, name: &str) -> Value {
    serde_json::to_value(api.get_opt(name).await.unwrap()).unwrap()
}

async fn merge(api: &Api<DynamicObject>, name: &str, change: Value) {
    api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
}

async fn names(api: &Api<DynamicObject>) -> Vec<String> {
    let list = api.list(&ListParams::default()).await.unwrap();
    let mut names: Vec<String> = list.items.into_iter().filter_map(|object| object.metadata.name).collect();
    names.sort();
    names
}

/// Returns a condition of an object; null if there is none.
fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}

fn owners(object: &Value) -> Vec<(String, String)> {
    let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    owners.iter().map(|owner| (text(&owner["kind"]), text(&owner["name"]))).collect()
}

/// C01: has the objects of the recipe, made in its order.
async fn has_all_in_order(world: &World, infra: &str) {
    let cluster = get(&world.of("HostedCluster"), "demo").await;
    assert_eq!(cluster["metadata"]["finalizers"], json!(["hypershift.openshift.io/finalizer"]));
    let mut made = vec![get(&world.api("", "v1", "Namespace", None), &world.space("demo")).await];
    made.push(get(&world.within("demo", "Secret"), "pull-secret").await);
    for name in ["control-plane-operator", "cluster-api", "capi-provider"] {
        made.push(get(&world.within("demo", "Deployment"), name).await);
    }
    made.push(get(&world.within("demo", "Cluster"), infra).await);
    made.push(get(&world.within("demo", "HostedControlPlane"), "demo").await);
    made.push(get(&world.within("demo", "ExternalInfraCluster"), "demo").await);
    made.push(get(&world.of("NodePool"), "demo").await);
    let order: Vec<&Value> =
        made.iter().map(|object| &object["metadata"]["annotations"]["addon-operator.io/order"]).collect();
    assert_eq!(order, ["0", "1", "2", "3", "4", "5", "6", "7", "8"]);
    let times: Vec<&str> =
        made.iter().map(|object| object["metadata"]["creationTimestamp"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

/// C04, C05: is ready, and says where.
async fn is_up(world: &World) {
    settled(&world.of("HostedCluster"), "demo", |cluster| {
        let history = &cluster["status"]["version"]["history"];
        history[0]["state"] == "Completed"
            && condition(cluster, "Available")["status"] == "True"
            && cluster["status"]["kubeconfig"]["name"] == "demo-admin-kubeconfig"
    })
    .await;
    let plane = settled(&world.within("demo", "HostedControlPlane"), "demo", |plane| {
        condition(plane, "Available")["status"] == "True"
            && condition(plane, "InfrastructureReady")["status"] == "True"
    })
    .await;
    let endpoint = &plane["status"]["controlPlaneEndpoint"];
    assert!(endpoint["host"].is_string() && endpoint["port"] == 6443, "{plane:#}");
    settled(&world.within("demo", "ExternalInfraCluster"), "demo", |infrastructure| {
        infrastructure["status"]["ready"] == true
            && infrastructure["spec"]["controlPlaneEndpoint"] == *endpoint
    })
    .await;
}

/// C06: has the owners of the diagram, none of them in another namespace.
async fn owns(world: &World, infra: &str) {
    let capi = settled(&world.within("demo", "Cluster"), infra, |capi| {
        capi["status"]["controlPlaneReady"] == true && capi["status"]["infrastructureReady"] == true
    })
    .await;
    assert_eq!(owners(&capi), []);
    assert_eq!(
        capi["metadata"]["annotations"]["hypershift.openshift.io/cluster"],
        format!("{}/demo", world.home)
    );
    let owner = |kind: &str, name: &str| vec![(kind.to_owned(), name.to_owned())];
    for kind in ["HostedControlPlane", "ExternalInfraCluster", "MachineSet", "SimMachineTemplate"] {
        for name in names(&world.within("demo", kind)).await {
            settled(&world.within("demo", kind), &name, |object| owners(object) == owner("Cluster", infra))
                .await;
        }
    }
    let set = names(&world.within("demo", "MachineSet")).await.remove(0);
    for name in names(&world.within("demo", "Machine")).await {
        assert_eq!(owners(&get(&world.within("demo", "Machine"), &name).await), owner("MachineSet", &set));
        assert_eq!(owners(&get(&world.within("demo", "SimMachine"), &name).await), owner("Machine", &name));
    }
    assert_eq!(owners(&get(&world.of("NodePool"), "demo").await), owner("HostedCluster", "demo"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn c01_c05_c06_c10_c15_a_cluster_is_made_in_order_and_taken_down_in_order() {
    let world = World::new().await;
    let operator = world.start(&[]).await;
    let infra = format!("{}-demo", world.home);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {".dockerconfigjson": "e30="},
        "metadata": {"name": "pull"}});
    let secrets = world.api("", "v1", "Secret", Some(&world.home));
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    world.create("demo", json!({"initialComputeReplicas": 2, "pullSecret": {"name": "pull"}})).await;
    world.is_ready("demo", 2).await;
    has_all_in_order(&world, &infra).await;
    is_up(&world).await;
    owns(&world, &infra).await;
    // C15: queues of their own.
    let metrics = page(operator.port, "/metrics").await;
    for queue in ["hosted-cluster", "node-pool", "hcp", "eic"] {
        assert!(metrics.contains(&format!("queue=\"{queue}\"")), "{metrics}");
    }
    // C10: a Machine that somebody holds holds all, and the operators that remove it stay.
    let machines = world.within("demo", "Machine");
    let machine = names(&machines).await.remove(0);
    merge(&machines, &machine, json!({"metadata": {"finalizers": ["cluster.x-k8s.io/machine", FOREIGN]}}))
        .await;
    world.delete("demo").await;
    settled(&machines, &machine, |machine| machine["metadata"]["finalizers"] == json!([FOREIGN])).await;
    settled(&world.of("HostedCluster"), "demo", |cluster| {
        condition(cluster, "Available")["reason"] == "Deleting"
    })
    .await;
    for name in ["cluster-api", "capi-provider", "control-plane-operator"] {
        let deployment = get(&world.within("demo", "Deployment"), name).await;
        assert!(
            deployment["metadata"]["deletionTimestamp"].is_null() && !deployment.is_null(),
            "{deployment}"
        );
    }
    let capi = get(&world.within("demo", "Cluster"), &infra).await;
    assert!(!capi.is_null(), "it goes after the machines");
    merge(&machines, &machine, json!({"metadata": {"finalizers": []}})).await;
    world.is_gone("demo").await;
    world.ended(operator).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn c02_c08_c09_pools_are_made_when_they_are_asked_for_and_are_independent() {
    let world = World::new().await;
    let operator = world.start(&[]).await;
    world.create("demo", json!({"initialComputeReplicas": 0})).await;
    settled(&world.of("HostedCluster"), "demo", |cluster| cluster["status"]["ready"] == true).await;
    assert!(names(&world.of("NodePool")).await.is_empty());
    let pools = world.of("NodePool");
    let ready = async |name: &str, machines: u64| {
        settled(&pools, name, |pool| {
            pool["status"]["nodeCount"] == machines && condition(pool, "Ready")["status"] == "True"
        })
        .await;
    };
    for name in ["one", "two"] {
        let spec =
            json!({"clusterName": "demo", "nodeCount": 2, "platform": {"aws": {"instanceType": "small"}}});
        world.post("NodePool", name, spec).await;
        ready(name, 2).await;
    }
    merge(&pools, "one", json!({"spec": {"nodeCount": 3}})).await;
    ready("one", 3).await;
    let of = async |pool: &str| {
        let mut names = names(&world.within("demo", "SimMachineTemplate")).await;
        names.retain(|name| name.starts_with(&format!("{pool}-")));
        names
    };
    let (before, other) = (of("one").await, of("two").await);
    assert_eq!((before.len(), other.len()), (1, 1));
    merge(&pools, "one", json!({"spec": {"platform": {"aws": {"instanceType": "large"}}}})).await;
    // The old template goes when no Machine uses it.
    settled(&world.within("demo", "SimMachineTemplate"), &before[0], Value::is_null).await;
    ready("one", 3).await;
    let after = of("one").await;
    assert!(after.len() == 1 && after != before && of("two").await == other, "{after:?}");
    // C09: the pool goes after its last machine.
    let machines = world.within("demo", "Machine");
    let held = names(&machines).await.into_iter().find(|name| name.contains("-one-")).unwrap();
    merge(&machines, &held, json!({"metadata": {"finalizers": ["cluster.x-k8s.io/machine", FOREIGN]}})).await;
    pools.delete("one", &DeleteParams::default()).await.unwrap();
    settled(&machines, &held, |machine| machine["metadata"]["finalizers"] == json!([FOREIGN])).await;
    assert!(names(&pools).await.contains(&"one".to_owned()));
    merge(&machines, &held, json!({"metadata": {"finalizers": []}})).await;
    settled(&pools, "one", Value::is_null).await;
    assert!(names(&machines).await.iter().all(|name| name.contains("-two-")));
    world.delete("demo").await;
    world.is_gone("demo").await;
    world.ended(operator).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn c03_c04_c16_what_is_off_or_down_is_waited_for_and_said() {
    let world = World::new().await;
    let broken = "hypershift: {releases: {registry.local/release:broken: {version: '0.1', image: 'registry.local/fail:1'}, \
        registry.local/release:1.0: {version: '1.0', image: 'registry.k8s.io/pause:3.9'}}}";
    let operator = world.start(&[("global", broken), ("controlPlaneOperatorEnabled", "false")]).await;
    world.create("demo", json!({})).await;
    let infrastructure = world.within("demo", "ExternalInfraCluster");
    let waiting = settled(&infrastructure, "demo", |infrastructure| {
        condition(infrastructure, "Ready")["reason"] == "WaitingForControlPlane"
    })
    .await;
    assert_eq!(waiting["status"]["ready"], Value::Null);
    assert!(names(&world.within("demo", "Deployment")).await.iter().all(|name| name != "etcd"));
    world.create("broken", json!({"release": {"image": "registry.local/release:broken"}})).await;
    world.configure(&[("global", broken)]).await;
    world.is_ready("demo", 1).await;
    let plane = settled(&world.within("broken", "HostedControlPlane"), "broken", |plane| {
        condition(plane, "Available")["reason"] == "WaitingForEtcd"
    })
    .await;
    assert_eq!(condition(&plane, "InfrastructureReady")["status"], "True");
    settled(&world.of("HostedCluster"), "broken", |cluster| {
        condition(cluster, "Available")["message"] == "waits for etcd"
    })
    .await;
    // C16: without its module nobody looks after a control plane, and all others live.
    world.configure(&[("global", broken), ("controlPlaneOperatorEnabled", "false")]).await;
    until_off(operator.port, "control-plane-operator").await;
    let deployments = world.within("demo", "Deployment");
    deployments.delete("etcd", &DeleteParams::default()).await.unwrap();
    merge(&world.of("NodePool"), "demo", json!({"spec": {"nodeCount": 2}})).await;
    world.is_ready("demo", 2).await;
    assert!(get(&deployments, "etcd").await.is_null());
    // Without the simulation no Machine is made.
    world.configure(&[("global", broken), ("capiSimEnabled", "false")]).await;
    until_off(operator.port, "capi-sim").await;
    settled(&deployments, "etcd", |etcd| !etcd.is_null()).await;
    merge(&world.of("NodePool"), "demo", json!({"spec": {"nodeCount": 3}})).await;
    settled(&world.of("NodePool"), "demo", |pool| condition(pool, "Ready")["message"] == "2 of 3").await;
    assert_eq!(names(&world.within("demo", "Machine")).await.len(), 2);
    world.configure(&[("global", broken)]).await;
    world.is_ready("demo", 3).await;
    for name in ["demo", "broken"] {
        world.delete(name).await;
        world.is_gone(name).await;
    }
    world.ended(operator).await;
}

/// Waits until a module is off and its removal has ended: its hooks look after their objects until then.
async fn until_off(port: u16, module: &str) {
    let begun = std::time::Instant::now();
    loop {
        let status = page(port, "/status?format=json").await;
        let body = status.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        let is_off =
            |module_view: &Value| module_view["name"] == module && module_view["phase"] == "disabled";
        let parsed: Value = serde_json::from_str(body).unwrap_or_default();
        if parsed["modules"].as_array().is_some_and(|all| all.iter().any(is_off)) {
            return;
        }
        assert!(begun.elapsed() < DEADLINE, "{body}");
    }
}

/// Returns what a page of the operator shows.
async fn page(port: u16, path: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn c07_c11_c14_a_cluster_is_kept_as_it_should_be_rolled_out_and_paused() {
    use futures::StreamExt as _;
    let world = World::new().await;
    let operator = world.start(&[]).await;
    world.create("demo", json!({})).await;
    world.is_ready("demo", 1).await;
    // C11: what somebody takes away or changes comes back.
    let deployments = world.within("demo", "Deployment");
    let before = get(&deployments, "capi-provider").await;
    deployments.delete("capi-provider", &DeleteParams::default()).await.unwrap();
    settled(&deployments, "capi-provider", |now| {
        !now.is_null() && now["metadata"]["uid"] != before["metadata"]["uid"]
    })
    .await;
    let planes = world.within("demo", "HostedControlPlane");
    merge(&planes, "demo", json!({"spec": {"infraID": "another"}})).await;
    let infra = format!("{}-demo", world.home);
    settled(&planes, "demo", |plane| plane["spec"]["infraID"] == infra).await;
    // C14: nothing is written for a cluster that is paused.
    let clusters = world.of("HostedCluster");
    let change = json!({"spec": {"pausedUntil": "true", "networking": {"serviceCIDR": "10.9.0.0/16"}}});
    merge(&clusters, "demo", change).await;
    settled(&clusters, "demo", |cluster| condition(cluster, "ReconciliationActive")["reason"] == "Paused")
        .await;
    assert_ne!(get(&planes, "demo").await["spec"]["serviceCIDR"], "10.9.0.0/16");
    merge(&clusters, "demo", json!({"spec": {"pausedUntil": null}})).await;
    settled(&planes, "demo", |plane| plane["spec"]["serviceCIDR"] == "10.9.0.0/16").await;
    settled(&clusters, "demo", |cluster| cluster["status"]["ready"] == true).await;
    // C07: another release, ready at each moment.
    let capi = get(&world.within("demo", "Cluster"), &infra).await;
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let (sink, watched) = (Arc::clone(&seen), clusters.clone());
    let version = clusters.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let watching = tokio::spawn(async move {
        let changes = watched.watch(&kube::api::WatchParams::default(), &version).await.unwrap();
        let mut changes = std::pin::pin!(changes);
        while let Some(Ok(kube::api::WatchEvent::Modified(object))) = changes.next().await {
            sink.lock().unwrap().push(object.data["status"].clone());
        }
    });
    merge(&clusters, "demo", json!({"spec": {"release": {"image": "registry.local/release:1.1"}}})).await;
    settled(&planes, "demo", |plane| plane["spec"]["releaseImage"] == "registry.local/release:1.1").await;
    settled(&clusters, "demo", |cluster| {
        let newest = &cluster["status"]["version"]["history"][0];
        newest["state"] == "Completed" && newest["version"] == "1.1"
    })
    .await;
    for name in ["etcd", "kube-apiserver", "control-plane-operator", "cluster-api"] {
        let image =
            get(&deployments, name).await["spec"]["template"]["spec"]["containers"][0]["image"].clone();
        assert_eq!(image, "registry.k8s.io/pause:3.10", "{name}");
    }
    watching.abort();
    let states = seen.lock().unwrap().clone();
    assert!(states.iter().all(|status| status["ready"] == true), "{states:#?}");
    let now = get(&world.within("demo", "Cluster"), &infra).await;
    assert_eq!((&now["metadata"]["uid"], &now["spec"]), (&capi["metadata"]["uid"], &capi["spec"]));
    world.delete("demo").await;
    world.is_gone("demo").await;
    world.ended(operator).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn c12_c13_an_operator_goes_on_where_it_was_and_one_cluster_holds_up_no_other() {
    let world = World::new().await;
    let mut operator = world.start(&[]).await;
    world.create("demo", json!({"initialComputeReplicas": 2})).await;
    let namespaces = world.api("", "v1", "Namespace", None);
    let is_there = |object: &Value| !object.is_null();
    settled(&namespaces, &world.space("demo"), is_there).await;
    operator.stop().await;
    operator = world.start(&[]).await;
    settled(&world.within("demo", "Deployment"), "etcd", is_there).await;
    operator.stop().await;
    operator = world.start(&[]).await;
    world.is_ready("demo", 2).await;
    let machines = world.within("demo", "Machine");
    let found = names(&machines).await;
    assert_eq!((names(&world.within("demo", "MachineSet")).await.len(), found.len()), (1, 2));
    // C13: one that can't go away does not keep another one from coming.
    merge(&machines, &found[0], json!({"metadata": {"finalizers": ["cluster.x-k8s.io/machine", FOREIGN]}}))
        .await;
    world.delete("demo").await;
    settled(&machines, &found[0], |machine| machine["metadata"]["finalizers"] == json!([FOREIGN])).await;
    world.create("other", json!({})).await;
    world.is_ready("other", 1).await;
    assert!(!get(&world.of("HostedCluster"), "demo").await.is_null());
    operator.stop().await;
    operator = world.start(&[]).await;
    merge(&machines, &found[0], json!({"metadata": {"finalizers": []}})).await;
    world.is_gone("demo").await;
    world.is_ready("other", 1).await;
    world.delete("other").await;
    world.is_gone("other").await;
    world.ended(operator).await;
}

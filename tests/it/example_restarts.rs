//! The example of hosted clusters with an operator that is killed again and again, on a cluster that outlives it.

use addon_operator::cluster::{Access, RateLimit, connect};
use addon_operator::fence::Fence;
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::support::files::{copy, root};
use crate::support::program::{Running, Workspace};
use crate::support::server::settled;

/// Where the control plane of the cluster is.
const SPACE: &str = "clusters-demo";

/// A cluster with the modules of the example.
struct World {
    place: Workspace,
    client: Client,
    _server: Running,
}

impl World {
    async fn new() -> Self {
        let place = Workspace::new();
        std::fs::remove_dir(place.path().join("modules")).unwrap();
        copy(&root().join("examples/300-hypershift/modules"), place.path());
        // The framework of the image.
        assert_eq!(place.ask(&["hook", "framework", "framework"]).0, 0);
        let framework = place.path().join("framework/shell_lib.sh");
        for module in std::fs::read_dir(place.path().join("modules")).unwrap() {
            let Ok(hooks) = std::fs::read_dir(module.unwrap().path().join("hooks")) else { continue };
            for hook in hooks {
                let hook = hook.unwrap().path();
                let text = std::fs::read_to_string(&hook).unwrap();
                std::fs::write(hook, text.replace("/shell_lib.sh", framework.to_str().unwrap())).unwrap();
            }
        }
        let arguments =
            ["apiserver", "--listen", "127.0.0.1:0", "--kubeconfig-out", "kubeconfig", "--simulate"];
        let mut server = Running::start(place.command(&arguments));
        let kubeconfig = place.path().join("kubeconfig");
        server.wait_for_file(&kubeconfig);
        let access = Access { kubeconfig: Some(kubeconfig), ..Access::default() };
        let client = connect(&access, &RateLimit::new(100.0, 100), &Fence::none()).await.unwrap();
        let world = Self { place, client, _server: server };
        for namespace in ["addon-operator", "clusters"] {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            world.create(&world.api("", "v1", "Namespace", ""), object).await;
        }
        world
    }

    fn start(&self) -> Running {
        self.start_with(&[])
    }

    fn start_with(&self, environment: &[(&str, &str)]) -> Running {
        let mut command = self.place.command(&["start", "--debug-unix-socket", "socket", "--tmp-dir", "tmp"]);
        command.env("KUBE_CONFIG", self.place.path().join("kubeconfig"));
        command.env("ADDON_OPERATOR_NAMESPACE", "addon-operator");
        command.env("ADDON_OPERATOR_LISTEN_PORT", "0").env("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1");
        command.envs(environment.iter().copied());
        let mut running = Running::start(command);
        running.wait("listening on");
        running
    }

    fn api(&self, group: &str, version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            "" => Api::all_with(self.client.clone(), &resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, &resource),
        }
    }

    fn hypershift(&self, kind: &str, namespace: &str) -> Api<DynamicObject> {
        self.api("hypershift.openshift.io", "v1alpha1", kind, namespace)
    }

    async fn create(&self, api: &Api<DynamicObject>, object: Value) {
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    async fn create_cluster(&self) {
        self.create_cluster_with(json!({})).await;
    }

    async fn create_cluster_with(&self, more: Value) {
        let crds = self.api("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "");
        settled(&crds, "hostedclusters.hypershift.openshift.io", |crd| {
            let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|its| its["type"] == "Established" && its["status"] == "True")
        })
        .await;
        let mut cluster = json!({
            "apiVersion": "hypershift.openshift.io/v1alpha1", "kind": "HostedCluster", "metadata": {"name": "demo", "namespace": "clusters"},
            "spec": {"release": {"image": "registry.local/release:1.0"}, "initialComputeReplicas": 2, "infraID": "demo-x1"},
        });
        cluster["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.create(&self.hypershift("HostedCluster", "clusters"), cluster).await;
    }

    async fn is_ready(&self) {
        let clusters = self.hypershift("HostedCluster", "clusters");
        settled(&clusters, "demo", |cluster| cluster["status"]["ready"] == true).await;
        let pools = self.hypershift("NodePool", "clusters");
        settled(&pools, "demo", |pool| pool["status"]["nodeCount"] == 2).await;
    }
}

#[tokio::test]
async fn c12_an_operator_that_is_killed_goes_on_where_it_was() {
    let world = World::new().await;
    let mut operator = world.start();
    world.create_cluster().await;
    let capi = |kind: &str| world.api("cluster.x-k8s.io", "v1alpha4", kind, SPACE);
    let is_there = |object: &Value| !object.is_null();
    settled(&world.api("", "v1", "Namespace", ""), SPACE, is_there).await;
    drop(operator);
    operator = world.start();
    settled(&capi("Cluster"), "demo-x1", is_there).await;
    drop(operator);
    operator = world.start();
    settled(&world.api("apps", "v1", "Deployment", SPACE), "kube-apiserver", is_there).await;
    drop(operator);
    operator = world.start();
    world.is_ready().await;
    let counts =
        |api: Api<DynamicObject>| async move { api.list(&ListParams::default()).await.unwrap().items.len() };
    assert_eq!((counts(capi("MachineSet")).await, counts(capi("Machine")).await), (1, 2));
    // The way back is as long.
    let clusters = world.hypershift("HostedCluster", "clusters");
    clusters.delete("demo", &DeleteParams::default()).await.unwrap();
    let is_deleted = |object: &Value| object.is_null() || !object["metadata"]["deletionTimestamp"].is_null();
    settled(&world.hypershift("NodePool", "clusters"), "demo", is_deleted).await;
    drop(operator);
    operator = world.start();
    settled(&capi("Cluster"), "demo-x1", is_deleted).await;
    drop(operator);
    operator = world.start();
    settled(&clusters, "demo", Value::is_null).await;
    settled(&world.api("", "v1", "Namespace", ""), SPACE, Value::is_null).await;
    assert_eq!(operator.stop(), 0);
}

#[tokio::test]
async fn c15_each_kind_of_a_hosted_cluster_has_a_queue_of_its_own() {
    let world = World::new().await;
    let mut operator = world.start();
    operator.wait("Operator is ready now");
    world.create_cluster().await;
    world.is_ready().await;
    let queues =
        |log: &[String], queue: &str| log.iter().any(|line| line.contains(&format!("\"queue\":\"{queue}\"")));
    operator.terminate();
    let (code, log) = operator.end();
    assert_eq!(code, 0);
    for queue in ["hosted-cluster", "node-pool", "hcp", "eic"] {
        assert!(queues(&log, queue), "{queue} is not in the log");
    }
}

/// What the Secrets of a cluster hold, and how that is written in them.
const HELD: [(&str, &str, &str, &str); 3] = [
    ("pullSecret", ".dockerconfigjson", "do-not-tell-the-registry", "ZG8tbm90LXRlbGwtdGhlLXJlZ2lzdHJ5"),
    ("sshKey", "id_rsa.pub", "ssh-rsa do-not-tell-the-key", "c3NoLXJzYSBkby1ub3QtdGVsbC10aGUta2V5"),
    ("providerCreds", "credentials", "do-not-tell-the-cloud", "ZG8tbm90LXRlbGwtdGhlLWNsb3Vk"),
];

#[tokio::test]
async fn what_secrets_of_a_cluster_hold_is_in_no_log_line_answer_event_or_object_of_its_whole_life() {
    let world = World::new().await;
    let mut operator = world.start_with(&[("LOG_LEVEL", "trace")]);
    for (field, key, _, encoded) in HELD {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "data": {key: encoded},
            "metadata": {"name": field.to_lowercase(), "namespace": "clusters"},
        });
        world.create(&world.api("", "v1", "Secret", "clusters"), secret).await;
    }
    // Somebody else has an object with the name of a copy: that fails, with the Secrets among what was asked for.
    let namespaces = world.api("", "v1", "Namespace", "");
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": SPACE,
        "labels": {"hypershift.openshift.io/hosted-control-plane": "true"},
        "annotations": {"addon-operator.io/owned-by": "HostedCluster.hypershift.openshift.io/clusters/demo"},
    }});
    world.create(&namespaces, space).await;
    let copies = world.api("", "v1", "Secret", SPACE);
    let taken = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull-secret", "namespace": SPACE}});
    world.create(&copies, taken).await;
    let named = HELD.map(|(field, ..)| (field.to_owned(), json!({"name": field.to_lowercase()})));
    world.create_cluster_with(Value::Object(named.into_iter().collect())).await;
    let mut lines = vec![operator.wait("is there already")];
    copies.delete("pull-secret", &DeleteParams::default()).await.unwrap();
    world.is_ready().await;
    for (name, (_, key, _, encoded)) in ["pull-secret", "ssh-key", "provider-creds"].into_iter().zip(HELD) {
        settled(&copies, name, |copy| copy["data"][key] == encoded).await;
    }
    // What everybody may read while it lives, and when it is gone.
    let told = async || {
        let mut told = Vec::new();
        for (group, version, kind) in [
            ("", "v1", "Event"),
            ("", "v1", "ConfigMap"),
            ("apps", "v1", "Deployment"),
            ("cluster.x-k8s.io", "v1alpha4", "Cluster"),
            ("hypershift.openshift.io", "v1alpha1", "HostedCluster"),
            ("hypershift.openshift.io", "v1alpha1", "HostedControlPlane"),
            ("hypershift.openshift.io", "v1alpha1", "NodePool"),
        ] {
            let all = world.api(group, version, kind, "").list(&ListParams::default()).await.unwrap();
            told.push(serde_json::to_string(&all).unwrap());
        }
        for question in
            [&["status"][..], &["queue", "list"], &["journal"], &["why", "module", "hypershift-operator"]]
        {
            let socket = ["--debug-unix-socket", "socket"];
            told.push(world.place.ask(&[question, &socket].concat()).1);
        }
        told
    };
    let mut all = told().await;
    let clusters = world.hypershift("HostedCluster", "clusters");
    clusters.delete("demo", &DeleteParams::default()).await.unwrap();
    settled(&clusters, "demo", Value::is_null).await;
    all.extend(told().await);
    operator.terminate();
    let (code, log) = operator.end();
    assert_eq!(code, 0);
    assert!(log.len() > 50 && log.iter().any(|line| line.contains("hosted-cluster")), "{log:#?}");
    lines.extend(log);
    for text in all.iter().chain(&lines) {
        for (_, _, plain, encoded) in HELD {
            assert!(!text.contains(plain) && !text.contains(encoded), "{text}");
        }
    }
}

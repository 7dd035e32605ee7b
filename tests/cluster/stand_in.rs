//! What a cluster has not that is only an API server: ends of namespaces, garbage collection, and workloads that become available.
//! A cluster that has some of it keeps it.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::await_condition;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

/// How long a controller of the cluster has to show that it is there.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether there is something to do.
const INTERVAL: Duration = Duration::from_millis(200);

/// The kinds of a hosted cluster.
const KINDS: [(&str, &str, &str); 12] = [
    ("", "v1", "Secret"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "Service"),
    ("apps", "v1", "Deployment"),
    ("hypershift.openshift.io", "v1alpha1", "HostedControlPlane"),
    ("hypershift.openshift.io", "v1alpha1", "ExternalInfraCluster"),
    ("hypershift.openshift.io", "v1alpha1", "NodePool"),
    ("cluster.x-k8s.io", "v1alpha4", "Cluster"),
    ("cluster.x-k8s.io", "v1alpha4", "MachineSet"),
    ("cluster.x-k8s.io", "v1alpha4", "Machine"),
    ("infrastructure.cluster.x-k8s.io", "v1alpha4", "SimMachineTemplate"),
    ("infrastructure.cluster.x-k8s.io", "v1alpha4", "SimMachine"),
];

/// What is done for the cluster in the namespaces whose names begin with `prefix`.
pub(crate) struct StandIn {
    client: Client,
    prefix: String,
    collects: bool,
    has_workloads: bool,
}

impl StandIn {
    /// Looks what the cluster does by itself. The namespace `prefix` is there.
    pub(crate) async fn new(client: Client, prefix: &str) -> Self {
        let mut stand_in = Self { client, prefix: prefix.to_owned(), collects: false, has_workloads: false };
        let deployments = stand_in.api(("apps", "v1", "Deployment"), Some(prefix));
        let probe = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "probe"}, "spec": {
            "replicas": 0, "selector": {"matchLabels": {"app": "probe"}},
            "template": {"metadata": {"labels": {"app": "probe"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}},
        }});
        create(&deployments, probe).await;
        let namespaces = stand_in.api(("", "v1", "Namespace"), None);
        let name = format!("{prefix}-probe");
        create(&namespaces, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .await;
        namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
        let is_gone = |object: Option<&DynamicObject>| object.is_none();
        let is_seen = |object: Option<&DynamicObject>| {
            object.is_some_and(|object| !object.data["status"]["observedGeneration"].is_null())
        };
        let gone = tokio::time::timeout(PATIENCE, await_condition(namespaces.clone(), &name, is_gone));
        let seen = tokio::time::timeout(PATIENCE, await_condition(deployments.clone(), "probe", is_seen));
        let (gone, seen) = tokio::join!(gone, seen);
        (stand_in.collects, stand_in.has_workloads) = (gone.is_err(), seen.is_ok());
        deployments.delete("probe", &DeleteParams::default()).await.unwrap();
        if stand_in.collects {
            stand_in.end(&name).await;
        }
        stand_in
    }

    fn api(&self, (group, version, kind): (&str, &str, &str), namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Does what the cluster does not do, for ever.
    pub(crate) async fn run(self) {
        loop {
            if self.has_workloads {
                self.run_pods().await;
            } else {
                self.run_deployments().await;
            }
            if self.collects {
                self.collect().await;
                self.end_namespaces().await;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Returns all objects of a kind in its namespaces. A kind may not be there yet.
    async fn list(&self, kind: (&str, &str, &str)) -> Vec<DynamicObject> {
        let list = self.api(kind, None).list(&ListParams::default()).await;
        let is_ours = |object: &DynamicObject| {
            object.namespace().unwrap_or_else(|| object.name_any()).starts_with(&self.prefix)
        };
        list.map(|list| list.items.into_iter().filter(is_ours).collect()).unwrap_or_default()
    }

    /// Writes a status, if it differs.
    async fn tell(&self, kind: (&str, &str, &str), object: &DynamicObject, status: Value) {
        let known = object.data["status"].as_object();
        let differs =
            |(field, value): (&String, &Value)| known.and_then(|known| known.get(field)) != Some(value);
        if status.as_object().unwrap().iter().any(differs) {
            let api = self.api(kind, object.namespace().as_deref());
            let patch = Patch::Merge(json!({ "status": status }));
            let _ = api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await;
        }
    }

    async fn run_deployments(&self) {
        let kind = ("apps", "v1", "Deployment");
        for object in self.list(kind).await {
            let can_run = !object.data["spec"]["template"].to_string().contains("fail");
            let running = if can_run { &object.data["spec"]["replicas"] } else { &Value::Null };
            let mut status = json!({"observedGeneration": object.metadata.generation});
            for field in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
                if !running.is_null() {
                    status[field] = running.clone();
                }
            }
            self.tell(kind, &object, status).await;
        }
    }

    async fn run_pods(&self) {
        let kind = ("", "v1", "Pod");
        for object in self.list(kind).await {
            let is_placed = !object.data["spec"]["nodeName"].is_null();
            let is_ready = object.data["status"]["phase"] == "Running";
            if is_placed || is_ready || object.data["spec"].to_string().contains("fail") {
                continue;
            }
            let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"});
            let status =
                json!({"phase": "Running", "conditions": [condition("Ready"), condition("ContainersReady")]});
            self.tell(kind, &object, status).await;
        }
    }

    /// Deletes objects whose owners are all gone.
    async fn collect(&self) {
        let mut owned = Vec::new();
        for kind in KINDS {
            let with_owners = |object: &DynamicObject| !object.owner_references().is_empty();
            owned.extend(self.list(kind).await.into_iter().filter(with_owners).map(|object| (kind, object)));
        }
        // An owner that is made now is seen after what it owns.
        let mut living = BTreeSet::new();
        for kind in KINDS.into_iter().chain([("hypershift.openshift.io", "v1alpha1", "HostedCluster")]) {
            living.extend(self.list(kind).await.into_iter().filter_map(|object| object.uid()));
        }
        for (kind, object) in owned {
            if object.owner_references().iter().all(|owner| !living.contains(&owner.uid)) {
                let api = self.api(kind, object.namespace().as_deref());
                let _ = api.delete(&object.name_any(), &DeleteParams::background()).await;
            }
        }
    }

    async fn end_namespaces(&self) {
        for namespace in self.list(("", "v1", "Namespace")).await {
            if namespace.metadata.deletion_timestamp.is_none() {
                continue;
            }
            let name = namespace.name_any();
            let mut left = 0;
            for kind in KINDS {
                let api = self.api(kind, Some(&name));
                let Ok(list) = api.list(&ListParams::default()).await else { continue };
                left += list.items.len();
                for object in list.items {
                    let _ = api.delete(&object.name_any(), &DeleteParams::background()).await;
                }
            }
            if left == 0 {
                self.end(&name).await;
            }
        }
    }

    /// Takes the finalizer of the namespace controller away.
    async fn end(&self, name: &str) {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}});
        let path = format!("/api/v1/namespaces/{name}/finalize");
        let request = http::Request::put(path).header("content-type", "application/json");
        let _ = self.client.request::<Value>(request.body(body.to_string().into_bytes()).unwrap()).await;
    }
}

async fn create(api: &Api<DynamicObject>, object: Value) {
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

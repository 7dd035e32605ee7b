//! The examples, run with `dev` as their READMEs say.

use std::fs;
use std::path::Path;
use std::process::Command;

use addon_operator::cluster::{Access, RateLimit, connect};
use addon_operator::fence::Fence;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::files::{copy, root};
use crate::support::program::Running;
use crate::support::server::settled;

/// A running copy of an example.
struct Example {
    running: Running,
    dir: TempDir,
}

impl Example {
    /// Starts `dev` on a copy of the example, in which `edit` may have changed files, and waits until all has converged.
    fn start(name: &str, edit: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        copy(&root().join("examples").join(name), &dir.path().join("example"));
        edit(&dir.path().join("example"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_addon-operator"));
        command
            .args(["dev", "--prometheus-listen-port", "0", "--prometheus-listen-address", "127.0.0.1"])
            .args(["--modules-dir", "example/modules", "--global-hooks-dir", "example/global-hooks"])
            .current_dir(dir.path())
            .env("KUBECONFIG", "/nowhere/poisoned")
            .env_remove("BASH_ENV");
        let mut running = Running::start(command);
        running.wait("Operator is ready now");
        Self { running, dir }
    }

    async fn client(&self) -> Client {
        let kubeconfig = self.dir.path().join(".addon-operator/kubeconfig");
        connect(
            &Access { kubeconfig: Some(kubeconfig), ..Access::default() },
            &RateLimit::new(100.0, 100),
            &Fence::none(),
        )
        .await
        .unwrap()
    }

    /// Ends the operator and checks that no hook has failed.
    fn stop(self) {
        self.running.terminate();
        let (code, lines) = self.running.end();
        assert_eq!(code, 0);
        let failures: Vec<&String> = lines.iter().filter(|line| line.contains("failed")).collect();
        assert!(failures.is_empty(), "{failures:#?}");
    }
}

/// Makes an object from JSON.
async fn create<K>(api: &Api<K>, object: Value)
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

async fn merge<K>(api: &Api<K>, name: &str, patch: Value)
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[tokio::test]
async fn secrets_are_copied_changed_and_removed_with_their_original() {
    let example = Example::start("301-secret-copier", |_| {});
    let client = example.client().await;
    let originals: Api<Secret> = Api::namespaced(client.clone(), "default");
    let labels = json!({"secret-copier": "yes"});
    create(
        &originals,
        json!({"metadata": {"name": "registry", "labels": labels}, "data": {"a": "YQ==", "b": "Yg=="}}),
    )
    .await;
    create(&originals, json!({"metadata": {"name": "private"}, "data": {"a": "YQ=="}})).await;
    create(&Api::<Namespace>::all(client.clone()), namespace("shop")).await;
    let copies: Api<Secret> = Api::namespaced(client.clone(), "shop");
    settled(&copies, "registry", |copy| copy["data"] == json!({"a": "YQ==", "b": "Yg=="})).await;
    merge(&originals, "registry", json!({"data": {"a": "Yw==", "b": null}})).await;
    settled(&copies, "registry", |copy| copy["data"] == json!({"a": "Yw=="})).await;
    originals.delete("registry", &DeleteParams::default()).await.unwrap();
    settled(&copies, "registry", Value::is_null).await;
    assert!(copies.get_opt("private").await.unwrap().is_none());
    example.stop();
}

#[tokio::test]
async fn namespaces_are_labelled_unless_they_have_a_level() {
    let example = Example::start("302-namespace-labeller", |_| {});
    let namespaces: Api<Namespace> = Api::all(example.client().await);
    let level = |expected: &'static str| {
        move |object: &Value| object["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == expected
    };
    settled(&namespaces, "default", level("baseline")).await;
    let mut own = namespace("own");
    own["metadata"]["labels"] = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    create(&namespaces, own).await;
    create(&namespaces, namespace("shop")).await;
    settled(&namespaces, "shop", level("baseline")).await;
    merge(&namespaces, "shop", json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": null}}}))
        .await;
    settled(&namespaces, "shop", level("baseline")).await;
    let own = serde_json::to_value(namespaces.get("own").await.unwrap()).unwrap();
    assert!(level("restricted")(&own), "{own}");
    let system = namespaces.get("kube-system").await.unwrap();
    assert!(!level("baseline")(&serde_json::to_value(system).unwrap()));
    example.stop();
}

#[tokio::test]
async fn a_website_becomes_a_deployment_and_goes_with_it() {
    let example = Example::start("303-website-controller", |_| {});
    let client = example.client().await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Website"));
    let websites: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &kind);
    let (maps, deployments) = (
        Api::<ConfigMap>::namespaced(client.clone(), "default"),
        Api::<Deployment>::namespaced(client, "default"),
    );
    let website = json!({
        "apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "hello", "namespace": "default"},
        "spec": {"text": "<h1>Hello</h1>", "replicas": 2},
    });
    create(&websites, website).await;
    settled(&deployments, "hello", |object| object["spec"]["replicas"] == 2).await;
    settled(&maps, "hello", |object| object["data"]["index.html"] == "<h1>Hello</h1>").await;
    settled(&websites, "hello", |website| website["status"]["phase"] == "Deployed").await;
    merge(&websites, "hello", json!({"spec": {"replicas": 3}})).await;
    settled(&deployments, "hello", |object| object["spec"]["replicas"] == 3).await;
    websites.delete("hello", &DeleteParams::default()).await.unwrap();
    settled(&deployments, "hello", Value::is_null).await;
    settled(&maps, "hello", Value::is_null).await;
    example.stop();
}

#[tokio::test]
async fn a_changed_config_map_rolls_its_deployment() {
    let example = Example::start("304-config-checksum", |_| {});
    let client = example.client().await;
    let (maps, deployments) = (
        Api::<ConfigMap>::namespaced(client.clone(), "default"),
        Api::<Deployment>::namespaced(client, "default"),
    );
    create(&maps, json!({"metadata": {"name": "settings"}, "data": {"color": "blue"}})).await;
    let labels = json!({"app": "web"});
    create(
        &deployments,
        json!({
            "metadata": {"name": "web", "annotations": {"config-checksum": "settings"}},
            "spec": {"selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}
            }},
        }),
    )
    .await;
    let checksum = |object: &Value| {
        let found = &object["spec"]["template"]["metadata"]["annotations"]["config-checksum"];
        found.as_str().map(str::to_owned)
    };
    settled(&deployments, "web", |object| checksum(object).is_some_and(|text| text.len() == 64)).await;
    let first = checksum(&serde_json::to_value(deployments.get("web").await.unwrap()).unwrap());
    merge(&maps, "settings", json!({"data": {"color": "red"}})).await;
    settled(&deployments, "web", |object| checksum(object).is_some() && checksum(object) != first).await;
    example.stop();
}

#[tokio::test]
async fn config_maps_go_when_their_time_has_come() {
    let example = Example::start("305-expired-configmaps", |dir| {
        // A test does not wait for a full minute.
        let hook = dir.join("global-hooks/expire.sh");
        let text = fs::read_to_string(&hook).unwrap();
        let faster = text.replace("crontab: \"* * * * *\"", "crontab: \"* * * * * *\"");
        assert_ne!(text, faster);
        fs::write(hook, faster).unwrap();
    });
    let maps: Api<ConfigMap> = Api::namespaced(example.client().await, "default");
    let map = |name: &str, at: &str| json!({"metadata": {"name": name, "labels": {"expires": "yes"}, "annotations": {"expires-at": at}}});
    create(&maps, map("later", "2100-01-01T00:00:00Z")).await;
    create(&maps, map("over", "2024-01-01T00:00:00Z")).await;
    settled(&maps, "over", Value::is_null).await;
    assert!(maps.get_opt("later").await.unwrap().is_some());
    example.stop();
}

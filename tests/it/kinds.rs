//! Which kinds are meant, for bindings and for what hooks change.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_operator::cluster::Discovery;
use addon_operator::kube::Patcher;
use apiserver::ApiServer;
use engine::hook::selection::Selection;
use engine::object_patch::parse;
use engine::{HookId, Scope};
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::support::server;
use crate::support::watching::{Fixture, noting};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A CRD of group `example.com` with these versions.
fn crd(kind: &str, versions: &[&str]) -> Value {
    let singular = kind.to_lowercase();
    let version = |name: &&str| {
        json!({"name": name, "served": true, "storage": *name == versions[0], "schema": {"openAPIV3Schema": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{singular}s.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": format!("{singular}s"), "singular": singular, "kind": kind, "listKind": format!("{kind}List")},
            "versions": versions.iter().map(version).collect::<Vec<_>>(),
        },
    })
}

async fn patched(patcher: &Patcher, documents: &[Value]) -> Result<(), String> {
    let text = documents.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let hook = HookId { scope: Scope::Global, name: "h.sh".into() };
    patcher
        .apply(&engine::PatchAuthor::Hook(hook), &parse(text.as_bytes()).unwrap())
        .await
        .map_err(|failure| failure.to_string())
}

#[tokio::test]
async fn slip_09_a_kind_that_its_group_has_in_another_version_than_it_prefers_is_found() {
    let mut world = Fixture::new();
    // The group prefers v1, which has no Other.
    world.ok(Method::POST, CRDS, &crd("Thing", &["v1", "v1beta1"])).await;
    world.ok(Method::POST, CRDS, &crd("Other", &["v1beta1", "v1alpha1"])).await;
    let client = Client::new(world.server.service(), "default");
    let discovery = Discovery::new(client.clone());
    for (name, version) in [("Other", "v1beta1"), ("others", "v1beta1"), ("Thing", "v1")] {
        let found = discovery.resolve("", name).await.unwrap();
        assert_eq!(found.api_version(), format!("example.com/{version}"), "{name}");
    }
    let selection = Selection { kind: "other".to_owned(), ..Selection::default() };
    let monitor = world.listed(1, selection, None).await;
    let patcher = Patcher::new(client, discovery, Duration::from_secs(10));
    let object = json!({"apiVersion": "example.com/v1beta1", "kind": "Other", "metadata": {"name": "x", "namespace": "default"}});
    patched(&patcher, &[json!({"operation": "Create", "object": object})]).await.unwrap();
    world.until("the object", |seen| seen[&monitor].changes == ["Added default/x"]).await;
    let deletion =
        json!({"operation": "DeleteInBackground", "kind": "Other", "namespace": "default", "name": "x"});
    patched(&patcher, &[deletion]).await.unwrap();
    world.until("its end", |seen| seen[&monitor].changes.len() == 2).await;
}

#[tokio::test]
async fn slip_09_an_object_without_version_gets_the_one_that_was_found_for_its_kind() {
    let world = Fixture::new();
    world.ok(Method::POST, CRDS, &crd("Other", &["v1beta1", "v1alpha1"])).await;
    let client = Client::new(world.server.service(), "default");
    let patcher = Patcher::new(client.clone(), Discovery::new(client), Duration::from_secs(10));
    for operation in ["Create", "CreateIfNotExists", "CreateOrUpdate", "Apply"] {
        // But for Create, the second one finds the object of the first.
        for (kind, size) in [("Other", 1), ("others", 2)] {
            let name =
                if operation == "Create" { format!("create-{size}") } else { operation.to_lowercase() };
            let object = json!({"kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": {"size": size}});
            patched(&patcher, &[json!({"operation": operation, "object": object})]).await.unwrap();
            let path = format!("/apis/example.com/v1beta1/namespaces/default/others/{name}");
            let there = server::get(&world.server, &path).await.unwrap();
            assert_eq!(
                (&there["apiVersion"], &there["kind"]),
                (&json!("example.com/v1beta1"), &json!("Other"))
            );
        }
    }
}

#[tokio::test]
async fn slip_10_an_operation_on_an_object_of_a_namespace_has_to_name_the_namespace() {
    let server = ApiServer::builder().seed(1).build().unwrap();
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    let client = noting(&server, &paths);
    let patcher = Patcher::new(client.clone(), Discovery::new(client), Duration::from_secs(10));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let on = |operation: &str| json!({"operation": operation, "apiVersion": "v1", "kind": "ConfigMap", "name": "m"});
    let mut merge = on("MergePatch");
    merge["mergePatch"] = json!({"data": {"a": "b"}});
    let mut filter = on("JQPatch");
    filter["jqFilter"] = ".".into();
    let documents = [
        json!({"operation": "Create", "object": map}),
        json!({"operation": "CreateIfNotExists", "object": map}),
        json!({"operation": "CreateOrUpdate", "object": map}),
        json!({"operation": "Apply", "object": map}),
        on("Delete"),
        on("DeleteInBackground"),
        merge,
        filter,
    ];
    let other = json!({"operation": "Create", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": "default"}}});
    for document in documents {
        // Such an operation is right on no object: nothing at all is done.
        let error = patched(&patcher, &[other.clone(), document.clone()]).await.unwrap_err();
        assert!(error.contains("object patch 2 of 2") && error.contains("(nothing was done)"), "{error}");
        assert!(error.contains("namespace"), "{document}: {error}");
    }
    assert!(!paths.lock().unwrap().iter().any(|path| path.contains("configmaps")), "it was asked for");
    // Kinds without namespaces need none.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}});
    patched(&patcher, &[json!({"operation": "Create", "object": namespace})]).await.unwrap();
    assert!(server::get(&server, "/api/v1/namespaces/new").await.is_some());
}

#[tokio::test]
async fn f_h7_hundreds_of_crds_are_asked_for_once_and_what_is_missing_once_more() {
    const CRDS_THERE: usize = 300;
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    let world = Fixture::new();
    for number in 0..CRDS_THERE {
        world.ok(Method::POST, CRDS, &crd(&format!("Kind{number}"), &["v1"])).await;
    }
    let discovery = Discovery::new(noting(&world.server, &paths));
    let asked = || std::mem::take(&mut *paths.lock().unwrap());
    let all = (0..CRDS_THERE).map(|number| {
        let discovery = discovery.clone();
        async move { discovery.resolve("example.com/v1", &format!("Kind{number}")).await }
    });
    assert!(futures::future::join_all(all).await.iter().all(Result::is_ok));
    assert_eq!(asked().len(), 2, "the core group and all others");
    // Whoever looks for what is not there shares the next look with all who do so. The one that is under way may be too old.
    let missing = (0..CRDS_THERE).map(|number| {
        let discovery = discovery.clone();
        async move { discovery.resolve("", &format!("Missing{number}")).await }
    });
    assert!(futures::future::join_all(missing).await.iter().all(Result::is_err));
    let looks = asked().len();
    assert!(looks <= 4, "{looks} requests");
    // It is looked for again by whoever asks later.
    assert!(discovery.resolve("", "Missing1").await.is_err());
    assert_eq!(asked().len(), 2);
}

//! Releases that are written by server-side apply, on a real API server and beside Helm.

use engine::{ApplyMode, ReleaseAction, ReleaseName};
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::{Cluster, DEPLOYMENT};

/// Changes an object of the release as another writer does.
async fn edit(cluster: &Cluster, collection: &str, name: &str, change: Value) {
    let (version, plural) = collection.rsplit_once('/').unwrap();
    let path =
        format!("/{version}/namespaces/{}/{plural}/{name}?fieldManager=kubectl-edit", cluster.namespace);
    let request = http::Request::patch(path).header(CONTENT_TYPE, "application/merge-patch+json");
    let _: Value =
        cluster.client.request(request.body(change.to_string().into_bytes()).unwrap()).await.unwrap();
}

/// Returns how Helm and we are named among those who have written an object.
fn own_entries(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let own = entries.iter().filter(|entry| entry["manager"] == "helm");
    own.map(|entry| entry["operation"].as_str().unwrap()).collect()
}

#[tokio::test]
#[ignore = "needs a cluster"]
async fn objects_move_to_server_side_apply_and_back_and_lose_what_leaves_the_chart() {
    let mut cluster = Cluster::connect("apply").await;
    let deployment = "apis/apps/v1/deployments";
    let template = cluster.chart.path().join("templates/deployment.yaml");
    let with = |env: &str| DEPLOYMENT.replace("ports:", &format!("env: {env}, ports:"));
    std::fs::write(&template, with("[{name: A, value: a}, {name: B, value: b}, {name: C, value: c}]"))
        .unwrap();
    // As Helm has written it: by patches of the client.
    let chart = cluster.chart.path().to_str().unwrap().to_owned();
    let mut install = vec!["install", "web", &chart, "--set", "web.k=one"];
    install.extend(cluster.by_client());
    cluster.helm(&install);
    let before = cluster.object(deployment, "web").await.unwrap();
    assert_eq!(own_entries(&before), ["Update"]);
    edit(&cluster, deployment, "web", json!({"metadata": {"annotations": {"theirs": "x"}}})).await;
    edit(&cluster, "api/v1/configmaps", "web-map", json!({"data": {"theirs": "x"}})).await;
    let environment = |object: &Value| {
        let container = &object["spec"]["template"]["spec"]["containers"][0];
        let names = container["env"].as_array().into_iter().flatten();
        names.map(|item| item["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (content, mode, env, expected) in [
        (2, ApplyMode::Server, "[{name: A, value: a}, {name: B, value: b}]", vec!["A", "B"]),
        (3, ApplyMode::Server, "[{name: A, value: a}]", vec!["A"]),
        (4, ApplyMode::Client, "[{name: D, value: d}, {name: E, value: e}]", vec!["D", "E"]),
        (5, ApplyMode::Client, "[{name: D, value: d}]", vec!["D"]),
        (6, ApplyMode::Server, "[]", vec![]),
    ] {
        cluster.settings.apply = mode;
        std::fs::write(&template, with(env)).unwrap();
        assert_eq!(cluster.upgrade_files(&cluster.adapter(), content).await, ReleaseAction::Upgraded);
        let after = cluster.object(deployment, "web").await.unwrap();
        assert_eq!(environment(&after), expected, "{content}");
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(after["metadata"]["annotations"]["theirs"], "x", "{content}");
        if mode == ApplyMode::Server {
            assert_eq!(own_entries(&after), ["Apply"], "{content}");
        }
        let adapter = cluster.adapter();
        assert_eq!(cluster.upgrade_files(&adapter, content).await, ReleaseAction::Unchanged, "{content}");
        let again = cluster.object(deployment, "web").await.unwrap();
        assert_eq!(after["metadata"]["generation"], again["metadata"]["generation"], "{content}");
    }
    let map = cluster.object("api/v1/configmaps", "web-map").await.unwrap();
    assert_eq!(map["data"], json!({"k": "one", "theirs": "x"}));
    // A field of another writer is taken over.
    edit(&cluster, "api/v1/configmaps", "web-map", json!({"data": {"k": "theirs"}})).await;
    cluster.upgrade_with(&cluster.adapter(), "two", 6).await;
    let map = cluster.object("api/v1/configmaps", "web-map").await.unwrap();
    assert_eq!(map["data"], json!({"k": "two", "theirs": "x"}));
    // Helm goes on from here.
    cluster.helm(&["rollback", "web", "2"]);
    let after = cluster.object(deployment, "web").await.unwrap();
    assert_eq!(environment(&after), ["A", "B"]);
    assert_eq!(cluster.upgrade_with(&cluster.adapter(), "two", 6).await, ReleaseAction::Upgraded);
    assert_eq!(environment(&cluster.object(deployment, "web").await.unwrap()), Vec::<String>::new());
    cluster.adapter().uninstall(&ReleaseName::from("web")).await.unwrap();
    assert!(cluster.object(deployment, "web").await.is_none());
    cluster.forget().await;
}

//! Hosted clusters with the rights that the chart of the example gives, enforced by the API server, and Secrets that stay secret.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use addon_operator::app;
use addon_operator::cluster::connect_in_process;
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::client::Body;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::example_clusters::{CLUSTERS, EXAMPLE, POOLS, World};
use crate::support::DEADLINE;
use crate::support::files::copied;
use crate::support::in_process::ask_socket;
use crate::support::pause::pause;
use crate::support::rights::{Request, manifests};
use crate::support::server::get;

/// Where the manifests of the installation have the operator, and as whom.
const SPACE: &str = "addon-operator";
const ACCOUNT: &str = "system:serviceaccount:addon-operator:addon-operator";

/// Returns the rights that a request needs. What server-side apply makes needs both.
fn rights(request: &Request) -> Vec<(String, String, String)> {
    let (group, verb) = (request.text("group").to_owned(), request.text("verb").to_owned());
    let name = request.text("resource").to_owned();
    match request.text("subresource") {
        "" if verb == "patch" => {
            vec![(group.clone(), name.clone(), verb), (group, name, "create".to_owned())]
        }
        "" => vec![(group, name, verb)],
        part => vec![(group, format!("{name}/{part}"), verb)],
    }
}

/// Returns what the chart of the example makes for the operator's account.
fn access() -> Vec<Value> {
    let place = copied(EXAMPLE);
    let rendered = Command::new(env!("CARGO_BIN_EXE_addon-operator"))
        .args(["template", "hypershift-operator"])
        .arg(place.path().join(EXAMPLE).join("020-hypershift-operator"))
        .args(["--set", "hypershiftOperator.access.create=true"])
        .output()
        .unwrap();
    let text = String::from_utf8(rendered.stdout).unwrap();
    let chart: Vec<Value> =
        values::yaml::parse_all(&text).unwrap().into_iter().filter(|object| !object.is_null()).collect();
    assert_eq!(chart.len(), 2, "{text}");
    chart
}

/// Gives the operator's account these rights, and returns its client, which notes what it asks for.
async fn as_the_account(world: &World, manifests: &[Value], seen: &Arc<Mutex<Vec<Request>>>) -> Client {
    world.post("/api/v1/namespaces", json!({"metadata": {"name": SPACE}})).await;
    for object in manifests {
        // What is for another namespace is not used here.
        if object["metadata"]["namespace"].as_str().is_some_and(|place| place != SPACE) {
            continue;
        }
        let of = |plural: &str| format!("/apis/rbac.authorization.k8s.io/v1/{plural}");
        let path = match object["kind"].as_str().unwrap() {
            "ClusterRole" => of("clusterroles"),
            "ClusterRoleBinding" => of("clusterrolebindings"),
            "Role" => of(&format!("namespaces/{SPACE}/roles")),
            "RoleBinding" => of(&format!("namespaces/{SPACE}/rolebindings")),
            _ => continue,
        };
        world.post(&path, object.clone()).await;
    }
    let sink = Arc::clone(seen);
    // The server lets it do what its account may, and nothing else.
    let service = world.cluster.server.service().map_request(move |request: http::Request<Body>| {
        sink.lock().unwrap().extend(Request::of_client(&request, SPACE));
        let (mut head, body) = request.into_parts();
        head.headers.insert("impersonate-user", http::HeaderValue::from_static(ACCOUNT));
        http::Request::from_parts(head, body)
    });
    connect_in_process(service, SPACE)
}

/// Returns the namespace of the control plane of a cluster, as it is when that was there before.
fn namespace_of(cluster: &str) -> Value {
    json!({"metadata": {
        "name": format!("clusters-{cluster}"),
        "labels": {"hypershift.openshift.io/hosted-control-plane": "true"},
        "annotations": {"addon-operator.io/owned-by": format!("HostedCluster.hypershift.openshift.io/clusters/{cluster}")},
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_of_the_chart_is_what_hosted_clusters_need_and_no_more() {
    let world = World::new().await;
    let chart = access();
    let all: Vec<Value> = manifests().iter().chain(&chart).cloned().collect();
    let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
    let client = as_the_account(&world, &all, &seen).await;
    let (shutdown, ended) = watch::channel(false);
    let running =
        tokio::spawn(app::run(world.cluster.around(client, false, ended, &[("namespace", SPACE)]), drop));
    let secret = json!({
        "metadata": {"name": "pull", "namespace": "clusters"},
        "data": {".dockerconfigjson": "e30="},
    });
    world.post("/api/v1/namespaces/clusters/secrets", secret).await;
    world.create("demo", json!({"pullSecret": {"name": "pull"}})).await;
    world.ready("demo").await;
    world
        .patch(&format!("{POOLS}/demo"), json!({"spec": {"platform": {"aws": {"instanceType": "large"}}}}))
        .await;
    // A wrong one, so that there is an Event.
    let held = json!({"metadata": {"name": "control-plane-operator", "namespace": "clusters-other"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}}});
    world.post("/api/v1/namespaces", namespace_of("other")).await;
    world.post("/apis/apps/v1/namespaces/clusters-other/deployments", held).await;
    world.create("other", json!({})).await;
    let is_told = |events: &Value| {
        let mut all = events["items"].as_array().into_iter().flatten();
        all.any(|event| event["reason"] == "ReconcileFailed")
    };
    world.settled("/api/v1/namespaces/clusters/events", is_told).await;
    world.delete(&format!("{CLUSTERS}/demo")).await;
    world.gone("demo").await;
    shutdown.send_replace(true);
    running.await.unwrap().unwrap();
    let seen = seen.lock().unwrap();
    let refused: BTreeSet<String> =
        seen.iter().filter(|request| !request.is_allowed(&all)).map(ToString::to_string).collect();
    let used: BTreeSet<(String, String, String)> = seen.iter().flat_map(rights).collect();
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    let mut idle = Vec::new();
    for rule in chart[0]["rules"].as_array().unwrap() {
        let group = rule["apiGroups"][0].as_str().unwrap().to_owned();
        for resource in texts(&rule["resources"]) {
            for verb in texts(&rule["verbs"]) {
                let right = (group.clone(), resource.clone(), verb);
                // The Cluster owns both, so they are collected with it; where there is no Cluster API, they are deleted. And a
                // definition that changes is patched.
                let is_of_other_lives = match right.2.as_str() {
                    "delete" => ["hostedcontrolplanes", "externalinfraclusters"].contains(&right.1.as_str()),
                    "patch" => right.1 == "customresourcedefinitions",
                    _ => false,
                };
                if !used.contains(&right) && !is_of_other_lives {
                    idle.push(right);
                }
            }
        }
    }
    assert!(refused.is_empty() && idle.is_empty(), "not allowed: {refused:#?}\nnot needed: {idle:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_copied_secret_holds_is_in_no_condition_event_or_picture() {
    const TOKEN: &str = "cGxlYXNlLWRvLW5vdC10ZWxs";
    let world = World::new().await;
    let operator = world.cluster.start(&[]).await;
    let secret = json!({
        "metadata": {"name": "pull", "namespace": "clusters"},
        "data": {".dockerconfigjson": TOKEN},
    });
    world.post("/api/v1/namespaces/clusters/secrets", secret).await;
    // Somebody else has an object with the name of a copy: the copy is refused.
    world.post("/api/v1/namespaces", namespace_of("demo")).await;
    let taken = "/api/v1/namespaces/clusters-demo/secrets";
    world.post(taken, json!({"metadata": {"name": "pull-secret", "namespace": "clusters-demo"}})).await;
    world.create("demo", json!({"pullSecret": {"name": "pull"}})).await;
    let events: Api<Event> = Api::all(world.cluster.client());
    let begun = Instant::now();
    while events
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .iter()
        .all(|event| event.reason.as_deref() != Some("ReconcileFailed"))
    {
        assert!(begun.elapsed() < DEADLINE);
        pause().await;
    }
    world.delete(&format!("{taken}/pull-secret")).await;
    world.ready("demo").await;
    let copy =
        get(&world.cluster.server, "/api/v1/namespaces/clusters-demo/secrets/pull-secret").await.unwrap();
    assert_eq!(copy["data"][".dockerconfigjson"], TOKEN);
    let told = serde_json::to_string(&events.list(&ListParams::default()).await.unwrap()).unwrap();
    let cluster = get(&world.cluster.server, &format!("{CLUSTERS}/demo")).await.unwrap().to_string();
    let mut pictures = vec![told, cluster];
    for path in ["/queue", "/metrics", "/"] {
        pictures.push(world.asked(operator.port, path).await);
    }
    for path in ["/queue/list.json", "/journal.json", "/status.json"] {
        pictures.push(ask_socket(&world.cluster, path));
    }
    for picture in pictures {
        assert!(!picture.contains(TOKEN) && !picture.contains("please-do-not-tell"), "{picture}");
    }
    operator.stop().await;
}

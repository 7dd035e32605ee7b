//! Hosted clusters as people see them: what each waits for, what `kubectl get` prints, the infraID that is made for one, and how many
//! runs of hooks all of that takes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};

use crate::example_clusters::{CLUSTERS, POOLS, World, states};
use crate::support::files::{root, tracked_below};
use crate::support::server::{get, until};

/// Returns the reasons of a condition in the order in which they came, each once in a row, with their messages.
fn told(seen: &[Value], kind: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for object in seen {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        for condition in conditions.filter(|condition| condition["type"] == kind) {
            let now = (text(&condition["reason"]), text(&condition["message"]));
            if all.last() != Some(&now) {
                all.push(now);
            }
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn c19_a_cluster_says_each_thing_that_it_waits_for_by_its_name() {
    let world = World::new().await;
    let operator = world.cluster.start(&[]).await;
    world.kinds().await;
    let (clusters, planes) = (
        states(&world, "HostedCluster", "clusters").await,
        states(&world, "HostedControlPlane", "clusters-demo").await,
    );
    world.create("demo", json!({})).await;
    world.ready("demo").await;
    until("the last state in the watches", || {
        let is_ready = |seen: &Vec<Value>| seen.iter().any(|object| object["status"]["ready"] == true);
        is_ready(&clusters.lock().unwrap()) && is_ready(&planes.lock().unwrap())
    })
    .await;
    // A control plane tells of each component: the next one is made when the one before is up.
    let plane = told(&planes.lock().unwrap(), "Available");
    let waits = |reason: &str, what: &str| (reason.to_owned(), format!("waits for {what}"));
    let expected = [
        waits("WaitingForEtcd", "etcd"),
        waits("WaitingForKubeAPIServer", "kube-apiserver"),
        waits("WaitingForComponents", "kube-controller-manager"),
        waits("WaitingForComponents", "kube-scheduler"),
        waits("WaitingForComponents", "hosted-cluster-config-operator"),
        ("AsExpected".to_owned(), String::new()),
    ];
    assert_eq!(plane, expected);
    let address = told(&planes.lock().unwrap(), "InfrastructureReady");
    // Where the address comes before the first status is written, there was nothing to wait for.
    let (last, before) = address.split_last().unwrap();
    assert_eq!(last.0, "AsExpected", "{address:?}");
    assert!(before.iter().all(|one| one.0 == "WaitingForInfrastructure"), "{address:?}");
    // A cluster begins with its namespace, and then says what its control plane says, or what that lacks.
    let cluster = told(&clusters.lock().unwrap(), "Available");
    assert!(cluster.contains(&waits("WaitingForNamespace", "Namespace clusters-demo")), "{cluster:?}");
    assert_eq!(cluster.last().map(|last| last.0.as_str()), Some("AsExpected"), "{cluster:?}");
    let own = [
        waits("WaitingForInfrastructure", "infraID demo"),
        waits("WaitingForNamespace", "Namespace clusters-demo"),
        waits("WaitingForControlPlane", "HostedControlPlane demo"),
        waits("WaitingForInfrastructure", "ExternalInfraCluster demo"),
    ];
    let is_known = |one: &&(String, String)| own.contains(one) || expected.contains(one);
    assert_eq!(cluster.iter().find(|one| !is_known(one)), None, "{cluster:?}");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c20_an_infra_id_is_made_once_and_kept() {
    let world = World::new().await;
    let operator = world.cluster.start(&[]).await;
    world.kinds().await;
    let object = json!({
        "apiVersion": "hypershift.openshift.io/v1alpha1", "kind": "HostedCluster", "metadata": {"name": "demo", "namespace": "clusters"},
        "spec": {"release": {"image": "registry.local/release:1.0"}, "initialComputeReplicas": 1},
    });
    world.post(CLUSTERS, object).await;
    world.ready("demo").await;
    let path = format!("{CLUSTERS}/demo");
    let made = get(&world.cluster.server, &path).await.unwrap()["status"]["infraID"].clone();
    let id = made.as_str().unwrap();
    assert!(id.strip_prefix("demo-").is_some_and(|hash| hash.len() == 8), "{id}");
    let clusters = "/apis/cluster.x-k8s.io/v1alpha4/namespaces/clusters-demo/clusters";
    let names = async || {
        let list = get(&world.cluster.server, clusters).await.unwrap();
        let all = list["items"].as_array().unwrap().iter().map(|one| one["metadata"]["name"].clone());
        all.collect::<Vec<_>>()
    };
    assert_eq!(names().await, std::slice::from_ref(&made));
    operator.stop().await;
    // Another operator, and another release, find it.
    let operator = world.cluster.start(&[]).await;
    world.patch(&path, json!({"spec": {"release": {"image": "registry.local/release:1.1"}}})).await;
    let is_through = |cluster: &Value| {
        cluster["status"]["version"]["history"][0]["state"] == "Completed"
            && cluster["status"]["version"]["history"][0]["version"] == "1.1"
    };
    let cluster = world.settled(&path, is_through).await;
    assert_eq!(cluster["status"]["infraID"], made);
    assert_eq!(names().await, [made]);
    operator.stop().await;
}

/// Returns the columns and the first row that `kubectl get` prints of a list.
async fn printed(world: &World, path: &str) -> (Vec<String>, Vec<Value>) {
    let request = Request::builder().method(Method::GET).uri(path);
    let request =
        request.header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io").body(Body::empty()).unwrap();
    let response = kube::Client::new(world.cluster.server.service(), "default").send(request).await.unwrap();
    let table: Value = serde_json::from_slice(&response.into_body().collect_bytes().await.unwrap()).unwrap();
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let columns = columns.map(|column| column["name"].as_str().unwrap().to_owned()).collect();
    (columns, table["rows"][0]["cells"].as_array().unwrap().clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kubectl_prints_of_a_cluster_tells_the_story() {
    let world = World::new().await;
    let operator = world.cluster.start(&[]).await;
    world.create("demo", json!({})).await;
    world.ready("demo").await;
    world.settled(&format!("{CLUSTERS}/demo"), |cluster| !cluster["status"]["kubeconfig"].is_null()).await;
    let (columns, cells) = printed(&world, CLUSTERS).await;
    assert_eq!(columns, ["Name", "Version", "Ready", "KubeConfig", "Reason"]);
    assert_eq!(
        cells,
        [json!("demo"), json!("1.0"), json!(true), json!("demo-admin-kubeconfig"), json!("AsExpected")]
    );
    let (columns, cells) = printed(&world, POOLS).await;
    let of = |name: &str, columns: &[String], cells: &[Value]| {
        let place = columns.iter().position(|column| column == name);
        place.map(|place| cells[place].clone()).unwrap_or_default()
    };
    assert_eq!(of("Name", &columns, &cells), "demo");
    assert_eq!(of("Reason", &columns, &cells), "AsExpected", "{columns:?}");
    for kind in ["hostedcontrolplanes", "externalinfraclusters"] {
        let path = format!("/apis/hypershift.openshift.io/v1alpha1/namespaces/clusters-demo/{kind}");
        let (columns, cells) = printed(&world, &path).await;
        assert_eq!(of("Ready", &columns, &cells), true, "{kind}: {columns:?} {cells:?}");
    }
    operator.stop().await;
}

/// Returns the words of a text that this finds.
fn words(pattern: &str, text: &str) -> BTreeSet<String> {
    let pattern = regex::Regex::new(pattern).unwrap();
    pattern.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

#[test]
fn each_reason_that_a_hook_gives_is_in_the_readme_and_in_a_test() {
    let text = |path: &Path| fs::read_to_string(path).unwrap();
    let of = |dir: &str, ends: &[&str]| -> String {
        let dir = root().join(dir);
        let files = tracked_below(&dir).filter(|path| {
            path.extension().and_then(|end| end.to_str()).is_some_and(|end| ends.contains(&end))
        });
        files.map(text).collect()
    };
    let hooks = of("examples/300-hypershift/modules", &["sh", "jq"]);
    let readme = text(&root().join("examples/300-hypershift/README.md"));
    let (_, seen) = readme.split_once("\n## What a person sees\n").unwrap();
    let table: String = seen
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with("| `"))
        .collect();
    let reasons = "\"((?:Waiting|Missing|Unknown)[A-Z][A-Za-z]+|[A-Za-z]+(?:TooLong|InUse|NotFound|Mismatch|Terminating|Expected)|Paused|Deleting)\"";
    let (given, told) = (words(reasons, &hooks), words("`([A-Z][A-Za-z]+)`", &table));
    assert_eq!(given, told, "what hooks say, and what the README says that they say");
    // Those of the issue, and those that came with what can go wrong.
    assert!(given.len() >= 17, "{given:?}");
    let tests: Vec<String> =
        vec![text(&root().join("examples/300-hypershift/hypershift.test.yaml")), of("tests/it", &["rs"])];
    let untested: Vec<&String> =
        given.iter().filter(|reason| !tests.iter().any(|text| text.contains(*reason))).collect();
    assert_eq!(untested, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn c14_a_cluster_that_is_paused_until_a_time_goes_on_by_itself_when_that_comes() {
    let world = World::new().await;
    let operator = world.cluster.start(&[]).await;
    world.kinds().await;
    let seen = states(&world, "HostedCluster", "clusters").await;
    // The time of the API server, which is ours.
    let clock = world.post("/api/v1/namespaces", json!({"metadata": {"name": "clock"}})).await;
    let now: jiff::Timestamp = clock["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
    let until = now + jiff::SignedDuration::from_secs(8);
    world.create("demo", json!({"pausedUntil": until.to_string()})).await;
    world.ready("demo").await;
    let reasons = || told(&seen.lock().unwrap(), "ReconciliationActive");
    crate::support::server::until("the end of the pause in the watch", || {
        reasons().last().is_some_and(|last| last.0 == "AsExpected")
    })
    .await;
    assert_eq!(reasons()[0], ("Paused".to_owned(), format!("until {until}")));
    let space = get(&world.cluster.server, "/api/v1/namespaces/clusters-demo").await.unwrap();
    let made: jiff::Timestamp = space["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
    assert!(made >= until, "{made}, {until}");
    operator.stop().await;
}

/// How many runs of all controllers one cluster with a machine may take from its creation until it is ready. It takes 40 to 46.
const RUNS: f64 = 55.0;

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_becomes_ready_in_few_runs_of_hooks() {
    let world = World::new().await;
    let operator = world.cluster.start(&[]).await;
    world.create("demo", json!({})).await;
    world.ready("demo").await;
    let runs = async |name: &str| -> f64 {
        let metrics = world.asked(operator.port, "/metrics").await;
        let lines = metrics.lines().filter(|line| {
            line.starts_with("addon_operator_reconcile_seconds_count{") && line.contains(name)
        });
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    };
    let all = runs("").await;
    assert!(all <= RUNS, "{all} runs");
    // What a control plane says of its components is no news for its infrastructure, nor for its pools.
    for (name, most) in [("external-infra-cluster", 7.0), ("node-pool", 8.0)] {
        let of = runs(name).await;
        assert!(of <= most, "{of} runs of {name}");
    }
    operator.stop().await;
}

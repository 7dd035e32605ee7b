//! Which Pods the simulated node takes.

use apiserver::ApiServer;
use http::Method;
use serde_json::{Value, json};

use crate::simulation::{PODS, condition, images, pass, set, simulated};
use crate::{get, merge, post, send};

const NODE: &str = "/api/v1/nodes/addon-operator";
const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
const CONTROLLERS: &str = "/api/v1/namespaces/default/replicationcontrollers";

async fn create_pod(server: &ApiServer, name: &str, spec: Value) {
    let mut whole = json!({"containers": [{"name": "c", "image": "i"}]});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let (status, answer) = post(server, PODS, json!({"metadata": {"name": name}, "spec": whole})).await;
    assert_eq!(status, 201, "{answer}");
}

async fn pod(server: &ApiServer, name: &str) -> Value {
    get(server, &format!("{PODS}/{name}")).await.1
}

fn why(pod: &Value) -> (&Value, &str) {
    let scheduled = condition(pod, "PodScheduled");
    (&scheduled["reason"], scheduled["message"].as_str().unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn a_cordoned_node_takes_only_pods_that_tolerate_it() {
    let server = simulated();
    pass(&server, 1).await;
    // This is what `kubectl cordon` sends.
    merge(&server, NODE, json!({"spec": {"unschedulable": true}})).await;
    let tolerates = json!({"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]});
    create_pod(&server, "waits", json!({})).await;
    create_pod(&server, "tolerates", tolerates).await;
    create_pod(&server, "bound", json!({"nodeName": "addon-operator"})).await;
    assert_eq!(post(&server, DAEMON_SETS, set("daemonsets", "d", "daemon")).await.0, 201);
    pass(&server, 5).await;
    let waits = pod(&server, "waits").await;
    assert_eq!((&waits["status"]["phase"], &waits["spec"]["nodeName"]), (&json!("Pending"), &Value::Null));
    let (reason, message) = why(&waits);
    assert_eq!(reason, "Unschedulable");
    assert!(message.starts_with("0/1 nodes are available: 1 node(s) were unschedulable."), "{message}");
    for name in ["tolerates", "bound"] {
        assert_eq!(pod(&server, name).await["status"]["phase"], "Running", "{name}");
    }
    assert_eq!(get(&server, &format!("{DAEMON_SETS}/d")).await.1["status"]["numberReady"], 1);
    let (_, node) = get(&server, NODE).await;
    assert_eq!(node["spec"]["taints"][0]["key"], "node.kubernetes.io/unschedulable", "{node}");
    merge(&server, NODE, json!({"spec": {"unschedulable": null}})).await;
    pass(&server, 5).await;
    let waits = pod(&server, "waits").await;
    assert_eq!(waits["status"]["phase"], "Running");
    assert_eq!(condition(&waits, "PodScheduled")["status"], "True");
    assert_eq!(get(&server, NODE).await.1["spec"]["taints"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_cordon_outlives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let start = || {
        let builder = ApiServer::builder().simulate(std::time::Duration::from_millis(500));
        builder.state(directory.path().join("state")).build().unwrap()
    };
    let server = start();
    pass(&server, 1).await;
    let own = json!({"key": "x.io/own", "effect": "PreferNoSchedule"});
    merge(&server, NODE, json!({"spec": {"unschedulable": true, "taints": [own]}})).await;
    pass(&server, 1).await;
    server.shutdown().await.unwrap();
    let server = start();
    create_pod(&server, "waits", json!({})).await;
    pass(&server, 5).await;
    assert_eq!(pod(&server, "waits").await["status"]["phase"], "Pending");
    let (_, node) = get(&server, NODE).await;
    assert_eq!(node["spec"]["taints"].as_array().unwrap().len(), 2, "{node}");
}

#[tokio::test(start_paused = true)]
async fn a_tainted_node_takes_only_pods_that_tolerate_all_its_taints() {
    let server = simulated();
    pass(&server, 1).await;
    let taints = json!([{"key": "x.io/a", "value": "b", "effect": "NoSchedule"}, {"key": "x.io/soft", "effect": "PreferNoSchedule"}]);
    merge(&server, NODE, json!({"spec": {"taints": taints}})).await;
    let with = |toleration: Value| json!({"tolerations": [toleration]});
    create_pod(&server, "bare", json!({})).await;
    create_pod(&server, "other", with(json!({"key": "x.io/a", "value": "c", "effect": "NoSchedule"}))).await;
    create_pod(&server, "equal", with(json!({"key": "x.io/a", "value": "b", "effect": "NoSchedule"}))).await;
    create_pod(&server, "all", with(json!({"operator": "Exists"}))).await;
    post(&server, DAEMON_SETS, set("daemonsets", "d", "daemon")).await;
    pass(&server, 5).await;
    for (name, phase) in [("bare", "Pending"), ("other", "Pending"), ("equal", "Running"), ("all", "Running")]
    {
        assert_eq!(pod(&server, name).await["status"]["phase"], phase, "{name}");
    }
    let bare = pod(&server, "bare").await;
    assert!(why(&bare).1.contains("had untolerated taint {x.io/a: b}"), "{bare}");
    let (_, daemons) = get(&server, &format!("{DAEMON_SETS}/d")).await;
    assert_eq!(daemons["status"]["desiredNumberScheduled"], 0, "{daemons}");
    merge(&server, NODE, json!({"spec": {"taints": null}})).await;
    pass(&server, 5).await;
    assert_eq!(pod(&server, "bare").await["status"]["phase"], "Running");
    // What is there stays until the taint is one that lets nothing stay.
    let taint = |effect: &str| json!({"spec": {"taints": [{"key": "x.io/a", "effect": effect}]}});
    merge(&server, NODE, taint("NoSchedule")).await;
    pass(&server, 5).await;
    let (_, daemons) = get(&server, &format!("{DAEMON_SETS}/d")).await;
    assert_eq!(daemons["status"]["numberMisscheduled"], 1, "{daemons}");
    merge(&server, NODE, taint("NoExecute")).await;
    pass(&server, 5).await;
    assert!(!images(&server).await.contains(&"daemon".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn pods_of_daemon_sets_tolerate_what_nodes_suffer_from() {
    let server = simulated();
    let mut daemons = set("daemonsets", "d", "daemon");
    daemons["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
    daemons["spec"]["template"]["spec"]["tolerations"] = json!([{"key": "x.io/a", "operator": "Exists"}]);
    post(&server, DAEMON_SETS, daemons).await;
    pass(&server, 5).await;
    let (_, pods) = get(&server, PODS).await;
    let tolerations = pods["items"][0]["spec"]["tolerations"].as_array().unwrap();
    let keys: Vec<&str> = tolerations
        .iter()
        .map(|toleration| toleration["key"].as_str().unwrap().trim_start_matches("node.kubernetes.io/"))
        .collect();
    assert_eq!(
        keys,
        [
            "x.io/a",
            "not-ready",
            "unreachable",
            "disk-pressure",
            "memory-pressure",
            "pid-pressure",
            "unschedulable",
            "network-unavailable"
        ]
    );
    assert!(
        tolerations.iter().all(|toleration| toleration["tolerationSeconds"].is_null()),
        "{tolerations:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_follows_the_labels_of_the_node() {
    let server = simulated();
    let mut daemons = set("daemonsets", "d", "daemon");
    daemons["spec"]["template"]["spec"]["nodeSelector"] = json!({"x.io/role": "web"});
    post(&server, DAEMON_SETS, daemons).await;
    for (role, pods) in [(Value::Null, 0), (json!("web"), 1), (json!("db"), 0)] {
        merge(&server, NODE, json!({"metadata": {"labels": {"x.io/role": role}}})).await;
        pass(&server, 5).await;
        assert_eq!(images(&server).await.len(), pods, "{role}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replication_controller_has_as_many_pods_as_it_asks_for() {
    let server = simulated();
    let mut rc = set("replicationcontrollers", "rc", "i");
    rc["spec"]["selector"] = json!({"app": "web"});
    create_pod(&server, "other", json!({})).await;
    let labels = json!({"metadata": {"name": "free", "labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    post(&server, PODS, labels).await;
    let (status, created) = post(&server, CONTROLLERS, rc).await;
    assert_eq!(status, 201, "{created}");
    pass(&server, 5).await;
    let path = format!("{CONTROLLERS}/rc");
    let (_, kept) = get(&server, &path).await;
    assert_eq!(
        (&kept["status"]["replicas"], &kept["status"]["readyReplicas"]),
        (&json!(2), &json!(2)),
        "{kept}"
    );
    let owners = &pod(&server, "free").await["metadata"]["ownerReferences"];
    assert_eq!(
        (&owners[0]["kind"], &owners[0]["uid"]),
        (&json!("ReplicationController"), &created["metadata"]["uid"])
    );
    assert_eq!(images(&server).await.len(), 3);
    merge(&server, &path, json!({"spec": {"replicas": 0}})).await;
    pass(&server, 5).await;
    assert_eq!(images(&server).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_until_its_gates_are_gone() {
    let server = simulated();
    create_pod(&server, "gated", json!({"schedulingGates": [{"name": "x.io/a"}]})).await;
    pass(&server, 5).await;
    let gated = pod(&server, "gated").await;
    assert_eq!((&gated["status"]["phase"], &gated["spec"]["nodeName"]), (&json!("Pending"), &Value::Null));
    assert_eq!(why(&gated).0, "SchedulingGated");
    merge(&server, &format!("{PODS}/gated"), json!({"spec": {"schedulingGates": null}})).await;
    pass(&server, 5).await;
    assert_eq!(pod(&server, "gated").await["status"]["phase"], "Running");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_ready_when_its_readiness_gates_say_so() {
    let server = simulated();
    let mut gated = set("replicasets", "s", "i");
    gated["spec"]["replicas"] = json!(1);
    gated["spec"]["template"]["spec"]["readinessGates"] = json!([{"conditionType": "x.io/a"}]);
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    post(&server, sets, gated).await;
    pass(&server, 5).await;
    let path = format!("{PODS}/{}", {
        let (_, pods) = get(&server, PODS).await;
        pods["items"][0]["metadata"]["name"].as_str().unwrap().to_owned()
    });
    let mut kept = get(&server, &path).await.1;
    let (message, other) = (
        "corresponding condition of pod readiness gate \"x.io/a\" does not exist.",
        "the status of pod readiness gate \"x.io/a\" is not \"True\", but False",
    );
    for (gate, ready, reason, message) in [
        (None, "False", json!("ReadinessGatesNotReady"), json!(message)),
        (Some("False"), "False", json!("ReadinessGatesNotReady"), json!(other)),
        (Some("True"), "True", Value::Null, Value::Null),
        (Some("False"), "False", json!("ReadinessGatesNotReady"), json!(other)),
    ] {
        if let Some(gate) = gate {
            let change = json!({"status": {"conditions": [{"type": "x.io/a", "status": gate}]}});
            let content = "application/strategic-merge-patch+json";
            let path = format!("{path}/status");
            let (status, answer) =
                send(server.service(), Method::PATCH, &path, content, &change.to_string()).await;
            assert_eq!(status, 200, "{answer}");
            pass(&server, 5).await;
            kept = get(&server, &path).await.1;
        }
        let found = condition(&kept, "Ready");
        assert_eq!(
            (&found["status"], &found["reason"], &found["message"]),
            (&json!(ready), &reason, &message),
            "{kept}"
        );
        assert_eq!(condition(&kept, "ContainersReady")["status"], "True");
        let (_, set) = get(&server, &format!("{sets}/s")).await;
        let counted = if ready == "True" { json!(1) } else { Value::Null };
        assert_eq!(set["status"]["readyReplicas"], counted, "{set}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_active_too_long_fails() {
    let server = simulated();
    create_pod(&server, "runs", json!({"activeDeadlineSeconds": 20})).await;
    create_pod(&server, "later", json!({})).await;
    pass(&server, 10).await;
    assert_eq!(pod(&server, "runs").await["status"]["phase"], "Running");
    merge(&server, &format!("{PODS}/later"), json!({"spec": {"activeDeadlineSeconds": 50}})).await;
    for (seconds, phase) in [(15, "Running"), (20, "Failed")] {
        pass(&server, seconds).await;
        let runs = pod(&server, "runs").await;
        assert_eq!(
            (&runs["status"]["phase"], &runs["status"]["reason"]),
            (&json!("Failed"), &json!("DeadlineExceeded"))
        );
        assert_eq!(runs["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 137, "{runs}");
        assert_eq!(condition(&runs, "Ready")["reason"], "PodFailed");
        assert_eq!(pod(&server, "later").await["status"]["phase"], phase);
    }
}

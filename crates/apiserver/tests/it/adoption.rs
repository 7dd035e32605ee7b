//! What simulated controllers adopt and let go of.

use apiserver::ApiServer;
use serde_json::{Value, json};

use crate::simulation::{
    DEPLOYMENTS, JOBS, PODS, REVISIONS, deployment, images, pass, set, simulated, strategic, with_image,
};
use crate::{delete, get, merge, post};

const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

async fn items(server: &ApiServer, path: &str) -> Vec<Value> {
    let (status, list) = get(server, path).await;
    assert_eq!(status, 200, "{list}");
    list["items"].as_array().unwrap().clone()
}

/// Returns the identity of the owner that controls an object.
fn controller(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

/// Deletes a workload without its dependents, creates it again, and returns it when it had its time.
async fn replace(server: &ApiServer, all: &str, object: &Value) -> Value {
    let path = format!("{all}/{}", object["metadata"]["name"].as_str().unwrap());
    assert_eq!(post(server, all, object.clone()).await.0, 201);
    pass(server, 5).await;
    assert_eq!(delete(server, &path, json!({"propagationPolicy": "Orphan"})).await.0, 200);
    pass(server, 5).await;
    assert_eq!(get(server, &path).await.0, 404);
    let (status, created) = post(server, all, object.clone()).await;
    assert_eq!(status, 201, "{created}");
    pass(server, 5).await;
    get(server, &path).await.1
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_is_created_again_adopts_its_replica_sets() {
    let server = simulated();
    let web = replace(&server, DEPLOYMENTS, &deployment("one")).await;
    assert_eq!(
        (&web["status"]["readyReplicas"], &web["status"]["updatedReplicas"]),
        (&json!(2), &json!(2)),
        "{web}"
    );
    let sets = items(&server, REPLICA_SETS).await;
    let [adopted] = sets.as_slice() else { panic!("{sets:?}") };
    assert_eq!(controller(adopted), web["metadata"]["uid"].as_str());
    let pods = items(&server, PODS).await;
    assert_eq!(pods.len(), 2);
    assert!(pods.iter().all(|pod| controller(pod) == adopted["metadata"]["uid"].as_str()));
    strategic(&server, &format!("{DEPLOYMENTS}/web"), &with_image("two")).await;
    pass(&server, 10).await;
    assert_eq!(images(&server).await, ["two", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_adopts_a_replica_set_with_its_template_and_another_name() {
    let server = simulated();
    let mut older = set("replicasets", "older", "one");
    older["metadata"]["labels"] = json!({"app": "web"});
    assert_eq!(post(&server, REPLICA_SETS, older).await.0, 201);
    pass(&server, 5).await;
    post(&server, DEPLOYMENTS, deployment("one")).await;
    pass(&server, 5).await;
    let sets = items(&server, REPLICA_SETS).await;
    let names: Vec<&str> = sets.iter().map(|set| set["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["older"]);
    let (_, web) = get(&server, &format!("{DEPLOYMENTS}/web")).await;
    assert_eq!(web["status"]["updatedReplicas"], 2, "{web}");
    assert!(web["status"]["conditions"].to_string().contains("ReplicaSet \\\"older\\\""), "{web}");
}

#[tokio::test(start_paused = true)]
async fn sets_that_are_created_again_adopt_their_pods_and_revisions() {
    for (kind, pods, counted) in [
        ("statefulsets", 2, "updatedReplicas"),
        ("daemonsets", 1, "updatedNumberScheduled"),
        ("replicasets", 2, "fullyLabeledReplicas"),
    ] {
        let server = simulated();
        let all = format!("/apis/apps/v1/namespaces/default/{kind}");
        let kept = replace(&server, &all, &set(kind, "s", "one")).await;
        let uid = kept["metadata"]["uid"].as_str();
        assert_eq!(kept["status"][counted], pods, "{kept}");
        for pod in items(&server, PODS).await {
            assert_eq!(controller(&pod), uid, "{kind}");
        }
        for revision in items(&server, REVISIONS).await {
            assert_eq!(controller(&revision), uid, "{kind}");
        }
        if kind == "replicasets" {
            continue;
        }
        assert_eq!(items(&server, REVISIONS).await.len(), 1, "{kind}");
        strategic(&server, &format!("{all}/s"), &with_image("two")).await;
        pass(&server, 10).await;
        assert_eq!(images(&server).await, vec!["two"; pods], "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_adopts_the_pods_that_it_selects() {
    let server = simulated();
    let template = json!({
        "metadata": {"labels": {"job": "j"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "fails"}]},
    });
    let spec =
        json!({"manualSelector": true, "selector": {"matchLabels": {"job": "j"}}, "template": template});
    let kept = replace(&server, JOBS, &json!({"metadata": {"name": "j"}, "spec": spec})).await;
    let pods = items(&server, PODS).await;
    let [pod] = pods.as_slice() else { panic!("{pods:?}") };
    assert_eq!(controller(pod), kept["metadata"]["uid"].as_str());
}

fn pod(name: &str, app: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_adopts_only_orphans_that_it_selects_and_that_stay() {
    let server = simulated();
    let mut owned = pod("owned", "web");
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "x.io/v1", "kind": "X", "name": "x", "uid": "x", "controller": true}]);
    let mut going = pod("going", "web");
    going["metadata"]["finalizers"] = json!(["x.io/stays"]);
    let mut ended = pod("ended", "web");
    ended["spec"]["restartPolicy"] = json!("Never");
    // One that is an owner among others controls nothing.
    let mut held = pod("held", "web");
    held["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "x.io/v1", "kind": "X", "name": "x", "uid": "x"}]);
    for pod in [owned, going, ended, held, pod("other", "db"), pod("free", "web")] {
        assert_eq!(post(&server, PODS, pod).await.0, 201);
    }
    pass(&server, 5).await;
    delete(&server, &format!("{PODS}/going"), json!({})).await;
    let mut wanted = set("replicasets", "s", "i");
    wanted["spec"]["replicas"] = json!(3);
    let (_, created) = post(&server, REPLICA_SETS, wanted).await;
    pass(&server, 5).await;
    let pods = items(&server, PODS).await;
    let uid = created["metadata"]["uid"].as_str();
    let own: Vec<&str> = pods
        .iter()
        .filter(|pod| controller(pod) == uid)
        .map(|pod| pod["metadata"]["name"].as_str().unwrap())
        .collect();
    let [free, held, made] = own.as_slice() else { panic!("{own:?}") };
    assert_eq!((*free, *held, made.starts_with("s-")), ("free", "held", true));
    let held = pods.iter().find(|pod| pod["metadata"]["name"] == "held").unwrap();
    assert_eq!(held["metadata"]["ownerReferences"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_more_selected_is_let_go_and_replaced() {
    for kind in ["replicasets", "statefulsets", "daemonsets"] {
        let server = simulated();
        let all = format!("/apis/apps/v1/namespaces/default/{kind}");
        assert_eq!(post(&server, &all, set(kind, "s", "one")).await.0, 201);
        pass(&server, 5).await;
        let pods = items(&server, PODS).await;
        let name = pods[0]["metadata"]["name"].as_str().unwrap().to_owned();
        let path = format!("{PODS}/{name}");
        merge(&server, &path, json!({"metadata": {"labels": {"app": "other"}}})).await;
        pass(&server, 5).await;
        let (_, free) = get(&server, &path).await;
        assert_eq!(free["metadata"]["ownerReferences"], Value::Null, "{kind}: {free}");
        // A stateful set has no other name for the one that takes its place.
        let (made, stays) = if kind == "statefulsets" { (0, 2) } else { (1, pods.len()) };
        assert_eq!(items(&server, PODS).await.len(), pods.len() + made, "{kind}");
        merge(&server, &path, json!({"metadata": {"labels": {"app": "web"}}})).await;
        pass(&server, 5).await;
        assert_eq!(items(&server, PODS).await.len(), stays, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_that_a_deployment_selects_no_more_is_let_go() {
    let server = simulated();
    post(&server, DEPLOYMENTS, deployment("one")).await;
    pass(&server, 5).await;
    let sets = items(&server, REPLICA_SETS).await;
    let path = format!("{REPLICA_SETS}/{}", sets[0]["metadata"]["name"].as_str().unwrap());
    merge(&server, &path, json!({"metadata": {"labels": {"app": "other"}}})).await;
    pass(&server, 5).await;
    assert_eq!(get(&server, &path).await.1["metadata"]["ownerReferences"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_being_deleted_adopts_nothing_and_lets_nothing_go() {
    let server = simulated();
    let mut going = set("replicasets", "s", "one");
    going["metadata"]["finalizers"] = json!(["x.io/stays"]);
    post(&server, REPLICA_SETS, going).await;
    pass(&server, 5).await;
    delete(&server, &format!("{REPLICA_SETS}/s"), json!({})).await;
    let pods = items(&server, PODS).await;
    let path = format!("{PODS}/{}", pods[0]["metadata"]["name"].as_str().unwrap());
    merge(&server, &path, json!({"metadata": {"labels": {"app": "other"}}})).await;
    post(&server, PODS, pod("free", "web")).await;
    pass(&server, 5).await;
    assert!(controller(&get(&server, &path).await.1).is_some());
    assert_eq!(controller(&get(&server, &format!("{PODS}/free")).await.1), None);
    assert_eq!(items(&server, PODS).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_a_person_takes_from_its_replica_set_is_adopted_again() {
    let server = simulated();
    post(&server, REPLICA_SETS, set("replicasets", "s", "one")).await;
    pass(&server, 5).await;
    let pods = items(&server, PODS).await;
    let path = format!("{PODS}/{}", pods[0]["metadata"]["name"].as_str().unwrap());
    merge(&server, &path, json!({"metadata": {"ownerReferences": null}})).await;
    pass(&server, 5).await;
    assert!(controller(&get(&server, &path).await.1).is_some());
    assert_eq!(items(&server, PODS).await.len(), 2);
}

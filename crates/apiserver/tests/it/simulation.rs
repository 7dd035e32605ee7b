//! Workloads that become ready although nothing runs.

use std::time::Duration;

use apiserver::ApiServer;
use http::Method;
use serde_json::{Value, json};

use crate::{delete, get, merge, post, send};

pub(crate) fn deployment(image: &str) -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
        },
    })
}

pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Advances the simulated time until the server has nothing left to do.
pub(crate) async fn settle(server: &ApiServer) {
    for _ in 0..10 {
        server.settled().await;
        tokio::time::advance(Duration::from_millis(600)).await;
        tokio::task::yield_now().await;
    }
    server.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_ready_and_goes_with_its_pods() {
    let server = ApiServer::builder().simulate(Duration::from_millis(500)).build().unwrap();
    post(&server, DEPLOYMENTS, deployment("nginx")).await;
    settle(&server).await;
    let (_, kept) = get(&server, &format!("{DEPLOYMENTS}/web")).await;
    assert_eq!(
        (&kept["status"]["readyReplicas"], &kept["status"]["updatedReplicas"]),
        (&json!(2), &json!(2))
    );
    let pods = "/api/v1/namespaces/default/pods";
    assert_eq!(get(&server, pods).await.1["items"].as_array().unwrap().len(), 2);
    delete(&server, &format!("{DEPLOYMENTS}/web"), json!({})).await;
    settle(&server).await;
    assert_eq!(get(&server, pods).await.1["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn images_called_fail_never_start() {
    let server = ApiServer::builder().simulate(Duration::from_millis(500)).build().unwrap();
    post(&server, DEPLOYMENTS, deployment("failing:1")).await;
    settle(&server).await;
    let (_, kept) = get(&server, &format!("{DEPLOYMENTS}/web")).await;
    assert_eq!((&kept["status"]["readyReplicas"], &kept["status"]["replicas"]), (&Value::Null, &json!(2)));
}

#[tokio::test(start_paused = true)]
async fn a_job_comes_to_its_end() {
    let server = ApiServer::builder().simulate(Duration::from_millis(500)).build().unwrap();
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let spec = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}});
    let (status, _) = post(&server, jobs, json!({"metadata": {"name": "j"}, "spec": spec})).await;
    assert_eq!(status, 201);
    settle(&server).await;
    let (_, kept) = get(&server, &format!("{jobs}/j")).await;
    assert_eq!(kept["status"]["succeeded"], json!(1), "{kept}");
    assert_eq!(kept["status"]["conditions"][1]["type"], "Complete");
}

/// A server whose clock goes with the simulated time.
pub(crate) fn simulated() -> ApiServer {
    let begin = (jiff::Timestamp::from_second(1_800_000_000).unwrap(), tokio::time::Instant::now());
    let clock =
        apiserver::Clock::new(move || begin.0 + jiff::SignedDuration::try_from(begin.1.elapsed()).unwrap());
    ApiServer::builder().seed(1).simulate(Duration::from_millis(500)).clock(clock).build().unwrap()
}

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";

pub(crate) async fn strategic(server: &ApiServer, path: &str, body: &Value) -> Value {
    let content = "application/strategic-merge-patch+json";
    let (status, answer) = send(server.service(), Method::PATCH, path, content, &body.to_string()).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

pub(crate) fn with_image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

/// Returns the images of all pods, in the order of their names.
pub(crate) async fn images(server: &ApiServer) -> Vec<String> {
    let (_, pods) = get(server, PODS).await;
    let pods = pods["items"].as_array().unwrap().clone();
    pods.iter().map(|pod| pod["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let list = object["status"]["conditions"].as_array().unwrap();
    list.iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

/// Waits until `seconds` of the simulated time have passed.
pub(crate) async fn pass(server: &ApiServer, seconds: u64) {
    server.settled().await;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    settle(server).await;
}

pub(crate) fn set(kind: &str, name: &str, image: &str) -> Value {
    let mut spec = deployment(image)["spec"].clone();
    if kind == "daemonsets" {
        spec.as_object_mut().unwrap().remove("replicas");
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn slip_31_sets_are_rolled_out_and_back() {
    for (kind, pods) in [("statefulsets", 2), ("daemonsets", 1)] {
        let server = simulated();
        let sets = format!("/apis/apps/v1/namespaces/default/{kind}");
        let path = format!("{sets}/s");
        assert_eq!(post(&server, &sets, set(kind, "s", "one")).await.0, 201);
        pass(&server, 5).await;
        assert_eq!(images(&server).await, vec!["one"; pods]);
        strategic(&server, &path, &with_image("two")).await;
        pass(&server, 10).await;
        assert_eq!(images(&server).await, vec!["two"; pods], "{kind}");
        let (_, revisions) = get(&server, REVISIONS).await;
        let revisions = revisions["items"].as_array().unwrap().clone();
        assert_eq!(revisions.len(), 2, "{kind}");
        let first = revisions.iter().find(|revision| revision["revision"] == 1).unwrap();
        // This is what `kubectl rollout undo` sends.
        strategic(&server, &path, &first["data"]).await;
        pass(&server, 10).await;
        assert_eq!(images(&server).await, vec!["one"; pods], "{kind}");
        let (_, again) =
            get(&server, &format!("{REVISIONS}/{}", first["metadata"]["name"].as_str().unwrap())).await;
        assert_eq!(again["revision"], 3, "{kind}");
        let (_, kept) = get(&server, &path).await;
        let updated = if kind == "daemonsets" { "updatedNumberScheduled" } else { "updatedReplicas" };
        assert_eq!(kept["status"][updated], json!(pods), "{kept}");
    }
}

#[tokio::test(start_paused = true)]
async fn slip_31_a_stateful_set_stops_at_a_pod_that_does_not_start() {
    let server = simulated();
    let sets = "/apis/apps/v1/namespaces/default/statefulsets";
    post(&server, sets, set("statefulsets", "s", "one")).await;
    pass(&server, 5).await;
    strategic(&server, &format!("{sets}/s"), &with_image("fails")).await;
    pass(&server, 10).await;
    assert_eq!(images(&server).await, ["one", "fails"]);
    let (_, kept) = get(&server, &format!("{sets}/s")).await;
    assert_ne!(kept["status"]["currentRevision"], kept["status"]["updateRevision"]);
    assert_eq!(
        (&kept["status"]["updatedReplicas"], &kept["status"]["readyReplicas"]),
        (&json!(1), &json!(1))
    );
}

/// A pod that is stuck has to be deleted by hand, unless the pods are managed in parallel.
#[tokio::test(start_paused = true)]
async fn a_stateful_set_that_is_stuck_stays_so_in_its_order() {
    for (policy, healed) in [("OrderedReady", ["fails", "fails"]), ("Parallel", ["two", "two"])] {
        let server = simulated();
        let sets = "/apis/apps/v1/namespaces/default/statefulsets";
        let mut stuck = set("statefulsets", "s", "fails");
        stuck["spec"]["podManagementPolicy"] = json!(policy);
        post(&server, sets, stuck).await;
        pass(&server, 5).await;
        strategic(&server, &format!("{sets}/s"), &with_image("two")).await;
        pass(&server, 10).await;
        let found = images(&server).await;
        assert_eq!(found, healed[2 - found.len()..], "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_partition_counts_from_the_first_ordinal() {
    let server = simulated();
    let sets = "/apis/apps/v1/namespaces/default/statefulsets";
    let mut numbered = set("statefulsets", "s", "one");
    numbered["spec"]["ordinals"] = json!({"start": 5});
    numbered["spec"]["updateStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}});
    post(&server, sets, numbered).await;
    pass(&server, 5).await;
    strategic(&server, &format!("{sets}/s"), &with_image("two")).await;
    pass(&server, 10).await;
    assert_eq!(images(&server).await, ["one", "two"]);
    delete(&server, &format!("{PODS}/s-5"), json!({"gracePeriodSeconds": 0})).await;
    pass(&server, 5).await;
    assert_eq!(images(&server).await, ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn pods_without_a_label_of_the_template_are_not_fully_labelled() {
    let server = simulated();
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    post(&server, sets, set("replicasets", "s", "one")).await;
    pass(&server, 5).await;
    let labels = json!({"app": "web", "more": "yes"});
    let change = json!({"spec": {"replicas": 3, "template": {"metadata": {"labels": labels}}}});
    strategic(&server, &format!("{sets}/s"), &change).await;
    pass(&server, 5).await;
    let (_, kept) = get(&server, &format!("{sets}/s")).await;
    let status = &kept["status"];
    assert_eq!((&status["replicas"], &status["fullyLabeledReplicas"]), (&json!(3), &json!(1)), "{kept}");
}

/// Somebody else has a replica set with the name that the deployment gives its own.
#[tokio::test(start_paused = true)]
async fn a_deployment_gives_its_replica_set_another_name_if_the_first_is_taken() {
    let server = simulated();
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    post(&server, DEPLOYMENTS, deployment("one")).await;
    pass(&server, 5).await;
    let (_, made) = get(&server, sets).await;
    let name = made["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
    delete(&server, &format!("{DEPLOYMENTS}/web"), json!({})).await;
    pass(&server, 5).await;
    let mut other = set("replicasets", &name, "other");
    other["spec"]["selector"]["matchLabels"] = json!({"app": "other"});
    other["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    assert_eq!(post(&server, sets, other).await.0, 201);
    post(&server, DEPLOYMENTS, deployment("one")).await;
    pass(&server, 5).await;
    let (_, kept) = get(&server, &format!("{DEPLOYMENTS}/web")).await;
    assert_eq!(kept["status"]["collisionCount"], 1, "{kept}");
    assert_eq!(kept["status"]["readyReplicas"], 2, "{kept}");
    let (_, made) = get(&server, sets).await;
    assert_eq!(made["items"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn slip_31_a_paused_deployment_does_not_roll() {
    let server = simulated();
    let path = format!("{DEPLOYMENTS}/web");
    post(&server, DEPLOYMENTS, deployment("one")).await;
    pass(&server, 5).await;
    merge(&server, &path, json!({"spec": {"paused": true}})).await;
    strategic(&server, &path, &with_image("two")).await;
    merge(&server, &path, json!({"spec": {"replicas": 3}})).await;
    pass(&server, 5).await;
    assert_eq!(images(&server).await, vec!["one"; 3]);
    let (_, paused) = get(&server, &path).await;
    assert_eq!(condition(&paused, "Progressing")["reason"], "DeploymentPaused");
    merge(&server, &path, json!({"spec": {"paused": null}})).await;
    pass(&server, 5).await;
    assert_eq!(images(&server).await, vec!["two"; 3]);
    let (_, done) = get(&server, &path).await;
    assert_eq!(condition(&done, "Progressing")["reason"], "NewReplicaSetAvailable", "{done}");
}

#[tokio::test(start_paused = true)]
async fn slip_31_a_roll_out_that_does_not_come_further_is_told_and_undone() {
    let server = simulated();
    let path = format!("{DEPLOYMENTS}/web");
    let mut web = deployment("one");
    web["spec"]["progressDeadlineSeconds"] = json!(60);
    web["spec"]["replicas"] = json!(4);
    post(&server, DEPLOYMENTS, web).await;
    pass(&server, 5).await;
    let (_, sets) = get(&server, "/apis/apps/v1/namespaces/default/replicasets").await;
    let first = sets["items"][0].clone();
    strategic(&server, &path, &with_image("fails")).await;
    pass(&server, 30).await;
    // As many old pods stay as must be available.
    let (_, rolling) = get(&server, &path).await;
    assert_eq!(condition(&rolling, "Progressing")["reason"], "ReplicaSetUpdated", "{rolling}");
    assert_eq!(
        (&rolling["status"]["availableReplicas"], &rolling["status"]["replicas"]),
        (&json!(3), &json!(5))
    );
    assert_eq!(condition(&rolling, "Available")["status"], "True");
    pass(&server, 60).await;
    let (_, late) = get(&server, &path).await;
    let progressing = condition(&late, "Progressing");
    assert_eq!(
        (&progressing["status"], &progressing["reason"]),
        (&json!("False"), &json!("ProgressDeadlineExceeded"))
    );
    // This is what `kubectl rollout undo` sends.
    let mut template = first["spec"]["template"].clone();
    template["metadata"]["labels"].as_object_mut().unwrap().remove("pod-template-hash");
    let undo = json!([{"op": "replace", "path": "/spec/template", "value": template}]).to_string();
    let content = "application/json-patch+json";
    assert_eq!(send(server.service(), Method::PATCH, &path, content, &undo).await.0, 200);
    pass(&server, 10).await;
    assert_eq!(images(&server).await, vec!["one"; 4]);
    let name = first["metadata"]["name"].as_str().unwrap();
    let (_, again) = get(&server, &format!("/apis/apps/v1/namespaces/default/replicasets/{name}")).await;
    let annotations = &again["metadata"]["annotations"];
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "3");
    assert_eq!(annotations["deployment.kubernetes.io/revision-history"], "1");
    assert_eq!(
        get(&server, &path).await.1["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "3"
    );
}

#[tokio::test(start_paused = true)]
async fn slip_31_a_deployment_keeps_as_many_revisions_as_it_says() {
    let server = simulated();
    let path = format!("{DEPLOYMENTS}/web");
    let mut web = deployment("i0");
    web["spec"]["revisionHistoryLimit"] = json!(1);
    post(&server, DEPLOYMENTS, web).await;
    for image in ["i1", "i2", "i3"] {
        pass(&server, 5).await;
        strategic(&server, &path, &with_image(image)).await;
    }
    pass(&server, 5).await;
    let (_, sets) = get(&server, "/apis/apps/v1/namespaces/default/replicasets").await;
    assert_eq!(sets["items"].as_array().unwrap().len(), 2);
}

pub(crate) const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

pub(crate) async fn job(server: &ApiServer, image: &str, spec: Value) -> Value {
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": image}]}});
    let mut all = json!({"template": template});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let (status, job) = post(server, JOBS, json!({"metadata": {"name": "j"}, "spec": all})).await;
    assert_eq!(status, 201, "{job}");
    job
}

#[tokio::test(start_paused = true)]
async fn slip_31_a_job_fails_when_too_many_of_its_pods_do() {
    let server = simulated();
    job(&server, "crash", json!({"backoffLimit": 2})).await;
    pass(&server, 30).await;
    let (_, failed) = get(&server, &format!("{JOBS}/j")).await;
    let end = condition(&failed, "Failed");
    assert_eq!(
        (&end["status"], &end["reason"]),
        (&json!("True"), &json!("BackoffLimitExceeded")),
        "{failed}"
    );
    assert_eq!((&failed["status"]["failed"], &failed["status"]["active"]), (&json!(3), &Value::Null));
    assert_eq!(condition(&failed, "FailureTarget")["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn slip_31_a_job_whose_containers_are_restarted_fails_when_that_is_too_often() {
    let server = simulated();
    let spec = json!({"restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "crash"}]});
    job(&server, "", json!({"backoffLimit": 2, "template": {"spec": spec}})).await;
    pass(&server, 60).await;
    let (_, failed) = get(&server, &format!("{JOBS}/j")).await;
    assert_eq!(condition(&failed, "Failed")["reason"], "BackoffLimitExceeded", "{failed}");
    assert_eq!((&failed["status"]["failed"], &failed["status"]["active"]), (&json!(1), &Value::Null));
    assert_eq!(images(&server).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn slip_31_a_job_fails_at_its_deadline() {
    let server = simulated();
    job(&server, "fails", json!({"activeDeadlineSeconds": 20})).await;
    pass(&server, 10).await;
    assert_eq!(get(&server, &format!("{JOBS}/j")).await.1["status"]["active"], 1);
    pass(&server, 20).await;
    let (_, failed) = get(&server, &format!("{JOBS}/j")).await;
    assert_eq!(condition(&failed, "Failed")["reason"], "DeadlineExceeded", "{failed}");
    assert_eq!(failed["status"]["failed"], 1);
    assert_eq!(images(&server).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn slip_31_a_suspended_job_has_no_pods() {
    let server = simulated();
    let path = format!("{JOBS}/j");
    job(&server, "fails", json!({})).await;
    pass(&server, 5).await;
    assert_eq!(images(&server).await.len(), 1);
    merge(&server, &path, json!({"spec": {"suspend": true}})).await;
    pass(&server, 5).await;
    assert_eq!(images(&server).await.len(), 0);
    let (_, suspended) = get(&server, &path).await;
    assert_eq!(condition(&suspended, "Suspended")["status"], "True");
    let started = suspended["status"]["startTime"].as_str().unwrap().to_owned();
    merge(&server, &path, json!({"spec": {"suspend": false}})).await;
    pass(&server, 5).await;
    let (_, resumed) = get(&server, &path).await;
    assert_eq!(condition(&resumed, "Suspended")["reason"], "JobResumed");
    // Its time begins anew.
    assert!(resumed["status"]["startTime"].as_str().unwrap() > started.as_str(), "{resumed}");
    assert_eq!(images(&server).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn slip_31_a_job_is_collected_when_its_time_is_over() {
    let server = simulated();
    job(&server, "i", json!({"ttlSecondsAfterFinished": 30})).await;
    pass(&server, 10).await;
    let (_, complete) = get(&server, &format!("{JOBS}/j")).await;
    assert_eq!(condition(&complete, "Complete")["status"], "True", "{complete}");
    pass(&server, 40).await;
    assert_eq!(get(&server, &format!("{JOBS}/j")).await.0, 404);
    assert_eq!(images(&server).await, Vec::<String>::new());
}

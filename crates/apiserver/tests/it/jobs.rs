//! Simulated Jobs that others run, and those that say what the failure of a Pod means.

use serde_json::{Value, json};

use crate::simulation::{JOBS, PODS, condition, images, job, pass, simulated};
use crate::{get, merge, put};

const PATH: &str = "/apis/batch/v1/namespaces/default/jobs/j";

#[tokio::test(start_paused = true)]
async fn a_job_that_another_controller_runs_is_left_alone() {
    let server = simulated();
    let created = job(&server, "i", json!({"managedBy": "x.io/y", "ttlSecondsAfterFinished": 30})).await;
    pass(&server, 5).await;
    let (_, kept) = get(&server, PATH).await;
    assert_eq!(kept["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"], "{kept}");
    assert_eq!(images(&server).await, Vec::<String>::new());
    // It is collected when that one has ended it.
    let now = "2027-01-15T08:00:00Z";
    let end =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now});
    let mut ended = kept.clone();
    ended["status"] = json!({
        "startTime": now, "completionTime": now, "succeeded": 1,
        "conditions": [end("SuccessCriteriaMet"), end("Complete")],
    });
    let (status, answer) = put(&server, &format!("{PATH}/status"), ended).await;
    assert_eq!(status, 200, "{answer}");
    pass(&server, 60).await;
    assert_eq!(get(&server, PATH).await.0, 404);
    job(&server, "i", json!({"managedBy": "kubernetes.io/job-controller"})).await;
    pass(&server, 5).await;
    assert_eq!(get(&server, PATH).await.1["status"]["succeeded"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_with_the_first_pod_whose_failure_is_that_of_the_job() {
    let server = simulated();
    let rule = json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}});
    job(&server, "crash", json!({"podFailurePolicy": {"rules": [rule]}})).await;
    pass(&server, 30).await;
    let (_, failed) = get(&server, PATH).await;
    let end = condition(&failed, "Failed");
    assert_eq!((&end["status"], &end["reason"]), (&json!("True"), &json!("PodFailurePolicy")), "{failed}");
    let message = end["message"].as_str().unwrap();
    assert!(message.starts_with("Container c for pod default/j-"), "{message}");
    assert!(message.ends_with(" failed with exit code 1 matching FailJob rule at index 0"), "{message}");
    assert_eq!(condition(&failed, "FailureTarget")["message"], message);
    assert_eq!((&failed["status"]["failed"], images(&server).await.len()), (&json!(1), 1));
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_ignored_is_not_counted() {
    let server = simulated();
    let rule =
        json!({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]});
    job(&server, "fails", json!({"backoffLimit": 0, "podFailurePolicy": {"rules": [rule]}})).await;
    pass(&server, 5).await;
    let (_, pods) = get(&server, PODS).await;
    let path = format!("{PODS}/{}/status", pods["items"][0]["metadata"]["name"].as_str().unwrap());
    let disrupted = json!([{"type": "DisruptionTarget", "status": "True"}]);
    let (status, answer) =
        merge(&server, &path, json!({"status": {"phase": "Failed", "conditions": disrupted}})).await;
    assert_eq!(status, 200, "{answer}");
    pass(&server, 5).await;
    let (_, goes_on) = get(&server, PATH).await;
    assert_eq!((&goes_on["status"]["failed"], &goes_on["status"]["active"]), (&Value::Null, &json!(1)));
    assert_eq!(images(&server).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_runs_too_long_is_a_failure_of_its_job() {
    let server = simulated();
    let spec = json!({
        "restartPolicy": "Never", "activeDeadlineSeconds": 20, "containers": [{"name": "c", "image": "fails"}],
    });
    job(&server, "", json!({"backoffLimit": 1, "template": {"spec": spec}})).await;
    pass(&server, 15).await;
    assert_eq!(get(&server, PATH).await.1["status"]["active"], 1);
    pass(&server, 60).await;
    let (_, failed) = get(&server, PATH).await;
    assert_eq!(condition(&failed, "Failed")["reason"], "BackoffLimitExceeded", "{failed}");
    let (_, pods) = get(&server, PODS).await;
    let reasons: Vec<&str> = pods["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pod| pod["status"]["reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons, ["DeadlineExceeded", "DeadlineExceeded"]);
    assert_eq!(get(&server, JOBS).await.1["items"].as_array().unwrap().len(), 1);
}

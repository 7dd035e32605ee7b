//! Jobs: as many pods as must complete.

use std::sync::Arc;

use objects::time::format_seconds;
use serde_json::{Value, json};

use super::pods::{Pods, create_pod};
use super::status::{condition, count, number, set_status, text};
use crate::cluster::Cluster;
use crate::store::ObjectRef;

/// Creates the pods of a job, and counts those that have completed.
pub(super) fn step(cluster: &Arc<Cluster>, object_ref: &ObjectRef, job: &Value) {
    if job.pointer("/spec/suspend") == Some(&Value::Bool(true)) || is_complete(job) {
        return;
    }
    let wanted = number(job, "/spec/completions", number(job, "/spec/parallelism", 1)).clamp(0, 1_000);
    let at_once = number(job, "/spec/parallelism", 1).clamp(0, 1_000);
    let uid = text(job, "/metadata/uid");
    let pods = Pods::of(cluster, uid);
    let succeeded = pods.in_phase("Succeeded");
    let active = pods.count() - succeeded - pods.in_phase("Failed");
    for _ in active..at_once.min(wanted - succeeded) {
        let name = text(job, "/metadata/name");
        create_pod(
            cluster,
            job,
            &format!("{name}-"),
            &[("job-name", name), ("batch.kubernetes.io/job-name", name)],
        );
    }
    let pods = Pods::of(cluster, uid);
    let now = format_seconds(cluster.now());
    let started = job.pointer("/status/startTime").cloned().unwrap_or_else(|| json!(now));
    let mut status = json!({
        "startTime": started,
        "active": count(pods.count() - succeeded - pods.in_phase("Failed")),
        "ready": pods.ready(),
        "succeeded": count(succeeded),
        "terminating": 0,
        "uncountedTerminatedPods": {},
    });
    if succeeded >= wanted
        && let Some(fields) = status.as_object_mut()
    {
        let reached = |kind: &str| {
            let message = "Reached expected number of succeeded pods";
            condition(job, kind, "True", "CompletionsReached", message, &now)
        };
        fields.insert("completionTime".into(), json!(now));
        fields.insert("conditions".into(), json!([reached("SuccessCriteriaMet"), reached("Complete")]));
    }
    set_status(cluster, object_ref, &status);
}

fn is_complete(job: &Value) -> bool {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|c| text(c, "/type") == "Complete" && text(c, "/status") == "True")
}

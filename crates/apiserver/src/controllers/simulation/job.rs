//! Jobs: as many pods as must complete, until enough have, too many have failed, or the time is over.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use objects::time::format_seconds;
use serde_json::{Value, json};

use super::pods::{Pods, create_pod, has_ended};
use super::status::{count, number, set_status, text};
use crate::cluster::Cluster;
use crate::store::ObjectRef;
use crate::write::Propagation;
use crate::write::loopback::remove;

/// How a job has come to its end.
struct Verdict {
    /// What is told before the end, and the end.
    kinds: [&'static str; 2],
    reason: &'static str,
    message: &'static str,
}

const COMPLETE: Verdict = Verdict {
    kinds: ["SuccessCriteriaMet", "Complete"],
    reason: "CompletionsReached",
    message: "Reached expected number of succeeded pods",
};
const TOO_MANY: Verdict = Verdict {
    kinds: ["FailureTarget", "Failed"],
    reason: "BackoffLimitExceeded",
    message: "Job has reached the specified backoff limit",
};
const TOO_LATE: Verdict = Verdict {
    kinds: ["FailureTarget", "Failed"],
    reason: "DeadlineExceeded",
    message: "Job was active longer than specified deadline",
};

/// Does the next step of a job. Returns when it must be looked at again: at its deadline, or to be deleted.
pub(super) fn step(cluster: &Arc<Cluster>, object_ref: &ObjectRef, job: &Value) -> Option<Timestamp> {
    let now = cluster.now();
    if let Some(ended) = end_of(job) {
        return collect(cluster, object_ref, job, ended, now);
    }
    if job.pointer("/spec/suspend") == Some(&Value::Bool(true)) {
        suspend(cluster, object_ref, job, now);
        return None;
    }
    let pods = Pods::of(cluster, text(job, "/metadata/uid"));
    let (succeeded, failed) = (pods.in_phase("Succeeded"), pods.in_phase("Failed"));
    // Pods that were deleted stay counted.
    let succeeded = succeeded.max(number(job, "/status/succeeded", 0));
    let mut failed = failed.max(number(job, "/status/failed", 0));
    let limit = number(job, "/spec/backoffLimit", 6);
    let restarts = pods.restarts();
    let at_once = number(job, "/spec/parallelism", 1).clamp(0, 1_000);
    let wanted = number(job, "/spec/completions", at_once.max(1)).clamp(0, 1_000);
    let started = text(job, "/status/startTime").parse::<Timestamp>().ok().unwrap_or(now);
    let deadline = job.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    let until =
        deadline.and_then(|seconds| started.checked_add(SignedDuration::from_secs(seconds.max(0))).ok());
    let verdict = if succeeded >= wanted {
        Some(&COMPLETE)
    } else if failed > limit || (restarts > 0 && restarts >= limit) {
        Some(&TOO_MANY)
    } else if until.is_some_and(|until| now >= until) {
        Some(&TOO_LATE)
    } else {
        None
    };
    let mut active = pods.count() - pods.in_phase("Succeeded") - pods.in_phase("Failed");
    if let Some(verdict) = verdict {
        remove_active(cluster, &pods, active);
        // What is ended with the job has not succeeded.
        failed += if verdict.kinds == COMPLETE.kinds { 0 } else { active };
    } else {
        let needed = at_once.min(wanted - succeeded);
        for _ in active..needed {
            let name = text(job, "/metadata/name");
            let labels = [("job-name", name), ("batch.kubernetes.io/job-name", name)];
            create_pod(cluster, job, &format!("{name}-"), &labels);
        }
        remove_active(cluster, &pods, active - needed);
        active = needed;
    }
    let pods = Pods::of(cluster, text(job, "/metadata/uid"));
    let mut status = json!({
        "startTime": format_seconds(started),
        "active": count(if verdict.is_some() { 0 } else { active }),
        "ready": if verdict.is_some() { 0 } else { pods.ready() },
        "succeeded": count(succeeded),
        "failed": count(failed),
        "terminating": 0,
        "uncountedTerminatedPods": {},
    });
    let mut conditions = Conditions::of(job, now);
    conditions.resume();
    if let Some(verdict) = verdict {
        for kind in verdict.kinds {
            conditions.set(kind, "True", verdict.reason, verdict.message);
        }
        if verdict.kinds == COMPLETE.kinds
            && let Some(fields) = status.as_object_mut()
        {
            fields.insert("completionTime".into(), json!(format_seconds(now)));
        }
    }
    conditions.write(&mut status);
    set_status(cluster, object_ref, &status);
    if verdict.is_some() { lifetime(job, now) } else { until }
}

/// Removes pods that have not ended.
fn remove_active(cluster: &Arc<Cluster>, pods: &Pods, surplus: i64) {
    let active = pods.0.iter().filter(|(_, pod)| !has_ended(pod));
    for (object_ref, _) in active.take(usize::try_from(surplus).unwrap_or(0)) {
        remove(cluster, object_ref, None);
    }
}

/// Removes the pods of a job that waits to be resumed.
fn suspend(cluster: &Arc<Cluster>, object_ref: &ObjectRef, job: &Value, now: Timestamp) {
    let pods = Pods::of(cluster, text(job, "/metadata/uid"));
    remove_active(cluster, &pods, pods.count());
    let mut status = json!({"active": null, "ready": 0, "startTime": null, "terminating": 0, "uncountedTerminatedPods": {}});
    let mut conditions = Conditions::of(job, now);
    conditions.set("Suspended", "True", "JobSuspended", "Job suspended");
    conditions.write(&mut status);
    set_status(cluster, object_ref, &status);
}

/// Returns when a job came to its end.
fn end_of(job: &Value) -> Option<Timestamp> {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
    let end = conditions.into_iter().flatten().find(|condition| {
        matches!(text(condition, "/type"), "Complete" | "Failed") && text(condition, "/status") == "True"
    })?;
    Some(text(end, "/lastTransitionTime").parse().unwrap_or(Timestamp::UNIX_EPOCH))
}

/// Returns until when a job that ended at `ended` stays.
fn lifetime(job: &Value, ended: Timestamp) -> Option<Timestamp> {
    let seconds = job.pointer("/spec/ttlSecondsAfterFinished").and_then(Value::as_i64)?;
    ended.checked_add(SignedDuration::from_secs(seconds.max(0))).ok()
}

/// Deletes a job that has ended and outlived its time. Returns until when it stays.
fn collect(
    cluster: &Arc<Cluster>,
    object_ref: &ObjectRef,
    job: &Value,
    ended: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    let until = lifetime(job, ended)?;
    if now < until {
        return Some(until);
    }
    remove(cluster, object_ref, Some(Propagation::Foreground));
    None
}

/// The conditions of a job.
struct Conditions {
    list: Vec<Value>,
    now: String,
}

impl Conditions {
    fn of(job: &Value, now: Timestamp) -> Conditions {
        let list = job.pointer("/status/conditions").and_then(Value::as_array);
        Conditions { list: list.cloned().unwrap_or_default(), now: format_seconds(now) }
    }

    fn set(&mut self, kind: &str, status: &str, reason: &str, message: &str) {
        let known = self.list.iter_mut().find(|known| text(known, "/type") == kind);
        if known.as_ref().is_some_and(|known| text(known, "/status") == status) {
            return;
        }
        let new = json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastProbeTime": self.now, "lastTransitionTime": self.now,
        });
        match known {
            Some(known) => *known = new,
            None => self.list.push(new),
        }
    }

    /// Ends a suspension, if there was one.
    fn resume(&mut self) {
        if self.list.iter().any(|known| text(known, "/type") == "Suspended") {
            self.set("Suspended", "False", "JobResumed", "Job resumed");
        }
    }

    fn write(self, status: &mut Value) {
        if let (false, Some(fields)) = (self.list.is_empty(), status.as_object_mut()) {
            fields.insert("conditions".into(), Value::Array(self.list));
        }
    }
}

//! Jobs: as many pods as must complete, until enough have, too many have failed, or the time is over.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use objects::time::format_seconds;
use serde_json::{Value, json};

use super::pod_failure_policy::{Meaning, meaning};
use super::pods::{Pods, create_pod, has_ended};
use super::replica_set::MOST;
use super::status::{count, number, set_status, text};
use crate::cluster::Cluster;
use crate::store::ObjectRef;
use crate::write::Propagation;
use crate::write::loopback::remove;

/// How a job has come to its end.
struct Verdict {
    succeeds: bool,
    reason: &'static str,
    message: Cow<'static, str>,
}

impl Verdict {
    const fn new(succeeds: bool, reason: &'static str, message: &'static str) -> Verdict {
        Verdict { succeeds, reason, message: Cow::Borrowed(message) }
    }

    /// Returns what is told before the end, and the end.
    fn kinds(&self) -> [&'static str; 2] {
        if self.succeeds { ["SuccessCriteriaMet", "Complete"] } else { ["FailureTarget", "Failed"] }
    }
}

/// What has become of the pods of a job, and what it asks for.
struct Tally {
    succeeded: i64,
    failed: i64,
    /// Failed pods that do not count.
    ignored: i64,
    active: i64,
    restarts: i64,
    /// Why the job has failed with one of its pods.
    failure: Option<String>,
    started: Timestamp,
    /// When its time is over.
    until: Option<Timestamp>,
    at_once: i64,
    /// How many have to succeed. Without such a number, the first one that succeeds is the last one that is made.
    completions: Option<i64>,
}

impl Tally {
    fn of(job: &Value, pods: &Pods, now: Timestamp) -> Tally {
        let (mut failed, mut ignored, mut failure) = (0, 0, None);
        let (succeeded, ended) = (pods.in_phase("Succeeded"), pods.in_phase("Failed"));
        for (_, pod) in pods.0.iter().filter(|(_, pod)| text(pod, "/status/phase") == "Failed") {
            match meaning(job, pod) {
                Meaning::IsIgnored => ignored += 1,
                Meaning::Counts => failed += 1,
                Meaning::FailsJob(message) => {
                    failed += 1;
                    failure.get_or_insert(message);
                }
            }
        }
        // The time of a job begins anew when it is resumed.
        let begun = text(job, "/status/startTime").parse::<Timestamp>().ok().filter(|_| !is_resumed(job));
        let started = begun.unwrap_or(now);
        let deadline = job.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
        let until =
            deadline.and_then(|seconds| started.checked_add(SignedDuration::from_secs(seconds.max(0))).ok());
        let at_once = number(job, "/spec/parallelism", 1).clamp(0, MOST);
        Tally {
            // Pods that were deleted stay counted.
            succeeded: succeeded.max(number(job, "/status/succeeded", 0)),
            failed: failed.max(number(job, "/status/failed", 0)),
            ignored,
            active: pods.count() - succeeded - ended,
            restarts: pods.restarts(),
            failure,
            started,
            until,
            at_once,
            completions: job
                .pointer("/spec/completions")
                .and_then(Value::as_i64)
                .map(|all| all.clamp(0, MOST)),
        }
    }

    /// Returns how many pods should run.
    fn needed(&self) -> i64 {
        match self.completions {
            Some(all) => self.at_once.min(all - self.succeeded),
            None if self.succeeded > 0 => self.active,
            None => self.at_once,
        }
    }

    /// Returns how the job has come to its end, if it has.
    fn verdict(&mut self, job: &Value, now: Timestamp) -> Option<Verdict> {
        if let Some(message) = self.failure.take() {
            return Some(Verdict {
                succeeds: false,
                reason: "PodFailurePolicy",
                message: Cow::Owned(message),
            });
        }
        let limit = number(job, "/spec/backoffLimit", 6);
        if self.failed > limit || (self.restarts > 0 && self.restarts >= limit) {
            let message = "Job has reached the specified backoff limit";
            return Some(Verdict::new(false, "BackoffLimitExceeded", message));
        }
        if self.completions.map_or(self.succeeded > 0 && self.active == 0, |all| self.succeeded >= all) {
            let message = "Reached expected number of succeeded pods";
            return Some(Verdict::new(true, "CompletionsReached", message));
        }
        if self.until.is_some_and(|until| now >= until) {
            let message = "Job was active longer than specified deadline";
            return Some(Verdict::new(false, "DeadlineExceeded", message));
        }
        None
    }
}

/// Does the next step of a job. Returns when it must be looked at again: at its deadline, or to be deleted.
pub(super) fn step(cluster: &Arc<Cluster>, object_ref: &ObjectRef, job: &Value) -> Option<Timestamp> {
    let now = cluster.now();
    if let Some(ended) = end_of(job) {
        return collect(cluster, object_ref, job, ended, now);
    }
    if !matches!(text(job, "/spec/managedBy"), "" | "kubernetes.io/job-controller") {
        return None;
    }
    if job.pointer("/spec/suspend") == Some(&Value::Bool(true)) {
        suspend(cluster, object_ref, job, now);
        return None;
    }
    let pods = Pods::of(cluster, job);
    let mut tally = Tally::of(job, &pods, now);
    let verdict = tally.verdict(job, now);
    match &verdict {
        Some(verdict) => {
            remove_active(cluster, &pods, tally.active);
            // What is ended with the job has not succeeded.
            tally.failed += if verdict.succeeds { 0 } else { tally.active };
            tally.active = 0;
        }
        None => make_active(cluster, job, &pods, &mut tally),
    }
    let ready = if verdict.is_some() { 0 } else { Pods::of(cluster, job).ready() };
    let mut status = json!({
        "startTime": format_seconds(tally.started),
        "active": count(tally.active),
        "ready": ready,
        "succeeded": count(tally.succeeded),
        "failed": count(tally.failed),
        "terminating": 0,
        "uncountedTerminatedPods": {},
    });
    let mut conditions = Conditions::of(job, now);
    conditions.resume();
    if let Some(verdict) = &verdict {
        for kind in verdict.kinds() {
            conditions.set(kind, "True", verdict.reason, &verdict.message);
        }
        if verdict.succeeds
            && let Some(fields) = status.as_object_mut()
        {
            fields.insert("completionTime".into(), json!(format_seconds(now)));
        }
    }
    conditions.write(&mut status);
    set_status(cluster, object_ref, &status);
    if verdict.is_some() { lifetime(job, now) } else { tally.until }
}

/// Makes the pods that are missing, and removes those that are too many.
fn make_active(cluster: &Arc<Cluster>, job: &Value, pods: &Pods, tally: &mut Tally) {
    // Failures that do not count could go on for ever.
    let room = if tally.ignored < MOST { MOST } else { tally.active };
    let needed = tally.needed().min(room);
    for _ in tally.active..needed {
        let name = text(job, "/metadata/name");
        let labels = [("job-name", name), ("batch.kubernetes.io/job-name", name)];
        create_pod(cluster, job, &format!("{name}-"), &labels);
    }
    remove_active(cluster, pods, tally.active - needed);
    tally.active = needed;
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
    let pods = Pods::of(cluster, job);
    remove_active(cluster, &pods, pods.count());
    let mut status = json!({"active": null, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}});
    let mut conditions = Conditions::of(job, now);
    conditions.set("Suspended", "True", "JobSuspended", "Job suspended");
    conditions.write(&mut status);
    set_status(cluster, object_ref, &status);
}

/// Returns whether a job that is not suspended was until now.
fn is_resumed(job: &Value) -> bool {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|known| text(known, "/type") == "Suspended" && text(known, "/status") == "True")
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

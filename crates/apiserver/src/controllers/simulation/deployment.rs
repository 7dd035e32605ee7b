//! Deployments: one replica set for each template, and pods that go over from one to the next.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use objects::time::format_seconds;
use serde_json::{Value, json};

use super::replica_sets::{Orders, REVISION, ReplicaSet, ReplicaSets};
use super::shares::{is_scaled, resize};
use super::status::{CONTROLLER, condition, count, number, set_status, text};
use super::template;
use crate::cluster::{Cluster, Edit};
use crate::store::ObjectRef;

/// Does the next step of a deployment, and counts. Returns when the time for its progress is over.
pub(super) fn step(cluster: &Arc<Cluster>, object_ref: &ObjectRef, deployment: &Value) -> Option<Timestamp> {
    let mut plan = Plan::of(deployment);
    let mut sets = ReplicaSets::of(cluster, deployment, &plan.template);
    let had_current = sets.current.is_some();
    let orders = Orders {
        deployment,
        revision: sets.revision(),
        desired: plan.desired,
        most: plan.desired + plan.surge,
    };
    let is_resized = (plan.paused || is_scaled(&sets, plan.desired)) && {
        let counted = number(deployment, "/status/replicas", 0);
        resize(cluster, &orders, &sets, !plan.recreates, counted)
    };
    // What follows from new sizes is done when the replica sets have them.
    if !plan.paused && !is_resized {
        if plan.recreates {
            recreate(cluster, &plan, &orders, &sets);
        } else {
            roll(cluster, &plan, &orders, &sets);
        }
        annotate(cluster, object_ref, orders.revision);
    }
    sets = ReplicaSets::of(cluster, deployment, &plan.template);
    if let Some(current) = &sets.current {
        current.name().clone_into(&mut plan.name);
    }
    let until = tally(cluster, object_ref, &plan, &sets, !had_current && sets.current.is_some());
    if !plan.paused {
        sets.trim(cluster, deployment);
    }
    until
}

/// What a deployment asks for.
struct Plan {
    /// The name of the replica set with the present template.
    name: String,
    /// What is in that name and in the labels of its pods.
    hash: String,
    /// The hash of the present template, whatever names were taken.
    template: String,
    desired: i64,
    /// How many pods there may be above that.
    surge: i64,
    /// How many may be missing.
    unavailable: i64,
    paused: bool,
    recreates: bool,
    deadline: Option<SignedDuration>,
}

impl Plan {
    fn of(deployment: &Value) -> Plan {
        let template = deployment.pointer("/spec/template").unwrap_or(&Value::Null);
        let hash = template::hash_after(template, number(deployment, "/status/collisionCount", 0));
        let desired = number(deployment, "/spec/replicas", 1);
        let amount = |name: &str| deployment.pointer(&format!("/spec/strategy/rollingUpdate/{name}"));
        let surge = share(amount("maxSurge"), desired, true);
        let unavailable = share(amount("maxUnavailable"), desired, false);
        let recreates = text(deployment, "/spec/strategy/type") == "Recreate";
        let deadline = number(deployment, "/spec/progressDeadlineSeconds", i64::from(i32::MAX));
        Plan {
            name: format!("{}-{hash}", text(deployment, "/metadata/name")),
            hash,
            template: template::hash(template),
            desired,
            surge: if recreates { 0 } else { surge },
            unavailable: match (recreates, surge, unavailable) {
                (true, _, _) => 0,
                // Something must be able to move.
                (false, 0, 0) => 1.min(desired),
                (false, _, _) => unavailable.min(desired),
            },
            paused: deployment.pointer("/spec/paused") == Some(&Value::Bool(true)),
            recreates,
            deadline: (deadline < i64::from(i32::MAX)).then(|| SignedDuration::from_secs(deadline)),
        }
    }
}

/// Returns a number, or a percentage of `all`.
fn share(amount: Option<&Value>, all: i64, up: bool) -> i64 {
    match amount {
        Some(Value::Number(number)) => number.as_i64().unwrap_or(0),
        Some(Value::String(text)) => {
            let percent = text.trim_end_matches('%').parse::<i64>().unwrap_or(0);
            let product = percent.saturating_mul(all);
            if up { (product + 99) / 100 } else { product / 100 }
        }
        _ => 0,
    }
}

/// Lets all old pods end before there are new ones.
fn recreate(cluster: &Arc<Cluster>, plan: &Plan, orders: &Orders<'_>, sets: &ReplicaSets) {
    for set in sets.old.iter().filter(|set| set.wanted() > 0) {
        orders.scale(cluster, set, 0);
    }
    if sets.old.iter().any(|set| set.wanted() > 0 || set.counted("replicas") > 0) {
        return;
    }
    match &sets.current {
        Some(set) => orders.adjust(cluster, set, plan.desired),
        None => orders.create(cluster, &plan.name, &plan.hash, plan.desired),
    }
}

/// Makes new pods as far as there is room, and removes old ones as far as enough are available.
fn roll(cluster: &Arc<Cluster>, plan: &Plan, orders: &Orders<'_>, sets: &ReplicaSets) {
    let room = (plan.desired + plan.surge - sets.wanted()).max(0);
    let is = sets.current.as_ref().map_or(0, ReplicaSet::wanted);
    let next = plan.desired.min(is + room);
    match &sets.current {
        Some(set) => orders.adjust(cluster, set, next),
        None => orders.create(cluster, &plan.name, &plan.hash, next),
    }
    let enough = plan.desired - plan.unavailable;
    let current_available = sets.current.as_ref().map_or(0, |set| set.available().min(next));
    let mut old_sets: Vec<&ReplicaSet> = sets.old.iter().collect();
    old_sets.sort_by(|a, b| a.by_age(b));
    let old: i64 = old_sets.iter().map(|set| set.wanted()).sum();
    let mut removable = old + next - enough - (next - current_available);
    let mut left: Vec<(&ReplicaSet, i64)> = Vec::new();
    // Those that are not available are missed by nobody.
    for set in &old_sets {
        let broken = (set.wanted() - set.available()).min(removable).max(0);
        removable -= broken;
        left.push((set, set.wanted() - broken));
    }
    let available: i64 = sets.old.iter().map(ReplicaSet::available).sum();
    let mut spare = (available + current_available - enough).min(removable).max(0);
    for (set, replicas) in left {
        let fewer = replicas.min(spare);
        spare -= fewer;
        if set.wanted() != replicas - fewer {
            orders.scale(cluster, set, replicas - fewer);
        }
    }
}

fn annotate(cluster: &Cluster, object_ref: &ObjectRef, revision: i64) {
    let Some(resource) = cluster.registry.of_table(&object_ref.table) else {
        return;
    };
    let _ = cluster.modify(&resource, object_ref, CONTROLLER, |deployment| {
        let Some(metadata) = deployment.get_mut("metadata").and_then(Value::as_object_mut) else {
            return Edit::Keep;
        };
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        let value = json!(revision.to_string());
        match annotations.as_object_mut() {
            Some(annotations) if annotations.get(REVISION) != Some(&value) => {
                annotations.insert(REVISION.into(), value);
                Edit::Write
            }
            Some(_) | None => Edit::Keep,
        }
    });
}

/// Writes the numbers of the replica sets into the status. Returns when the time for progress is over.
fn tally(
    cluster: &Arc<Cluster>,
    object_ref: &ObjectRef,
    plan: &Plan,
    sets: &ReplicaSets,
    begins: bool,
) -> Option<Timestamp> {
    let deployment = cluster.storage.get(object_ref)?.value();
    let updated = sets.current.as_ref().map_or(0, |set| set.counted("replicas"));
    let (total, ready, available) =
        (sets.sum("replicas"), sets.sum("readyReplicas"), sets.sum("availableReplicas"));
    let now = cluster.now();
    let done = updated == plan.desired && total == updated && available == updated && !plan.paused;
    let was = |field: &str| number(&deployment, &format!("/status/{field}"), 0);
    let progressed = updated > was("updatedReplicas")
        || total - updated < was("replicas") - was("updatedReplicas")
        || ready > was("readyReplicas")
        || available > was("availableReplicas");
    let (progressing, until) =
        progress(&deployment, plan, Progress { done, moved: progressed || begins, begins }, now);
    let (status, reason, message) = if available >= plan.desired - plan.unavailable {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let mut available_now =
        condition(&deployment, "Available", status, reason, message, &format_seconds(now));
    let time = available_now.get("lastTransitionTime").cloned().unwrap_or_default();
    if let Some(fields) = available_now.as_object_mut() {
        fields.insert("lastUpdateTime".into(), time);
    }
    let status = json!({
        "observedGeneration": number(&deployment, "/metadata/generation", 1),
        "replicas": count(total),
        "updatedReplicas": count(updated),
        "readyReplicas": count(ready),
        "availableReplicas": count(available),
        "unavailableReplicas": count((sets.wanted() - available).max(0)),
        "conditions": [available_now, progressing],
    });
    set_status(cluster, object_ref, &status);
    until
}

/// How a roll-out goes.
#[derive(Clone, Copy)]
struct Progress {
    done: bool,
    /// Something has come further since the last time.
    moved: bool,
    /// A new replica set was made.
    begins: bool,
}

/// Returns the condition that tells of the progress, and when the time for it is over.
fn progress(
    deployment: &Value,
    plan: &Plan,
    progress: Progress,
    now: Timestamp,
) -> (Value, Option<Timestamp>) {
    let known = deployment.pointer("/status/conditions").and_then(Value::as_array);
    let known = known.into_iter().flatten().find(|known| text(known, "/type") == "Progressing");
    let reason = known.map_or("", |known| text(known, "/reason"));
    let since = known.and_then(|known| text(known, "/lastUpdateTime").parse::<Timestamp>().ok());
    let until = plan.deadline.and_then(|deadline| since?.checked_add(deadline).ok());
    let name = &plan.name;
    let late = until.is_some_and(|until| now > until) || reason == "ProgressDeadlineExceeded";
    let (status, new_reason, message) = if plan.paused {
        ("Unknown", "DeploymentPaused", "Deployment is paused".to_owned())
    } else if reason == "DeploymentPaused" {
        ("Unknown", "DeploymentResumed", "Deployment is resumed".to_owned())
    } else if progress.done {
        ("True", "NewReplicaSetAvailable", format!("ReplicaSet \"{name}\" has successfully progressed."))
    } else if progress.begins {
        ("True", "NewReplicaSetCreated", format!("Created new replica set \"{name}\""))
    } else if progress.moved || since.is_none() {
        ("True", "ReplicaSetUpdated", format!("ReplicaSet \"{name}\" is progressing."))
    } else if late && reason != "NewReplicaSetAvailable" {
        let message = format!("ReplicaSet \"{name}\" has timed out progressing.");
        ("False", "ProgressDeadlineExceeded", message)
    } else {
        // Nothing is new.
        let until = until.filter(|_| reason != "NewReplicaSetAvailable");
        return (known.cloned().unwrap_or_default(), until);
    };
    let time = format_seconds(now);
    let mut new = condition(deployment, "Progressing", status, new_reason, &message, &time);
    let stays = known.is_some_and(|known| {
        text(known, "/reason") == new_reason && text(known, "/message") == message && !progress.moved
    });
    let updated = if stays { since.map_or(time, format_seconds) } else { time };
    let until = updated.parse::<Timestamp>().ok();
    let until = until.zip(plan.deadline).and_then(|(updated, deadline)| updated.checked_add(deadline).ok());
    if let Some(fields) = new.as_object_mut() {
        fields.insert("lastUpdateTime".into(), json!(updated));
    }
    let waits = !progress.done && !plan.paused && new_reason != "ProgressDeadlineExceeded";
    // A second later it is over.
    let until = until.and_then(|until| until.checked_add(SignedDuration::from_secs(1)).ok());
    (new, until.filter(|_| waits))
}

//! The conditions of simulated pods: those that a kubelet writes, beside those of others.

use serde_json::{Value, json};

use super::status::text;

fn condition(kind: &str, status: &str, reason: &str, now: &str) -> Value {
    let mut condition =
        json!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": now});
    if let (false, Some(fields)) = (reason.is_empty(), condition.as_object_mut()) {
        fields.insert("reason".into(), json!(reason));
    }
    condition
}

/// Returns what is told of a pod that a node was found for.
pub(super) fn scheduled(now: &str) -> Value {
    condition("PodScheduled", "True", "", now)
}

/// Returns the conditions of a pod whose containers are ready, or not for this reason.
pub(super) fn conditions(pod: &Value, ready: bool, reason: &str, now: &str) -> Value {
    let status = if ready { "True" } else { "False" };
    let mut of_pod = condition("Ready", status, reason, now);
    if ready && let Some(message) = closed_gates(pod) {
        of_pod = condition("Ready", "False", "ReadinessGatesNotReady", now);
        if let Some(fields) = of_pod.as_object_mut() {
            fields.insert("message".into(), json!(message));
        }
    }
    let own = json!([
        condition("PodReadyToStartContainers", "True", "", now),
        condition("Initialized", "True", "", now),
        of_pod,
        condition("ContainersReady", status, reason, now),
        scheduled(now),
    ]);
    merged(pod, own)
}

/// Returns what is told of a pod whose readiness others hold back; nothing if nobody does.
fn closed_gates(pod: &Value) -> Option<String> {
    let gates = pod.pointer("/spec/readinessGates").and_then(Value::as_array);
    let messages: Vec<String> = gates
        .into_iter()
        .flatten()
        .filter_map(|gate| {
            let kind = text(gate, "/conditionType");
            match of_kind(pod, kind).map(|condition| text(condition, "/status")) {
                Some("True") => None,
                Some(status) => {
                    Some(format!("the status of pod readiness gate {kind:?} is not \"True\", but {status}"))
                }
                None => {
                    Some(format!("corresponding condition of pod readiness gate {kind:?} does not exist."))
                }
            }
        })
        .collect();
    (!messages.is_empty()).then(|| messages.join(", "))
}

fn of_kind<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|condition| text(condition, "/type") == kind)
}

/// Returns whether a pod has a condition of this kind that is true.
pub(super) fn is_true(pod: &Value, kind: &str) -> bool {
    of_kind(pod, kind).is_some_and(|condition| text(condition, "/status") == "True")
}

/// Returns the conditions of a pod with these in place of those of their kinds. One that says the same as before keeps its
/// time.
pub(super) fn merged(pod: &Value, mut new: Value) -> Value {
    let known = pod.pointer("/status/conditions").and_then(Value::as_array);
    let known: &[Value] = known.map_or(&[], Vec::as_slice);
    let mut merged = known.to_vec();
    let new = new.as_array_mut().map(std::mem::take).unwrap_or_default();
    merged.retain(|old| !new.iter().any(|new| text(new, "/type") == text(old, "/type")));
    for mut condition in new {
        let of_kind =
            |old: &&Value| ["/type", "/status"].iter().all(|at| text(old, at) == text(&condition, at));
        let since = known.iter().find(of_kind).and_then(|old| old.get("lastTransitionTime")).cloned();
        if let (Some(since), Some(fields)) = (since, condition.as_object_mut()) {
            fields.insert("lastTransitionTime".into(), since);
        }
        merged.push(condition);
    }
    Value::Array(merged)
}

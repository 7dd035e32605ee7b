//! Whether an object is as its specification asks, judged as kstatus does: by its generation, its conditions, and
//! rules of its own for built-in kinds.

use serde_json::Value;

/// Why an object is not ready.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unready {
    /// In few words: `1 of 3 replicas are available`.
    pub why: String,
    /// Whether it says that it will not become ready by itself.
    pub is_final: bool,
}

/// Reports whether an object is ready.
///
/// # Errors
///
/// Why it is not.
pub fn readiness(object: &Value) -> Result<(), Unready> {
    general(object)?;
    let kind = (group(object), text(object, "/kind"));
    match kind {
        ("apps", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("apps", "ReplicaSet") => replica_set(object),
        ("batch", "Job") => job(object),
        ("", "Pod") => pod(object),
        ("", "PersistentVolumeClaim") => match text(object, "/status/phase") {
            "Bound" => Ok(()),
            phase => not_yet(format!("it is not bound{}", behind(phase))),
        },
        ("", "Service") if text(object, "/spec/type") == "LoadBalancer" => {
            if text(object, "/spec/clusterIP").is_empty() { not_yet("it has no address") } else { Ok(()) }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        _ => match condition(object, "Ready") {
            Some(("True", _)) | None => Ok(()),
            Some((_, message)) => not_yet(format!("its condition Ready is not True{}", behind(message))),
        },
    }
}

/// Judges what objects of all kinds may have.
fn general(object: &Value) -> Result<(), Unready> {
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return not_yet("it is being deleted");
    }
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    let observed = object.pointer("/status/observedGeneration").and_then(Value::as_i64);
    if let (Some(generation), Some(observed)) = (generation, observed)
        && generation != observed
    {
        return not_yet(format!("generation {generation} was not looked at yet, {observed} was"));
    }
    if let Some(("True", message)) = condition(object, "Stalled") {
        return never(format!("it is stalled{}", behind(message)));
    }
    if let Some(("True", message)) = condition(object, "Reconciling") {
        return not_yet(format!("it is being reconciled{}", behind(message)));
    }
    Ok(())
}

fn deployment(object: &Value) -> Result<(), Unready> {
    if let Some(reason) = reason(object, "Progressing")
        && reason == "ProgressDeadlineExceeded"
    {
        return never("it makes no progress: its progress deadline is over");
    }
    let wanted = number(object, "/spec/replicas").unwrap_or(1);
    let count = |field: &str| number(object, &format!("/status/{field}")).unwrap_or(0);
    let replicas = count("replicas");
    enough(count("updatedReplicas"), wanted, "updated")?;
    enough(replicas, wanted, "there")?;
    if replicas > count("updatedReplicas") {
        return not_yet(format!("{} old replicas are still there", replicas - count("updatedReplicas")));
    }
    enough(count("availableReplicas"), wanted, "available")?;
    enough(count("readyReplicas"), wanted, "ready")?;
    match condition(object, "Available") {
        Some(("True", _)) => Ok(()),
        _ => not_yet("its condition Available is not True"),
    }
}

fn stateful_set(object: &Value) -> Result<(), Unready> {
    if text(object, "/spec/updateStrategy/type") == "OnDelete" {
        return Ok(());
    }
    let wanted = number(object, "/spec/replicas").unwrap_or(1);
    let count = |field: &str| number(object, &format!("/status/{field}")).unwrap_or(0);
    enough(count("replicas"), wanted, "there")?;
    enough(count("readyReplicas"), wanted, "ready")?;
    if count("replicas") > wanted {
        return not_yet(format!("{} replicas too many are still there", count("replicas") - wanted));
    }
    let partition = number(object, "/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0);
    if partition > 0 {
        return enough(count("updatedReplicas"), (wanted - partition).max(0), "updated");
    }
    enough(count("currentReplicas"), wanted, "current")?;
    if text(object, "/status/currentRevision") == text(object, "/status/updateRevision") {
        return Ok(());
    }
    enough(count("updatedReplicas"), wanted, "updated")?;
    not_yet("its update is not through")
}

fn daemon_set(object: &Value) -> Result<(), Unready> {
    if object.pointer("/status/observedGeneration").is_none() {
        return not_yet("it was not looked at yet");
    }
    let Some(wanted) = number(object, "/status/desiredNumberScheduled") else {
        return not_yet("how many nodes it is for is not known yet");
    };
    let count = |field: &str| number(object, &format!("/status/{field}")).unwrap_or(0);
    enough(count("currentNumberScheduled"), wanted, "scheduled")?;
    enough(count("updatedNumberScheduled"), wanted, "updated")?;
    enough(count("numberAvailable"), wanted, "available")?;
    enough(count("numberReady"), wanted, "ready")
}

fn replica_set(object: &Value) -> Result<(), Unready> {
    if let Some(("True", message)) = condition(object, "ReplicaFailure") {
        return not_yet(format!("a replica can't be made{}", behind(message)));
    }
    let wanted = number(object, "/spec/replicas").unwrap_or(1);
    let count = |field: &str| number(object, &format!("/status/{field}")).unwrap_or(0);
    enough(count("fullyLabeledReplicas"), wanted, "labelled")?;
    enough(count("availableReplicas"), wanted, "available")?;
    enough(count("readyReplicas"), wanted, "ready")?;
    if count("replicas") > wanted {
        return not_yet(format!("{} replicas too many are still there", count("replicas") - wanted));
    }
    Ok(())
}

/// A Job is as it should be when it has begun, as kstatus has it; one that failed never is.
fn job(object: &Value) -> Result<(), Unready> {
    if let Some(("True", _)) = condition(object, "Complete") {
        return Ok(());
    }
    if let Some(("True", message)) = condition(object, "Failed") {
        return never(format!("it failed{}", behind(message)));
    }
    if object.pointer("/status/startTime").is_some() { Ok(()) } else { not_yet("it has not begun") }
}

fn pod(object: &Value) -> Result<(), Unready> {
    match text(object, "/status/phase") {
        "Succeeded" => Ok(()),
        "Failed" => never(format!("it failed{}", behind(text(object, "/status/message")))),
        "Running" => match condition(object, "Ready") {
            Some(("True", _)) => Ok(()),
            Some((_, message)) => not_yet(format!("it is not ready{}", behind(message))),
            None => not_yet("it is not ready"),
        },
        phase => not_yet(format!("it does not run{}", behind(phase))),
    }
}

fn definition(object: &Value) -> Result<(), Unready> {
    if let Some(("False", message)) = condition(object, "NamesAccepted") {
        return never(format!("its names are not accepted{}", behind(message)));
    }
    match condition(object, "Established") {
        Some(("True", _)) => Ok(()),
        _ => not_yet("it is not established"),
    }
}

fn enough(count: i64, wanted: i64, what: &str) -> Result<(), Unready> {
    if count < wanted { not_yet(format!("{count} of {wanted} replicas are {what}")) } else { Ok(()) }
}

fn not_yet(why: impl Into<String>) -> Result<(), Unready> {
    Err(Unready { why: why.into(), is_final: false })
}

fn never(why: impl Into<String>) -> Result<(), Unready> {
    Err(Unready { why: why.into(), is_final: true })
}

/// Returns a text with a colon before it, if there is one.
fn behind(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

fn group(object: &Value) -> &str {
    text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group)
}

fn text<'o>(object: &'o Value, pointer: &str) -> &'o str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten()
}

/// Returns status and message of a condition, if there is one of this type.
fn condition<'o>(object: &'o Value, of_type: &str) -> Option<(&'o str, &'o str)> {
    let found = conditions(object).find(|condition| text(condition, "/type") == of_type)?;
    Some((text(found, "/status"), text(found, "/message")))
}

fn reason<'o>(object: &'o Value, of_type: &str) -> Option<&'o str> {
    let found = conditions(object).find(|condition| text(condition, "/type") == of_type)?;
    Some(text(found, "/reason"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn why(object: &Value) -> String {
        match readiness(object) {
            Ok(()) => "ready".to_owned(),
            Err(Unready { why, is_final: true }) => format!("never: {why}"),
            Err(Unready { why, .. }) => why,
        }
    }

    fn of(kind: &str, spec: &Value, status: &Value) -> Value {
        let (api, kind) = kind.rsplit_once(' ').unwrap();
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": "x", "generation": 2}, "spec": spec, "status": status})
    }

    fn is(of_type: &str, status: &str, rest: &Value) -> Value {
        let mut condition = json!({"type": of_type, "status": status});
        for (key, value) in rest.as_object().unwrap() {
            condition[key] = value.clone();
        }
        json!([condition])
    }

    #[test]
    fn a_deployment_is_ready_with_all_its_new_replicas_and_no_old_ones() {
        let available = is("Available", "True", &json!({}));
        let full = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "readyReplicas": 3, "conditions": available});
        let with = |changes: Value| {
            let mut status = full.clone();
            for (key, value) in changes.as_object().unwrap() {
                status[key] = value.clone();
            }
            why(&of("apps/v1 Deployment", &json!({"replicas": 3}), &status))
        };
        for (changes, expected) in [
            (json!({}), "ready"),
            (json!({"observedGeneration": 1}), "generation 2 was not looked at yet, 1 was"),
            (json!({"updatedReplicas": 2}), "2 of 3 replicas are updated"),
            (json!({"replicas": 4}), "1 old replicas are still there"),
            (json!({"availableReplicas": 1}), "1 of 3 replicas are available"),
            (json!({"readyReplicas": 0}), "0 of 3 replicas are ready"),
            (json!({"conditions": []}), "its condition Available is not True"),
            (
                json!({"conditions": is("Progressing", "False", &json!({"reason": "ProgressDeadlineExceeded"}))}),
                "never: it makes no progress: its progress deadline is over",
            ),
        ] {
            assert_eq!(with(changes.clone()), expected, "{changes}");
        }
        assert_eq!(
            why(&of("apps/v1 Deployment", &json!({"replicas": 0}), &json!({"conditions": available}))),
            "ready"
        );
        assert_eq!(why(&of("apps/v1 Deployment", &json!({}), &json!({}))), "0 of 1 replicas are updated");
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one row for each rule")]
    fn other_kinds_have_rules_of_their_own() {
        let none = json!({});
        for (kind, spec, status, expected) in [
            ("apps/v1 StatefulSet", json!({"updateStrategy": {"type": "OnDelete"}}), none.clone(), "ready"),
            (
                "apps/v1 StatefulSet",
                json!({"replicas": 2}),
                json!({"replicas": 2, "readyReplicas": 1}),
                "1 of 2 replicas are ready",
            ),
            (
                "apps/v1 StatefulSet",
                json!({"replicas": 2, "updateStrategy": {"rollingUpdate": {"partition": 1}}}),
                json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 1}),
                "ready",
            ),
            (
                "apps/v1 StatefulSet",
                json!({"replicas": 1}),
                json!({"replicas": 1, "readyReplicas": 1, "currentReplicas": 1, "currentRevision": "a", "updateRevision": "b"}),
                "0 of 1 replicas are updated",
            ),
            ("apps/v1 DaemonSet", none.clone(), none.clone(), "it was not looked at yet"),
            (
                "apps/v1 DaemonSet",
                none.clone(),
                json!({"observedGeneration": 2, "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2, "numberReady": 1}),
                "1 of 2 replicas are ready",
            ),
            (
                "apps/v1 ReplicaSet",
                json!({"replicas": 0}),
                json!({"replicas": 1}),
                "1 replicas too many are still there",
            ),
            ("batch/v1 Job", none.clone(), none.clone(), "it has not begun"),
            ("batch/v1 Job", none.clone(), json!({"startTime": "t"}), "ready"),
            (
                "batch/v1 Job",
                none.clone(),
                json!({"conditions": is("Failed", "True", &json!({"message": "too often"}))}),
                "never: it failed: too often",
            ),
            ("v1 Pod", none.clone(), json!({"phase": "Pending"}), "it does not run: Pending"),
            ("v1 Pod", none.clone(), json!({"phase": "Running"}), "it is not ready"),
            (
                "v1 Pod",
                none.clone(),
                json!({"phase": "Running", "conditions": is("Ready", "True", &none)}),
                "ready",
            ),
            (
                "v1 Pod",
                none.clone(),
                json!({"phase": "Failed", "message": "evicted"}),
                "never: it failed: evicted",
            ),
            (
                "v1 PersistentVolumeClaim",
                none.clone(),
                json!({"phase": "Pending"}),
                "it is not bound: Pending",
            ),
            ("v1 PersistentVolumeClaim", none.clone(), json!({"phase": "Bound"}), "ready"),
            ("v1 Service", json!({"type": "LoadBalancer"}), none.clone(), "it has no address"),
            ("v1 Service", json!({"type": "ClusterIP"}), none.clone(), "ready"),
            (
                "apiextensions.k8s.io/v1 CustomResourceDefinition",
                none.clone(),
                none.clone(),
                "it is not established",
            ),
            (
                "apiextensions.k8s.io/v1 CustomResourceDefinition",
                none.clone(),
                json!({"conditions": is("NamesAccepted", "False", &json!({"message": "taken"}))}),
                "never: its names are not accepted: taken",
            ),
            ("v1 ConfigMap", none.clone(), none.clone(), "ready"),
            ("example.com/v1 Widget", none.clone(), none.clone(), "ready"),
            (
                "example.com/v1 Widget",
                none.clone(),
                json!({"conditions": is("Ready", "Unknown", &json!({"message": "waits"}))}),
                "its condition Ready is not True: waits",
            ),
            (
                "example.com/v1 Widget",
                none.clone(),
                json!({"conditions": is("Stalled", "True", &json!({"message": "no"}))}),
                "never: it is stalled: no",
            ),
            (
                "example.com/v1 Widget",
                none.clone(),
                json!({"conditions": is("Reconciling", "True", &none)}),
                "it is being reconciled",
            ),
            (
                "example.com/v1 Widget",
                none.clone(),
                json!({"observedGeneration": 1}),
                "generation 2 was not looked at yet, 1 was",
            ),
        ] {
            assert_eq!(why(&of(kind, &spec, &status)), expected, "{kind} {status}");
        }
        let gone = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"deletionTimestamp": "now"}});
        assert_eq!(why(&gone), "it is being deleted");
    }
}

//! The simulated node: pods start, become ready, end and are removed.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use objects::time::format_seconds;
use serde_json::{Value, json};

use super::pod_conditions::{conditions, is_true, merged, scheduled};
use super::status::{number, text};
use crate::cluster::{Cluster, Edit};
use crate::store::ObjectRef;
use crate::strategy::FieldOwner;
use crate::write::loopback::remove_now;

/// Who owns the statuses of pods.
const KUBELET: FieldOwner<'_> = FieldOwner { manager: "kubelet", subresource: "status" };

/// The name of the node that all pods run on.
pub(super) const NODE: &str = "addon-operator";

/// How often a pod is restarted. A job ends its pods before; any other comes to rest.
const MAX_RESTARTS: i64 = 100;

/// Returns how often the containers of a pod were started again.
pub(super) fn restarts(pod: &Value) -> i64 {
    let statuses = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
    statuses.into_iter().flatten().map(|status| number(status, "/restartCount", 0)).max().unwrap_or(0)
}

/// Returns the node, as its kubelet would have registered it.
pub(super) fn node(now: &str) -> (Value, Value) {
    let capacity = json!({"cpu": "8", "memory": "32Gi", "pods": "110"});
    let node = json!({"metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux"}}});
    let status = json!({
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "the node is simulated",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }],
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": NODE}],
        "nodeInfo": {
            "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "simulated",
            "containerRuntimeVersion": "simulated://1", "kubeletVersion": "v1.34.2", "kubeProxyVersion": "",
            "operatingSystem": "linux", "architecture": "amd64",
        },
    });
    (node, status)
}

/// Puts a pod onto the node, unless it was there. Returns whether it starts after the delay.
pub(super) fn accept(cluster: &Arc<Cluster>, object_ref: &ObjectRef, pod: &Value) -> bool {
    let starts =
        text(pod, "/status/startTime").is_empty() && matches!(text(pod, "/status/phase"), "Pending" | "");
    if starts {
        edit_now(cluster, object_ref, |pod, now| {
            if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
                spec.insert("nodeName".into(), json!(NODE));
            }
            let conditions = merged(pod, json!([scheduled(now)]));
            set(pod, json!({"conditions": conditions, "hostIP": "127.0.0.1", "startTime": now}));
        });
    }
    starts
}

/// Ends a pod whose time is over, and tells whether one that runs is ready. Returns when its time is over.
pub(super) fn look_after(cluster: &Arc<Cluster>, object_ref: &ObjectRef, pod: &Value) -> Option<Timestamp> {
    if !matches!(text(pod, "/status/phase"), "Pending" | "Running") {
        return None;
    }
    let until = deadline(pod);
    if until.is_some_and(|until| cluster.now() >= until) {
        edit_now(cluster, object_ref, expire);
        return None;
    }
    if text(pod, "/status/phase") == "Running" && pod.pointer("/spec/readinessGates").is_some() {
        edit_now(cluster, object_ref, |pod, now| {
            if is_true(pod, "ContainersReady") {
                let conditions = conditions(pod, true, "", now);
                set(pod, json!({"conditions": conditions}));
            }
        });
    }
    until
}

/// Returns until when a pod may run.
fn deadline(pod: &Value) -> Option<Timestamp> {
    let seconds = pod.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64)?;
    let started: Timestamp = text(pod, "/status/startTime").parse().ok()?;
    started.checked_add(SignedDuration::from_secs(seconds.max(0))).ok()
}

/// Ends a pod whose time is over. Containers that run are killed.
fn expire(pod: &mut Value, now: &str) {
    let mut statuses = pod.pointer("/status/containerStatuses").cloned().unwrap_or_else(|| json!([]));
    for status in statuses.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        let running = status.get("state").and_then(|state| state.get("running"));
        if let Some(since) = running.and_then(|running| running.get("startedAt")).cloned() {
            let killed = json!({"exitCode": 137, "reason": "Error", "startedAt": since, "finishedAt": now});
            status.insert("state".into(), json!({"terminated": killed}));
        }
        status.insert("ready".into(), json!(false));
        status.insert("started".into(), json!(false));
    }
    let conditions = conditions(pod, false, "PodFailed", now);
    set(
        pod,
        json!({
            "phase": "Failed", "reason": "DeadlineExceeded",
            "message": "Pod was active on the node longer than the specified deadline",
            "conditions": conditions, "containerStatuses": statuses,
        }),
    );
}

/// Starts or ends a pod, or removes a deleted one. Returns whether the pod ends after another delay.
pub(super) fn advance(cluster: &Arc<Cluster>, object_ref: &ObjectRef, pod: &Value) -> bool {
    if pod.pointer("/metadata/deletionTimestamp").is_some() {
        remove(cluster, object_ref, pod);
        return false;
    }
    match text(pod, "/status/phase") {
        "Pending" | "" if fails(pod) => edit_now(cluster, object_ref, |pod, now| {
            let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "images called `fail` never start"}});
            let statuses = container_statuses(pod, false, &waiting);
            let conditions = conditions(pod, false, "ContainersNotReady", now);
            set(pod, json!({"phase": "Pending", "conditions": conditions, "containerStatuses": statuses}));
        }),
        "Pending" | "" => {
            let ends = text(pod, "/spec/restartPolicy") != "Always" || crashes(pod);
            edit_now(cluster, object_ref, |pod, now| {
                let statuses = container_statuses(pod, true, &json!({"running": {"startedAt": now}}));
                let address = address(text(pod, "/metadata/uid"));
                set(
                    pod,
                    json!({
                        "phase": "Running", "conditions": conditions(pod, true, "", now), "containerStatuses": statuses,
                        "podIP": address, "podIPs": [{"ip": address}],
                    }),
                );
            });
            return ends;
        }
        "Running" if crashes(pod) && text(pod, "/spec/restartPolicy") != "Never" => {
            let is_counted = text(pod, "/spec/restartPolicy") == "OnFailure";
            let count = if is_counted { restarts(pod).saturating_add(1) } else { 0 };
            edit_now(cluster, object_ref, |pod, now| {
                let waiting = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "images called `crash` end with the code 1"}});
                let mut statuses = container_statuses(pod, false, &waiting);
                for status in statuses.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
                    status.insert("restartCount".into(), json!(count));
                }
                let conditions = conditions(pod, false, "ContainersNotReady", now);
                set(pod, json!({"conditions": conditions, "containerStatuses": statuses}));
            });
            return is_counted && count < MAX_RESTARTS;
        }
        "Running" if crashes(pod) => end(cluster, object_ref, ["Failed", "PodFailed", "Error"], 1),
        "Running" if text(pod, "/spec/restartPolicy") != "Always" => {
            end(cluster, object_ref, ["Succeeded", "PodCompleted", "Completed"], 0);
        }
        _ => {}
    }
    false
}

/// Ends a pod and its containers, with this code.
fn end(
    cluster: &Cluster,
    object_ref: &ObjectRef,
    [phase, reason, of_container]: [&'static str; 3],
    code: i64,
) {
    edit_now(cluster, object_ref, |pod, now| {
        let ended = json!({"terminated": {"exitCode": code, "reason": of_container, "startedAt": now, "finishedAt": now}});
        let statuses = container_statuses(pod, false, &ended);
        let conditions = conditions(pod, false, reason, now);
        set(pod, json!({"phase": phase, "conditions": conditions, "containerStatuses": statuses}));
    });
}

fn fails(pod: &Value) -> bool {
    has_image(pod, "fail")
}

fn crashes(pod: &Value) -> bool {
    has_image(pod, "crash")
}

/// Returns whether an image of the pod has this in its name.
fn has_image(pod: &Value, part: &str) -> bool {
    ["/spec/containers", "/spec/initContainers"].iter().any(|path| {
        let containers = pod.pointer(path).and_then(Value::as_array);
        containers.into_iter().flatten().any(|container| text(container, "/image").contains(part))
    })
}

fn address(uid: &str) -> String {
    let bits = crate::fingerprint::fingerprint(uid.as_bytes());
    format!("10.244.{}.{}", bits % 254, 1 + (bits >> 16) % 253)
}

fn container_statuses(pod: &Value, ready: bool, state: &Value) -> Value {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    let statuses = containers.into_iter().flatten().map(|container| {
        json!({
            "name": text(container, "/name"), "image": text(container, "/image"), "imageID": "", "ready": ready,
            "started": ready, "restartCount": 0, "state": state, "lastState": {},
        })
    });
    Value::Array(statuses.collect())
}

pub(super) fn set(pod: &mut Value, fields: Value) {
    let Some(pod) = pod.as_object_mut() else {
        return;
    };
    let status = pod.entry("status").or_insert_with(|| json!({}));
    if let (Some(status), Value::Object(fields)) = (status.as_object_mut(), fields) {
        status.extend(fields);
    }
}

fn edit_now(cluster: &Cluster, object_ref: &ObjectRef, change: impl Fn(&mut Value, &str)) {
    let now = format_seconds(cluster.now());
    edit(cluster, object_ref, KUBELET, |pod| change(pod, &now));
}

/// Changes a pod. A failure is logged.
pub(super) fn edit(
    cluster: &Cluster,
    object_ref: &ObjectRef,
    owner: FieldOwner<'static>,
    change: impl Fn(&mut Value),
) {
    let Some(resource) = cluster.registry.of_table(&object_ref.table) else {
        return;
    };
    let written = cluster.modify(&resource, object_ref, owner, |pod| {
        let before = pod.clone();
        change(pod);
        if *pod == before { Edit::Keep } else { Edit::Write }
    });
    if let Err(error) = written {
        tracing::warn!(key = %object_ref.key, %error, "a pod could not be simulated");
    }
}

/// Removes a deleted pod without waiting for its grace, as nothing runs in it. Its finalizers are waited for.
pub(super) fn remove(cluster: &Arc<Cluster>, object_ref: &ObjectRef, pod: &Value) {
    if number(pod, "/metadata/deletionGracePeriodSeconds", 0) != 0 {
        remove_now(cluster, object_ref, None);
    }
}

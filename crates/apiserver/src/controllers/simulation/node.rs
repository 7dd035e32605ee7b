//! The simulated node: pods start, become ready, come to an end and go.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{later, text};
use crate::cluster::Cluster;
use crate::store::{Place, split_key};
use crate::write::{DeleteOptions, Edit, Hand, delete_object, modify, seconds};

/// In whose name pods are run.
const KUBELET: Hand = Hand { manager: "kubelet", subresource: "status" };

/// The name of the node that all pods run on.
pub(crate) const NODE: &str = "addon-operator";

/// Returns the node, as its kubelet would have registered it.
pub(crate) fn node(now: &str) -> (Value, Value) {
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

/// Does what a node does first with a pod; the rest follows after a while.
pub(super) fn step(cluster: &Arc<Cluster>, place: &Place, pod: &Value) {
    if pod.pointer("/metadata/deletionTimestamp").is_some() {
        remove(cluster, place, pod);
        return;
    }
    if text(pod, "/spec/nodeName").is_empty() {
        edit(cluster, place, |pod, now| {
            if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
                spec.insert("nodeName".into(), json!(NODE));
            }
            let scheduled = condition("PodScheduled", "True", "", now);
            set(pod, json!({"conditions": [scheduled], "hostIP": "127.0.0.1", "startTime": now}));
        });
        later(cluster, place);
    }
}

/// Does what a node does after a while.
pub(super) fn advance(cluster: &Arc<Cluster>, place: &Place, pod: &Value) {
    if pod.pointer("/metadata/deletionTimestamp").is_some() {
        remove(cluster, place, pod);
        return;
    }
    match text(pod, "/status/phase") {
        "Pending" | "" if fails(pod) => edit(cluster, place, |pod, now| {
            let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "images called `fail` never start"}});
            let statuses = container_statuses(pod, false, &waiting);
            let conditions = conditions(false, "ContainersNotReady", now);
            set(pod, json!({"phase": "Pending", "conditions": conditions, "containerStatuses": statuses}));
        }),
        "Pending" | "" => {
            let ends = text(pod, "/spec/restartPolicy") != "Always";
            edit(cluster, place, |pod, now| {
                let statuses = container_statuses(pod, true, &json!({"running": {"startedAt": now}}));
                let address = address(text(pod, "/metadata/uid"));
                set(
                    pod,
                    json!({
                        "phase": "Running", "conditions": conditions(true, "", now), "containerStatuses": statuses,
                        "podIP": address, "podIPs": [{"ip": address}],
                    }),
                );
            });
            if ends {
                later(cluster, place);
            }
        }
        "Running" if text(pod, "/spec/restartPolicy") != "Always" => edit(cluster, place, |pod, now| {
            let ended = json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}});
            let statuses = container_statuses(pod, false, &ended);
            let conditions = conditions(false, "PodCompleted", now);
            set(pod, json!({"phase": "Succeeded", "conditions": conditions, "containerStatuses": statuses}));
        }),
        _ => {}
    }
}

fn fails(pod: &Value) -> bool {
    ["/spec/containers", "/spec/initContainers"].iter().any(|path| {
        let containers = pod.pointer(path).and_then(Value::as_array);
        containers.into_iter().flatten().any(|container| text(container, "/image").contains("fail"))
    })
}

fn address(uid: &str) -> String {
    let bits = crate::discovery::fingerprint(uid.as_bytes());
    format!("10.244.{}.{}", bits % 254, 1 + (bits >> 16) % 253)
}

fn condition(kind: &str, status: &str, reason: &str, now: &str) -> Value {
    let mut condition =
        json!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": now});
    if let (false, Some(fields)) = (reason.is_empty(), condition.as_object_mut()) {
        fields.insert("reason".into(), json!(reason));
    }
    condition
}

fn conditions(ready: bool, reason: &str, now: &str) -> Value {
    let status = if ready { "True" } else { "False" };
    json!([
        condition("PodReadyToStartContainers", "True", "", now),
        condition("Initialized", "True", "", now),
        condition("Ready", status, reason, now),
        condition("ContainersReady", status, reason, now),
        condition("PodScheduled", "True", "", now),
    ])
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

fn set(pod: &mut Value, fields: Value) {
    let Some(pod) = pod.as_object_mut() else {
        return;
    };
    let status = pod.entry("status").or_insert_with(|| json!({}));
    if let (Some(status), Value::Object(fields)) = (status.as_object_mut(), fields) {
        status.extend(fields);
    }
}

fn edit(cluster: &Cluster, place: &Place, change: impl Fn(&mut Value, &str)) {
    let now = seconds(cluster.now());
    let Some(resource) = cluster.resource_of(&place.table) else {
        return;
    };
    let written = modify(cluster, &resource, place, KUBELET, |pod| {
        change(pod, &now);
        Edit::Write
    });
    if let Err(error) = written {
        tracing::warn!(key = %place.key, %error, "a pod could not be simulated");
    }
}

/// Lets a pod go whose grace is over for nothing runs in it; its finalizers are waited for.
fn remove(cluster: &Arc<Cluster>, place: &Place, pod: &Value) {
    if super::number(pod, "/metadata/deletionGracePeriodSeconds", 0) == 0 {
        return;
    }
    let Some(resource) = cluster.resource_of(&place.table) else {
        return;
    };
    let (namespace, name) = split_key(&place.key);
    let options = DeleteOptions { grace: Some(0), ..DeleteOptions::default() };
    let call = crate::request::Call::own(cluster, &resource, Some(namespace));
    // A pod that somebody else deleted meanwhile is as gone as it should be.
    let _ = delete_object(&call, name, &options);
}

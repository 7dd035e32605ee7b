//! The simulated scheduler: whether the one node takes a pod.

use std::sync::Arc;

use objects::time::format_seconds;
use serde_json::{Value, json};

use super::node::{self, NODE};
use super::pod_conditions::merged;
use super::status::{CONTROLLER, text};
use crate::cluster::{Cluster, Edit};
use crate::store::ObjectRef;
use crate::strategy::FieldOwner;

/// Who owns what is told of pods that wait.
const SCHEDULER: FieldOwner<'_> = FieldOwner { manager: "kube-scheduler", subresource: "status" };

/// The taint of nodes that are cordoned.
pub(super) const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The node as it is now; nothing if somebody deleted it.
pub(super) struct Node(Option<Value>);

impl Node {
    pub(super) fn of(cluster: &Cluster) -> Node {
        Node(cluster.storage.find("/nodes", None, NODE).map(|node| node.value()))
    }

    /// Returns whether the node has the labels that a pod with this specification asks for.
    pub(super) fn is_selected(&self, spec: &Value) -> bool {
        let Some(node) = &self.0 else {
            return false;
        };
        let wanted = spec.get("nodeSelector").and_then(Value::as_object);
        let labels = node.pointer("/metadata/labels");
        let label = |name: &str| labels.and_then(|labels| labels.get(name));
        wanted.into_iter().flatten().all(|(name, value)| label(name) == Some(value))
    }

    /// Returns whether a pod with this specification tolerates all taints of the node with one of these effects.
    pub(super) fn is_tolerated(&self, spec: &Value, effects: &[&str]) -> bool {
        self.untolerated(spec, effects).is_none()
    }

    fn untolerated(&self, spec: &Value, effects: &[&str]) -> Option<&Value> {
        let taints = self.0.as_ref()?.pointer("/spec/taints").and_then(Value::as_array);
        let counts = |taint: &&Value| effects.contains(&text(taint, "/effect"));
        taints.into_iter().flatten().filter(counts).find(|taint| !tolerates(spec, taint))
    }

    /// Returns why a pod with this specification is not put onto the node.
    fn obstacle(&self, spec: &Value) -> Option<String> {
        let Some(node) = &self.0 else {
            return Some("no nodes available to schedule pods".to_owned());
        };
        let cordon = json!({"key": UNSCHEDULABLE, "effect": "NoSchedule"});
        let is_cordoned = node.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
        let why = if is_cordoned && !tolerates(spec, &cordon) {
            "were unschedulable".to_owned()
        } else {
            let taint = self.untolerated(spec, &["NoSchedule", "NoExecute"])?;
            format!("had untolerated taint {{{}: {}}}", text(taint, "/key"), text(taint, "/value"))
        };
        Some(format!(
            "0/1 nodes are available: 1 node(s) {why}. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        ))
    }
}

/// Returns whether one of the tolerations of a pod is for a taint.
fn tolerates(spec: &Value, taint: &Value) -> bool {
    let tolerations = spec.get("tolerations").and_then(Value::as_array);
    tolerations.into_iter().flatten().any(|toleration| {
        let (key, effect) = (text(toleration, "/key"), text(toleration, "/effect"));
        let is_meant = (key.is_empty() || key == text(taint, "/key"))
            && (effect.is_empty() || effect == text(taint, "/effect"));
        let fits = match text(toleration, "/operator") {
            "Exists" => true,
            _ => text(toleration, "/value") == text(taint, "/value"),
        };
        is_meant && fits
    })
}

/// Returns whether a pod has gates that hold it back. The server said so when it was created.
pub(super) fn is_gated(pod: &Value) -> bool {
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
    gates.is_some_and(|gates| !gates.is_empty())
}

/// Returns whether the node takes a pod that has none yet. If not, the pod says why.
pub(super) fn takes(cluster: &Cluster, object_ref: &ObjectRef, pod: &Value) -> bool {
    let Some(message) = Node::of(cluster).obstacle(pod.get("spec").unwrap_or(&Value::Null)) else {
        return true;
    };
    let now = format_seconds(cluster.now());
    node::edit(cluster, object_ref, SCHEDULER, |pod| {
        let waits = json!([{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
            "lastProbeTime": null, "lastTransitionTime": now,
        }]);
        let conditions = merged(pod, waits);
        node::set(pod, json!({"conditions": conditions}));
    });
    false
}

/// Gives a node that is cordoned its taint, and takes it from another.
pub(super) fn taint(cluster: &Arc<Cluster>, object_ref: &ObjectRef) {
    let Some(resource) = cluster.registry.of_table(&object_ref.table) else {
        return;
    };
    let now = format_seconds(cluster.now());
    // A node that is gone meanwhile needs no taint.
    let _ = cluster.modify(&resource, object_ref, CONTROLLER, |node| {
        let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) else {
            return Edit::Keep;
        };
        let is_cordoned = spec.get("unschedulable") == Some(&Value::Bool(true));
        let mut taints = spec.get("taints").and_then(Value::as_array).cloned().unwrap_or_default();
        let is_tainted = taints.iter().any(is_cordon);
        if is_cordoned == is_tainted {
            return Edit::Keep;
        }
        if is_cordoned {
            taints.push(json!({"key": UNSCHEDULABLE, "effect": "NoSchedule", "timeAdded": now}));
        } else {
            taints.retain(|taint| !is_cordon(taint));
        }
        if taints.is_empty() {
            spec.remove("taints");
        } else {
            spec.insert("taints".into(), Value::Array(taints));
        }
        Edit::Write
    });
}

fn is_cordon(taint: &Value) -> bool {
    text(taint, "/key") == UNSCHEDULABLE && text(taint, "/effect") == "NoSchedule"
}

//! Admission of pods: their priority, and how long they tolerate failures of nodes.

use serde_json::{Map, Value, json};

use super::runtime_class;
use crate::object_meta;
use crate::request::RequestContext;
use crate::status::{ApiError, Outcome};

/// Failures of nodes that pods tolerate for five minutes.
const NODE_FAILURES: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// Gives a new pod its priority and the tolerations of short failures of nodes.
pub(super) fn admit_new(request: &RequestContext, object: &mut Value) -> Outcome<()> {
    let kind = &request.resource.kind;
    let name = object_meta::name_or_base(object).to_owned();
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    let class = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (priority, policy) = if class.is_empty() {
        (0, "PreemptLowerPriority".to_owned())
    } else {
        let found =
            request.cluster.storage.find("scheduling.k8s.io/priorityclasses", None, &class).ok_or_else(
                || ApiError::forbidden(kind, &name, &format!("no PriorityClass with name {class} was found")),
            )?;
        let class = found.value();
        let policy = class.get("preemptionPolicy").and_then(Value::as_str).unwrap_or("PreemptLowerPriority");
        (class.get("value").and_then(Value::as_i64).unwrap_or(0), policy.to_owned())
    };
    let refuse = |what: &str, given: &str, computed: &str| {
        let why = format!(
            "the {what} ({given}) must not be provided in pod spec; priority admission controller computed {computed} from the given PriorityClass name"
        );
        Err(ApiError::forbidden(kind, &name, &why))
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|given| *given != priority) {
        return refuse("integer value of priority", &given.to_string(), &priority.to_string());
    }
    if let Some(given) =
        spec.get("preemptionPolicy").and_then(Value::as_str).filter(|given| **given != policy)
    {
        return refuse("string value of PreemptionPolicy", given, &policy);
    }
    spec.insert("priority".into(), json!(priority));
    spec.entry("preemptionPolicy").or_insert_with(|| json!(policy));
    tolerate_node_failures(spec);
    runtime_class::admit(request, spec).map_err(|why| ApiError::forbidden(kind, &name, &why))
}

/// Gives a changed pod the priority that it had, and the tolerations of short failures of nodes.
pub(super) fn admit_change(old: &Value, new: &mut Value) {
    let before = |name: &str| old.pointer(&format!("/spec/{name}")).cloned();
    if let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) {
        for name in ["priority", "preemptionPolicy"] {
            if let (Some(kept), false) = (before(name), spec.contains_key(name)) {
                spec.insert(name.to_owned(), kept);
            }
        }
        tolerate_node_failures(spec);
    }
}

fn tolerate_node_failures(spec: &mut Map<String, Value>) {
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if let Some(list) = tolerations.as_array_mut() {
        for key in NODE_FAILURES {
            tolerate(list, key);
        }
    }
}

fn tolerate(tolerations: &mut Vec<Value>, key: &str) {
    let covers = |toleration: &Value| {
        let text = |name: &str| toleration.get(name).and_then(Value::as_str).unwrap_or_default();
        let same_key = text("key") == key || text("key").is_empty();
        same_key && matches!(text("effect"), "NoExecute" | "")
    };
    if !tolerations.iter().any(covers) {
        tolerations
            .push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
    }
}

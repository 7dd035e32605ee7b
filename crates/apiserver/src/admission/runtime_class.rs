//! Admission of pods: what the class of their runtime needs of them, and what it needs of nodes.

use serde_json::{Map, Value, json};

use crate::fields::{get, has, list, map, text};
use crate::pod_resources::amounts;
use crate::request::RequestContext;

/// Gives a new pod what the class of its runtime says. Returns why the pod is refused.
pub(super) fn admit(request: &RequestContext, spec: &mut Map<String, Value>) -> Result<(), String> {
    let name = spec.get("runtimeClassName").and_then(Value::as_str);
    let class = match name {
        None => Value::Null,
        Some(name) => {
            let found = request.cluster.storage.find("node.k8s.io/runtimeclasses", None, name);
            found.ok_or_else(|| format!("pod rejected: RuntimeClass {name:?} not found"))?.value()
        }
    };
    add_overhead(&class, spec)?;
    select_nodes(&class, spec)
}

fn add_overhead(class: &Value, spec: &mut Map<String, Value>) -> Result<(), String> {
    let given = spec.get("overhead").filter(|overhead| !overhead.is_null());
    if !has(class, "overhead") {
        return match given {
            Some(_) => {
                Err("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
                    .to_owned())
            }
            None => Ok(()),
        };
    }
    let nanos = |object: &Value, path: &str| -> Vec<(String, i128)> {
        amounts(object, path).into_iter().map(|(name, amount)| (name, amount.nanos())).collect()
    };
    let needed = nanos(class, "overhead.podFixed");
    let said = given.map(|overhead| nanos(&json!({"overhead": overhead}), "overhead")).unwrap_or_default();
    if !said.is_empty() && said != needed {
        return Err("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead".to_owned());
    }
    if !needed.is_empty() {
        spec.insert("overhead".to_owned(), get(class, "overhead.podFixed").clone());
    }
    Ok(())
}

fn select_nodes(class: &Value, spec: &mut Map<String, Value>) -> Result<(), String> {
    let wanted = map(class, "scheduling.nodeSelector");
    if !wanted.is_empty() {
        let selector = spec.entry("nodeSelector").or_insert_with(|| json!({}));
        for (key, value) in wanted {
            match selector.get(key) {
                Some(other) if other != value => {
                    let [wanted, said] = [value, other].map(|value| value.as_str().unwrap_or_default());
                    return Err(format!(
                        "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {said}"
                    ));
                }
                _ => selector[key] = value.clone(),
            }
        }
    }
    if has(class, "scheduling") {
        let own = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
        let all = merged(own, list(class, "scheduling.tolerations"));
        if !all.is_empty() {
            spec.insert("tolerations".to_owned(), all.into());
        }
    }
    Ok(())
}

/// Returns the tolerations of both, without those that another one includes.
fn merged(mut all: Vec<Value>, more: &[Value]) -> Vec<Value> {
    all.extend(more.iter().cloned());
    let mut merged: Vec<Value> = Vec::new();
    for (place, toleration) in all.iter().enumerate() {
        let is_included = merged.iter().any(|other| includes(other, toleration))
            || all.iter().skip(place + 1).any(|other| other != toleration && includes(other, toleration));
        if !is_included {
            merged.push(toleration.clone());
        }
    }
    merged
}

/// Returns whether a toleration tolerates all that another one does.
fn includes(toleration: &Value, other: &Value) -> bool {
    let [key, effect, operator] = ["key", "effect", "operator"].map(|field| text(toleration, field));
    let seconds = |toleration: &Value| toleration.get("tolerationSeconds").and_then(Value::as_i64);
    if toleration == other {
        return true;
    }
    let is_any_key = key.is_empty() && operator == "Exists";
    if (key != text(other, "key") && !is_any_key) || (!effect.is_empty() && effect != text(other, "effect")) {
        return false;
    }
    if effect == "NoExecute"
        && let Some(most) = seconds(toleration)
        && seconds(other).is_none_or(|seconds| seconds > most)
    {
        return false;
    }
    match operator {
        "" | "Equal" => {
            text(other, "operator") == "Equal" && text(other, "value") == text(toleration, "value")
        }
        "Exists" => true,
        _ => false,
    }
}

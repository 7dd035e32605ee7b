//! Bindings: a pod gets its node.

use axum::body::Body;
use http::Response;
use objects::time::format_seconds;
use serde_json::{Map, Value, json};

use super::asked::{self, Posted};
use super::outcome::success;
use crate::cluster::Edit;
use crate::object_meta;
use crate::read::ObjectEncoder;
use crate::request::{RequestContext, WriteOptions};
use crate::response;
use crate::status::{ApiError, Outcome};

const BINDING: asked::Body = ("", "v1", "Binding");

/// Gives the pod `name` the node that a binding names.
pub(super) fn bind(request: &RequestContext, name: &str) -> Outcome<Response<Body>> {
    let options = WriteOptions::of(&request.query, &request.headers, "CreateOptions")?;
    let mut warnings = Vec::new();
    let answer = asked::read_of_pod(request, name, BINDING, &options, &mut warnings)
        .and_then(|body| bind_to(request, name, &body, &options));
    Ok(response::warned(answer, &warnings))
}

/// Gives the pod that a binding names its node. `bindings` is the request, and `request` the same one of pods.
pub(crate) fn bind_named(bindings: &RequestContext, request: &RequestContext) -> Outcome<Response<Body>> {
    let options = WriteOptions::of(&request.query, &request.headers, "CreateOptions")?;
    let mut warnings = Vec::new();
    let answer = asked::read(request, BINDING, &options, &mut warnings).and_then(|body| {
        asked::check_namespace(request, &body)?;
        let posted =
            Posted { request: bindings, resource: &bindings.resource, name: None, options: &options };
        let body = posted.mutated(body, &mut warnings)?;
        posted.validate(&body, &mut warnings)?;
        match object_meta::text(&body, "name") {
            "" => Err(ApiError::bad_request("Name parameter required.")),
            name => bind_to(request, name, &body, &options),
        }
    });
    Ok(response::warned(answer, &warnings))
}

fn bind_to(
    request: &RequestContext,
    name: &str,
    body: &Value,
    options: &WriteOptions,
) -> Outcome<Response<Body>> {
    let text = |path: &str| body.pointer(path).and_then(Value::as_str).unwrap_or_default();
    check_target(text("/target/kind"), text("/target/name"))?;
    let now = format_seconds(request.now);
    let mut refusal = None;
    if request.find(name).is_none() {
        return Err(ApiError::not_found(&request.resource.kind, name));
    }
    let key = request.resource.database_key(request.namespace.as_deref(), name);
    request.cluster.modify(&request.resource, &request.object_ref(name), None, |pod| {
        refusal = why_not((name, &key), pod, text("/metadata/uid"), text("/metadata/resourceVersion"));
        if refusal.is_some() || options.dry_run {
            return Edit::Keep;
        }
        assign(pod, body, &now);
        Edit::Write
    })?;
    if let Some(why) = refusal {
        let mut kind = (*request.resource.kind).clone();
        if !why.starts_with("StorageError") {
            kind.plural = "pods/binding".into();
        }
        return Err(ApiError::conflict(&kind, name, &why));
    }
    ObjectEncoder::of(request).answer_value(201, &success())
}

fn check_target(kind: &str, name: &str) -> Outcome<()> {
    let mut found = Vec::new();
    if !kind.is_empty() && kind != "Node" {
        found.push(format!(
            "target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\""
        ));
    }
    if name.is_empty() {
        found.push("target.name: Required value".to_owned());
    }
    match found.as_slice() {
        [] => Ok(()),
        [one] => Err(ApiError::new(500, "", one.clone())),
        many => Err(ApiError::new(500, "", format!("[{}]", many.join(", ")))),
    }
}

/// Returns why a pod cannot get a node.
fn why_not((name, key): (&str, &str), pod: &Value, uid: &str, revision: &str) -> Option<String> {
    let text = |path: &str| pod.pointer(path).and_then(Value::as_str).unwrap_or_default();
    for (what, asked, kept) in [
        ("UID", uid, text("/metadata/uid")),
        ("ResourceVersion", revision, text("/metadata/resourceVersion")),
    ] {
        if !asked.is_empty() && asked != kept {
            return Some(format!(
                "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: {asked}, {what} in object meta: {kept}"
            ));
        }
    }
    if crate::object_meta::is_deleting(pod) {
        return Some(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = text("/spec/nodeName");
    if !node.is_empty() {
        return Some(format!("pod {name} is already assigned to node {node:?}"));
    }
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
    gates
        .is_some_and(|gates| !gates.is_empty())
        .then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
}

/// Writes the node and the annotations of a binding into a pod.
fn assign(pod: &mut Value, binding: &Value, now: &str) {
    let node = binding.pointer("/target/name").cloned().unwrap_or_default();
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("nodeName".into(), node);
    }
    if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
        let given = binding.pointer("/metadata/annotations").and_then(Value::as_object);
        if let Some(given) = given.filter(|given| !given.is_empty()) {
            let kept = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
            if let Some(kept) = kept.as_object_mut() {
                kept.extend(given.clone());
            }
        }
    }
    if let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("nominatedNodeName");
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if let Some(list) = conditions.as_array_mut() {
            list.retain(|condition| condition.get("type").and_then(Value::as_str) != Some("PodScheduled"));
            list.push(json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}));
        }
    }
}

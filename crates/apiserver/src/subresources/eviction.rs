//! Evictions: a pod is deleted, and says why.
//!
//! Disruption budgets do not hold back evictions: nothing counts the healthy pods of a budget here.

use axum::body::Body;
use http::Response;
use http::header::CONTENT_TYPE;
use objects::time::format_seconds;
use serde_json::{Value, json};

use super::outcome::success;
use crate::cluster::Edit;
use crate::read::ObjectEncoder;
use crate::request::{RequestContext, WriteOptions};
use crate::status::{ApiError, Outcome};
use crate::write::{DeleteOptions, check_preconditions, delete_object, untyped};

/// Evicts the pod `name`.
pub(super) fn evict(request: &RequestContext, name: &str) -> Outcome<Response<Body>> {
    let asked = WriteOptions::of(&request.query, &request.headers, "CreateOptions")?;
    let body = untyped(&request.body, request.header(CONTENT_TYPE), ("policy/v1", "Eviction"))?;
    let kind = body.get("kind").and_then(Value::as_str).unwrap_or_default();
    if !kind.is_empty() && kind != "Eviction" {
        let version = body.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let version = version.rsplit('/').next().unwrap_or_default();
        return Err(ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a Eviction: converting ({version}.{kind}) to (policy.Eviction): unknown conversion"
        )));
    }
    if body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default() != name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut options = DeleteOptions::read(body.get("deleteOptions").unwrap_or(&Value::Null))?;
    options.dry_run |= asked.dry_run;
    if !options.dry_run {
        tell(request, name, &mut options)?;
    }
    delete_object(&request.within(request.namespace.as_deref()), name, &options)?;
    ObjectEncoder::of(request).answer_value(201, &success())
}

/// Writes into a pod that it is evicted. A revision that the client asked for becomes that of this change.
fn tell(request: &RequestContext, name: &str, options: &mut DeleteOptions) -> Outcome<()> {
    let resource = &request.resource;
    let now = format_seconds(request.now);
    let mut refusal = None;
    let object_ref = request.object_ref(name);
    let told = request.cluster.modify(resource, &object_ref, None, |pod| {
        refusal = check_preconditions(resource, pod, options).err();
        let status = pod.get_mut("status").and_then(Value::as_object_mut);
        let (Some(status), None) = (status, &refusal) else {
            return Edit::Keep;
        };
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if let Some(list) = conditions.as_array_mut() {
            list.retain(|condition| {
                condition.get("type").and_then(Value::as_str) != Some("DisruptionTarget")
            });
            list.push(json!({
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
                "lastProbeTime": null,
                "lastTransitionTime": now,
            }));
        }
        Edit::Write
    })?;
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    if options.revision.is_some() {
        options.revision = told.map(|pod| pod.revision.to_string());
    }
    Ok(())
}

//! Evictions: a pod is deleted, and says why.
//!
//! Disruption budgets do not hold back evictions: nothing counts the healthy pods of a budget here.

use axum::body::Body;
use http::Response;
use objects::time::format_seconds;
use serde_json::{Value, json};

use super::asked;
use super::outcome::success;
use crate::cluster::Edit;
use crate::read::ObjectEncoder;
use crate::request::{RequestContext, WriteOptions};
use crate::response;
use crate::status::{ApiError, Outcome};
use crate::write::{DeleteOptions, check_preconditions, delete_object};

/// Evicts the pod `name`.
pub(super) fn evict(request: &RequestContext, name: &str) -> Outcome<Response<Body>> {
    let options = WriteOptions::of(&request.query, &request.headers, "CreateOptions")?;
    let mut warnings = Vec::new();
    let answer = asked::read_of_pod(request, name, ("policy", "v1", "Eviction"), &options, &mut warnings)
        .and_then(|body| evict_as(request, name, &body, options.dry_run));
    Ok(response::warned(answer, &warnings))
}

fn evict_as(request: &RequestContext, name: &str, body: &Value, is_dry_run: bool) -> Outcome<Response<Body>> {
    if request.find(name).is_none() {
        return Err(ApiError::not_found(&request.resource.kind, name));
    }
    let mut options = DeleteOptions::read(body.get("deleteOptions").unwrap_or(&Value::Null))?;
    options.dry_run |= is_dry_run;
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

//! Bodies that ask for a part of an object: their kind, name and namespace fit the request.

use http::header::CONTENT_TYPE;
use objects::decode::{self, Node};
use serde_json::Value;

use crate::request::RequestContext;
use crate::status::{ApiError, Outcome};
use crate::write::{OTHER_NAMESPACE, check_kind, object};

/// Reads a body that asks for a part of a pod; its kind, name and namespace are those of the request.
pub(super) fn asked_of(request: &RequestContext, name: &str, kind: (&str, &str, &str)) -> Outcome<Value> {
    let (group, version, kind) = kind;
    let wanted = crate::kind::Kind {
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        kind: kind.to_owned().into(),
        ..(*request.resource.kind).clone()
    };
    let node = object(&request.body, request.header(CONTENT_TYPE), &wanted)?;
    let text = |name: &str| node.get(name).and_then(Node::as_str).unwrap_or_default().to_owned();
    // Evictions are read in their older version as well.
    let given_version = text("apiVersion");
    let older = kind == "Eviction" && given_version == "policy/v1beta1";
    check_kind(&wanted, &text("kind"), if older { "" } else { &given_version })?;
    let body = decode::untyped(node).value;
    if crate::object_meta::text(&body, "name") != name {
        return Err(ApiError::bad_request(format!("name in URL does not match name in {kind} object")));
    }
    let given = crate::object_meta::text(&body, "namespace");
    if !given.is_empty() && request.namespace.as_deref().is_some_and(|namespace| namespace != given) {
        return Err(ApiError::bad_request(OTHER_NAMESPACE));
    }
    Ok(body)
}

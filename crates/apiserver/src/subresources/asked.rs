//! Bodies that ask something of the server and are not stored: they are read by the type of their kind.

use http::header::CONTENT_TYPE;
use objects::decode::{self, Node};
use objects::types::{self, Shape};
use serde_json::Value;

use crate::kind::Kind;
use crate::request::{RequestContext, WriteOptions};
use crate::status::{ApiError, Outcome};
use crate::write::{OTHER_NAMESPACE, check_kind, object, report_dropped};

/// Group, version and kind of what a body asks for.
pub(crate) type Asked = (&'static str, &'static str, &'static str);

/// Reads a body of this kind. What the kind does not have is warned of, or refused, as the client wants it.
pub(crate) fn read(
    request: &RequestContext,
    (group, version, kind): (&str, &str, &str),
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<Value> {
    let wanted = Kind {
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
    let shape = types::name_of_kind(group, version, kind).map_or(Shape::Any, Shape::Named);
    let decoded = decode::typed(node, &shape).map_err(|error| {
        ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {error}"))
    })?;
    report_dropped(&wanted, options, decoded.strict, warnings)?;
    Ok(decoded.value)
}

/// Refuses a body whose namespace is not that of the request.
pub(super) fn check_namespace(request: &RequestContext, body: &Value) -> Outcome<()> {
    let given = crate::object_meta::text(body, "namespace");
    if !given.is_empty() && request.namespace.as_deref().is_some_and(|namespace| namespace != given) {
        return Err(ApiError::bad_request(OTHER_NAMESPACE));
    }
    Ok(())
}

/// Reads a body that asks for a part of a pod; its name and namespace are those of the request.
pub(super) fn read_of_pod(
    request: &RequestContext,
    name: &str,
    asked: Asked,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<Value> {
    let body = read(request, asked, options, warnings)?;
    if crate::object_meta::text(&body, "name") != name {
        let kind = asked.2;
        return Err(ApiError::bad_request(format!("name in URL does not match name in {kind} object")));
    }
    check_namespace(request, &body)?;
    Ok(body)
}

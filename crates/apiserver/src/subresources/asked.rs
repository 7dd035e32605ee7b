//! Bodies that ask something of the server and are not stored: they are read by the type of their kind.

use http::header::CONTENT_TYPE;
use objects::decode::{self, Node};
use objects::types::{self, Shape};
use serde_json::Value;

use crate::admission;
use crate::admission::configured::is_reviewed;
use crate::admission::webhook::{self, Asked, Named, Operation};
use crate::kind::Kind;
use crate::registry::Resource;
use crate::request::{RequestContext, WriteOptions};
use crate::status::{ApiError, Outcome};
use crate::strategy::{self, FieldOwner};
use crate::write::metadata::place_in_namespace;
use crate::write::{OTHER_NAMESPACE, check_kind, object, report_dropped};

/// Group, version and kind of what a body asks for.
pub(crate) type Body = (&'static str, &'static str, &'static str);

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

/// A body that asks something of the server, on its way through admission.
pub(crate) struct Posted<'a> {
    pub(crate) request: &'a RequestContext,
    /// The kind of the body.
    pub(crate) resource: &'a Resource,
    /// The name in the path.
    pub(crate) name: Option<&'a str>,
    pub(crate) options: &'a WriteOptions,
}

impl Posted<'_> {
    /// Returns a body with its defaults and its owners as mutating webhooks leave it.
    ///
    /// # Errors
    ///
    /// When a webhook says so, or its namespace takes nothing new.
    pub(crate) fn mutated(&self, mut body: Value, warnings: &mut Vec<String>) -> Outcome<Value> {
        let (request, resource) = (self.request, self.resource);
        place_in_namespace(request, &mut body)?;
        resource.put_type(&mut body);
        strategy::complete(resource, &mut body)?;
        let subresource = request.subresource.as_deref().unwrap_or_default();
        let owner = FieldOwner { manager: &self.options.field_manager, subresource };
        strategy::own(resource, None, &mut body, owner, request.now);
        if !is_reviewed(request) {
            return Ok(body);
        }
        // Questions about rights are answered wherever they are asked.
        if &*resource.kind.group != "authorization.k8s.io" {
            admission::check_namespace(request, self.name.unwrap_or_default())?;
        }
        match webhook::mutate(self.asked(None), &body, warnings)? {
            Some(changed) => strategy::conform_mutated(resource, changed.into()),
            None => Ok(body),
        }
    }

    /// Refuses a body that a policy or a validating webhook does not allow.
    pub(crate) fn validate(&self, body: &Value, warnings: &mut Vec<String>) -> Outcome<()> {
        if !is_reviewed(self.request) {
            return Ok(());
        }
        admission::validate(self.asked(Some(body)), warnings)
    }

    fn asked<'o>(&'o self, object: Option<&'o Value>) -> Asked<'o> {
        Asked {
            request: self.request,
            operation: Operation::Create,
            named: self.name.map_or(Named::Itself, Named::Path),
            object,
            old: None,
            is_dry_run: self.options.dry_run,
            options: &self.options.shown,
        }
    }
}

/// Reads a body that asks for a part of a pod, and takes it through admission; its name and namespace are those of the request.
pub(super) fn read_of_pod(
    request: &RequestContext,
    name: &str,
    asked: Body,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<Value> {
    let body = read(request, asked, options, warnings)?;
    check_namespace(request, &body)?;
    let part = request.subresource.as_deref().unwrap_or_default();
    let resource = request.resource.spoken(part).ok_or_else(ApiError::unknown_resource)?;
    let posted = Posted { request, resource: &resource, name: Some(name), options };
    let body = posted.mutated(body, warnings)?;
    if crate::object_meta::text(&body, "name") != name {
        let kind = asked.2;
        return Err(ApiError::bad_request(format!("name in URL does not match name in {kind} object")));
    }
    posted.validate(&body, warnings)?;
    Ok(body)
}

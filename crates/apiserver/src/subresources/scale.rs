//! Scales: the number of replicas of an object, read and changed in one form for all kinds.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use http::Response;
use objects::{decode, types};
use serde_json::{Map, Value, json};

use crate::fields::{get, list, text};
use crate::kind::Kind;
use crate::object_meta;
use crate::request::RequestContext;
use crate::request::{Representation, Shape};
use crate::status::{ApiError, Cause, Outcome};
use crate::store::Stored;
use crate::strategy::{cause, internal};
use crate::validation;

pub(crate) fn show(request: &RequestContext, object: &Value) -> Outcome<Response<Body>> {
    let scale = of(request, object)?;
    let plain = Representation { shape: Shape::Whole, ..request.representation.clone() };
    let shown = match &request.representation.shape {
        Shape::Table(version) => table(&scale, version, request.now),
        Shape::Whole | Shape::Metadata(_) => scale,
    };
    let body = crate::read::encode(&shown, &plain)?;
    crate::read::respond(200, plain.content_type(), Body::from(body))
}

fn table(scale: &Value, version: &str, now: jiff::Timestamp) -> Value {
    let column = |name: &str, kind: &str| json!({"name": name, "type": kind, "format": "", "description": "", "priority": 0});
    let number = |path: &str| scale.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let metadata = scale.get("metadata").cloned().unwrap_or_default();
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    let age = crate::table::since(Some(text("creationTimestamp")), now);
    json!({
        "kind": "Table",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": {"resourceVersion": text("resourceVersion")},
        "columnDefinitions": [
            column("Name", "string"),
            column("Desired", "integer"),
            column("Available", "integer"),
            column("Age", "string"),
        ],
        "rows": [{
            "cells": [text("name"), number("/spec/replicas"), number("/status/replicas"), age],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": format!("meta.k8s.io/{version}"),
                "metadata": metadata,
            },
        }],
    })
}

pub(crate) static SHAPE: LazyLock<types::Shape> = LazyLock::new(|| {
    types::name_of_kind("autoscaling", "v1", "Scale").map_or(types::Shape::Any, types::Shape::Named)
});

struct Paths {
    spec: String,
    status: String,
    selector: Option<String>,
}

fn paths(request: &RequestContext) -> Outcome<Paths> {
    let Some((definition, index)) = &request.resource.custom else {
        return Ok(Paths {
            spec: ".spec.replicas".into(),
            status: ".status.replicas".into(),
            selector: None,
        });
    };
    let version = definition.versions.get(*index);
    let scale = version.and_then(|version| version.scale.as_ref()).ok_or_else(ApiError::unknown_resource)?;
    Ok(Paths {
        spec: scale.spec_replicas.clone(),
        status: scale.status_replicas.clone(),
        selector: scale.selector.clone(),
    })
}

fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|part| !part.is_empty()).try_fold(object, |at, part| at.get(part))
}

pub(crate) fn of(request: &RequestContext, object: &Value) -> Outcome<Value> {
    let paths = paths(request)?;
    let mut metadata = Map::new();
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.pointer(&format!("/metadata/{name}")) {
            metadata.insert(name.into(), value.clone());
        }
    }
    let mut spec = Map::new();
    if let Some(replicas) = at(object, &paths.spec).filter(|replicas| replicas.as_i64() != Some(0)) {
        spec.insert("replicas".into(), replicas.clone());
    }
    let replicas = at(object, &paths.status).cloned().unwrap_or(json!(0));
    let mut status = Map::from_iter([("replicas".to_owned(), replicas)]);
    let selector = match &paths.selector {
        Some(path) => at(object, path).and_then(Value::as_str).map(str::to_owned),
        None if request.resource.custom.is_none() => object.pointer("/spec/selector").map(selector_text),
        None => None,
    };
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        status.insert("selector".into(), json!(selector));
    }
    Ok(
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}),
    )
}

/// Refuses to show the scale of a custom object that does not say how many replicas it wants.
pub(crate) fn check_shown(request: &RequestContext, object: &Value) -> Outcome<()> {
    let path = paths(request)?.spec;
    if request.resource.custom.is_none() || at(object, &path).is_some() {
        return Ok(());
    }
    Err(internal(format!("the spec replicas field {path:?} does not exist")))
}

/// Returns a selector of an object as requests write it.
fn selector_text(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    // Selectors of replication controllers are plain maps.
    let plain = if labels.is_none() && expressions.is_none() { selector.as_object() } else { None };
    let pairs = labels.into_iter().chain(plain).flatten();
    let mut terms: Vec<String> =
        pairs.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())).collect();
    for expression in expressions.into_iter().flatten() {
        let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
        let values = expression.get("values").and_then(Value::as_array);
        let values: Vec<&str> = values.into_iter().flatten().filter_map(Value::as_str).collect();
        let (key, values) = (text("key"), values.join(","));
        terms.push(match text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    terms.sort();
    terms.join(",")
}

/// Refuses a scale that is not that of the object, or whose metadata cannot be.
pub(crate) fn check(request: &RequestContext, old: &Arc<Stored>, scale: &Value) -> Outcome<()> {
    let name = old.name();
    crate::write::metadata::check_name(name, scale)?;
    super::asked::check_namespace(request, scale)?;
    if request.resource.custom.is_some() {
        return Ok(());
    }
    let kind = &request.resource.kind;
    let (uid, kept) = (object_meta::text(scale, "uid"), &*old.uid);
    if !uid.is_empty() && uid != kept {
        let kind = Kind { plural: format!("{}/scale", kind.plural).into(), ..(**kind).clone() };
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {kept}");
        return Err(ApiError::conflict(&kind, name, &why));
    }
    let shown =
        Kind { group: "autoscaling".into(), kind: "Scale".into(), plural: "".into(), ..(**kind).clone() };
    let mut causes: Vec<Cause> = validation::scale(&shown, scale).errors.into_iter().map(cause).collect();
    let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64);
    if let Some(number) = replicas.filter(|number| *number < 0) {
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {number}: must be greater than or equal to 0"),
            field: "spec.replicas".into(),
        });
    }
    if causes.is_empty() { Ok(()) } else { Err(ApiError::invalid(&shown, name, causes)) }
}

/// Removes the times at which somebody came to own replicas through a scale: a real server loses them.
pub(crate) fn forget_time(object: &mut Value) {
    let owners = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten().filter_map(Value::as_object_mut) {
        if owner.get("subresource").is_some_and(|part| part == "scale") {
            owner.remove("time");
        }
    }
}

/// Leaves out the replicas of a scale that are none.
pub(crate) fn drop_zero(scale: &mut Value) {
    let spec = scale.get_mut("spec").and_then(Value::as_object_mut);
    if let Some(spec) = spec.filter(|spec| spec.get("replicas").and_then(Value::as_i64) == Some(0)) {
        spec.remove("replicas");
    }
}

/// Returns whether the replicas of the object have an owner.
pub(crate) fn is_owned(request: &RequestContext, object: &Value) -> bool {
    owners(request, object).is_some()
}

/// Returns who owns the replicas of an object, as a scale has it; nothing if nobody does.
pub(crate) fn owners(request: &RequestContext, object: &Value) -> Option<Value> {
    let paths = paths(request).ok()?;
    let parts = paths.spec.split('.').filter(|part| !part.is_empty());
    let pointer = parts.fold("/fieldsV1".to_owned(), |path, part| format!("{path}/f:{part}"));
    let owners = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let owners = owners.into_iter().flatten().filter(|owner| owner.pointer(&pointer).is_some());
    let of_scale = |owner: &Value| {
        let mut owner = owner.clone();
        if let Some(fields) = owner.as_object_mut() {
            fields.insert("apiVersion".into(), json!("autoscaling/v1"));
            fields.insert("fieldsV1".into(), json!({"f:spec": {"f:replicas": {}}}));
        }
        owner
    };
    let owners: Vec<Value> = owners.map(of_scale).collect();
    (!owners.is_empty()).then_some(Value::Array(owners))
}

/// Gives the replicas of an object to those who own them in a scale that was applied, and takes them from others.
pub(crate) fn give_owners(
    request: &RequestContext,
    (old, new): (&Value, &mut Value),
    scale: &Value,
) -> Outcome<()> {
    let (known, given) = (list(old, "metadata.managedFields"), list(scale, "metadata.managedFields"));
    let owners = owners_of_both(request, known, given)?;
    object_meta::of_mut(new)?.insert("managedFields".into(), Value::Array(owners));
    Ok(())
}

/// Returns what tells an owner from others.
fn id(owner: &Value) -> [&str; 3] {
    ["manager", "operation", "subresource"].map(|field| text(owner, field))
}

/// Returns the owners of an object whose replicas are owned by those who own a scale.
fn owners_of_both(request: &RequestContext, known: &[Value], given: &[Value]) -> Outcome<Vec<Value>> {
    let paths = paths(request)?;
    let steps: Vec<String> =
        paths.spec.split('.').filter(|part| !part.is_empty()).map(|part| format!("f:{part}")).collect();
    let pointer = format!("/{}", steps.join("/"));
    // Who applies an empty specification keeps the replicas.
    let owns = |owner: &&Value| owner.pointer("/fieldsV1/f:spec").is_some();
    let mut given: Vec<&Value> = given.iter().filter(owns).collect();
    let mut owners = Vec::new();
    for mut owner in known.iter().cloned() {
        let mut rest = get(&owner, "fieldsV1").clone();
        if rest.pointer(&pointer).is_none() {
            owners.push(owner);
            continue;
        }
        let keeps = given.iter().position(|other| id(other) == id(&owner));
        if let Some(index) = keeps {
            given.remove(index);
        } else if take(&mut rest, &steps) {
            continue;
        } else if let Some(owned) = owner.as_object_mut() {
            owned.insert("fieldsV1".into(), rest);
        }
        owners.push(owner);
    }
    for mut owner in given.into_iter().cloned() {
        if let Some(fields) = owner.as_object_mut() {
            let owned = steps.iter().rev().fold(json!({}), |below, step| json!({ step.as_str(): below }));
            fields.insert("apiVersion".into(), json!(request.resource.api_version));
            fields.insert("fieldsV1".into(), owned);
        }
        owners.push(owner);
    }
    owners.sort_by_key(|owner| text(owner, "operation").to_owned());
    Ok(owners)
}

/// Takes a path out of a set of fields; returns whether nothing is left.
fn take(fields: &mut Value, steps: &[String]) -> bool {
    let Some(fields) = fields.as_object_mut() else { return true };
    if let Some((step, rest)) = steps.split_first()
        && fields.get_mut(step).is_some_and(|below| take(below, rest))
    {
        fields.remove(step);
    }
    fields.is_empty()
}

pub(crate) fn set(
    request: &RequestContext,
    object: &mut Value,
    old: &Arc<Stored>,
    scale: &Value,
) -> Outcome<()> {
    let given = object_meta::text(scale, "resourceVersion");
    if !given.is_empty() && given != old.revision.to_string() {
        return Err(ApiError::modified(&request.resource.kind, old.name()));
    }
    let replicas = scale.pointer("/spec/replicas").cloned().unwrap_or(json!(0));
    let fits = decode::typed(decode::Node::from(scale.clone()), &SHAPE).map_err(|error| error.to_string());
    let number = fits.and_then(|_| replicas.as_i64().ok_or_else(|| "spec.replicas is null".to_owned()));
    if let Err(why) = number {
        let message = format!("Scale in version \"v1\" cannot be handled as a Scale: {why}");
        return Err(ApiError::bad_request(message));
    }
    let paths = paths(request)?;
    let mut at = object;
    for part in paths.spec.split('.').filter(|part| !part.is_empty()) {
        let Some(fields) = at.as_object_mut() else {
            return Ok(());
        };
        at = fields.entry(part).or_insert_with(|| json!({}));
    }
    *at = replicas;
    Ok(())
}

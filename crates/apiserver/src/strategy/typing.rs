//! Types, defaults and validation of objects, of built-in and of custom kinds.

use std::sync::LazyLock;

use objects::decode::{self, Decoded, Node};
use objects::go_value;
use objects::schema::Structural;
use objects::types::{self, Shape};
use serde_json::Value;

use crate::defaults;
use crate::registry::{Resource, Version};
use crate::status::{ApiError, Cause, Outcome};
use crate::validation::{self, FieldError, Report};

/// Checks types and drops unknown fields; returns the object and what was dropped or came twice.
pub(crate) fn conform(resource: &Resource, body: Node) -> Outcome<Decoded> {
    let kind = &resource.kind;
    if let Some(version) = resource.version() {
        let mut decoded = conform_custom(kind, body)?;
        let unknown = version.structural.prune(&mut decoded.value);
        decoded.strict.extend(unknown.into_iter().map(|path| format!("unknown field \"{path}\"")));
        return Ok(decoded);
    }
    decode::typed(body, &resource.shape).map_err(|error| {
        let message = format!(
            "{} in version {:?} cannot be handled as a {}: {error}",
            kind.kind, kind.version, kind.kind
        );
        ApiError::bad_request(message)
    })
}

/// Makes of an object what the database of a real server makes of it. Definitions, services of APIs and custom objects are kept as JSON.
pub(crate) fn settle_stored(resource: &Resource, object: &mut Value) {
    let is_json = matches!(&*resource.kind.group, "apiextensions.k8s.io" | "apiregistration.k8s.io");
    if resource.custom.is_none() && !is_json {
        decode::forget_empty(object, &resource.shape);
    }
}

/// Like [`conform`], for what webhooks made of an object: what does not fit its type is a failure of theirs.
pub(crate) fn conform_mutated(resource: &Resource, body: Node) -> Outcome<Value> {
    if resource.custom.is_some() {
        return Ok(conform(resource, body)?.value);
    }
    let decoded = decode::typed(body, &resource.shape);
    decoded.map(|decoded| decoded.value).map_err(|error| internal(error.to_string()))
}

/// Returns the refusal for a failure of somebody who was asked.
pub(crate) fn internal(why: String) -> ApiError {
    let cause = Cause { reason: String::new(), message: why.clone(), field: String::new() };
    ApiError::internal(why).with_causes(vec![cause])
}

/// Returns what is wrong with the types of objects inside of an object.
pub(crate) fn embedded_error(resource: &Resource, object: &Value) -> Option<String> {
    let (field, why) = resource.version()?.structural.embedded_error(object)?;
    Some(format!("{field}: {why}"))
}

/// Refuses an object in which others are that have not the types of what every object has.
pub(crate) fn check_embedded(resource: &Resource, object: &Value) -> Outcome<()> {
    let Some(why) = embedded_error(resource, object) else { return Ok(()) };
    let (kind, version) = (&resource.kind.kind, &resource.kind.version);
    Err(ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}")))
}

/// Only the metadata of custom objects has a type that is built in.
fn conform_custom(kind: &crate::kind::Kind, body: Node) -> Outcome<Decoded> {
    let mut decoded = decode::untyped(body);
    let metadata = decoded.value.get_mut("metadata").map(Value::take).unwrap_or_default();
    let typed = decode::typed(Node::from(metadata), &METADATA).map_err(|error| {
        let (kind, version) = (&kind.kind, &kind.version);
        ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {error}"))
    })?;
    let strict = typed.strict.into_iter().map(|text| text.replacen("field \"", "field \"metadata.", 1));
    decoded.strict.extend(strict);
    if let Some(fields) = decoded.value.as_object_mut() {
        fields.insert("metadata".into(), typed.value);
    }
    Ok(decoded)
}

pub(super) static METADATA: LazyLock<Shape> = LazyLock::new(|| {
    let map = types::of_kind("", "v1", "ConfigMap").and_then(|map| map.field("metadata"));
    map.map_or(Shape::Any, |metadata| metadata.shape.clone())
});

/// Sets the defaults of an object, unless they would make it far larger than any object may be. Nulls that may not be go.
pub(crate) fn complete(resource: &Resource, object: &mut Value) -> Outcome<()> {
    completed(resource, object, Structural::complete)
}

/// Sets the defaults of what was applied, where nulls stay that may not be.
pub(crate) fn complete_applied(resource: &Resource, object: &mut Value) -> Outcome<()> {
    completed(resource, object, Structural::complete_applied)
}

fn completed(
    resource: &Resource,
    object: &mut Value,
    complete: fn(&Structural, &mut Value) -> bool,
) -> Outcome<()> {
    let Some(version) = resource.version() else {
        drop_removed(resource, object);
        defaults::apply(object, &resource.shape);
        return Ok(());
    };
    if complete(&version.structural, object) {
        return Ok(());
    }
    let what = "the defaults of its schema would make the object too large";
    Err(ApiError::bad_request(format!("{}: {what}", resource.kind.kind)))
}

/// Drops fields of features that servers no longer have.
fn drop_removed(resource: &Resource, object: &mut Value) {
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    if let Some(spec) = spec.filter(|_| resource.is("", "nodes")) {
        spec.remove("configSource");
    }
}

/// Returns what is wrong with a new object. The first warnings are about what is accepted, the others are told in any case.
pub(crate) fn validate_new(
    resource: &Resource,
    object: &Value,
    (warnings, told): (&mut Vec<String>, &mut Vec<String>),
) -> Vec<Cause> {
    let Some(version) = resource.version() else {
        return causes_of(validation::create(&resource.kind, object), warnings);
    };
    let mut causes = causes_of(validation::create_custom(object), warnings);
    causes.extend(validation::schema::validate(&version.structural, object, "").into_iter().map(cause));
    causes.extend(custom_content(version, object));
    check_rules(version, (None, object), &mut causes, told);
    causes
}

/// Returns what is wrong with a custom object beside its metadata and its schema.
fn custom_content(version: &Version, object: &Value) -> Vec<Cause> {
    let scale = version.scale.as_ref();
    let replicas = scale.and_then(|scale| replicas(object, &scale.spec_replicas));
    let mut causes = Vec::from_iter(replicas);
    let ill_typed = version.structural.embedded_error(object);
    causes.extend(ill_typed.map(|(field, message)| Cause {
        reason: "FieldValueInvalid".into(),
        message,
        field,
    }));
    for (path, inner) in version.structural.embedded(object) {
        causes.extend(validation::embedded(inner, &path).errors.into_iter().map(cause));
    }
    causes
}

/// Returns what is wrong with the number of replicas at a path like `.spec.replicas`.
fn replicas(object: &Value, path: &str) -> Option<Cause> {
    let steps = path.split('.').filter(|step| !step.is_empty());
    let found = steps.into_iter().try_fold(object, |at, step| at.get(step))?;
    let message = match found.as_i64() {
        Some(number) if number < 0 => format!("Invalid value: {number}: should be a non-negative integer"),
        Some(_) => return None,
        None => {
            let (shown, kind) = (go_value::printed(found), go_value::type_name(found));
            format!("Invalid value: 0: {path} accessor error: {shown} is of the type {kind}, expected int64")
        }
    };
    Some(Cause { reason: "FieldValueInvalid".into(), message, field: path.to_owned() })
}

/// Like [`validate_new`], for a new version of an object.
pub(crate) fn validate_changed(
    resource: &Resource,
    subresource: Option<&str>,
    (old, new): (&Value, &Value),
    (warnings, told): (&mut Vec<String>, &mut Vec<String>),
) -> Vec<Cause> {
    let Some(version) = resource.version() else {
        if subresource == Some("status") {
            return causes_of(validation::update_status(&resource.kind, new, old), warnings);
        }
        if subresource == Some("finalize") {
            return causes_of(validation::finalize(&resource.kind, new, old), warnings);
        }
        match subresource {
            Some("approval") => {
                return causes_of(validation::update_approval(&resource.kind, new, old), warnings);
            }
            Some("ephemeralcontainers") => return causes_of(validation::ephemeral(new, old), warnings),
            Some("resize") => return causes_of(validation::resize(new, old), warnings),
            _ => {}
        }
        let mut report = validation::update(&resource.kind, new, old);
        // What runs pods is warned of when its specification changes, not with each change of a label.
        let generation = |object: &Value| object.pointer("/metadata/generation").and_then(Value::as_i64);
        if matches!(&*resource.kind.group, "apps" | "batch") && generation(old) == generation(new) {
            report.warnings.clear();
        }
        return causes_of(report, warnings);
    };
    let mut causes = causes_of(validation::update_custom(new, old), warnings);
    let is_status = subresource == Some("status");
    let errors = validation::schema::validate_change(&version.structural, (old, new), is_status);
    causes.extend(errors.into_iter().map(cause));
    if !is_status {
        causes.extend(custom_content(version, new));
    }
    check_rules(version, (Some(old), new), &mut causes, told);
    causes
}

/// Adds how an object breaks the rules of its schema. They are asked when the object has the form that they expect.
fn check_rules(
    version: &Version,
    (old, new): (Option<&Value>, &Value),
    causes: &mut Vec<Cause>,
    warnings: &mut Vec<String>,
) {
    const FORM: [&str; 5] = [
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    ];
    let Some(rules) = version.rules() else { return };
    if causes.iter().any(|cause| FORM.contains(&&*cause.reason)) {
        let message = "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
        let reason = "FieldValueInvalid".into();
        return causes.push(Cause { reason, message: message.to_owned(), field: "<nil>".to_owned() });
    }
    for broken in rules.check(new, old) {
        let field = if broken.field.is_empty() { "<nil>".to_owned() } else { broken.field };
        let (shown, detail) = (broken.shown, broken.detail);
        let message = match broken.reason {
            "FieldValueForbidden" => format!("Forbidden: {detail}"),
            "FieldValueRequired" => format!("Required value: {detail}"),
            "FieldValueDuplicate" => format!("Duplicate value: {shown:?}"),
            _ => format!("Invalid value: {shown:?}: {detail}"),
        };
        if broken.is_warning {
            let warning = format!("{field}: {message}");
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        } else {
            causes.push(Cause { reason: broken.reason.into(), message, field });
        }
    }
}

fn causes_of(report: Report, warnings: &mut Vec<String>) -> Vec<Cause> {
    for warning in report.warnings {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    report.errors.into_iter().map(cause).collect()
}

pub(crate) fn cause(error: FieldError) -> Cause {
    Cause { reason: error.reason.to_owned(), message: error.message, field: error.field }
}

//! The parameters of a policy: the objects that a binding names.

use serde_json::Value;

use crate::admission::webhook::Asked;
use crate::admission::webhook::matching::selects;
use crate::fields::{has, text};

/// Returns the objects that a policy is evaluated with, one after the other; one that is missing is `None`.
///
/// # Errors
///
/// When there are none and the binding wants some, and when the kind is not served.
pub(super) fn of(
    asked: Asked<'_>,
    kind: Option<&Value>,
    reference: &Value,
) -> Result<Vec<Option<Value>>, String> {
    let Some(kind) = kind else { return Ok(vec![None]) };
    if reference.is_null() {
        return Ok(vec![None]);
    }
    let (version, name) = (text(kind, "apiVersion"), text(kind, "kind"));
    let resources = asked.request.cluster.registry.resources();
    let resource = resources.find_kind(version, name).ok_or_else(|| {
        format!("paramKind kind `&ParamKind{{APIVersion:{version},Kind:{name},}}` not known")
    })?;
    let own = text(reference, "namespace");
    let namespace = if resource.kind.namespaced {
        let namespace = if own.is_empty() { asked.request.namespace.as_deref() } else { Some(own) };
        let missing =
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
        Some(namespace.ok_or(missing)?)
    } else if own.is_empty() {
        None
    } else {
        return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
    };
    let storage = &asked.request.cluster.storage;
    let named = text(reference, "name");
    let found: Vec<Value> = if has(reference, "selector") {
        let selector = reference.get("selector").unwrap_or(&Value::Null);
        let all = storage.all(&resource.table, namespace).into_iter().map(|stored| stored.value());
        all.filter(|object| selects(selector, object.pointer("/metadata/labels").and_then(Value::as_object)))
            .collect()
    } else {
        storage.find(&resource.table, namespace, named).map(|stored| stored.value()).into_iter().collect()
    };
    if found.is_empty() && text(reference, "parameterNotFoundAction") == "Deny" {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(found.into_iter().map(Some).collect())
}

//! Conversions of custom resources by the webhook of their definition.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::call;
use crate::cluster::Cluster;
use crate::fields::{get, list, text};
use crate::registry::Resource;
use crate::status::{ApiError, Outcome};
use crate::store::{Encoded, Stored};
use crate::strategy::conversion::head;

/// How long a conversion may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns stored objects in the version of `resource`; those that are in it stay as they are.
pub(crate) async fn shown(
    cluster: &Cluster,
    resource: &Resource,
    mut objects: Vec<Arc<Stored>>,
) -> Outcome<Vec<Arc<Stored>>> {
    let head = head(&resource.kind.kind, &resource.api_version);
    let others: Vec<usize> = (0..objects.len())
        .filter(|place| objects.get(*place).is_some_and(|it| !it.body.starts_with(&head)))
        .collect();
    let before = others.iter().filter_map(|place| objects.get(*place)).map(|object| object.value()).collect();
    let after = convert(cluster, resource, before, &resource.api_version).await?;
    for (place, object) in others.into_iter().zip(after) {
        if let Some(old) = objects.get_mut(place) {
            let encoded = Encoded::new(&object, &resource.fields);
            *old = Arc::new(encoded.into_stored(old.key.clone(), old.revision));
        }
    }
    Ok(objects)
}

/// Returns the bytes of a stored object in the version of `resource`.
pub(crate) async fn shown_bytes(cluster: &Cluster, resource: &Resource, body: &Bytes) -> Outcome<Bytes> {
    let object = objects::decode::read(body).unwrap_or(Value::Null);
    let converted = convert(cluster, resource, vec![object], &resource.api_version).await?;
    let object = converted.into_iter().next().unwrap_or_default();
    Ok(serde_json::to_vec(&object).unwrap_or_default().into())
}

/// Returns objects in another version, as the webhook converts them.
pub(crate) async fn convert(
    cluster: &Cluster,
    resource: &Resource,
    objects: Vec<Value>,
    desired: &str,
) -> Outcome<Vec<Value>> {
    let Some(client) = resource.converter().filter(|_| !objects.is_empty()) else { return Ok(objects) };
    let uid = cluster.random.uid();
    let request = json!({"uid": uid, "desiredAPIVersion": desired, "objects": objects});
    let review =
        json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request});
    let failed = |why: String| {
        let kind = &resource.kind.kind;
        let from = objects.first().map_or("", |object| text(object, "apiVersion"));
        ApiError::internal(format!("conversion webhook for {from}, Kind={kind} failed: {why}"))
    };
    let answer = call(cluster, client, TIMEOUT, &review).await.map_err(failed)?;
    let response = get(&answer, "response");
    let result = get(response, "result");
    if text(result, "status") != "Success" {
        return Err(failed(text(result, "message").to_owned()));
    }
    if text(response, "uid") != uid {
        return Err(failed("expected response.uid to be that of the request".to_owned()));
    }
    let converted = list(response, "convertedObjects");
    if converted.len() != objects.len() {
        let (got, wanted) = (converted.len(), objects.len());
        return Err(failed(format!("webhook returned {got} objects, expected {wanted}")));
    }
    objects.iter().zip(converted).map(|(old, new)| same(old, new, desired).map_err(failed)).collect()
}

/// Returns objects in the version `desired`, as a client would that reads them. Those that are in it stay as they are.
///
/// # Errors
///
/// When the objects are not of one kind that is defined, when no webhook converts it, and when the webhook fails.
pub(crate) async fn requested(cluster: &Cluster, objects: Vec<Value>, desired: &str) -> Outcome<Vec<Value>> {
    let kind = objects.first().map_or("", |object| text(object, "kind"));
    let unknown = |version: &str| {
        let message =
            format!("there is no kind {kind} in version {version}: apply its CustomResourceDefinition first");
        ApiError::bad_request(message)
    };
    let resources = cluster.registry.resources();
    let find = |version: &str| resources.find_kind(version, kind).ok_or_else(|| unknown(version));
    let resource = find(desired)?;
    if resource.converter().is_none() {
        let message = format!(
            "no webhook converts {}: its spec.conversion has the strategy None",
            resource.kind.qualified_resource()
        );
        return Err(ApiError::bad_request(message));
    }
    for object in &objects {
        let version = text(object, "apiVersion");
        if text(object, "kind") != kind || find(version)?.table != resource.table {
            let (first, other) = (kind, text(object, "kind"));
            let message = format!(
                "the objects of a conversion are of one kind: found {first} and {other} of {version}"
            );
            return Err(ApiError::bad_request(message));
        }
    }
    let is_other = |object: &&Value| text(object, "apiVersion") != desired;
    let others = objects.iter().filter(is_other).cloned().collect();
    let mut converted = convert(cluster, resource, others, desired).await?.into_iter();
    let result = objects
        .into_iter()
        .map(|object| if is_other(&&object) { converted.next().unwrap_or(object) } else { object });
    Ok(result.collect())
}

/// Returns a converted object with the metadata that a conversion may not change, or why it is another one.
fn same(old: &Value, new: &Value, desired: &str) -> Result<Value, String> {
    if text(new, "apiVersion") != desired {
        let found = text(new, "apiVersion");
        return Err(format!("invalid groupVersion, expected {desired}, got {found}"));
    }
    let field = |object: &Value, name: &str| object.pointer(&format!("/metadata/{name}")).cloned();
    for name in ["name", "namespace", "uid"] {
        if field(old, name) != field(new, name) {
            return Err(format!("invalid metadata.{name}"));
        }
    }
    if text(old, "kind") != text(new, "kind") {
        return Err("invalid kind".to_owned());
    }
    // Labels and annotations are all that may differ.
    let mut converted = new.clone();
    let mut metadata = old.get("metadata").cloned().unwrap_or_default();
    for name in ["labels", "annotations"] {
        if let Some(fields) = metadata.as_object_mut() {
            match field(new, name) {
                Some(value) => fields.insert(name.to_owned(), value),
                None => fields.remove(name),
            };
        }
    }
    if let Some(fields) = converted.as_object_mut() {
        fields.insert("metadata".to_owned(), metadata);
    }
    Ok(converted)
}

//! What is served, as clients discover it: groups, versions and resources, one by one and aggregated.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, Response};
use serde_json::{Value, json};

use crate::kind::{Subresource, Verb, join_group_version};
use crate::read;
use crate::registry::{Resource, Resources};
use crate::request::{OBJECTS, Offer, Query, Representation};
use crate::response::tagged;
use crate::status::{ApiError, Outcome};
use crate::sync::lock;

/// Answers discovery. The aggregated documents are kept until the served types change.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    /// Generation, core groups, other groups.
    aggregated: Mutex<Option<(u64, Bytes, Bytes)>>,
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn wants_aggregated(headers: &HeaderMap) -> bool {
    let accept = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accept.flat_map(|value| value.split(',')).any(|item| {
        let parts: Vec<&str> = item.split(';').map(str::trim).collect();
        parts.first() == Some(&"application/json")
            && parts.contains(&"as=APIGroupDiscoveryList")
            && parts.contains(&"g=apidiscovery.k8s.io")
            && parts.contains(&"v=v2")
    })
}

impl Discovery {
    /// Answers `/api`.
    pub(crate) fn core_versions(
        &self,
        resources: &Resources,
        asked: (&HeaderMap, &Query),
        host: &str,
    ) -> Outcome<Response<Body>> {
        if wants_aggregated(asked.0) {
            return Ok(self.aggregated(resources, asked.0, true));
        }
        let body = json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
        });
        shown(asked, LISTED, &body)
    }

    /// Answers `/apis`.
    pub(crate) fn groups(
        &self,
        resources: &Resources,
        asked: (&HeaderMap, &Query),
    ) -> Outcome<Response<Body>> {
        if wants_aggregated(asked.0) {
            return Ok(self.aggregated(resources, asked.0, false));
        }
        let named = resources.groups().iter().filter(|(group, _)| !group.is_empty());
        let groups: Vec<Value> = named.map(|(group, versions)| group_value(group, versions)).collect();
        let body = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups});
        shown(asked, UNLISTED, &body)
    }

    fn aggregated(&self, resources: &Resources, headers: &HeaderMap, core: bool) -> Response<Body> {
        let mut documents = lock(&self.aggregated);
        if documents.as_ref().is_none_or(|(generation, _, _)| *generation != resources.generation) {
            let document = |core: bool| Bytes::from(aggregated_document(resources, core).to_string());
            *documents = Some((resources.generation, document(true), document(false)));
        }
        let (core_groups, other_groups) = match &*documents {
            Some((_, core_groups, other_groups)) => (core_groups.clone(), other_groups.clone()),
            None => (Bytes::new(), Bytes::new()),
        };
        drop(documents);
        tagged(headers, if core { core_groups } else { other_groups }, AGGREGATED)
    }
}

/// Documents whose media types are asked for before anything else.
const LISTED: Offer = Offer { listed: Some(&OBJECTS), has_rows: false };

/// Documents whose media types are asked for when they are there.
const UNLISTED: Offer = Offer { listed: None, has_rows: false };

/// Returns a document in the form that a client takes.
fn shown((headers, query): (&HeaderMap, &Query), offer: Offer, document: &Value) -> Outcome<Response<Body>> {
    let representation = Representation::of(headers, query, &offer)?;
    let body = read::encode(document, &representation)?;
    read::respond(200, representation.content_type(), Body::from(body))
}

/// Answers `/apis/GROUP`.
pub(crate) fn group(
    resources: &Resources,
    asked: (&HeaderMap, &Query),
    name: &str,
) -> Outcome<Option<Response<Body>>> {
    let found = resources.groups().iter().find(|(group, _)| group == name && !group.is_empty());
    let Some((group, versions)) = found else { return Ok(None) };
    let mut body = group_value(group, versions);
    if let Some(fields) = body.as_object_mut() {
        fields.insert("kind".into(), json!("APIGroup"));
        fields.insert("apiVersion".into(), json!("v1"));
    }
    shown(asked, UNLISTED, &body).map(Some)
}

fn group_value(group: &str, versions: &[String]) -> Value {
    let listed =
        |version: &String| json!({"groupVersion": join_group_version(group, version), "version": version});
    json!({
        "name": group,
        "versions": versions.iter().map(listed).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(listed),
    })
}

/// Answers `/api/v1` and `/apis/GROUP/VERSION`.
pub(crate) fn group_version(
    served: &Resources,
    asked: (&HeaderMap, &Query),
    name: &str,
) -> Outcome<Option<Response<Body>>> {
    let Some(resources) = served.resources(name) else {
        let group = name.split_once('/').map_or("", |(group, _)| group);
        let known = served.has_group(group);
        return if known { Err(ApiError::unknown_resource()) } else { Ok(None) };
    };
    let mut list = Vec::new();
    for resource in resources {
        list.push(resource_value(resource));
        list.extend(resource.kind.subresources.iter().map(|part| subresource_value(resource, part)));
    }
    let mut body = json!({"kind": "APIResourceList", "groupVersion": name, "resources": list});
    // The list of the core group is older than the rule that says its version.
    if let (true, Some(fields)) = (name != "v1", body.as_object_mut()) {
        fields.insert("apiVersion".into(), json!("v1"));
    }
    shown(asked, LISTED, &body).map(Some)
}

fn verbs(verbs: &[Verb]) -> Vec<&'static str> {
    verbs.iter().map(|verb| verb.as_str()).collect()
}

fn resource_value(resource: &Resource) -> Value {
    let kind = &resource.kind;
    let mut value = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs(&kind.verbs),
    });
    if let Some(fields) = value.as_object_mut() {
        if !kind.short_names.is_empty() {
            fields.insert("shortNames".into(), json!(kind.short_names));
        }
        if !kind.categories.is_empty() {
            fields.insert("categories".into(), json!(kind.categories));
        }
        if kind.allows(Verb::Watch) {
            fields.insert("storageVersionHash".into(), json!(storage_hash(resource)));
        }
    }
    value
}

fn subresource_value(resource: &Resource, part: &Subresource) -> Value {
    let kind = &resource.kind;
    let mut value = json!({
        "name": format!("{}/{}", kind.plural, part.name),
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": part.kind,
        "verbs": verbs(&part.verbs),
    });
    if (&part.group, &part.version) != (&kind.group, &kind.version)
        && let Some(fields) = value.as_object_mut()
    {
        fields.insert("group".into(), json!(part.group));
        fields.insert("version".into(), json!(part.version));
    }
    value
}

/// Eight bytes that change with the version that objects are stored in: those of the real server.
fn storage_hash(resource: &Resource) -> String {
    use base64::Engine;
    use sha2::Digest as _;
    let slash = if resource.stored_version.contains('/') { "" } else { "/" };
    let text = format!("{slash}{}/{}", resource.stored_version, resource.kind.kind);
    let digest = sha2::Sha256::digest(text.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(digest.get(..8).unwrap_or_default())
}

fn aggregated_document(served: &Resources, core: bool) -> Value {
    let chosen = served.groups().iter().filter(|(group, _)| group.is_empty() == core);
    let groups: Vec<Value> = chosen
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let name = join_group_version(group, version);
                    let resources = served.resources(&name);
                    let resources: Vec<Value> =
                        resources.into_iter().flatten().map(aggregated_resource).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let mut metadata = json!({"creationTimestamp": null});
            if let (false, Some(fields)) = (group.is_empty(), metadata.as_object_mut()) {
                fields.insert("name".into(), json!(group));
            }
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": groups,
    })
}

fn aggregated_resource(resource: &Arc<Resource>) -> Value {
    let kind = &resource.kind;
    let scope = if kind.namespaced { "Namespaced" } else { "Cluster" };
    let mut value = json!({
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": scope,
        "singularResource": kind.singular,
        "verbs": verbs(&kind.verbs),
    });
    let parts: Vec<Value> = kind
        .subresources
        .iter()
        .map(|part| {
            let response = json!({"group": part.group, "version": part.version, "kind": part.kind});
            json!({"subresource": part.name, "responseKind": response, "verbs": verbs(&part.verbs)})
        })
        .collect();
    if let Some(fields) = value.as_object_mut() {
        if !kind.short_names.is_empty() {
            fields.insert("shortNames".into(), json!(kind.short_names));
        }
        if !kind.categories.is_empty() {
            fields.insert("categories".into(), json!(kind.categories));
        }
        if !parts.is_empty() {
            fields.insert("subresources".into(), Value::Array(parts));
        }
    }
    value
}

//! Documents about the types of the kinds that are served, made when somebody asks.

pub mod v2;
pub mod v3;

use std::collections::BTreeMap;
use std::sync::Mutex;

use axum::body::Body;
use bytes::Bytes;
use http::header::ACCEPT;
use http::{Response, StatusCode};
use serde_json::Value;

use crate::cluster::{Cluster, lock};
use crate::discovery::{fingerprint, tagged};
use crate::kind::join_group_version;
use crate::registry::Registry;
use crate::response;
use crate::server::routes::Incoming;
use v3::Published;

/// The documents that were asked for, by the generation of what is served and their path.
#[derive(Debug, Default)]
pub(crate) struct Documents(Mutex<Made>);

#[derive(Debug, Default)]
struct Made {
    generation: u64,
    documents: BTreeMap<String, Bytes>,
}

/// Answers `/openapi/…`.
pub(crate) fn answer(cluster: &Cluster, path: &str, incoming: &Incoming) -> Response<Body> {
    let registry = cluster.registry();
    if path == "/openapi/v3" {
        return tagged(&incoming.headers, index(&registry), "application/json");
    }
    if path == "/openapi/v2" {
        return older(cluster, &registry, incoming);
    }
    let asked = path.strip_prefix("/openapi/v3/").unwrap_or_default();
    let found = registry
        .groups()
        .iter()
        .flat_map(|(group, versions)| versions.iter().map(move |version| (group, version)))
        .find(|(group, version)| v3::path_of(group, version) == asked);
    match found {
        Some((group, version)) => {
            let body = made(cluster, &registry, group, version, asked);
            tagged(&incoming.headers, body, "application/json")
        }
        None => response::text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// Answers with the document of everything in the older version, as JSON or as protobuf.
fn older(cluster: &Cluster, registry: &Registry, incoming: &Incoming) -> Response<Body> {
    let accepted = incoming.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accepted: Vec<&str> = accepted.flat_map(|value| value.split(',')).map(str::trim).collect();
    let wants = |kinds: &[&str]| {
        accepted.iter().any(|item| kinds.contains(&item.split(';').next().unwrap_or_default()))
    };
    let content_type = if wants(&[v2::PROTOBUF, PROTOBUF_ALIAS]) {
        v2::PROTOBUF
    } else if accepted.is_empty() || wants(&["application/json", "application/*", "*/*"]) {
        "application/json"
    } else {
        return response::text(StatusCode::NOT_ACCEPTABLE, "");
    };
    let body = kept(cluster, registry, content_type, || {
        let versions = registry
            .groups()
            .iter()
            .flat_map(|(group, versions)| versions.iter().map(move |version| (group, version)));
        let document = v2::of_documents(versions.map(|(group, version)| document(registry, group, version)));
        if content_type == v2::PROTOBUF {
            v2::to_protobuf(&document).into()
        } else {
            document.to_string().into()
        }
    });
    tagged(&incoming.headers, body, content_type)
}

/// Another name of the protobuf form, which clients ask with.
const PROTOBUF_ALIAS: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// Returns the list of documents. What is published for a group and version changes with its kinds.
fn index(registry: &Registry) -> Bytes {
    let mut entries = Vec::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let name = join_group_version(group, version);
            let resources = registry.resources(&name);
            let mut text = String::new();
            for resource in resources.into_iter().flatten() {
                text.push_str(&resource.kind.plural);
                if let Some(version) = resource.version() {
                    text.push_str(&version.schema.to_string());
                }
            }
            entries.push((v3::path_of(group, version), format!("{:016X}", fingerprint(text.as_bytes()))));
        }
    }
    let pairs = entries.iter().map(|(path, hash)| (path.as_str(), hash.as_str()));
    v3::index(pairs).to_string().into()
}

fn made(cluster: &Cluster, registry: &Registry, group: &str, version: &str, path: &str) -> Bytes {
    kept(cluster, registry, path, || document(registry, group, version).to_string().into())
}

/// Returns a document that was made before, or makes it.
fn kept(cluster: &Cluster, registry: &Registry, name: &str, write: impl FnOnce() -> Bytes) -> Bytes {
    let mut made = lock(&cluster.published.0);
    if made.generation != registry.generation {
        made.generation = registry.generation;
        made.documents.clear();
    }
    if let Some(document) = made.documents.get(name) {
        return document.clone();
    }
    drop(made);
    let document = write();
    lock(&cluster.published.0).documents.insert(name.to_owned(), document.clone());
    document
}

fn document(registry: &Registry, group: &str, version: &str) -> Value {
    let name = join_group_version(group, version);
    let resources: Vec<_> = registry.resources(&name).into_iter().flatten().collect();
    let kinds: Vec<Published<'_>> = resources
        .iter()
        .map(|resource| {
            let schema: Option<&Value> = resource.version().map(|version| &version.schema);
            Published { kind: &resource.kind, schema }
        })
        .collect();
    v3::of_group_version(group, version, &kinds, "v1.34.2")
}

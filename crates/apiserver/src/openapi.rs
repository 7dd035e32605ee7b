//! Documents about the types of the kinds that are served, made when somebody asks.

use std::collections::BTreeMap;
use std::sync::Mutex;

use axum::body::Body;
use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::Value;

use crate::answer;
use crate::cluster::{Cluster, lock};
use crate::discovery::{fingerprint, tagged};
use crate::dispatch::Incoming;
use crate::document::{self, Published};
use crate::kind::join_group_version;
use crate::registry::Registry;

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
    let asked = path.strip_prefix("/openapi/v3/").unwrap_or_default();
    let found = registry
        .groups()
        .iter()
        .flat_map(|(group, versions)| versions.iter().map(move |version| (group, version)))
        .find(|(group, version)| document::path_of(group, version) == asked);
    match found {
        Some((group, version)) => {
            let body = made(cluster, &registry, group, version, asked);
            tagged(&incoming.headers, body, "application/json")
        }
        None => answer::text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

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
            entries
                .push((document::path_of(group, version), format!("{:016X}", fingerprint(text.as_bytes()))));
        }
    }
    let pairs = entries.iter().map(|(path, hash)| (path.as_str(), hash.as_str()));
    document::index(pairs).to_string().into()
}

fn made(cluster: &Cluster, registry: &Registry, group: &str, version: &str, path: &str) -> Bytes {
    let mut made = lock(&cluster.published.0);
    if made.generation != registry.generation {
        made.generation = registry.generation;
        made.documents.clear();
    }
    if let Some(document) = made.documents.get(path) {
        return document.clone();
    }
    drop(made);
    let name = join_group_version(group, version);
    let resources: Vec<_> = registry.resources(&name).into_iter().flatten().collect();
    let kinds: Vec<Published<'_>> = resources
        .iter()
        .map(|resource| {
            let schema: Option<&Value> = resource.version().map(|version| &version.schema);
            Published { kind: &resource.kind, schema }
        })
        .collect();
    let document = document::of_group_version(group, version, &kinds, "v1.34.2");
    let document = Bytes::from(document.to_string());
    lock(&cluster.published.0).documents.insert(path.to_owned(), document.clone());
    document
}

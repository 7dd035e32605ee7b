//! OpenAPI documents of the kinds that are served, made on request.

pub mod v2;
pub mod v3;

use std::collections::BTreeMap;
use std::sync::Mutex;

use axum::body::Body;
use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use crate::fingerprint::fingerprint;
use crate::kind::join_group_version;
use crate::registry::Resources;
use crate::response;
use crate::response::tagged;
use crate::sync::lock;
use v3::Published;

/// Answers `/openapi/…`. A document is made when it is asked for and kept until what is served changes.
#[derive(Debug, Default)]
pub(crate) struct OpenApi {
    documents: Mutex<Documents>,
}

#[derive(Debug, Default)]
struct Documents {
    generation: u64,
    by_path: BTreeMap<String, Bytes>,
}

impl OpenApi {
    pub(crate) fn answer(&self, served: &Resources, path: &str, headers: &HeaderMap) -> Response<Body> {
        if path == "/openapi/v3" {
            return tagged(headers, index(served), "application/json");
        }
        if path == "/openapi/v2" {
            return self.answer_v2(served, headers);
        }
        let asked = path.strip_prefix("/openapi/v3/").unwrap_or_default();
        let found = group_versions(served).find(|(group, version)| v3::path_of(group, version) == asked);
        match found {
            Some((group, version)) => {
                let body =
                    self.document(served, asked, || document(served, group, version).to_string().into());
                tagged(headers, body, "application/json")
            }
            None => response::text(StatusCode::NOT_FOUND, "404 page not found\n"),
        }
    }

    /// Returns the document of everything in version 2, as JSON or as protobuf.
    fn answer_v2(&self, served: &Resources, headers: &HeaderMap) -> Response<Body> {
        let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
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
        let body = self.document(served, content_type, || {
            let documents = group_versions(served).map(|(group, version)| document(served, group, version));
            let document = v2::of_documents(documents);
            if content_type == v2::PROTOBUF {
                v2::to_protobuf(&document).into()
            } else {
                document.to_string().into()
            }
        });
        tagged(headers, body, content_type)
    }

    /// Returns a document that was made before, or makes it.
    fn document(&self, served: &Resources, name: &str, make: impl FnOnce() -> Bytes) -> Bytes {
        let mut documents = lock(&self.documents);
        if documents.generation != served.generation {
            documents.generation = served.generation;
            documents.by_path.clear();
        }
        if let Some(document) = documents.by_path.get(name) {
            return document.clone();
        }
        drop(documents);
        let document = make();
        lock(&self.documents).by_path.insert(name.to_owned(), document.clone());
        document
    }
}

fn group_versions(served: &Resources) -> impl Iterator<Item = (&String, &String)> {
    served.groups().iter().flat_map(|(group, versions)| versions.iter().map(move |version| (group, version)))
}

/// Another name of the protobuf form, which clients ask with.
const PROTOBUF_ALIAS: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// Returns the list of documents. What is published for a group and version changes with its kinds.
fn index(served: &Resources) -> Bytes {
    let mut entries = Vec::new();
    for (group, versions) in served.groups() {
        for version in versions {
            let name = join_group_version(group, version);
            let resources = served.resources(&name);
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

fn document(served: &Resources, group: &str, version: &str) -> Value {
    let name = join_group_version(group, version);
    let resources: Vec<_> = served.resources(&name).into_iter().flatten().collect();
    let kinds: Vec<Published<'_>> = resources
        .iter()
        .map(|resource| {
            let schema: Option<&Value> = resource.version().map(|version| &version.schema);
            Published { kind: &resource.kind, schema }
        })
        .collect();
    v3::of_group_version(group, version, &kinds, "v1.34.2")
}

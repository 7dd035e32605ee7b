//! Requests to the API server, and what their errors say.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long one answer is waited for.
const PATIENCE: Duration = Duration::from_mins(1);

/// How many objects a page of a list has.
const PAGE: usize = 500;

/// The field manager of everything that a release writes, which is Helm's.
pub(crate) const MANAGER: &str = "helm";

/// What asks for lists of metadata.
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Sends requests of one client.
#[derive(Clone)]
pub(crate) struct Requests {
    client: Client,
}

/// A request that did not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{method} {path}: {message}")]
pub struct RequestError {
    /// The method.
    pub method: &'static str,
    /// The path with its query.
    pub path: String,
    /// The status; 0 when there was no answer.
    pub code: u16,
    /// What the API server said, or why there was no answer.
    pub message: String,
}

/// What a list of metadata is read for. The rest, such as who owns which field, is far larger.
#[derive(Debug, Deserialize)]
pub(crate) struct Labelled {
    pub(crate) name: String,
    /// Which write of the object this is.
    #[serde(default, rename = "resourceVersion")]
    pub(crate) resource_version: String,
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// A page of a list of metadata.
#[derive(Deserialize)]
struct Page {
    metadata: PageMeta,
    items: Option<Vec<PageItem>>,
}

#[derive(Deserialize)]
struct PageMeta {
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct PageItem {
    metadata: Labelled,
}

/// The kind of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Merge,
    Strategic,
}

impl Requests {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns an object, or none if there is no such object.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Value>, RequestError> {
        match self.send(Method::GET, path, None, Vec::new()).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes an object in a collection.
    pub(crate) async fn create(&self, collection: &str, object: &Value) -> Result<Value, RequestError> {
        let path = format!("{collection}?fieldManager={MANAGER}");
        self.send(Method::POST, &path, Some("application/json"), bytes(object)).await
    }

    /// Replaces an object.
    pub(crate) async fn replace(&self, path: &str, object: &Value) -> Result<Value, RequestError> {
        let path = format!("{path}?fieldManager={MANAGER}");
        self.send(Method::PUT, &path, Some("application/json"), bytes(object)).await
    }

    /// Changes an object.
    pub(crate) async fn patch(
        &self,
        path: &str,
        kind: PatchKind,
        change: &Value,
    ) -> Result<Value, RequestError> {
        let content_type = match kind {
            PatchKind::Merge => "application/merge-patch+json",
            PatchKind::Strategic => "application/strategic-merge-patch+json",
        };
        let path = format!("{path}?fieldManager={MANAGER}");
        self.send(Method::PATCH, &path, Some(content_type), bytes(change)).await
    }

    /// Returns what would become of an object if `manager` applied this one. Nothing is changed.
    pub(crate) async fn tried(
        &self,
        path: &str,
        manager: &str,
        object: &Value,
    ) -> Result<Value, RequestError> {
        let path = format!("{path}?fieldManager={manager}&force=true&dryRun=All");
        self.send(Method::PATCH, &path, Some("application/apply-patch+yaml"), bytes(object)).await
    }

    /// Deletes an object and, in the background, what it owns; returns whether there was one.
    pub(crate) async fn delete(&self, path: &str) -> Result<bool, RequestError> {
        let options = json!({ "propagationPolicy": "Background" });
        match self.send(Method::DELETE, path, Some("application/json"), bytes(&options)).await {
            Ok(_) => Ok(true),
            Err(error) if error.code == 404 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the names and labels of all objects of a collection that `selector` fits.
    pub(crate) async fn labelled(
        &self,
        collection: &str,
        selector: &str,
    ) -> Result<Vec<Labelled>, RequestError> {
        let mut items = Vec::new();
        let mut next = String::new();
        loop {
            let path = format!("{collection}?labelSelector={}&limit={PAGE}{next}", encoded(selector));
            let request = Request::get(&path).header(http::header::ACCEPT, METADATA_LIST).body(Vec::new());
            let page: Page = self.answer("GET", &path, request).await?;
            items.extend(page.items.into_iter().flatten().map(|item| item.metadata));
            match page.metadata.next {
                Some(token) if !token.is_empty() => next = format!("&continue={}", encoded(&token)),
                Some(_) | None => return Ok(items),
            }
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: Option<&str>,
        body: Vec<u8>,
    ) -> Result<Value, RequestError> {
        let name = name_of(&method);
        let mut request = Request::builder().method(method).uri(path);
        if let Some(content_type) = content_type {
            request = request.header(http::header::CONTENT_TYPE, content_type);
        }
        self.answer(name, path, request.body(body)).await
    }

    async fn answer<T: DeserializeOwned>(
        &self,
        method: &'static str,
        path: &str,
        request: http::Result<Request<Vec<u8>>>,
    ) -> Result<T, RequestError> {
        let failed =
            |code: u16, message: String| RequestError { method, path: path.to_owned(), code, message };
        let request = request.map_err(|error| failed(0, error.to_string()))?;
        match tokio::time::timeout(PATIENCE, self.client.request::<T>(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(kube::Error::Api(status))) => Err(failed(status.code, status.message.clone())),
            Ok(Err(error)) => Err(failed(0, chain(&error))),
            Err(_) => Err(failed(0, format!("no answer within {} s", PATIENCE.as_secs()))),
        }
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn name_of(method: &Method) -> &'static str {
    match method.as_str() {
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "GET",
    }
}

/// Returns an error with all that led to it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// Returns `text` as it stands in a query.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            for digit in [byte >> 4, byte & 15] {
                encoded
                    .extend(char::from_digit(u32::from(digit), 16).map(|digit| digit.to_ascii_uppercase()));
            }
        }
        encoded
    })
}

//! Requests to the API server: how they are encoded and sent, and what their errors say.

use std::borrow::Cow;
use std::time::Duration;

use engine::{Failure, FailureKind};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Collected};
use kube::Client;
use kube::client::Body;
use kube::core::response::StatusCause;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::rate_limit::Turn;
use super::refusal::without_values;

/// How long one answer is waited for, from the time at which the limit of the operator lets the request pass.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The field manager of everything that a release writes, which is Helm's.
pub(crate) const MANAGER: &str = "helm";

/// The reason of an answer that says that there is such an object.
pub(super) const ALREADY_THERE: &str = "AlreadyExists";

/// Asks that the answer to a write has only the metadata of the object: who wrote it knows the rest. An API server that
/// can't do so answers with all of it.
const WRITTEN: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// What a value in a query may hold as it is: the unreserved characters of RFC 3986.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What a segment of a path may hold as it is. Names of RBAC objects have colons.
const SEGMENT: &AsciiSet = &QUERY.remove(b':').remove(b'@').remove(b'+').remove(b'=').remove(b'$');

/// Sends requests of one client.
#[derive(Clone)]
pub(crate) struct Requests {
    client: Client,
}

/// A request that did not work. Its text names the method and the path with its query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{method} {path}: {cause}")]
pub struct RequestError {
    method: &'static str,
    path: Box<str>,
    cause: Cause,
}

/// Why a request did not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cause {
    /// The API server refused it with a `Status`.
    #[error("{message}")]
    Refused { code: u16, reason: Box<str>, message: String, causes: Box<[StatusCause]> },
    /// It was refused without a `Status`, as proxies do.
    #[error("{body}")]
    Rejected { code: u16, body: String },
    /// There was no answer in time.
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
    /// The API server can't be reached.
    #[error("{0}")]
    NoConnection(String),
    /// The answer can't be read, or not to its end.
    #[error("{0}")]
    Unreadable(String),
}

impl RequestError {
    pub(crate) fn new(method: &'static str, path: &str, cause: Cause) -> Self {
        Self { method, path: path.into(), cause }
    }

    /// Returns the status of the answer; 0 when there was none.
    pub fn code(&self) -> u16 {
        match self.cause {
            Cause::Refused { code, .. } | Cause::Rejected { code, .. } => code,
            Cause::Late(_) | Cause::NoConnection(_) | Cause::Unreadable(_) => 0,
        }
    }

    /// Returns whether there is such an object already. A conflict with a quota has the same code and says nothing of
    /// the object.
    pub(crate) fn is_already_there(&self) -> bool {
        matches!(&self.cause, Cause::Refused { code: 409, reason, .. } if &**reason == ALREADY_THERE)
    }

    /// Returns what is wrong with which field, as far as the API server says so. Values are left out.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        let causes = if let Cause::Refused { causes, .. } = &self.cause { &**causes } else { &[] };
        causes.iter().map(|cause| (cause.field.as_str(), without_values(&cause.message)))
    }

    /// Returns whether an object was refused because its namespace is being deleted.
    pub(crate) fn is_terminating(&self) -> bool {
        matches!(&self.cause, Cause::Refused { causes, .. } if says_terminating(causes))
    }

    /// Returns whether an object was refused because there is no such namespace.
    pub(crate) fn is_without_namespace(&self) -> bool {
        matches!(&self.cause, Cause::Refused { code: 404, message, .. } if message.starts_with("namespaces \""))
    }

    /// Returns why the request did not work.
    pub(crate) fn cause(&self) -> &Cause {
        &self.cause
    }
}

/// Returns whether an object was refused because its namespace is being deleted.
pub(super) fn says_terminating(causes: &[StatusCause]) -> bool {
    causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// What is sent with a request.
struct Sent<'s> {
    content_type: Option<&'s str>,
    body: Vec<u8>,
    /// The form of the answer, if not the usual one.
    accept: Option<&'static str>,
}

/// As much as is read of an object that was written.
#[derive(Default, Deserialize)]
struct Written {
    #[serde(default)]
    metadata: WrittenMetadata,
}

#[derive(Default, Deserialize)]
struct WrittenMetadata {
    #[serde(default, rename = "resourceVersion")]
    version: String,
    #[serde(default)]
    uid: String,
}

/// An object that was made.
pub(crate) struct Made {
    /// Which write of it that is.
    pub(crate) version: String,
    /// Its identity.
    pub(crate) uid: String,
}

impl Written {
    fn version(self) -> String {
        self.metadata.version
    }
}

/// The kind of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Merge,
    Strategic,
}

impl PatchKind {
    fn content_type(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
        }
    }
}

impl Requests {
    /// Returns requests that `client` sends.
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Returns an object, or none if there is no such object.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Value>, RequestError> {
        match self.send(Method::GET, path, None, Vec::new()).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.code() == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes an object in a collection.
    pub(crate) async fn create(&self, collection: &str, object: &Value) -> Result<Value, RequestError> {
        let path = format!("{collection}?fieldManager={MANAGER}");
        self.send(Method::POST, &path, Some("application/json"), bytes(object)).await
    }

    /// Makes an object in a collection, and returns which write of it that is.
    pub(crate) async fn make(&self, collection: &str, object: &Value) -> Result<String, RequestError> {
        self.make_known(collection, object).await.map(|made| made.version)
    }

    /// Makes an object in a collection, and returns which one that is.
    pub(crate) async fn make_known(&self, collection: &str, object: &Value) -> Result<Made, RequestError> {
        let path = format!("{collection}?fieldManager={MANAGER}");
        let sent =
            Sent { content_type: Some("application/json"), body: bytes(object), accept: Some(WRITTEN) };
        let Written { metadata } = self.ask(Method::POST, &path, sent).await?;
        Ok(Made { version: metadata.version, uid: metadata.uid })
    }

    /// Changes an object, and returns which write of it that is.
    pub(crate) async fn edit(
        &self,
        path: &str,
        kind: PatchKind,
        change: &Value,
    ) -> Result<String, RequestError> {
        let path = format!("{path}?fieldManager={MANAGER}");
        let sent =
            Sent { content_type: Some(kind.content_type()), body: bytes(change), accept: Some(WRITTEN) };
        self.ask(Method::PATCH, &path, sent).await.map(Written::version)
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
        let path = format!("{path}?fieldManager={MANAGER}");
        self.send(Method::PATCH, &path, Some(kind.content_type()), bytes(change)).await
    }

    /// Returns what would become of an object if it was changed like this. Nothing is changed.
    pub(crate) async fn dry_run_patch(
        &self,
        path: &str,
        kind: PatchKind,
        change: &Value,
    ) -> Result<Value, RequestError> {
        let path = format!("{path}?fieldManager={MANAGER}&dryRun=All");
        self.send(Method::PATCH, &path, Some(kind.content_type()), bytes(change)).await
    }

    /// Applies an object in the name of `manager`, whoever has its fields; makes it if there is none.
    pub(crate) async fn apply(
        &self,
        path: &str,
        manager: &str,
        object: &Value,
    ) -> Result<Value, RequestError> {
        let path = format!("{path}?fieldManager={manager}&force=true");
        self.send(Method::PATCH, &path, Some("application/apply-patch+yaml"), bytes(object)).await
    }

    /// Returns what would become of an object if `manager` applied this one. Nothing is changed.
    pub(crate) async fn dry_run_apply(
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
        Ok(self.delete_any(path).await?.is_some())
    }

    /// Deletes an object like [`Self::delete`], and returns the `uid` of the one that it was; `None` if there was none.
    pub(crate) async fn delete_any(&self, path: &str) -> Result<Option<String>, RequestError> {
        let answer = self.delete_with(path, &json!({ "propagationPolicy": "Background" })).await?;
        // While something holds it, the answer is the object. Otherwise it is a status that names it.
        let uid = |answer: &Value| {
            let uid = answer.pointer("/metadata/uid").or_else(|| answer.pointer("/details/uid"));
            uid.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Ok(answer.as_ref().map(uid))
    }

    /// Deletes an object like [`Self::delete`] if it is the one with this `uid`, and none that took its place;
    /// returns whether it was.
    pub(crate) async fn delete_this(&self, path: &str, uid: &str) -> Result<bool, RequestError> {
        let options = json!({ "propagationPolicy": "Background", "preconditions": { "uid": uid } });
        match self.delete_with(path, &options).await {
            Ok(answer) => Ok(answer.is_some()),
            Err(error) if error.code() == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn delete_with(&self, path: &str, options: &Value) -> Result<Option<Value>, RequestError> {
        match self.send(Method::DELETE, path, Some("application/json"), bytes(options)).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.code() == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: Option<&str>,
        body: Vec<u8>,
    ) -> Result<Value, RequestError> {
        self.ask(method, path, Sent { content_type, body, accept: None }).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        sent: Sent<'_>,
    ) -> Result<T, RequestError> {
        let name = name_of(&method);
        let failed = |cause| RequestError::new(name, path, cause);
        let mut request = Request::builder().method(method).uri(path);
        if let Some(content_type) = sent.content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        if let Some(accept) = sent.accept {
            request = request.header(ACCEPT, accept);
        }
        let turn = Turn::default();
        let request = request.extension(turn.clone()).body(sent.body);
        let request = request.map_err(|error| failed(Cause::Unreadable(error.to_string())))?;
        match turn.answer(PATIENCE, self.client.request(request)).await {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(kube::Error::Api(status))) => {
                let (reason, message) =
                    (status.reason.as_str().into(), without_values(&status.message).into_owned());
                let causes = status.details.map(|details| details.causes.into()).unwrap_or_default();
                Err(failed(Cause::Refused { code: status.code, reason, message, causes }))
            }
            Some(Err(error)) => Err(failed(no_connection(&error))),
            None => Err(failed(Cause::Late(PATIENCE))),
        }
    }

    /// Sends a GET and returns the answer as soon as its head is there; its body is read by the caller. The head may take
    /// `patience`, from the time at which the limit of the operator lets the request pass.
    pub(crate) async fn open(
        &self,
        path: &str,
        accept: &str,
        patience: Duration,
    ) -> Result<Response<Body>, RequestError> {
        let failed = |cause| RequestError::new("GET", path, cause);
        let turn = Turn::default();
        let request = Request::get(path).header(ACCEPT, accept).extension(turn.clone()).body(Body::empty());
        let request = request.map_err(|error| failed(Cause::Unreadable(error.to_string())))?;
        let response = turn.answer(patience, self.client.send(request)).await;
        let response = response.ok_or_else(|| failed(Cause::Late(patience)))?;
        let response = response.map_err(|error| failed(no_connection(&error)))?;
        let code = response.status().as_u16();
        if response.status().is_success() {
            return Ok(response);
        }
        let body = response.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
        let status: Option<Value> = serde_json::from_slice(&body).ok();
        let text = |key| status.as_ref()?.get(key)?.as_str().map(str::to_owned);
        Err(failed(match text("message") {
            Some(message) => {
                let reason = text("reason").unwrap_or_default().into();
                Cause::Refused { code, reason, message, causes: Box::default() }
            }
            None => Cause::Rejected { code, body: String::from_utf8_lossy(&body).trim().to_owned() },
        }))
    }
}

impl Requests {
    /// Returns the text that a GET is answered with, `longest` bytes of it at most. What is no UTF-8 is replaced.
    pub(crate) async fn text(&self, path: &str, longest: usize) -> Result<String, RequestError> {
        let mut body = self.open(path, "*/*", PATIENCE).await?.into_body();
        let unreadable = |error: String| RequestError::new("GET", path, Cause::Unreadable(error));
        let mut read = Vec::new();
        let reading = async {
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| unreadable(error.to_string()))?;
                read.extend(frame.into_data().unwrap_or_default());
                if read.len() >= longest {
                    break;
                }
            }
            Ok(())
        };
        let late = || RequestError::new("GET", path, Cause::Late(PATIENCE));
        tokio::time::timeout(PATIENCE, reading).await.map_err(|_| late())??;
        read.truncate(longest);
        Ok(String::from_utf8_lossy(&read).into_owned())
    }
}

fn no_connection(error: &kube::Error) -> Cause {
    Cause::NoConnection(Failure::of(FailureKind::Cluster, error).to_string())
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

/// Returns `text` as the value of a parameter in a query.
pub(crate) fn encode_query(text: &str) -> String {
    utf8_percent_encode(text, QUERY).to_string()
}

/// Returns `text` as a segment of a path.
pub(crate) fn encode_segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

//! The requests of a watch: pages of a list, and lines of changes.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use engine::snapshot::Key;
use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// How many objects the first page of a list has.
const FIRST_PAGE: usize = 100;

/// How large further pages shall be, in bytes, and how many objects they may have.
const PAGE_BYTES: usize = 512 * 1024;
const SMALLEST_PAGE: usize = 10;
const LARGEST_PAGE: usize = 1_000;

/// How long the API server keeps a watch open. A connection that died in silence is found soon after.
const WATCH_SECONDS: u64 = 50;

/// How long after that an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(WATCH_SECONDS + 8);

/// How long the API server may take to answer, and a page to come to its end.
const PAGE_PATIENCE: Duration = Duration::from_secs(30);

/// The objects of one request path.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// `/api/v1/namespaces/web/pods`.
    path: String,
    /// The selectors, encoded, each behind `&`.
    query: String,
}

/// Why a request did not work.
#[derive(Debug)]
pub(crate) enum StreamError {
    /// The list must be read again: the change that we know last is forgotten.
    Expired,
    /// There is no such kind.
    Gone,
    /// Nothing comes, not even the end of the watch: its connection is dead.
    Silent,
    /// Anything else.
    Failed(String),
}

impl std::fmt::Display for StreamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Expired => f.write_str("the API server has forgotten the version"),
            Self::Gone => f.write_str("the kind does not exist"),
            Self::Silent => f.write_str("the watch is silent; its connection is dead"),
            Self::Failed(error) => f.write_str(error),
        }
    }
}

#[derive(Deserialize)]
struct RawPage<'a> {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
struct PageMeta {
    #[serde(default, rename = "resourceVersion")]
    version: String,
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

/// One line of a watch.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub(crate) event: String,
    /// The object, or a status after `ERROR`.
    pub(crate) object: Bytes,
    /// What is known of the object without reading all of it.
    pub(crate) head: Head,
}

#[derive(Deserialize)]
struct RawLine<'a> {
    #[serde(rename = "type")]
    event: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// What tells objects and their states apart.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Head {
    #[serde(default)]
    metadata: HeadMeta,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct HeadMeta {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default, rename = "resourceVersion")]
    version: Option<String>,
}

impl Head {
    /// Reads the beginning of an object.
    pub(crate) fn of(object: &[u8]) -> Result<Self, StreamError> {
        serde_json::from_slice(object).map_err(|error| StreamError::Failed(error.to_string()))
    }

    /// Returns where the object is.
    pub(crate) fn key(&self) -> Key {
        Key::new(self.metadata.namespace.as_deref().unwrap_or_default(), self.name())
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Returns its version.
    pub(crate) fn version(&self) -> &str {
        self.metadata.version.as_deref().unwrap_or_default()
    }
}

impl Source {
    /// Returns the objects behind `path` that the selectors in `query` leave over.
    pub(crate) fn new(path: &str, query: &str) -> Self {
        Self { path: path.to_owned(), query: query.to_owned() }
    }

    /// Begins to read all objects, page by page.
    pub(crate) fn pages(&self, client: &Client) -> Pages {
        Pages {
            source: self.clone(),
            client: client.clone(),
            next: Some(String::new()),
            limit: FIRST_PAGE,
            version: String::new(),
        }
    }

    /// Opens a watch behind `version`.
    pub(crate) async fn watch(&self, client: &Client, version: &str) -> Result<Changes, StreamError> {
        let version = encode(version);
        let uri = format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}{}",
            self.path, self.query
        );
        let response = self.get(client, &uri, PAGE_PATIENCE).await?;
        Ok(Changes { body: response.into_body(), rest: BytesMut::new(), looked_at: 0 })
    }

    async fn get(
        &self,
        client: &Client,
        uri: &str,
        patience: Duration,
    ) -> Result<http::Response<Body>, StreamError> {
        let failed = StreamError::Failed;
        let request = Request::get(uri).body(Body::empty()).map_err(|error| failed(error.to_string()))?;
        let response = tokio::time::timeout(patience, client.send(request)).await;
        let response = response.map_err(|_| failed("the API server does not answer".to_owned()))?;
        let response =
            response.map_err(|error| failed(crate::cluster::failure("no connection", &error).to_string()))?;
        match response.status().as_u16() {
            200..=299 => Ok(response),
            404 => Err(StreamError::Gone),
            410 => Err(StreamError::Expired),
            status => {
                let body = response
                    .into_body()
                    .collect()
                    .await
                    .map(http_body_util::Collected::to_bytes)
                    .unwrap_or_default();
                let said: Option<Value> = serde_json::from_slice(&body).ok();
                let message = said.as_ref().and_then(|said| said.get("message")).and_then(Value::as_str);
                Err(failed(message.map_or_else(|| format!("status {status}"), ToOwned::to_owned)))
            }
        }
    }
}

/// A list that is read page by page.
pub(crate) struct Pages {
    source: Source,
    client: Client,
    /// The token of the next page, empty for the first; `None` behind the last.
    next: Option<String>,
    limit: usize,
    version: String,
}

impl Pages {
    /// Returns the objects of the next page; `None` behind the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Bytes>>, StreamError> {
        let Some(token) = self.next.take() else { return Ok(None) };
        let token = if token.is_empty() { token } else { format!("&continue={}", encode(&token)) };
        let uri = format!("{}?limit={}{}{token}", self.source.path, self.limit, self.source.query);
        let response = self.source.get(&self.client, &uri, PAGE_PATIENCE).await?;
        let bytes = tokio::time::timeout(PAGE_PATIENCE, response.into_body().collect()).await;
        let bytes = bytes.map_err(|_| StreamError::Failed("the list did not come to its end".to_owned()))?;
        let bytes = bytes.map_err(|error| StreamError::Failed(error.to_string()))?.to_bytes();
        let page: RawPage<'_> =
            serde_json::from_slice(&bytes).map_err(|error| StreamError::Failed(error.to_string()))?;
        let items = page.items.unwrap_or_default();
        let items: Vec<Bytes> =
            items.into_iter().map(|item| bytes.slice_ref(item.get().as_bytes())).collect();
        let size = bytes.len().checked_div(items.len()).unwrap_or(0).max(1);
        self.limit = (PAGE_BYTES / size).clamp(SMALLEST_PAGE, LARGEST_PAGE);
        self.version = page.metadata.version;
        self.next = page.metadata.next.filter(|next| !next.is_empty());
        Ok(Some(items))
    }

    /// Returns the version of the list, behind which to follow.
    pub(crate) fn into_version(self) -> String {
        self.version
    }
}

/// The changes of an open watch.
#[derive(Debug)]
pub(crate) struct Changes {
    body: Body,
    /// What came behind the last whole line.
    rest: BytesMut,
    /// How much of the rest is known to hold no end of a line.
    looked_at: usize,
}

impl Changes {
    /// Returns the next changes, at least one; `None` when the API server ended the watch as it does from time to
    /// time. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Line>>, StreamError> {
        loop {
            let lines = self.split()?;
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            match frame.map_err(|_| StreamError::Silent)? {
                None => return Ok(None),
                Some(Err(error)) => return Err(StreamError::Failed(error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(mut data) = frame.into_data() {
                        self.rest.extend_from_slice(&data.copy_to_bytes(data.remaining()));
                    }
                }
            }
        }
    }

    /// Takes the whole lines out of what came.
    fn split(&mut self) -> Result<Vec<Line>, StreamError> {
        let mut lines = Vec::new();
        while let Some(end) =
            self.rest.get(self.looked_at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n'))
        {
            let line = self.rest.split_to(self.looked_at + end + 1).freeze();
            self.looked_at = 0;
            if !line.trim_ascii().is_empty() {
                lines.push(read_line(&line)?);
            }
        }
        self.looked_at = self.rest.len();
        if self.rest.is_empty() && self.rest.capacity() > 0 {
            // The lines hold on to the buffer; another one begins with the next.
            self.rest = BytesMut::new();
        }
        Ok(lines)
    }
}

fn read_line(line: &Bytes) -> Result<Line, StreamError> {
    let failed = |error: serde_json::Error| StreamError::Failed(error.to_string());
    let raw: RawLine<'_> = serde_json::from_slice(line).map_err(failed)?;
    let object = line.slice_ref(raw.object.get().as_bytes());
    let head = if raw.event == "ERROR" { Head::default() } else { Head::of(&object)? };
    Ok(Line { event: raw.event, object, head })
}

/// Returns what a line with an error says.
pub(crate) fn watch_error(status: &[u8]) -> StreamError {
    let status: Value = serde_json::from_slice(status).unwrap_or_default();
    if status.get("code").and_then(Value::as_u64) == Some(410) {
        return StreamError::Expired;
    }
    let message = status.get("message").and_then(Value::as_str).unwrap_or("the watch ended with an error");
    StreamError::Failed(message.to_owned())
}

/// Returns `text` as it stands in a query.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

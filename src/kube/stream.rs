//! The requests of a watch: pages of a list, and lines of changes.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// How many objects a page has.
const PAGE: usize = 500;

/// How long the API server keeps a watch open. A connection that died in silence is found soon after.
const WATCH_SECONDS: u64 = 50;

/// How long after that an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(WATCH_SECONDS + 8);

/// How long a page may take.
const PAGE_PATIENCE: Duration = Duration::from_mins(1);

/// The objects of one request path.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// `/api/v1/namespaces/web/pods`.
    pub(super) path: String,
    /// The selectors, encoded.
    pub(super) query: String,
    /// What objects of lists leave out.
    pub(super) api_version: String,
    pub(super) kind: String,
}

/// Why a request did not work.
#[derive(Debug)]
pub(super) enum StreamError {
    /// The list must be read again: the change that we know last is forgotten.
    Expired,
    /// There is no such kind.
    Gone,
    /// Anything else.
    Failed(String),
}

/// One page of a list.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) items: Vec<Value>,
    pub(super) version: String,
    pub(super) next: Option<String>,
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
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    #[serde(rename = "type")]
    pub(super) event: String,
    pub(super) object: Value,
}

impl Source {
    /// Reads the page that `next` leads to, the first without it.
    pub(super) async fn page(&self, client: &Client, next: Option<&str>) -> Result<Page, StreamError> {
        let next = next.map(|next| format!("&continue={}", encode(next))).unwrap_or_default();
        let uri = format!("{}?limit={PAGE}{}{next}", self.path, self.query);
        let response = self.get(client, &uri, PAGE_PATIENCE).await?;
        let bytes = tokio::time::timeout(PAGE_PATIENCE, response.into_body().collect()).await;
        let bytes = bytes.map_err(|_| StreamError::Failed("the list did not come to its end".to_owned()))?;
        let bytes = bytes.map_err(|error| StreamError::Failed(error.to_string()))?.to_bytes();
        let raw: RawPage<'_> =
            serde_json::from_slice(&bytes).map_err(|error| StreamError::Failed(error.to_string()))?;
        let items = raw.items.unwrap_or_default().into_iter().map(|item| self.complete(item.get()));
        let items = items.collect::<Result<_, _>>()?;
        Ok(Page {
            items,
            version: raw.metadata.version,
            next: raw.metadata.next.filter(|next| !next.is_empty()),
        })
    }

    /// Opens a watch behind `version`.
    pub(super) async fn watch(&self, client: &Client, version: &str) -> Result<Changes, StreamError> {
        let version = encode(version);
        let uri = format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}{}",
            self.path, self.query
        );
        let response = self.get(client, &uri, PAGE_PATIENCE).await?;
        Ok(Changes { body: response.into_body(), rest: BytesMut::new(), lines: VecDeque::new() })
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

    /// Returns an object of a list with the kind that lists leave out.
    fn complete(&self, text: &str) -> Result<Value, StreamError> {
        let mut object: Value =
            serde_json::from_str(text).map_err(|error| StreamError::Failed(error.to_string()))?;
        if let Value::Object(fields) = &mut object {
            fields.entry("apiVersion").or_insert_with(|| self.api_version.clone().into());
            fields.entry("kind").or_insert_with(|| self.kind.clone().into());
        }
        Ok(object)
    }
}

/// The changes of an open watch.
#[derive(Debug)]
pub(super) struct Changes {
    body: Body,
    rest: BytesMut,
    lines: VecDeque<Line>,
}

impl Changes {
    /// Returns the next change; `None` when the API server ended the watch as it does from time to time.
    pub(super) async fn next(&mut self) -> Result<Option<Line>, StreamError> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Ok(Some(line));
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            let frame = frame
                .map_err(|_| StreamError::Failed("the watch is silent; its connection is dead".to_owned()))?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(StreamError::Failed(error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(mut data) = frame.into_data() {
                        self.rest.extend_from_slice(&data.copy_to_bytes(data.remaining()));
                        self.split()?;
                    }
                }
            }
        }
    }

    fn split(&mut self) -> Result<(), StreamError> {
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line = self.rest.split_to(end + 1);
            if line.trim_ascii().is_empty() {
                continue;
            }
            let line =
                serde_json::from_slice(&line).map_err(|error| StreamError::Failed(error.to_string()))?;
            self.lines.push_back(line);
        }
        Ok(())
    }
}

/// Returns `text` as it stands in a query.
pub(super) fn encode(text: &str) -> String {
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

//! A watch of one collection: it is opened, read line by line, and opened again when the API server ended it.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use engine::hook::WatchEvent;
use engine::snapshot::Key;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::error::WatchError;
use crate::cluster::list::Collection;
use crate::cluster::request::Requests;

/// How long the API server may take to answer, and a page of a list to come to its end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How many seconds longer than the API server keeps a watch open nothing may come. Then the connection died in silence.
const GRACE_SECONDS: u64 = 8;

/// How much later than a watch that the API server ended the next one is opened, at least.
const SHORTEST: Duration = Duration::from_secs(1);

/// A watch of one collection.
pub(crate) struct Watch {
    requests: Requests,
    collection: Collection,
    /// The version behind which it is opened: that of the last change.
    version: String,
    lines: Option<Lines>,
    not_before: Instant,
    /// The error that came behind the last changes.
    error: Option<WatchError>,
}

/// What a watch did.
#[derive(Debug)]
pub(crate) enum Progress {
    /// It was opened.
    Opened,
    /// Objects changed. There is no change when only the version moved.
    Changed(Vec<Change>),
    /// The API server ended it, as it does from time to time.
    Ended,
}

/// One change of an object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// What happened to the object.
    pub(crate) event: WatchEvent,
    /// Its JSON.
    pub(crate) object: Bytes,
    /// What is known of it without reading all of it.
    pub(crate) head: Head,
}

impl Watch {
    /// Returns a watch of what happens behind `version`; it is not open yet.
    pub(crate) fn new(requests: Requests, collection: Collection, version: String) -> Self {
        Self { requests, collection, version, lines: None, not_before: Instant::now(), error: None }
    }

    /// Returns whether changes are waited for; otherwise the next step opens the watch.
    pub(crate) fn is_open(&self) -> bool {
        self.lines.is_some()
    }

    /// Returns what happened next. After an error the next call opens the watch again, behind the last change.
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<Progress, WatchError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let Some(lines) = &mut self.lines else {
            sleep_until(self.not_before).await;
            let seconds = self.collection.watch_seconds();
            let path = self.collection.watch_path(&self.version, seconds);
            let response = self.requests.open(&path, self.collection.watch_accept(), PATIENCE).await?;
            self.lines = Some(Lines {
                body: response.into_body(),
                silence: Duration::from_secs(seconds + GRACE_SECONDS),
                rest: BytesMut::new(),
                looked_at: 0,
            });
            self.not_before = Instant::now() + SHORTEST;
            return Ok(Progress::Opened);
        };
        match lines.next().await {
            Ok(Some(lines)) => Ok(Progress::Changed(self.changes(lines))),
            Ok(None) => {
                self.lines = None;
                Ok(Progress::Ended)
            }
            Err(error) => {
                self.lines = None;
                self.not_before = Instant::now();
                Err(error)
            }
        }
    }

    /// Returns the changes in these lines, up to an error among them.
    fn changes(&mut self, lines: Vec<Line>) -> Vec<Change> {
        let mut changes = Vec::with_capacity(lines.len());
        for line in lines {
            let event = match line.event.as_str() {
                "ADDED" => Some(WatchEvent::Added),
                "MODIFIED" => Some(WatchEvent::Modified),
                "DELETED" => Some(WatchEvent::Deleted),
                "ERROR" => {
                    self.error = Some(WatchError::of_status(&line.object));
                    self.lines = None;
                    break;
                }
                // Bookmarks only move the version.
                _ => None,
            };
            if !line.head.version().is_empty() {
                line.head.version().clone_into(&mut self.version);
            }
            changes.extend(event.map(|event| Change { event, object: line.object, head: line.head }));
        }
        changes
    }
}

/// Waits until `at`. Even a sleep until now lasts until the next tick of the runtime's clock.
pub(super) async fn sleep_until(at: Instant) {
    if at > Instant::now() {
        tokio::time::sleep_until(at).await;
    }
}

/// One line of a watch.
struct Line {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    event: String,
    /// The object, or a status after `ERROR`.
    object: Bytes,
    head: Head,
}

#[derive(Deserialize)]
struct RawLine<'a> {
    #[serde(rename = "type")]
    event: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The identity and the version of an object.
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
    /// Reads the head of an object.
    pub(crate) fn of(object: &[u8]) -> Result<Self, WatchError> {
        Ok(serde_json::from_slice(object)?)
    }

    /// Returns where the object is.
    pub(crate) fn key(&self) -> Key {
        let HeadMeta { namespace, name, .. } = &self.metadata;
        Key::new(namespace.as_deref().unwrap_or_default(), name.as_deref().unwrap_or_default())
    }

    /// Returns the version of the object, which is empty where it has none.
    pub(crate) fn version(&self) -> &str {
        self.metadata.version.as_deref().unwrap_or_default()
    }
}

/// The lines of an open watch.
#[derive(Debug)]
struct Lines {
    body: Body,
    /// How long nothing may come.
    silence: Duration,
    /// What came behind the last whole line.
    rest: BytesMut,
    /// How much of the rest is known to hold no end of a line.
    looked_at: usize,
}

impl Lines {
    /// Returns the next lines, at least one; `None` when the API server ended the watch. Nothing is lost when the
    /// future is dropped.
    async fn next(&mut self) -> Result<Option<Vec<Line>>, WatchError> {
        loop {
            let lines = self.split()?;
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
            let frame = tokio::time::timeout(self.silence, self.body.frame()).await;
            match frame.map_err(|_| WatchError::Silent)? {
                None => return Ok(None),
                Some(Err(error)) => return Err(WatchError::Failed(error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(mut data) = frame.into_data() {
                        self.rest.extend_from_slice(&data.copy_to_bytes(data.remaining()));
                    }
                }
            }
        }
    }

    /// Takes the whole lines out of what came.
    fn split(&mut self) -> Result<Vec<Line>, WatchError> {
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

fn read_line(line: &Bytes) -> Result<Line, WatchError> {
    let raw: RawLine<'_> = serde_json::from_slice(line)?;
    let object = line.slice_ref(raw.object.get().as_bytes());
    let head = if raw.event == "ERROR" { Head::default() } else { Head::of(&object)? };
    Ok(Line { event: raw.event, object, head })
}

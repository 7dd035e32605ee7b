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

use super::backoff::sleep_until;
use super::error::WatchError;
use crate::cluster::list::Collection;
use crate::cluster::request::Requests;

/// How long the API server may take to answer, and a page of a list to come to its end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How many seconds longer than the API server keeps a watch open nothing may come. Then the connection died in silence.
const GRACE_SECONDS: u64 = 8;

/// How long a watch has to be open before it counts as one that works. No two are opened within that time either.
const SHORTEST: Duration = Duration::from_secs(1);

/// How long a watch has to live until it counts as steady.
const STEADY: Duration = Duration::from_secs(30);

/// How many lives in a row may be shorter than that. Connections break now and then.
const SHORT_LIVES: u32 = 4;

/// Whether a watch stays open once it works. Nothing is lost when it does not, but something is wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steadiness {
    /// How many short lives there were in a row.
    short_lives: u32,
}

impl Steadiness {
    /// Records that a watch that had worked came to its end after so long.
    fn end(&mut self, lived: Duration) {
        self.short_lives = if lived < STEADY { self.short_lives.saturating_add(1) } else { 0 };
    }

    fn is_lost(self) -> bool {
        self.short_lives > SHORT_LIVES
    }

    /// Returns how long the watch has to be open before it counts as one that works.
    fn proof(self) -> Duration {
        if self.is_lost() { STEADY } else { SHORTEST }
    }
}

/// A watch of one collection.
pub(crate) struct Watch {
    requests: Requests,
    collection: Collection,
    /// The version behind which it is opened: that of the last change.
    version: String,
    lines: Option<Lines>,
    /// Since when it is open.
    opened: Instant,
    /// Whether it has lasted, or has said something.
    lasts: bool,
    steadiness: Steadiness,
    not_before: Instant,
    /// The error that came behind the last changes.
    error: Option<WatchError>,
}

/// What a watch did.
#[derive(Debug)]
pub(crate) enum Progress {
    /// It was opened.
    Opened,
    /// It is open for long enough to call it one that works.
    Lasts,
    /// Objects changed. There is no change when only the version moved.
    Changed(Vec<Change>),
    /// The API server ended it, as it does from time to time.
    Ended,
    /// Its connection broke after it had worked. It is opened again where it was.
    Broke(WatchError),
    /// It works for a short time only, again and again. It is opened again where it was.
    Unsteady(WatchError),
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
        let now = Instant::now();
        Self {
            requests,
            collection,
            version,
            lines: None,
            opened: now,
            lasts: false,
            steadiness: Steadiness::default(),
            not_before: now,
            error: None,
        }
    }

    /// Returns the watch, which follows others that were as steady as this.
    #[must_use]
    pub(crate) fn after(self, steadiness: Steadiness) -> Self {
        Self { steadiness, ..self }
    }

    /// Returns how steady the watch is.
    pub(crate) fn steadiness(&self) -> Steadiness {
        self.steadiness
    }

    /// Returns whether it has been open for long enough, or has said something.
    pub(crate) fn lasts(&self) -> bool {
        self.lasts
    }

    /// Puts the next attempt to open it off.
    pub(crate) fn put_off(&mut self, until: Instant) {
        self.not_before = until;
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
            self.opened = Instant::now();
            self.lasts = false;
            self.not_before = self.opened + SHORTEST;
            return Ok(Progress::Opened);
        };
        let next = tokio::select! {
            biased;
            next = lines.next() => next,
            () = tokio::time::sleep_until(self.opened + self.steadiness.proof()), if !self.lasts => {
                self.lasts = true;
                return Ok(Progress::Lasts);
            }
        };
        match next {
            Ok(Some(lines)) => {
                let changes = self.changes(lines);
                if self.error.is_some() {
                    self.end();
                } else {
                    self.lasts |= !self.steadiness.is_lost();
                }
                Ok(Progress::Changed(changes))
            }
            Ok(None) if self.end() => {
                Ok(if self.steadiness.is_lost() { Progress::Unsteady(ends_often()) } else { Progress::Ended })
            }
            Ok(None) => Err(ended_at_once()),
            Err(error) if self.end() => Ok(match error {
                error if self.steadiness.is_lost() => Progress::Unsteady(error),
                error => Progress::Broke(error),
            }),
            Err(error) => Err(error),
        }
    }

    /// Records that the watch came to its end. Returns whether it had worked, if only for a short time.
    fn end(&mut self) -> bool {
        self.lines = None;
        let (lasted, lived) = (std::mem::take(&mut self.lasts), self.opened.elapsed());
        let has_worked = lasted || (self.steadiness.is_lost() && lived >= SHORTEST);
        if has_worked {
            self.steadiness.end(lived);
        }
        has_worked
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

fn ended_at_once() -> WatchError {
    WatchError::Unavailable("the API server ends the watch as soon as it is open".to_owned())
}

fn ends_often() -> WatchError {
    let seconds = STEADY.as_secs();
    WatchError::Unavailable(format!("the API server ends the watch within {seconds} s, again and again"))
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
                Some(Err(error)) => return Err(WatchError::Unreachable(error.to_string())),
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

//! Watches: a stream of lines, one for each change that the client selects.
//!
//! A watch holds no queue. It remembers the revision it has sent and reads what follows from the history; one that
//! is too slow finds its revision expired and ends, so that slow clients cost nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::Response;
use objects::selector::Selection;
use serde_json::{Value, json};
use tokio::sync::watch as signal;
use tokio::time::Instant;

use super::encoder::{ObjectEncoder, respond};
use super::list::{check_numbers, revision, selection, unread_revision};
use crate::request::RequestContext;
use crate::request::options::{invalid_options, not_supported};
use crate::status::{ApiError, Cause, Outcome};
use crate::storage::{CLOSED, Storage, Watcher};
use crate::store::{Event, Range, Stored, TableName, frame};

/// How many changes are read at once, so that one watch does not hold the store for long.
const BATCH: usize = 64;

/// Changes are put together up to this size when several wait.
const CHUNK: usize = 64 * 1024;

/// How long a watch lasts when the client names no time.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(45);

/// How often a client that wants bookmarks gets one.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);

/// Answers with a stream of changes; `name` limits it to one object.
pub(crate) fn watch(request: &RequestContext, name: Option<&str>) -> Outcome<Response<Body>> {
    check_numbers(request)?;
    let mut selection = selection(request)?;
    if let Some(name) = name {
        selection.fields =
            objects::selector::FieldSelector::parse(&format!("metadata.name={name}"), &[], false)
                .map_err(|error| ApiError::bad_request(error.to_string()))?;
    }
    let initial = wants_initial_events(request)?;
    let asked = revision(request).map_err(unread_revision)?;
    let timeout = request.query.number("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
    let timeout = timeout.filter(|&seconds| seconds > 0).map_or(DEFAULT_TIMEOUT, Duration::from_secs);
    let encoder = ObjectEncoder::of(request);
    let content_type = encoder.representation.content_type();
    let wake = request.cluster.storage.subscribe(&request.resource.table);
    let drops = request.cluster.faults.drops();
    let mut watch = Watch {
        storage: Arc::clone(&request.cluster.storage),
        table: Arc::clone(&request.resource.table),
        namespace: request.namespace.clone(),
        selection,
        encoder,
        cursor: 0,
        waiting: VecDeque::new(),
        wake,
        watcher: request.cluster.storage.add_watcher(&request.resource.table),
        drops,
        deadline: Instant::now() + timeout,
        bookmark: request.query.flag("allowWatchBookmarks").then(|| Instant::now() + BOOKMARK_INTERVAL),
        sent_any: false,
        ended: false,
    };
    if request.cluster.registry.serves(&request.resource) {
        watch.begin(asked, initial, request.query.flag("allowWatchBookmarks"));
    } else {
        watch.ended = true;
    }
    let lines = futures::stream::unfold(watch, |mut watch| async {
        let chunk = watch.next().await?;
        Some((Ok::<_, std::convert::Infallible>(chunk), watch))
    });
    let mut answer = respond(200, content_type, Body::from_stream(lines))?;
    answer.extensions_mut().insert(crate::response::Endless);
    Ok(answer)
}

/// Returns whether the present objects are sent first and a bookmark after them.
fn wants_initial_events(request: &RequestContext) -> Outcome<bool> {
    let query = &request.query;
    let (wanted, matching) = (query.switch("sendInitialEvents"), query.text("resourceVersionMatch"));
    let mut causes = Vec::new();
    let mut forbid = |why: &str| {
        causes.push(Cause {
            reason: "FieldValueForbidden".into(),
            message: format!("Forbidden: {why}"),
            field: "resourceVersionMatch".into(),
        });
    };
    if wanted.is_some() && matching != Some("NotOlderThan") {
        forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
    if matching.is_some() && wanted.is_none() {
        forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
    // A watch from no revision begins with what is there, as if that had been asked for.
    let from_now = matches!(query.text("resourceVersion"), None | Some("0"));
    if (matching.is_some() || from_now) && query.text("continue").is_some() {
        forbid("resourceVersionMatch is forbidden when continue is provided");
    }
    if let Some(other) = matching.filter(|matching| *matching != "NotOlderThan") {
        causes.push(not_supported("resourceVersionMatch", &format!("{other:?}"), &["NotOlderThan"]));
    }
    if causes.is_empty() { Ok(wanted.unwrap_or(false)) } else { Err(invalid_options("ListOptions", causes)) }
}

/// A line that waits to be sent.
enum Line {
    /// It is as it is sent.
    Ready(Bytes),
    /// An object that a webhook has to convert before, with the word for its change.
    Unconverted(&'static str, Bytes),
}

struct Watch {
    storage: Arc<Storage>,
    table: TableName,
    namespace: Option<String>,
    selection: Selection,
    encoder: ObjectEncoder,
    /// Everything up to this revision has been sent.
    cursor: u64,
    waiting: VecDeque<Line>,
    wake: signal::Receiver<u64>,
    watcher: Arc<Watcher>,
    drops: signal::Receiver<u64>,
    deadline: Instant,
    bookmark: Option<Instant>,
    sent_any: bool,
    ended: bool,
}

impl Watch {
    /// Finds the revision to continue from. Without one the present objects are sent first.
    ///
    /// Who asks for these wants them no older than the revision, and gets a bookmark after them who takes some.
    fn begin(&mut self, asked: Option<u64>, initial: bool, takes_bookmarks: bool) {
        let storage = Arc::clone(&self.storage);
        let store = storage.read();
        let current = store.revision();
        if let Some(asked) = asked.filter(|&asked| initial && asked > current) {
            let status = ApiError::revision_too_large(asked, current).to_bytes();
            self.waiting.push_back(Line::Ready(frame("ERROR", &status)));
            self.ended = true;
            return;
        }
        if let (Some(asked), false) = (asked, initial) {
            self.cursor = asked;
            return;
        }
        self.cursor = current;
        let range = Range { namespace: self.namespace.clone(), ..Range::default() };
        let selection = &self.selection;
        let page = store
            .list(&self.table, &range, None, &|object: &Stored| selection.selects(object))
            .unwrap_or_default();
        drop(store);
        for object in page.items {
            self.wait_for("ADDED", &object.body);
        }
        if initial && takes_bookmarks {
            let bookmark = self.bookmark_line(true);
            self.waiting.push_back(Line::Ready(bookmark));
        }
    }

    /// Puts an object behind what waits.
    fn wait_for(&mut self, change: &'static str, body: &Bytes) {
        let line = if self.encoder.conversion_of(body).is_some() {
            Line::Unconverted(change, body.clone())
        } else {
            Line::Ready(frame(change, &self.presented(body)))
        };
        self.waiting.push_back(line);
    }

    /// Has the first line converted that waits, if it needs that.
    async fn convert_first(&mut self) {
        let Some(Line::Unconverted(change, body)) = self.waiting.front() else { return };
        let (change, body) = (*change, body.clone());
        let Some(conversion) = self.encoder.conversion_of(&body) else { return };
        let line = match conversion.await {
            Ok(body) => frame(change, &self.presented(&body)),
            Err(error) => {
                self.waiting.clear();
                self.ended = true;
                frame("ERROR", &error.to_bytes())
            }
        };
        self.waiting.pop_front();
        self.waiting.push_front(Line::Ready(line));
    }

    fn presented(&mut self, body: &Bytes) -> Bytes {
        let body = self.encoder.watched(body, !self.sent_any);
        self.sent_any = true;
        body
    }

    /// Returns the next bytes, or nothing when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.watcher.sends();
            self.convert_first().await;
            if let Some(chunk) = self.take_waiting() {
                return Some(chunk);
            }
            if self.ended {
                return None;
            }
            // What happens after this is seen as a change of the receiver.
            if *self.wake.borrow_and_update() == CLOSED {
                // What happened before is told: a definition goes after its objects.
                while !self.ended && self.read_changes() {}
                self.ended = true;
                continue;
            }
            if self.read_changes() {
                continue;
            }
            self.watcher.waits_after(self.cursor);
            tokio::select! {
                biased;
                changed = self.drops.changed() => {
                    if changed.is_ok() {
                        return None;
                    }
                    self.ended = true;
                }
                changed = self.wake.changed() => self.ended = changed.is_err(),
                () = tokio::time::sleep_until(self.deadline) => {
                    self.ended = true;
                    if self.bookmark.is_some() {
                        self.watcher.sends();
                        return Some(self.bookmark_line(false));
                    }
                }
                () = sleep_until(self.bookmark) => {
                    self.bookmark = Some(Instant::now() + BOOKMARK_INTERVAL);
                    self.watcher.sends();
                    return Some(self.bookmark_line(false));
                }
            }
        }
    }

    /// Takes what waits: one line as it is, several put together.
    fn take_waiting(&mut self) -> Option<Bytes> {
        let Some(Line::Ready(first)) = self.waiting.pop_front() else { return None };
        if self.waiting.is_empty() {
            return Some(first);
        }
        let mut chunk = Vec::with_capacity(CHUNK.min(first.len() * 4));
        chunk.extend_from_slice(&first);
        while let Some(Line::Ready(line)) = self.waiting.front() {
            if chunk.len() + line.len() > CHUNK {
                break;
            }
            chunk.extend_from_slice(line);
            self.waiting.pop_front();
        }
        Some(chunk.into())
    }

    /// Reads the next changes from the history; returns whether there is something to do before waiting.
    fn read_changes(&mut self) -> bool {
        let storage = Arc::clone(&self.storage);
        let store = storage.read();
        let current = store.revision();
        let events = store.since(&self.table, self.cursor, BATCH);
        drop(store);
        match events {
            Ok(events) if events.is_empty() => {
                self.cursor = self.cursor.max(current);
                false
            }
            Ok(events) => {
                for event in events {
                    self.cursor = event.revision;
                    self.push(&event);
                }
                true
            }
            Err(expired) => {
                let message = format!("too old resource version: {} ({})", self.cursor, expired.oldest);
                let status = ApiError::expired(message).to_bytes();
                self.waiting.push_back(Line::Ready(frame("ERROR", &status)));
                self.ended = true;
                true
            }
        }
    }

    fn push(&mut self, event: &Event) {
        let (namespace, selection) = (self.namespace.as_deref(), &self.selection);
        if namespace.is_some_and(|namespace| namespace != event.object.namespace()) {
            return;
        }
        let Some(seen) = event.seen_by(|object| selection.selects(object)) else {
            return;
        };
        let body = event.body(seen);
        if self.encoder.passes(&body) {
            self.sent_any = true;
            self.waiting.push_back(Line::Ready(event.frame(seen)));
        } else {
            self.wait_for(seen.as_str(), &body);
        }
    }

    /// Returns a bookmark: a line with the revision that has been sent.
    fn bookmark_line(&self, initial_events_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": self.cursor.to_string()});
        if initial_events_end && let Some(fields) = metadata.as_object_mut() {
            fields.insert("annotations".into(), json!({"k8s.io/initial-events-end": "true"}));
        }
        let resource = &self.encoder.resource;
        let object: Value =
            json!({"kind": resource.kind.kind, "apiVersion": resource.api_version, "metadata": metadata});
        let object = serde_json::to_vec(&object).unwrap_or_default();
        let body = if self.encoder.is_identity() {
            object.into()
        } else {
            self.encoder.watched(&object.into(), !self.sent_any)
        };
        frame("BOOKMARK", &body)
    }
}

async fn sleep_until(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

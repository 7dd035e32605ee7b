//! A few objects that the operator follows for itself: listed, watched, and listed again after any break.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use engine::hook::WatchEvent;
use kube::Client;
use serde_json::Value;
use tokio::time::Instant;

use super::stream::{Changes, Line, Source, StreamError, watch_error};

/// The first wait after a failure, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(800), Duration::from_secs(30));

/// How long a watch has to last before the next one is opened.
const SHORTEST: Duration = Duration::from_secs(1);

/// Lists and watches the objects of one source.
pub(crate) struct Feed {
    client: Client,
    source: Source,
    /// The version that is known; `None` when nothing is.
    version: Option<String>,
    changes: Option<Changes>,
    ready: VecDeque<News>,
    failures: u32,
    not_before: Instant,
    opened: Instant,
    alive: Instant,
}

/// What happened to the objects.
#[derive(Debug)]
pub(crate) enum News {
    /// These are all there are.
    Listed(Vec<Value>),
    /// One was added, modified or deleted.
    Changed(WatchEvent, Value),
    /// They can't be read; it is tried again.
    Broken(String),
}

impl Feed {
    pub(crate) fn new(client: Client, source: Source) -> Self {
        Self {
            client,
            source,
            version: None,
            changes: None,
            ready: VecDeque::new(),
            failures: 0,
            not_before: Instant::now(),
            opened: Instant::now(),
            alive: Instant::now(),
        }
    }

    /// Returns when the API server gave its last sign of life.
    pub(crate) fn alive(&self) -> Instant {
        self.alive
    }

    /// Returns what happened next. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> News {
        loop {
            if let Some(news) = self.ready.pop_front() {
                return news;
            }
            // Even a sleep until now lasts until the next tick of the runtime's clock: the first list would be late.
            if self.not_before > Instant::now() {
                tokio::time::sleep_until(self.not_before).await;
            }
            match self.step().await {
                Ok(()) => {}
                Err(StreamError::Expired) if self.version.is_some() => {
                    (self.version, self.changes) = (None, None);
                }
                Err(error) => {
                    self.changes = None;
                    self.failures += 1;
                    self.not_before = Instant::now() + backoff(BACKOFF, self.failures);
                    return News::Broken(error.to_string());
                }
            }
        }
    }

    /// Does what is next: lists, opens the watch, or waits for changes.
    async fn step(&mut self) -> Result<(), StreamError> {
        match (&mut self.changes, &self.version) {
            (Some(changes), _) => {
                if let Some(lines) = changes.next().await? {
                    lines.iter().try_for_each(|line| self.take(line))?;
                } else {
                    self.changes = None;
                    self.not_before = self.opened + SHORTEST;
                }
            }
            (None, Some(version)) => {
                self.changes = Some(self.source.watch(&self.client, version).await?);
                self.opened = Instant::now();
            }
            (None, None) => {
                let mut objects = Vec::new();
                let mut pages = self.source.pages(&self.client);
                while let Some(items) = pages.next().await? {
                    for item in &items {
                        objects.push(read(item)?);
                    }
                }
                self.version = Some(pages.into_version());
                self.ready.push_back(News::Listed(objects));
            }
        }
        self.failures = 0;
        self.alive = Instant::now();
        Ok(())
    }

    fn take(&mut self, line: &Line) -> Result<(), StreamError> {
        let event = match line.event.as_str() {
            "ADDED" => Some(WatchEvent::Added),
            "MODIFIED" => Some(WatchEvent::Modified),
            "DELETED" => Some(WatchEvent::Deleted),
            "ERROR" => return Err(watch_error(&line.object)),
            _ => None,
        };
        if !line.head.version().is_empty() {
            self.version = Some(line.head.version().to_owned());
        }
        if let Some(event) = event {
            self.ready.push_back(News::Changed(event, read(&line.object)?));
        }
        Ok(())
    }
}

fn read(object: &Bytes) -> Result<Value, StreamError> {
    serde_json::from_slice(object).map_err(|error| StreamError::Failed(error.to_string()))
}

/// Returns how long to wait after so many failures in a row, a little different for each.
pub(crate) fn backoff((first, longest): (Duration, Duration), failures: u32) -> Duration {
    let doubled = first.saturating_mul(1 << failures.saturating_sub(1).min(8)).min(longest);
    doubled.mul_f64(rand::random_range(0.8..1.2))
}

//! Reflectors: the objects of one collection, listed, watched, and listed again when the watch can't go on.

use std::collections::VecDeque;

use engine::hook::WatchEvent;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::change_stream::{PATIENCE, Progress, Watch, sleep_until};
use super::error::WatchError;
use crate::cluster::list::Collection;
use crate::cluster::request::Requests;

/// Lists and watches the objects of one collection. Of each object as much is read as `T` holds.
pub(crate) struct Reflector<T> {
    requests: Requests,
    collection: Collection,
    /// The watch behind the last list; `None` when the objects have to be listed.
    watch: Option<Watch>,
    ready: VecDeque<Update<T>>,
    failures: u32,
    not_before: Instant,
    alive: Instant,
}

/// What happened to the objects.
#[derive(Debug)]
pub(crate) enum Update<T> {
    /// These are all there are.
    Listed(Vec<T>),
    /// One was added, modified or deleted.
    Changed(WatchEvent, T),
    /// They can't be read; it is tried again.
    Failed(WatchError),
}

impl<T: DeserializeOwned> Reflector<T> {
    /// Returns a reflector that has not asked for anything yet.
    pub(crate) fn new(requests: Requests, collection: Collection) -> Self {
        Self {
            requests,
            collection,
            watch: None,
            ready: VecDeque::new(),
            failures: 0,
            not_before: Instant::now(),
            alive: Instant::now(),
        }
    }

    /// Returns when the API server gave its last sign of life.
    pub(crate) fn alive(&self) -> Instant {
        self.alive
    }

    /// Returns what happened next. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Update<T> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                return update;
            }
            sleep_until(self.not_before).await;
            match self.step().await {
                Ok(()) => {
                    self.failures = 0;
                    self.alive = Instant::now();
                }
                Err(WatchError::Expired) if self.watch.is_some() => self.watch = None,
                Err(error) => {
                    self.failures += 1;
                    self.not_before = Instant::now() + Backoff::WATCH.after(self.failures);
                    return Update::Failed(error);
                }
            }
        }
    }

    /// Lists, or waits for what the watch does next.
    async fn step(&mut self) -> Result<(), WatchError> {
        if let Some(watch) = &mut self.watch {
            if let Progress::Changed(changes) = watch.next().await? {
                for change in changes {
                    let object = serde_json::from_slice(&change.object)?;
                    self.ready.push_back(Update::Changed(change.event, object));
                }
            }
            return Ok(());
        }
        let mut objects = Vec::new();
        let mut pages = self.collection.pages(&self.requests, PATIENCE);
        while let Some(items) = pages.next().await? {
            for item in &items {
                objects.push(serde_json::from_slice(item)?);
            }
        }
        self.watch = Some(Watch::new(self.requests.clone(), self.collection.clone(), pages.into_version()));
        self.ready.push_back(Update::Listed(objects));
        Ok(())
    }
}

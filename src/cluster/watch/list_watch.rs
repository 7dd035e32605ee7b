//! The objects of one collection, listed, watched, and listed again when the watch can't go on.

use std::collections::VecDeque;

use engine::hook::WatchEvent;
use serde::de::DeserializeOwned;

use super::backoff::Attempts;
use super::change_stream::{PATIENCE, Progress, Steadiness, Watch};
use super::error::WatchError;
use super::reports::WatchReport;
use crate::cluster::list::Collection;
use crate::cluster::request::Requests;

/// How many failures of one collection are no news when a list mends them: versions are forgotten now and then.
const USUAL: u32 = 1;

/// Lists and watches the objects of one collection. Of each object as much is read as `T` holds.
pub(super) struct ListWatch<T> {
    requests: Requests,
    collection: Collection,
    /// The watch behind the last list; `None` when the objects have to be listed.
    watch: Option<Watch>,
    ready: VecDeque<Update<T>>,
    attempts: Attempts,
    /// How steady the watches behind the lists were.
    steadiness: Steadiness,
    report: Option<WatchReport>,
    /// Whether the reader was told of a failure, and not yet that the watch works again.
    is_failed: bool,
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
    /// The watch works again after failures, also if it has nothing to say. That a list works says nothing of the watch
    /// behind it.
    Restored,
}

impl<T: DeserializeOwned> ListWatch<T> {
    /// Returns one that has not asked for anything yet.
    pub(super) fn new(requests: Requests, collection: Collection, report: Option<WatchReport>) -> Self {
        let (attempts, steadiness) = (Attempts::default(), Steadiness::default());
        let (watch, ready, is_failed) = (None, VecDeque::new(), false);
        Self { requests, collection, watch, ready, attempts, steadiness, report, is_failed }
    }

    /// Returns the same, but begins to watch behind `version`, at which the objects were listed by somebody else.
    pub(super) fn behind(mut self, version: String) -> Self {
        self.watch = Some(Watch::new(self.requests.clone(), self.collection.clone(), version));
        self
    }

    /// Returns what happened next. Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Update<T> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                return update;
            }
            self.attempts.ready().await;
            if let Err(error) = self.step().await
                && let Some(update) = self.fail(error)
            {
                return update;
            }
        }
    }

    /// Records a failure. Returns what is reported of it.
    pub(super) fn fail(&mut self, error: WatchError) -> Option<Update<T>> {
        self.attempts.fail();
        if !error.keeps_version(self.attempts.failures())
            && let Some(watch) = self.watch.take()
        {
            self.steadiness = watch.steadiness();
        }
        if matches!(error, WatchError::Expired) && self.attempts.failures() <= USUAL {
            return None;
        }
        Some(self.failed(error))
    }

    fn failed(&mut self, error: WatchError) -> Update<T> {
        self.report.iter_mut().for_each(|report| report.broke(&error));
        self.is_failed = true;
        Update::Failed(error)
    }

    fn works(&mut self) {
        self.attempts.work();
        self.report.iter_mut().for_each(WatchReport::works);
        if std::mem::take(&mut self.is_failed) {
            self.ready.push_back(Update::Restored);
        }
    }

    /// Lists, or waits for what the watch does next.
    async fn step(&mut self) -> Result<(), WatchError> {
        if let Some(watch) = &mut self.watch {
            match watch.next().await? {
                Progress::Changed(changes) => {
                    for change in changes {
                        let object = serde_json::from_slice(&change.object)?;
                        self.ready.push_back(Update::Changed(change.event, object));
                    }
                }
                Progress::Opened | Progress::Lasts | Progress::Ended => {}
                Progress::Broke(error) => tracing::debug!("a watch is opened again: {error}"),
                Progress::Unsteady(error) => {
                    let failed = self.failed(error);
                    self.ready.push_back(failed);
                }
            }
            if self.watch.as_ref().is_some_and(Watch::lasts) {
                self.works();
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
        let watch = Watch::new(self.requests.clone(), self.collection.clone(), pages.into_version());
        self.watch = Some(watch.after(self.steadiness));
        self.ready.push_back(Update::Listed(objects));
        Ok(())
    }
}

//! Reflectors: each follows one collection in a task of its own, so that nothing its reader does can hold a request up.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::error::WatchError;
use super::list_watch::{ListWatch, Update};
use super::reports::WatchReport;
use crate::cluster::list::Collection;
use crate::cluster::request::Requests;

/// How many updates wait for the reader. A full channel slows the watch, which is what we want.
const WAITING: usize = 16;

/// Lists and watches the objects of one collection until it is dropped. Of each object as much is read as `T` holds.
pub(crate) struct Reflector<T> {
    updates: mpsc::Receiver<Update<T>>,
    /// The task, which ends with the reflector.
    _task: JoinSet<()>,
}

impl<T: DeserializeOwned + Send + 'static> Reflector<T> {
    /// Starts one whose failures are told to its reader only. Has to be called within a runtime.
    pub(crate) fn new(requests: Requests, collection: Collection) -> Self {
        Self::start(ListWatch::new(requests, collection, None))
    }

    /// Starts one like [`Self::new`] that begins behind `version`, at which its reader has listed the objects. Has to be
    /// called within a runtime.
    pub(crate) fn behind(requests: Requests, collection: Collection, version: String) -> Self {
        Self::start(ListWatch::new(requests, collection, None).behind(version))
    }

    /// Starts one that also reports whether it works. Has to be called within a runtime.
    pub(crate) fn reporting(requests: Requests, collection: Collection, report: WatchReport) -> Self {
        Self::start(ListWatch::new(requests, collection, Some(report)))
    }

    /// Starts one like [`Self::reporting`] that begins behind `version`, at which its reader has listed the objects. Has to
    /// be called within a runtime.
    pub(crate) fn reporting_behind(
        requests: Requests,
        collection: Collection,
        version: String,
        report: WatchReport,
    ) -> Self {
        Self::start(ListWatch::new(requests, collection, Some(report)).behind(version))
    }

    fn start(list_watch: ListWatch<T>) -> Self {
        let (sender, updates) = mpsc::channel(WAITING);
        let mut task = JoinSet::new();
        task.spawn(follow(list_watch, sender));
        Self { updates, _task: task }
    }

    /// Returns what happened next. Nothing is lost, and no request is repeated, when the future is dropped.
    pub(crate) async fn next(&mut self) -> Update<T> {
        match self.updates.recv().await {
            Some(update) => update,
            // The task ends only with the runtime.
            None => std::future::pending().await,
        }
    }
}

/// Passes on what happens, for ever. A panic is a failure as any other: it is tried again.
async fn follow<T: DeserializeOwned>(mut list_watch: ListWatch<T>, updates: mpsc::Sender<Update<T>>) {
    loop {
        let update = match AssertUnwindSafe(list_watch.next()).catch_unwind().await {
            Ok(update) => Some(update),
            Err(_) => list_watch.fail(WatchError::panicked()),
        };
        if let Some(update) = update
            && updates.send(update).await.is_err()
        {
            return;
        }
    }
}

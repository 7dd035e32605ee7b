//! The monitors that an informer serves while it follows, and what each of them has seen already.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::MonitorId;
use tokio::time::Instant;

use super::object_filter::Subscribers;
use crate::cluster::watch::Backoff;

/// The waits until the objects are listed again for a filter that did not work on one.
const REFILTER: Backoff = Backoff::new(Duration::from_secs(5), Duration::from_mins(5));

/// The monitors that an informer serves while it follows.
pub(super) struct Subscriptions {
    all: Subscribers,
    /// For monitors that were listed for later than the others: the version of each of those lists, by collection.
    listed_at: BTreeMap<MonitorId, Vec<u64>>,
    /// The monitors whose filter did not work on the list.
    failed: BTreeSet<MonitorId>,
    /// When their objects are listed again, and how often that was tried.
    retry: Option<(Instant, u32)>,
}

impl Subscriptions {
    /// Returns subscriptions of monitors that know the lists behind which the informer follows, but for those whose
    /// filter failed.
    pub(super) fn new(all: Subscribers, failed: BTreeSet<MonitorId>) -> Self {
        let mut new = Self { all, listed_at: BTreeMap::new(), failed: BTreeSet::new(), retry: None };
        new.fail(failed);
        new
    }

    /// Records lists that some monitors were given, with the version of each collection.
    pub(super) fn list(&mut self, monitors: impl Iterator<Item = MonitorId>, versions: &[u64]) {
        self.listed_at.extend(monitors.map(|monitor| (monitor, versions.to_vec())));
    }

    /// Records that the filters of these monitors did not work.
    pub(super) fn fail(&mut self, failed: BTreeSet<MonitorId>) {
        self.failed.extend(failed);
        let times = self.retry.map_or(0, |(_, times)| times) + 1;
        self.retry = (!self.failed.is_empty()).then(|| (Instant::now() + REFILTER.after(times), times));
    }

    /// Replaces the monitors that are served. Returns those that are new.
    pub(super) fn replace(&mut self, all: Subscribers) -> Subscribers {
        self.listed_at.retain(|monitor, _| all.contains_key(monitor));
        self.failed.retain(|monitor| all.contains_key(monitor));
        let old = std::mem::replace(&mut self.all, all);
        let mut new = self.all.clone();
        new.retain(|monitor, _| !old.contains_key(monitor));
        new
    }

    /// Waits until it is time to list again for the monitors whose filter failed; they do not count as failed then.
    pub(super) async fn due(&mut self) -> Subscribers {
        match self.retry {
            Some((at, _)) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
        let failed = std::mem::take(&mut self.failed);
        let mut again = self.all.clone();
        again.retain(|monitor, _| failed.contains(monitor));
        again
    }

    /// Returns the monitors that are served.
    pub(super) fn monitors(&self) -> impl Iterator<Item = MonitorId> {
        self.all.keys().copied()
    }

    /// Returns the monitors whose filter works.
    pub(super) fn working(&self) -> Subscribers {
        self.subscribers_for(0, 0)
    }

    /// Returns the monitors that have not seen a state of an object yet.
    pub(super) fn subscribers_for(&self, collection: usize, version: u64) -> Subscribers {
        let is_news = |monitor: &MonitorId| {
            let listed_at = self.listed_at.get(monitor).and_then(|versions| versions.get(collection));
            !self.failed.contains(monitor) && listed_at.is_none_or(|known| version == 0 || version > *known)
        };
        let news = self.all.iter().filter(|(monitor, _)| is_news(monitor));
        news.map(|(monitor, filter)| (*monitor, filter.clone())).collect()
    }

    /// Returns the monitors that have not seen a state of an object yet if nobody whose filter works has.
    pub(super) fn all_for(&self, collection: usize, version: u64) -> Option<Subscribers> {
        let subscribers = self.subscribers_for(collection, version);
        (subscribers.len() + self.failed.len() == self.all.len()).then_some(subscribers)
    }
}

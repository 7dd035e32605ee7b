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
    /// When their objects are listed again.
    retry: Option<Instant>,
    /// How often that was tried.
    tries: u32,
}

impl Subscriptions {
    /// Returns subscriptions of monitors that know the lists behind which the informer follows, but for those whose
    /// filter failed.
    pub(super) fn new(all: Subscribers, failed: BTreeSet<MonitorId>) -> Self {
        let mut new =
            Self { all, listed_at: BTreeMap::new(), failed: BTreeSet::new(), retry: None, tries: 0 };
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
        if self.failed.is_empty() {
            self.tries = 0;
        } else if self.retry.is_none() {
            self.tries += 1;
            self.retry = Some(Instant::now() + REFILTER.after(self.tries));
        }
    }

    /// Replaces the monitors that are served. Returns those that are new.
    pub(super) fn replace(&mut self, all: Subscribers) -> Subscribers {
        self.listed_at.retain(|monitor, _| all.contains_key(monitor));
        self.failed.retain(|monitor| all.contains_key(monitor));
        if self.failed.is_empty() {
            self.retry = None;
        }
        let old = std::mem::replace(&mut self.all, all);
        let mut new = self.all.clone();
        new.retain(|monitor, _| !old.contains_key(monitor));
        new
    }

    /// Waits until it is time to list again for the monitors whose filter failed; they do not count as failed then.
    pub(super) async fn due(&mut self) -> Subscribers {
        match self.retry {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
        self.retry = None;
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

#[cfg(test)]
mod tests {
    use super::super::object_filter::ObjectFilter;
    use super::*;

    fn monitors(ids: &[u64]) -> Subscribers {
        let filter = ObjectFilter::new(None, false).unwrap();
        ids.iter().map(|id| (MonitorId::new(*id), filter.clone())).collect()
    }

    async fn is_due(subscriptions: &mut Subscriptions) -> bool {
        tokio::time::timeout(Duration::from_hours(1), subscriptions.due()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn slip_02_nothing_is_due_when_the_monitor_whose_filter_failed_has_stopped() {
        let mut subscriptions = Subscriptions::new(monitors(&[1, 2]), BTreeSet::from([MonitorId::new(1)]));
        subscriptions.replace(monitors(&[2]));
        assert!(!is_due(&mut subscriptions).await, "that is a loop without a pause");
    }

    #[tokio::test(start_paused = true)]
    async fn slip_02_a_list_that_is_due_is_due_once_and_the_next_try_is_later() {
        let failed = BTreeSet::from([MonitorId::new(1)]);
        let mut subscriptions = Subscriptions::new(monitors(&[1, 2]), failed.clone());
        let begun = Instant::now();
        assert!(is_due(&mut subscriptions).await);
        let first = begun.elapsed();
        assert!(!is_due(&mut subscriptions).await, "nobody has said what became of it");
        subscriptions.fail(failed.clone());
        // One that fails meanwhile puts nobody off.
        tokio::time::sleep(Duration::from_secs(1)).await;
        subscriptions.fail(BTreeSet::from([MonitorId::new(2)]));
        let begun = Instant::now();
        assert!(is_due(&mut subscriptions).await);
        assert!(begun.elapsed() > first, "{:?} after {first:?}", begun.elapsed());
    }
}

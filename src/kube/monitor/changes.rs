//! Changes that an informer sees: those that count are filtered and reported object by object.

use std::collections::BTreeSet;

use engine::Event;
use engine::hook::WatchEvent;
use engine::snapshot::Key;
use tokio::time::Instant;

use super::informer::Informer;
use super::namespaces::LabelledNamespaces;
use super::object_filter::{Filtered, RawObject, Subscribers, TypeMeta, filter_objects};
use super::subscriptions::Subscriptions;
use super::timing::WatchTiming;
use crate::cluster::watch::{Change, WatchError};

/// How many changes that came together are passed on as they are; of more, only the last modification of each object counts
/// until it is deleted.
const UNMERGED: usize = 64;

impl Informer {
    /// Returns the changes that count, each with its version.
    pub(super) fn select(
        &self,
        changes: Vec<Change>,
        namespaces: Option<&LabelledNamespaces>,
    ) -> Vec<(u64, RawObject)> {
        let selected = changes.into_iter().filter_map(|change| {
            let (key, version) = (change.head.key(), number(change.head.version()));
            let counts = namespaces.is_none_or(|all| all.counts(&key.namespace, version));
            (counts && self.is_named(&key))
                .then(|| (version, RawObject { text: change.object, key, change: change.event }))
        });
        merged(selected.collect())
    }

    /// Reports changes that came together from one collection.
    pub(super) async fn publish_changes(
        &self,
        collection: usize,
        changes: Vec<(u64, RawObject)>,
        type_meta: &TypeMeta,
        subscriptions: &Subscriptions,
    ) -> Result<(), WatchError> {
        let oldest = changes.iter().map(|(version, _)| *version).min().unwrap_or_default();
        if let Some(subscribers) = subscriptions.all_for(collection, oldest) {
            let raws = changes.into_iter().map(|(_, raw)| raw).collect();
            return self.publish_objects(&subscribers, raws, type_meta).await;
        }
        // Some have listed these objects a moment ago.
        for (version, raw) in changes {
            let subscribers = subscriptions.subscribers_for(collection, version);
            self.publish_objects(&subscribers, vec![raw], type_meta).await?;
        }
        Ok(())
    }

    async fn publish_objects(
        &self,
        subscribers: &Subscribers,
        raws: Vec<RawObject>,
        type_meta: &TypeMeta,
    ) -> Result<(), WatchError> {
        if raws.is_empty() || subscribers.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let filtered = filter_objects(&self.threads, subscribers, type_meta, raws).await;
        let mut lists: Vec<_> = filtered
            .map_err(WatchError::Failed)?
            .into_iter()
            .map(|(monitor, items)| (monitor, items.into_iter()))
            .collect();
        // Object by object: all monitors see one at the same moment.
        loop {
            let mut changed = None;
            let mut items = Vec::with_capacity(lists.len());
            let mut is_done = true;
            for (monitor, filtered) in &mut lists {
                let Some(filtered) = filtered.next() else { continue };
                is_done = false;
                match filtered {
                    Filtered::Item { key, is_gone, item } => {
                        changed = Some((key, is_gone));
                        items.push((*monitor, item));
                        if let Some(filter) = subscribers.get(monitor) {
                            filter.took(WatchTiming::PassedOn(begun.elapsed()));
                        }
                    }
                    // The last good state stays.
                    Filtered::Failed { key, item, error } => {
                        self.report_filter(*monitor, error).await;
                        changed = Some((key, false));
                        items.push((*monitor, item));
                    }
                }
            }
            if let Some((key, is_gone)) = changed {
                self.inbox.event(Event::ObjectChanged { key, is_gone, items }).await;
            }
            if is_done {
                return Ok(());
            }
        }
    }
}

/// Returns a version as a number; 0 when it is none.
pub(super) fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

/// Returns the changes, if they are many without the modifications that a later one of the same object replaces.
///
/// Additions stay beside the modification that follows: a hook may ask for events of one of the two types only. Deletions
/// stay, and the order of each object.
fn merged(changes: Vec<(u64, RawObject)>) -> Vec<(u64, RawObject)> {
    if changes.len() <= UNMERGED {
        return changes;
    }
    // From the end: a modification that a newer one of the same object follows is not needed.
    let mut followed: BTreeSet<Key> = BTreeSet::new();
    let mut kept: Vec<(u64, RawObject)> = Vec::with_capacity(changes.len());
    for (version, raw) in changes.into_iter().rev() {
        let is_needed = match raw.change {
            WatchEvent::Added | WatchEvent::Deleted => {
                followed.remove(&raw.key);
                true
            }
            WatchEvent::Modified => followed.insert(raw.key.clone()),
        };
        if is_needed {
            kept.push((version, raw));
        }
    }
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_changes_the_last_modification_and_all_additions_and_deletions_stay_in_order() {
        use WatchEvent::{Added, Deleted, Modified};
        let raw = |version: u64, name: &str, change| {
            (version, RawObject { text: bytes::Bytes::new(), key: Key::new("", name), change })
        };
        let mut changes = vec![
            raw(1, "a", Added),
            raw(2, "b", Added),
            raw(3, "a", Modified),
            raw(4, "a", Deleted),
            raw(5, "a", Added),
            raw(6, "b", Modified),
        ];
        assert_eq!(merged(changes.clone()).len(), changes.len());
        changes.extend((7..100).map(|version| raw(version, "a", Modified)));
        let kept: Vec<_> = merged(changes).into_iter().map(|(version, raw)| (version, raw.change)).collect();
        assert_eq!(
            kept,
            [(1, Added), (2, Added), (3, Modified), (4, Deleted), (5, Added), (6, Modified), (99, Modified)]
        );
    }
}

//! Lists of an informer: all pages are read and filtered, then reported as one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::hook::WatchEvent;
use engine::snapshot::{Item, Key};
use engine::{Event, Failure, FailureKind, MonitorId};

use super::informer::Informer;
use super::object_filter::{Filtered, RawObject, Subscribers, TypeMeta, filter_objects};
use crate::cluster::Resource;
use crate::cluster::list::Collection;
use crate::cluster::watch::{Head, PATIENCE, WatchError};
use crate::process::memory;

/// After how many bytes of a list the memory that was used for it is given back at once.
const LARGE_LIST: usize = 4 << 20;

/// The objects of each monitor.
pub(super) type Objects = BTreeMap<MonitorId, Vec<(Key, Arc<Item>)>>;

/// What a list came to.
pub(super) struct Listed {
    /// The objects of the monitors whose filter worked on all of them, or that had a list before.
    pub(super) objects: Objects,
    /// The other monitors.
    pub(super) failed: BTreeSet<MonitorId>,
    /// The version of each collection, behind which to follow.
    pub(super) versions: Vec<String>,
}

impl Informer {
    /// Reads all pages of these collections. Only failed filters are reported yet.
    pub(super) async fn list(
        &mut self,
        type_meta: &TypeMeta,
        collections: &[Collection],
        subscribers: &Subscribers,
        namespaces: Option<BTreeSet<String>>,
    ) -> Result<Listed, WatchError> {
        let mut objects: Objects = subscribers.keys().map(|monitor| (*monitor, Vec::new())).collect();
        let (mut failed, mut versions) = (BTreeSet::new(), Vec::new());
        let (mut bytes, mut last) = (0_usize, Key::new("", ""));
        for collection in collections {
            let mut pages = collection.pages(&self.requests, PATIENCE);
            while let Some(items) = pages.next().await? {
                let mut raws = Vec::with_capacity(items.len());
                for text in items {
                    bytes = bytes.saturating_add(text.len());
                    let key = Head::of(&text)?.key().beside(&last);
                    last.clone_from(&key);
                    if self.is_named(&key)
                        && namespaces.as_ref().is_none_or(|names| names.contains(&*key.namespace))
                    {
                        raws.push(RawObject { text, key, change: WatchEvent::Added });
                    }
                }
                let filtered = filter_objects(&self.threads, subscribers, type_meta, raws).await;
                for (monitor, items) in filtered.map_err(WatchError::Failed)? {
                    for filtered in items {
                        match filtered {
                            Filtered::Item { key, item, .. } => {
                                objects.entry(monitor).or_default().push((key, item));
                            }
                            Filtered::Failed { key, item, error, .. } => {
                                if failed.insert(monitor) {
                                    self.report_filter(monitor, error).await;
                                }
                                objects.entry(monitor).or_default().push((key, item));
                            }
                        }
                    }
                }
            }
            versions.push(pages.into_version());
        }
        if bytes > LARGE_LIST {
            tokio::task::spawn_blocking(memory::give_back);
        }
        // A first list has to be complete. Later the last good state of an object that fails stays, and no other waits for it.
        failed.retain(|monitor| !self.listed.contains(monitor));
        objects.retain(|monitor, _| !failed.contains(monitor));
        Ok(Listed { objects, failed, versions })
    }

    /// Reports lists of a kind to their monitors.
    pub(super) async fn publish_lists(&mut self, resource: &Resource, objects: Objects) {
        self.listed.extend(objects.keys());
        for monitor in objects.keys().copied().filter(|_| !resource.namespaced) {
            self.inbox.event(Event::KindIsClusterWide { monitor }).await;
        }
        let lists: Vec<_> = objects.into_iter().collect();
        if !lists.is_empty() {
            self.inbox.event(Event::Listed { lists }).await;
        }
    }

    /// Reports that the filter of a monitor did not work on an object.
    pub(super) async fn report_filter(&self, monitor: MonitorId, error: String) {
        let failure = Failure::new(FailureKind::HookOutput, error);
        self.inbox.event(Event::WatchFailed { monitor, failure }).await;
    }

    /// Returns whether the selection names an object, or no object at all.
    pub(super) fn is_named(&self, key: &Key) -> bool {
        let names = &self.selection.names;
        names.is_empty() || names.contains(&*key.name)
    }
}

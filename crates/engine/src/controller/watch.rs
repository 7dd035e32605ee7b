//! One watch of a controller: the objects of a kind, and whom each is about.

use std::sync::Arc;

use super::index::{Index, Reference};
use super::observed::Metadata;
use crate::failure::{Failure, FailureKind};
use crate::hook::reconcile::ObjectKind;
use crate::hook::snapshot::{Change, Item, Key, Objects, Snapshot};
use crate::hook::{WatchEvent, reconcile::ParentReference};
use crate::name::MonitorId;
use crate::queue::Reason;

/// Whom the objects of a watch are about.
#[derive(Debug)]
pub(super) enum About {
    /// Their owner.
    Children(ObjectKind),
    /// Whom they name.
    Related(ParentReference),
}

/// One watch of a controller.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) monitor: MonitorId,
    /// The name under which its objects are shown.
    pub(super) name: Arc<str>,
    pub(super) snapshot: Snapshot,
    pub(super) index: Index,
    about: About,
    is_listed: bool,
    missing_kind: Option<String>,
    /// Whether the operator may not list it.
    is_refused: bool,
}

/// A change of an object, and all whom it concerns.
#[derive(Debug)]
pub(super) struct Concern {
    pub(super) references: Vec<Reference>,
    pub(super) object: Key,
    pub(super) is_gone: bool,
}

impl Watch {
    pub(super) fn new(monitor: MonitorId, name: Arc<str>, about: About) -> Self {
        Self {
            monitor,
            name,
            snapshot: Snapshot::default(),
            index: Index::default(),
            about,
            is_listed: false,
            missing_kind: None,
            is_refused: false,
        }
    }

    /// Replaces all objects by those of a list.
    pub(super) fn list(&mut self, objects: Objects) -> Vec<Concern> {
        self.is_listed = true;
        (self.missing_kind, self.is_refused) = (None, false);
        let changes = self.snapshot.replace(objects.into_iter().collect());
        self.noted(changes)
    }

    /// Replaces the objects of a namespace.
    pub(super) fn list_namespace(&mut self, namespace: &str, objects: Objects) -> Vec<Concern> {
        let changes = self.snapshot.replace_namespace(namespace, objects);
        self.noted(changes)
    }

    /// Records a change of an object.
    pub(super) fn change(&mut self, key: &Key, is_gone: bool, item: Arc<Item>) -> Vec<Concern> {
        let change = if is_gone {
            self.snapshot.remove(key, Some(item))
        } else {
            self.snapshot.put(key.clone(), item)
        };
        self.noted(change)
    }

    /// Records that the kind does not exist: its objects are gone with it.
    pub(super) fn vanish(&mut self, kind: String) -> Vec<Concern> {
        self.missing_kind = Some(kind);
        self.is_refused = false;
        self.is_listed = false;
        let changes = self.snapshot.replace(std::collections::BTreeMap::new());
        self.noted(changes)
    }

    /// Records that the kind exists: it is listed next.
    pub(super) fn appear(&mut self) {
        self.missing_kind = None;
    }

    /// Records why it could not be listed or watched.
    pub(super) fn fail(&mut self, failure: &Failure) {
        self.is_refused = failure.kind == FailureKind::Forbidden;
    }

    /// Returns what its first list waits for; nothing if that is there.
    pub(super) fn obstacle(&self) -> Option<Reason> {
        if self.is_listed {
            return None;
        }
        Some(match &self.missing_kind {
            Some(kind) => Reason::Kind(kind.clone()),
            None if self.is_refused => Reason::Right(self.name.to_string()),
            None => Reason::List(self.name.to_string()),
        })
    }

    /// Returns whether its kind does not exist: then there are no objects of it either.
    pub(super) fn is_missing(&self) -> bool {
        self.missing_kind.is_some()
    }

    /// Returns the objects that are about any of these.
    pub(super) fn objects(&self, references: &[Reference]) -> Vec<(Key, Arc<Item>)> {
        let object = |key: &Key| Some((key.clone(), Arc::clone(self.snapshot.get(key)?)));
        self.index.get(references).into_iter().filter_map(object).collect()
    }

    fn noted(&mut self, changes: impl IntoIterator<Item = Change>) -> Vec<Concern> {
        let note = |change: Change| {
            let is_gone = change.event == WatchEvent::Deleted;
            let metadata = Metadata::of(&change.item);
            let references = match &self.about {
                _ if is_gone => Vec::new(),
                About::Children(parent) => metadata.parent(parent),
                About::Related(reference) => metadata.related_to(&change.key, reference),
            };
            let references = self.index.set(&change.key, references).into_iter().collect();
            Concern { references, object: change.key, is_gone }
        };
        changes.into_iter().map(note).collect()
    }
}

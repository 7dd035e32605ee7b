//! One watch of a controller: the objects of a kind, and whom each is about.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::claim::Claim;
use super::index::{Index, Reference};
use super::observed::Metadata;
use crate::failure::{Failure, FailureKind};
use crate::hook::reconcile::ObjectKind;
use crate::hook::snapshot::{Change, Item, Key, Objects, Snapshot};
use crate::hook::{WatchEvent, reconcile::ParentReference};
use crate::name::{HookId, MonitorId};
use crate::queue::Reason;
use crate::time::Time;
use crate::view::WatchView;

/// Whom the objects of a watch are about.
#[derive(Debug)]
pub(super) enum About {
    /// Their owner, if they are those of the binding.
    Children(ObjectKind, Claim),
    /// Whom they name.
    Related(ParentReference),
    /// Themselves.
    Nobody,
}

/// One watch of a controller.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) monitor: MonitorId,
    /// The name under which its objects are shown.
    pub(super) name: Arc<str>,
    pub(super) snapshot: Snapshot,
    pub(super) index: Index,
    /// The same of children that are those of other bindings.
    foreign: Index,
    /// Whether its objects are in no namespace.
    pub(super) is_cluster_wide: bool,
    about: About,
    is_listed: bool,
    /// The kind that does not exist, and since when.
    missing_kind: Option<(String, Time)>,
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
            foreign: Index::default(),
            is_cluster_wide: false,
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
        self.noted_with_moved(changes, None)
    }

    /// Replaces the objects of a namespace.
    pub(super) fn list_namespace(&mut self, namespace: &str, objects: Objects) -> Vec<Concern> {
        let changes = self.snapshot.replace_namespace(namespace, objects);
        self.noted_with_moved(changes, Some(namespace))
    }

    /// Records a change of an object. A child that comes, and of which the filter says nothing yet, concerns nobody.
    pub(super) fn change(&mut self, key: &Key, is_gone: bool, item: Arc<Item>) -> Vec<Concern> {
        let is_new_child =
            matches!(self.about, About::Children(..)) && !is_gone && self.snapshot.get(key).is_none();
        let is_quiet = is_new_child && item.filter_result() == Some(b"null".as_slice());
        let change = if is_gone {
            self.snapshot.remove(key, Some(item))
        } else {
            self.snapshot.put(key.clone(), item).or_else(|| self.moved(key))
        };
        let concerns = self.noted(change);
        if is_quiet { Vec::new() } else { concerns }
    }

    /// Returns the change of an object that is about others now. A filter may not see that.
    fn moved(&self, key: &Key) -> Option<Change> {
        let item = self.snapshot.get(key).filter(|item| item.filter_result().is_some())?;
        let is_other = self.references(key, item) != self.index.of(key);
        is_other.then(|| Change { event: WatchEvent::Modified, key: key.clone(), item: Arc::clone(item) })
    }

    /// Returns the changes of all objects of a namespace, or of all, that are about others now.
    fn moved_among(&self, namespace: Option<&str>) -> Vec<Change> {
        let is_meant = |key: &&Key| namespace.is_none_or(|namespace| *key.namespace == *namespace);
        let keys = self.snapshot.iter().map(|(key, _)| key);
        keys.filter(is_meant).filter_map(|key| self.moved(key)).collect()
    }

    /// Returns whom an object is about.
    fn references(&self, key: &Key, item: &Item) -> Vec<Reference> {
        self.own_and_foreign(key, item).0
    }

    /// Returns whom an object is about, and whom a child of another binding is about.
    fn own_and_foreign(&self, key: &Key, item: &Item) -> (Vec<Reference>, Vec<Reference>) {
        match &self.about {
            About::Children(parent, claim) => {
                let metadata = Metadata::of(item);
                let parents = metadata.parent(parent);
                if claim.includes(&metadata) { (parents, Vec::new()) } else { (Vec::new(), parents) }
            }
            About::Related(reference) => (Metadata::of(item).related_to(key, reference), Vec::new()),
            About::Nobody => (Vec::new(), Vec::new()),
        }
    }

    /// Returns the children that are about any of these and are those of other bindings, each with the one that it names.
    pub(super) fn foreign(&self, references: &[Reference]) -> Vec<(Key, String)> {
        let child = |key: &Key| {
            let metadata = Metadata::of(self.snapshot.get(key)?);
            let by = metadata.made_by().filter(|_| !metadata.is_deleting())?;
            Some((key.clone(), by.to_owned()))
        };
        self.foreign.get(references).into_iter().filter_map(child).collect()
    }

    /// Returns what the binding may call its own of these; nothing if they are no children.
    pub(super) fn claim(&self) -> Option<&Claim> {
        match &self.about {
            About::Children(_, claim) => Some(claim),
            About::Related(_) | About::Nobody => None,
        }
    }

    /// Records which other bindings make children of this kind for the same parents.
    pub(super) fn share(&mut self, others: BTreeSet<Arc<str>>) -> Vec<Concern> {
        let is_news = match &mut self.about {
            About::Children(_, claim) => claim.share(others),
            About::Related(_) | About::Nobody => false,
        };
        if !is_news {
            return Vec::new();
        }
        let change = |(key, item): (&Key, &Arc<Item>)| {
            let is_other = self.references(key, item) != self.index.of(key);
            is_other.then(|| Change { event: WatchEvent::Modified, key: key.clone(), item: Arc::clone(item) })
        };
        let changes: Vec<Change> = self.snapshot.iter().filter_map(change).collect();
        self.noted(changes)
    }

    /// Records that the kind does not exist: its objects are gone with it.
    pub(super) fn vanish(&mut self, kind: String, now: Time) -> Vec<Concern> {
        let since = self.missing_kind.take().map_or(now, |(_, since)| since);
        self.missing_kind = Some((kind, since));
        self.is_refused = false;
        self.is_listed = false;
        self.is_cluster_wide = false;
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
            Some((kind, _)) => Reason::Kind(kind.clone()),
            None if self.is_refused => Reason::Right(self.name.to_string()),
            None => Reason::List(self.name.to_string()),
        })
    }

    /// Returns whether its kind does not exist: then there are no objects of it either.
    pub(super) fn is_missing(&self) -> bool {
        self.missing_kind.is_some()
    }

    /// Returns whether it is known which objects there are.
    pub(super) fn is_known(&self) -> bool {
        self.is_listed || self.is_missing()
    }

    /// Returns whether it is known that there is no object.
    pub(super) fn has_nothing(&self) -> bool {
        self.is_known() && self.snapshot.is_empty()
    }

    /// Returns a picture of it for people, without why it broke: that is told of each watch that no `kubernetes` binding asked for.
    pub(super) fn view(&self, kind: String, binding: (HookId, String), now: Time) -> WatchView {
        WatchView {
            id: self.monitor,
            kind,
            bindings: vec![binding],
            objects: self.snapshot.len(),
            listed: self.is_listed,
            missing_kind: self.missing_kind.as_ref().map(|(kind, _)| kind.clone()),
            failure: None,
            broken_for: self.missing_kind.as_ref().map(|(_, since)| now.since(*since)),
        }
    }

    /// Returns the objects that are about any of these.
    pub(super) fn objects(&self, references: &[Reference]) -> Vec<(Key, Arc<Item>)> {
        let object = |key: &Key| Some((key.clone(), Arc::clone(self.snapshot.get(key)?)));
        self.index.get(references).into_iter().filter_map(object).collect()
    }

    /// Notes the changes that a list of a namespace, or of all, led to, and then those that a filter did not see.
    fn noted_with_moved(&mut self, changes: Vec<Change>, namespace: Option<&str>) -> Vec<Concern> {
        let mut concerns = self.noted(changes);
        let moved = self.moved_among(namespace);
        concerns.extend(self.noted(moved));
        concerns
    }

    fn noted(&mut self, changes: impl IntoIterator<Item = Change>) -> Vec<Concern> {
        let note = |change: Change| {
            let is_gone = change.event == WatchEvent::Deleted;
            let (references, foreign) = if is_gone {
                (Vec::new(), Vec::new())
            } else {
                self.own_and_foreign(&change.key, &change.item)
            };
            self.foreign.set(&change.key, foreign);
            let references = self.index.set(&change.key, references).into_iter().collect();
            Concern { references, object: change.key, is_gone }
        };
        changes.into_iter().map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(parent: &str, data: u8) -> Arc<Item> {
        let object =
            json!({"metadata": {"name": "s", "labels": {"site": parent}}, "data": data, "status": parent});
        Arc::new(Item::filtered(
            Some(object.to_string().as_bytes().into()),
            data.to_string().as_bytes().into(),
        ))
    }

    #[test]
    fn a_child_that_comes_without_a_result_of_its_filter_wakes_nobody_and_is_shown() {
        let site = ObjectKind { api_version: "example.com/v1".to_owned(), kind: "Site".to_owned() };
        let about = |is_child: bool| {
            if is_child {
                About::Children(site.clone(), Claim::of("a/x".into()))
            } else {
                About::Related(ParentReference::Owner)
            }
        };
        let owner = json!({"apiVersion": "example.com/v1", "kind": "Site", "name": "a", "uid": "1", "controller": true});
        let object = json!({"metadata": {"name": "s", "uid": "1", "ownerReferences": [owner]}}).to_string();
        let item =
            |result: &str| Arc::new(Item::filtered(Some(object.as_bytes().into()), result.as_bytes().into()));
        let key = Key::new("ns", "s");
        let mut watch = Watch::new(MonitorId::new(1), "secrets".into(), about(true));
        assert!(watch.change(&key, false, item("null")).is_empty());
        assert_eq!(watch.objects(&[Reference::Uid("1".into())]).len(), 1);
        // All else wakes: a result, none any more, and the end.
        assert_eq!(watch.change(&key, false, item("true")).len(), 1);
        assert_eq!(watch.change(&key, false, item("null")).len(), 1);
        assert_eq!(watch.change(&key, true, item("null")).len(), 1);
        // What is no child is not made by the hook: that it is there is news.
        let mut watch = Watch::new(MonitorId::new(1), "secrets".into(), about(false));
        assert_eq!(watch.change(&key, false, item("null")).len(), 1);
    }

    #[test]
    fn a_change_that_a_filter_does_not_see_wakes_nobody_unless_it_is_about_others() {
        let about = About::Related(ParentReference::Label("site".to_owned()));
        let mut watch = Watch::new(MonitorId::new(1), "secrets".into(), about);
        let key = Key::new("ns", "s");
        let names = |concerns: Vec<Concern>| -> Vec<String> {
            let all = concerns.into_iter().flat_map(|concern| concern.references);
            all.filter_map(|one| match one {
                Reference::Named(key) if !key.namespace.is_empty() => Some(key.to_string()),
                Reference::Named(_) | Reference::Uid(_) | Reference::Own(_) => None,
            })
            .collect()
        };
        assert_eq!(names(watch.list(vec![(key.clone(), secret("a", 1))])), ["ns/a"]);
        assert_eq!(names(watch.change(&key, false, secret("a", 2))), ["ns/a"]);
        let mut same = serde_json::from_slice::<serde_json::Value>(secret("a", 2).object().unwrap()).unwrap();
        same["status"] = json!("other");
        let same = Item::filtered(Some(same.to_string().as_bytes().into()), b"2".as_slice().into());
        assert_eq!(names(watch.change(&key, false, Arc::new(same.clone()))), [""; 0]);
        // Who is shown it is shown how it is now.
        let parent = Reference::Named(Key::new("ns", "a"));
        assert_eq!(watch.objects(std::slice::from_ref(&parent)), [(key.clone(), Arc::new(same))]);
        assert_eq!(names(watch.change(&key, false, secret("b", 2))), ["ns/a", "ns/b"]);
        assert_eq!(names(watch.list(vec![(key.clone(), secret("c", 2))])), ["ns/b", "ns/c"]);
        assert_eq!(names(watch.list_namespace("ns", vec![(key, secret("d", 2))])), ["ns/c", "ns/d"]);
    }
}

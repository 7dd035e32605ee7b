//! The objects that one watch with one filter knows, shared by everybody who reads them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use values::Checksum;

use crate::hook::spec::WatchEvent;

/// A list of objects.
pub type Objects = Vec<(Key, Arc<Item>)>;

/// Where an object is. Snapshots are sorted by it: namespace first, then name, as bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Key {
    /// The namespace, or empty.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl Key {
    /// Returns the key of an object; `namespace` is empty for objects that are in none.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// Returns the same key, which shares its namespace with `other` if both are in one. Such keys are compared sooner.
    #[must_use]
    pub fn beside(self, other: &Self) -> Self {
        if self.namespace == other.namespace {
            Self { namespace: Arc::clone(&other.namespace), ..self }
        } else {
            self
        }
    }
}

/// Compares what most of those that are compared share: the same place in memory is equal without a look.
pub(crate) fn compare_shared<T: Ord + ?Sized>(one: &Arc<T>, other: &Arc<T>) -> Ordering {
    if Arc::ptr_eq(one, other) { Ordering::Equal } else { one.cmp(other) }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_shared(&self.namespace, &other.namespace).then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// One object of a snapshot, as bytes that are ready to be written.
#[derive(Clone, PartialEq)]
pub struct Item {
    object: Option<Arc<[u8]>>,
    filter_result: Option<Arc<[u8]>>,
    checksum: Checksum,
    /// Whether the filter did not work on the object.
    failed: bool,
}

impl Item {
    /// Returns an item whose change is a change of the object itself.
    ///
    /// `json` is the object; it is kept only if some binding shows it.
    pub fn unfiltered(json: Arc<[u8]>, keep: bool) -> Self {
        let checksum = Checksum::of_bytes(&json);
        Self { object: keep.then_some(json), filter_result: None, checksum, failed: false }
    }

    /// Returns an item whose change is a change of the filter's result, given as JSON.
    ///
    /// Items of several filters can share the bytes of one object.
    pub fn filtered(object: Option<Arc<[u8]>>, filter_result: Arc<[u8]>) -> Self {
        let checksum = Checksum::of_bytes(&filter_result);
        Self { object, filter_result: Some(filter_result), checksum, failed: false }
    }

    /// Returns the item of an object that the filter did not work on. No hook is shown it, but the object counts as known.
    pub fn failed(object: Option<Arc<[u8]>>) -> Self {
        Self { failed: true, ..Self::filtered(object, b"null".as_slice().into()) }
    }

    /// Returns the object as JSON, if it is kept.
    pub fn object(&self) -> Option<&[u8]> {
        self.object.as_deref()
    }

    /// Returns the filter's result as JSON, if there is a filter.
    pub fn filter_result(&self) -> Option<&[u8]> {
        self.filter_result.as_deref()
    }

    /// Returns the digest that differs when a hook would see a difference.
    pub fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// Returns how many bytes of JSON the item holds. Bytes that it shares are counted.
    pub fn len_bytes(&self) -> usize {
        self.object().map_or(0, <[u8]>::len) + self.filter_result().map_or(0, <[u8]>::len)
    }
}

/// Shows sizes only: an object can be a secret.
impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("object_bytes", &self.object().map(<[u8]>::len))
            .field("filter_result_bytes", &self.filter_result().map(<[u8]>::len))
            .finish_non_exhaustive()
    }
}

/// What a watch told that a hook may want to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What happened to the object.
    pub event: WatchEvent,
    /// Which object it is.
    pub key: Key,
    /// The object's state after the change; the last one if it is gone.
    pub item: Arc<Item>,
}

/// The objects that one watch with one filter knows, at one moment.
///
/// A clone is cheap and stays as it is: it is the moment at which it was taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The last good state of each object.
    objects: Arc<BTreeMap<Key, Arc<Item>>>,
    /// The objects whose filter did not work on their last state.
    failed: Arc<BTreeMap<Key, Arc<Item>>>,
}

impl Snapshot {
    /// Records the state of an object that was added or modified.
    ///
    /// Returns `None` if a hook would see no difference, or if the filter did not work: the last good state stays. What is
    /// not known is `Added`, and what is known `Modified`, as for an informer of client-go. An object counts as known too
    /// when its filter did not work before.
    pub fn put(&mut self, key: Key, item: Arc<Item>) -> Option<Change> {
        if item.failed {
            Arc::make_mut(&mut self.failed).insert(key, item);
            return None;
        }
        let had_failed = self.failed.contains_key(&key);
        if had_failed {
            Arc::make_mut(&mut self.failed).remove(&key);
        }
        let objects = Arc::make_mut(&mut self.objects);
        let event = match objects.get(&key) {
            None if had_failed => WatchEvent::Modified,
            None => WatchEvent::Added,
            Some(known) if known.checksum == item.checksum => {
                // Parts of the object that the filter does not see may have changed.
                objects.insert(key, item);
                return None;
            }
            Some(_) => WatchEvent::Modified,
        };
        objects.insert(key.clone(), Arc::clone(&item));
        Some(Change { event, key, item })
    }

    /// Records that an object is gone; `last` is its last state, if the watch reported one that could be filtered.
    ///
    /// Returns `None` if the object was not known.
    pub fn remove(&mut self, key: &Key, last: Option<Arc<Item>>) -> Option<Change> {
        let remove = |from: &mut Arc<BTreeMap<Key, Arc<Item>>>| {
            let is_there = from.contains_key(key);
            is_there.then(|| Arc::make_mut(from).remove_entry(key)).flatten()
        };
        let (failed, good) = (remove(&mut self.failed), remove(&mut self.objects));
        let (key, known) = good.or(failed)?;
        Some(Change { event: WatchEvent::Deleted, key, item: last.unwrap_or(known) })
    }

    /// Replaces everything by a complete list of what there is now, after a gap in the watch.
    ///
    /// Returns what happened in the gap, as far as it can be seen: deletions first, then the others in the
    /// order of the keys. What is as it was is not mentioned.
    pub fn replace(&mut self, listed: BTreeMap<Key, Arc<Item>>) -> Vec<Change> {
        self.replace_where(|_| true, listed)
    }

    /// Replaces all objects of one namespace. Returns what is new and what is gone.
    pub fn replace_namespace(&mut self, namespace: &str, objects: Vec<(Key, Arc<Item>)>) -> Vec<Change> {
        self.replace_where(|key| *key.namespace == *namespace, objects.into_iter().collect())
    }

    fn replace_where(
        &mut self,
        is_listed: impl Fn(&Key) -> bool,
        listed: BTreeMap<Key, Arc<Item>>,
    ) -> Vec<Change> {
        let is_gone = |key: &&Key| is_listed(key) && !listed.contains_key(*key);
        let known = self.objects.keys().chain(self.failed.keys());
        let gone: BTreeSet<Key> = known.filter(is_gone).cloned().collect();
        let mut changes: Vec<Change> = gone.iter().filter_map(|key| self.remove(key, None)).collect();
        changes.extend(listed.into_iter().filter_map(|(key, item)| self.put(key, item)));
        changes
    }

    /// Returns the object at `key`.
    pub fn get(&self, key: &Key) -> Option<&Arc<Item>> {
        self.objects.get(key)
    }

    /// Returns all objects, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<Item>)> {
        self.objects.iter()
    }

    /// Returns how many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Returns whether there are objects whose filter did not work on their last state.
    pub fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }
}

impl FromIterator<(Key, Arc<Item>)> for Snapshot {
    fn from_iter<T: IntoIterator<Item = (Key, Arc<Item>)>>(items: T) -> Self {
        Self { objects: Arc::new(items.into_iter().collect()), failed: Arc::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> Arc<Item> {
        Arc::new(Item::unfiltered(text.as_bytes().into(), true))
    }

    fn filtered(object: &str, result: &str) -> Arc<Item> {
        Arc::new(Item::filtered(Some(object.as_bytes().into()), result.as_bytes().into()))
    }

    #[test]
    fn keys_are_sorted_alike_whether_they_share_a_namespace_or_not() {
        let keys = [("", "b"), ("a", ""), ("a", "b"), ("a", "c"), ("ab", "a")]
            .map(|(namespace, name)| Key::new(namespace, name));
        let shared: Vec<Key> = keys.iter().map(|key| key.clone().beside(&keys[1])).collect();
        assert!(Arc::ptr_eq(&shared[3].namespace, &keys[1].namespace));
        for (place, one) in shared.iter().enumerate() {
            for (other_place, other) in keys.iter().enumerate() {
                assert_eq!((one.cmp(other), one == other), (place.cmp(&other_place), place == other_place));
            }
        }
    }

    fn told(changes: &[Change]) -> Vec<String> {
        let text = |item: &Item| String::from_utf8(item.object().unwrap().to_vec()).unwrap();
        changes.iter().map(|c| format!("{} {} {}", c.event, c.key, text(&c.item))).collect()
    }

    #[test]
    fn an_object_is_added_once_and_modified_only_when_it_differs() {
        let mut snapshot = Snapshot::default();
        let key = Key::new("shop", "cart");
        let changes: Vec<Change> =
            ["1", "1", "2"].into_iter().filter_map(|v| snapshot.put(key.clone(), item(v))).collect();
        assert_eq!(told(&changes), ["Added shop/cart 1", "Modified shop/cart 2"]);
    }

    #[test]
    fn an_equal_filter_result_is_no_event_but_the_new_object_is_kept() {
        let mut snapshot = Snapshot::default();
        let key = Key::new("", "node");
        assert!(snapshot.put(key.clone(), filtered("{\"v\":1}", "7")).is_some());
        assert_eq!(snapshot.put(key.clone(), filtered("{\"v\":2}", "7")), None);
        assert_eq!(snapshot.get(&key).unwrap().object(), Some(&b"{\"v\":2}"[..]));
        assert!(snapshot.put(key, filtered("{\"v\":2}", "8")).is_some());
    }

    #[test]
    fn a_deletion_is_told_once_with_the_last_state() {
        let key = Key::new("a", "b");
        let mut snapshot: Snapshot = [(key.clone(), item("1"))].into_iter().collect();
        let change = snapshot.remove(&key, Some(item("2")));
        assert_eq!(told(&[change.unwrap()]), ["Deleted a/b 2"]);
        assert_eq!(snapshot.remove(&key, None), None);
        assert!(snapshot.is_empty());
    }

    #[test]
    fn slip_16_an_object_whose_filter_failed_is_known_from_then_on() {
        let failed = |text: &str| Arc::new(Item::failed(Some(text.as_bytes().into())));
        let (a, b, c) = (Key::new("ns", "a"), Key::new("ns", "b"), Key::new("ns", "c"));
        let mut snapshot = Snapshot::default();
        for key in [&a, &b, &c] {
            assert_eq!(snapshot.put(key.clone(), failed("bad")), None);
        }
        assert!(snapshot.is_empty() && snapshot.has_failed(), "no hook is shown it");
        let change = snapshot.put(a.clone(), item("1")).unwrap();
        assert_eq!(told(&[change]), ["Modified ns/a 1"]);
        // The last good state stays.
        assert_eq!(snapshot.put(a.clone(), failed("bad again")), None);
        assert_eq!(snapshot.get(&a).unwrap().object(), Some(&b"1"[..]));
        assert_eq!(snapshot.put(a.clone(), item("1")), None);
        assert_eq!(told(&[snapshot.remove(&b, None).unwrap()]), ["Deleted ns/b bad"]);
        // A new list is no other than the watch.
        let changes = snapshot.replace([(a, failed("worse")), (c, item("3"))].into());
        assert_eq!(told(&changes), ["Modified ns/c 3"]);
        let changes = snapshot.replace(BTreeMap::new());
        assert_eq!(told(&changes), ["Deleted ns/a 1", "Deleted ns/c 3"]);
        assert!(!snapshot.has_failed());
    }

    #[test]
    fn a_new_list_tells_the_difference_and_nothing_else() {
        let keyed = |name: &str, text: &str| (Key::new("ns", name), item(text));
        let mut snapshot: Snapshot =
            [keyed("a", "1"), keyed("b", "1"), keyed("c", "1")].into_iter().collect();
        let changes = snapshot.replace([keyed("d", "1"), keyed("b", "2"), keyed("a", "1")].into());
        assert_eq!(told(&changes), ["Deleted ns/c 1", "Modified ns/b 2", "Added ns/d 1"]);
        assert_eq!(snapshot.len(), 3);
    }

    #[test]
    fn a_namespace_that_joins_or_leaves_touches_only_its_objects() {
        let keyed = |ns: &str, name: &str| (Key::new(ns, name), item("1"));
        let mut snapshot: Snapshot = [keyed("a", "x"), keyed("b", "old")].into_iter().collect();
        snapshot.replace_namespace("b", vec![keyed("b", "new")]);
        snapshot.replace_namespace("c", vec![keyed("c", "x")]);
        snapshot.replace_namespace("a", Vec::new());
        let keys: Vec<String> = snapshot.iter().map(|(key, _)| key.to_string()).collect();
        assert_eq!(keys, ["b/new", "c/x"]);
    }

    #[test]
    fn a_clone_is_the_moment_at_which_it_was_taken() {
        let key = Key::new("a", "b");
        let mut snapshot: Snapshot = [(key.clone(), item("1"))].into_iter().collect();
        let before = snapshot.clone();
        snapshot.put(key.clone(), item("2"));
        assert_eq!(before.get(&key).unwrap().object(), Some(&b"1"[..]));
    }

    #[test]
    fn objects_are_sorted_by_namespace_and_then_by_name() {
        let names = [("b", "a"), ("a", "z"), ("", "z"), ("a", "a-b"), ("a", "a")];
        let snapshot: Snapshot = names.iter().map(|(ns, name)| (Key::new(ns, name), item("1"))).collect();
        let sorted: Vec<String> = snapshot.iter().map(|(key, _)| key.to_string()).collect();
        assert_eq!(sorted, ["z", "a/a", "a/a-b", "a/z", "b/a"]);
    }

    #[test]
    fn debug_output_shows_no_content() {
        let shown = format!("{:?}", item("password"));
        assert!(!shown.contains("password"), "{shown}");
    }
}

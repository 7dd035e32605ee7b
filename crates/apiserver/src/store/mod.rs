//! The store: every object in its latest version, and a bounded history of changes.
//!
//! Nothing here reads a clock, a file or a socket: the time is an argument. A change makes one revision, which is
//! the object's `resourceVersion`; revisions count all changes of all resources.

mod event;
mod object;
mod table;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;

pub use event::{Change, Event, frame};
pub use object::{Encoded, Key, Stored, key_of, split_key};
pub use table::{Expired, Limits, Page, Range};

use table::Table;

/// The name of a table: `group/plural`, with an empty group for the core group.
pub type TableName = Arc<str>;

/// Returns the name of the table of a resource.
pub fn table_name(group: &str, plural: &str) -> TableName {
    TableName::from(format!("{group}/{plural}"))
}

/// A change to commit.
#[derive(Debug)]
pub enum Write {
    /// The object must be new.
    Create(Encoded),
    /// The object must exist in the version of revision `expected`.
    Update {
        /// The revision that the change was computed from.
        expected: u64,
        /// The new version.
        object: Encoded,
    },
    /// The object must exist in the version of revision `expected`.
    Delete {
        /// The revision that the decision was made on.
        expected: u64,
    },
}

/// Why a change could not be made.
#[derive(Debug)]
pub enum Refusal {
    /// The object exists.
    Exists,
    /// The object does not exist.
    Missing,
    /// The object has another version by now.
    Changed,
    /// The change could not be written down, for this reason.
    NotKept(String),
}

/// What a commit did.
#[derive(Debug)]
pub enum Committed {
    /// There is a new revision.
    Changed(Arc<Event>),
    /// The new version is the old one: nothing happened.
    Same(Arc<Stored>),
}

impl Committed {
    /// Returns the object after the commit.
    pub fn object(&self) -> &Arc<Stored> {
        match self {
            Committed::Changed(event) => &event.object,
            Committed::Same(object) => object,
        }
    }
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// The table.
    pub table: TableName,
    /// The key in the table.
    pub key: Key,
}

/// All objects of a cluster.
#[derive(Debug, Default)]
pub struct Store {
    revision: u64,
    /// The revision before which the history of no table is known.
    floor: u64,
    limits: Limits,
    tables: BTreeMap<TableName, Table>,
    /// Where the object of an identity is.
    by_uid: HashMap<Box<str>, ObjectRef>,
    /// The objects that name an identity as their owner.
    dependents: HashMap<Box<str>, BTreeSet<ObjectRef>>,
}

impl Store {
    /// Returns an empty store.
    pub fn new(limits: Limits) -> Store {
        Store { revision: 1, limits, ..Store::default() }
    }

    /// Returns the revision of the latest change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the latest version of an object.
    pub fn get(&self, table: &str, key: &str) -> Option<&Arc<Stored>> {
        self.tables.get(table)?.objects.get(key)
    }

    /// Returns how many objects a table holds.
    pub fn count(&self, table: &str) -> usize {
        self.tables.get(table).map_or(0, |table| table.objects.len())
    }

    /// Returns the names of the tables that hold objects.
    pub fn tables(&self) -> impl Iterator<Item = &TableName> {
        self.tables.iter().filter(|(_, table)| !table.objects.is_empty()).map(|(name, _)| name)
    }

    /// Returns the change that a write is, or why it can't be made. A version that equals the old one makes no revision.
    pub fn prepare(
        &self,
        object_ref: &ObjectRef,
        write: Write,
        now: Timestamp,
    ) -> Result<Committed, Refusal> {
        let previous = self.get(&object_ref.table, &object_ref.key).cloned();
        let revision = self.revision + 1;
        let (change, object) = match (write, &previous) {
            (Write::Create(_), Some(_)) => return Err(Refusal::Exists),
            (Write::Create(object), None) => {
                (Change::Added, object.into_stored(object_ref.key.clone(), revision))
            }
            (Write::Update { .. } | Write::Delete { .. }, None) => return Err(Refusal::Missing),
            (Write::Update { expected, .. } | Write::Delete { expected }, Some(kept))
                if kept.revision != expected =>
            {
                return Err(Refusal::Changed);
            }
            (Write::Update { object, .. }, Some(kept)) => {
                if object.same_as(kept) {
                    return Ok(Committed::Same(Arc::clone(kept)));
                }
                (Change::Modified, object.into_stored(object_ref.key.clone(), revision))
            }
            (Write::Delete { .. }, Some(kept)) => (Change::Deleted, kept.at(revision)),
        };
        Ok(Committed::Changed(Arc::new(Event::new(change, Arc::new(object), previous, now))))
    }

    /// Makes a change that was prepared since the last one was made.
    pub fn apply(&mut self, object_ref: &ObjectRef, event: &Arc<Event>, now: Timestamp) {
        self.revision = event.revision;
        self.index(event, object_ref);
        let floor = self.floor;
        let table = self.tables.entry(Arc::clone(&object_ref.table)).or_insert_with(|| Table::new(floor));
        table.record(Arc::clone(event), now, self.limits);
    }

    fn index(&mut self, event: &Event, object_ref: &ObjectRef) {
        if let Some(previous) = &event.previous {
            for owner in &previous.owners {
                if let Some(dependents) = self.dependents.get_mut(owner) {
                    dependents.remove(object_ref);
                    if dependents.is_empty() {
                        self.dependents.remove(owner);
                    }
                }
            }
        }
        if event.change == Change::Deleted {
            self.by_uid.remove(&event.object.uid);
            return;
        }
        if event.change == Change::Added {
            self.by_uid.insert(event.object.uid.clone(), object_ref.clone());
        }
        for owner in &event.object.owners {
            self.dependents.entry(owner.clone()).or_default().insert(object_ref.clone());
        }
    }

    /// Returns where the object of an identity is.
    pub fn find_by_uid(&self, uid: &str) -> Option<&ObjectRef> {
        self.by_uid.get(uid)
    }

    /// Returns the objects that name `uid` as an owner.
    pub fn dependents_of(&self, uid: &str) -> impl Iterator<Item = &ObjectRef> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// Returns a part of a list, as it is now or as it was at the revision `at`.
    pub fn list(
        &self,
        table: &str,
        range: &Range,
        at: Option<u64>,
        selects: &dyn Fn(&Stored) -> bool,
    ) -> Result<Page, Expired> {
        let Some(table) = self.tables.get(table) else {
            return self.not_before_floor(at).map(|()| Page::default());
        };
        match at {
            Some(revision) => table.page_at(revision, range, selects),
            None => Ok(table.page(range, selects)),
        }
    }

    /// Returns the objects of a table, or only those of a namespace, in the order of their keys.
    pub fn all(&self, table: &str, namespace: Option<&str>) -> Vec<Arc<Stored>> {
        self.select(table, namespace, &|_| true)
    }

    /// Returns those objects of a table, or of one namespace in it, that are selected.
    pub fn select(
        &self,
        table: &str,
        namespace: Option<&str>,
        selects: &dyn Fn(&Stored) -> bool,
    ) -> Vec<Arc<Stored>> {
        let range = Range { namespace: namespace.map(str::to_owned), ..Range::default() };
        self.tables.get(table).map(|table| table.page(&range, selects).items).unwrap_or_default()
    }

    /// Returns at most `limit` changes of a table after `revision`, oldest first.
    pub fn since(&self, table: &str, revision: u64, limit: usize) -> Result<Vec<Arc<Event>>, Expired> {
        match self.tables.get(table) {
            Some(table) => table.since(revision, limit),
            None => self.not_before_floor(Some(revision)).map(|()| Vec::new()),
        }
    }

    fn not_before_floor(&self, at: Option<u64>) -> Result<(), Expired> {
        let is_known = at.is_none_or(|revision| revision >= self.floor);
        if is_known { Ok(()) } else { Err(Expired { oldest: self.floor }) }
    }

    /// Forgets the history: older revisions than the present one are expired.
    pub fn forget_history(&mut self) {
        self.floor = self.revision;
        for table in self.tables.values_mut() {
            table.forget(self.revision);
        }
    }

    /// Puts back an object of an earlier life, with the revision it had then.
    pub(crate) fn restore(&mut self, object_ref: &ObjectRef, object: Encoded, revision: u64, now: Timestamp) {
        let object = Arc::new(object.into_stored(object_ref.key.clone(), revision));
        self.revision = self.revision.max(revision);
        let event = Event::new(Change::Added, Arc::clone(&object), None, now);
        self.index(&event, object_ref);
        let table = self.tables.entry(Arc::clone(&object_ref.table)).or_default();
        table.objects.insert(object_ref.key.clone(), object);
    }

    /// Continues after `revision`, with no history.
    pub(crate) fn resume_at(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
        self.forget_history();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    impl Store {
        fn commit(
            &mut self,
            object_ref: &ObjectRef,
            write: Write,
            now: Timestamp,
        ) -> Result<Committed, Refusal> {
            let committed = self.prepare(object_ref, write, now)?;
            if let Committed::Changed(event) = &committed {
                self.apply(object_ref, event, now);
            }
            Ok(committed)
        }
    }

    fn object_ref(key: &str) -> ObjectRef {
        ObjectRef { table: "/pods".into(), key: key.into() }
    }

    fn encoded(name: &str, size: i64) -> Encoded {
        let owner = json!([{"uid": format!("owner-of-{name}")}]);
        Encoded::new(
            &json!({"metadata": {"name": name, "uid": name, "ownerReferences": owner}, "size": size}),
            &[],
        )
    }

    fn create(store: &mut Store, name: &str) -> u64 {
        let write = Write::Create(encoded(name, 0));
        store
            .commit(&object_ref(&format!("ns/{name}")), write, Timestamp::UNIX_EPOCH)
            .unwrap()
            .object()
            .revision
    }

    fn names(page: &Page) -> Vec<&str> {
        page.items.iter().map(|item| item.name()).collect()
    }

    const ALL: &dyn Fn(&Stored) -> bool = &|_| true;

    #[test]
    fn a_list_can_be_read_as_it_was() {
        let mut store = Store::new(Limits::default());
        create(&mut store, "a");
        let b = create(&mut store, "b");
        create(&mut store, "c");
        let update = Write::Update { expected: 2, object: encoded("a", 1) };
        store.commit(&object_ref("ns/a"), update, Timestamp::UNIX_EPOCH).unwrap();
        store.commit(&object_ref("ns/b"), Write::Delete { expected: b }, Timestamp::UNIX_EPOCH).unwrap();
        let range = Range { namespace: Some("ns".into()), ..Range::default() };
        assert_eq!(names(&store.list("/pods", &range, None, ALL).unwrap()), ["a", "c"]);
        let then = store.list("/pods", &range, Some(b), ALL).unwrap();
        assert_eq!(names(&then), ["a", "b"]);
        assert_eq!(then.items.first().unwrap().value()["size"], json!(0));
    }

    #[test]
    fn a_list_comes_in_parts() {
        let mut store = Store::new(Limits::default());
        for name in ["a", "b", "c", "d"] {
            create(&mut store, name);
        }
        let mut range = Range { limit: Some(3), ..Range::default() };
        let first = store.list("/pods", &range, None, ALL).unwrap();
        assert_eq!((names(&first), first.remaining), (vec!["a", "b", "c"], 1));
        range.after = first.next.as_deref().map(str::to_owned);
        let last = store.list("/pods", &range, None, ALL).unwrap();
        assert_eq!((names(&last), &last.next), (vec!["d"], &None));
    }

    #[test]
    fn old_changes_are_forgotten() {
        let mut store = Store::new(Limits { events: 2, ..Limits::default() });
        for name in ["a", "b", "c", "d"] {
            create(&mut store, name);
        }
        assert_eq!(store.since("/pods", 2, 9).unwrap_err(), Expired { oldest: 3 });
        assert_eq!(store.since("/pods", 3, 9).unwrap().len(), 2);
        assert_eq!(store.since("/pods", 3, 1).unwrap().len(), 1);
        assert!(store.list("/pods", &Range::default(), Some(2), ALL).is_err());
    }

    #[test]
    fn slip_05_the_history_of_large_objects_keeps_a_bounded_number_of_bytes() {
        let mut store = Store::new(Limits { bytes: 10_000, ..Limits::default() });
        let mut expected = create(&mut store, "a");
        let large = |n: usize| {
            let text = format!("{n}").repeat(1_000);
            Encoded::new(&json!({"metadata": {"name": "a"}, "data": text}), &[])
        };
        for n in 10..99 {
            let update = Write::Update { expected, object: large(n) };
            let committed = store.commit(&object_ref("ns/a"), update, Timestamp::UNIX_EPOCH).unwrap();
            expected = committed.object().revision;
        }
        let oldest = store.since("/pods", 0, 9).unwrap_err().oldest;
        let kept = store.since("/pods", oldest, 99).unwrap();
        assert_eq!(kept.last().unwrap().revision, expected, "the newest one is there");
        let bytes: usize = kept.iter().map(|event| event.object.body.len()).sum();
        assert!((2_000..10_000).contains(&bytes), "{bytes}");
        // What is small is not affected.
        for n in 0..9 {
            create(&mut store, &format!("small{n}"));
        }
        assert_eq!(store.since("/pods", expected, 99).unwrap().len(), 9);
    }

    #[test]
    fn a_version_that_is_the_same_makes_no_revision() {
        let mut store = Store::new(Limits::default());
        let expected = create(&mut store, "a");
        let update = Write::Update { expected, object: encoded("a", 0) };
        let committed = store.commit(&object_ref("ns/a"), update, Timestamp::UNIX_EPOCH).unwrap();
        assert!(matches!(committed, Committed::Same(_)));
        assert_eq!(store.revision(), expected);
    }

    #[test]
    fn dependents_are_found_by_the_identity_of_their_owner() {
        let mut store = Store::new(Limits::default());
        let revision = create(&mut store, "a");
        assert_eq!(store.dependents_of("owner-of-a").collect::<Vec<_>>(), [&object_ref("ns/a")]);
        assert_eq!(store.find_by_uid("a"), Some(&object_ref("ns/a")));
        store
            .commit(&object_ref("ns/a"), Write::Delete { expected: revision }, Timestamp::UNIX_EPOCH)
            .unwrap();
        assert_eq!(store.dependents_of("owner-of-a").count(), 0);
        assert_eq!(store.find_by_uid("a"), None);
    }

    #[test]
    fn leaving_a_selection_is_seen_as_a_deletion_of_the_old_version() {
        let mut store = Store::new(Limits::default());
        let expected = create(&mut store, "a");
        let update = Write::Update { expected, object: encoded("a", 7) };
        store.commit(&object_ref("ns/a"), update, Timestamp::UNIX_EPOCH).unwrap();
        let events = store.since("/pods", expected, 9).unwrap();
        let event = events.first().unwrap();
        let small = |object: &Stored| object.value()["size"].as_i64() < Some(5);
        assert_eq!(event.seen_by(small), Some(Change::Deleted));
        let line: serde_json::Value = serde_json::from_slice(&event.frame(Change::Deleted)).unwrap();
        assert_eq!(line["object"]["size"], json!(0));
        assert_eq!(line["object"]["metadata"]["resourceVersion"], json!(event.revision.to_string()));
    }

    #[test]
    fn what_is_forgotten_is_expired_for_tables_without_objects_too() {
        let mut store = Store::new(Limits::default());
        store.resume_at(9);
        let range = Range::default();
        assert_eq!(store.since("/pods", 8, 9).unwrap_err(), Expired { oldest: 9 });
        assert_eq!(store.list("/pods", &range, Some(8), ALL).unwrap_err(), Expired { oldest: 9 });
        assert!(store.since("/pods", 9, 9).unwrap().is_empty());
        create(&mut store, "a");
        assert_eq!(store.since("/pods", 8, 9).unwrap_err(), Expired { oldest: 9 });
        assert_eq!(store.since("/pods", 9, 9).unwrap().len(), 1);
    }
}

//! Maps with string keys, shared and mutable.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use super::{MapType, Value};

/// The entries of a map, sorted by key.
pub type Entries = BTreeMap<Rc<str>, Value>;

/// A map that is shared by all its clones: what one inserts, all see.
#[derive(Clone)]
pub struct Map {
    class: &'static MapType,
    shared: Rc<Shared>,
}

struct Shared {
    nil: bool,
    entries: RefCell<Rc<Entries>>,
}

impl Map {
    /// Returns a `map[string]interface {}` of `entries`.
    pub fn new(entries: Entries) -> Self {
        Self::of(&MapType::ANY, entries)
    }

    /// Returns a map of type `class`.
    pub fn of(class: &'static MapType, entries: Entries) -> Self {
        let shared = Rc::new(Shared { nil: false, entries: RefCell::new(Rc::new(entries)) });
        Self { class, shared }
    }

    /// Returns the nil map of type `class`, which JSON writes as `null`.
    pub fn nil(class: &'static MapType) -> Self {
        Self { class, shared: Rc::new(Shared { nil: true, entries: RefCell::default() }) }
    }

    /// Returns the type.
    pub fn class(&self) -> &'static MapType {
        self.class
    }

    /// Reports whether this is a nil map.
    pub fn is_nil(&self) -> bool {
        self.shared.nil
    }

    /// Returns the entries as they are now; later changes are not seen.
    pub fn entries(&self) -> Rc<Entries> {
        Rc::clone(&self.shared.entries.borrow())
    }

    /// Returns the value under `key`.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.shared.entries.borrow().get(key).cloned()
    }

    /// Reports whether there is an entry under `key`.
    pub fn contains(&self, key: &str) -> bool {
        self.shared.entries.borrow().contains_key(key)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.shared.entries.borrow().len()
    }

    /// Reports whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts `value` under `key`, for everybody who holds this map.
    pub fn insert(&self, key: impl Into<Rc<str>>, value: Value) {
        if is_container(&value) {
            remember(&self.shared);
        }
        let before = Rc::make_mut(&mut self.shared.entries.borrow_mut()).insert(key.into(), value);
        drop(before);
    }

    /// Takes away the entry under `key` and returns its value.
    pub fn remove(&self, key: &str) -> Option<Value> {
        Rc::make_mut(&mut self.shared.entries.borrow_mut()).remove(key)
    }

    /// Reports whether both are the same map.
    pub fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns the same map under another type: what is inserted into one is seen in the other.
    #[must_use]
    pub fn as_class(&self, class: &'static MapType) -> Self {
        Self { class, shared: Rc::clone(&self.shared) }
    }

    /// Returns the values if nobody else holds this map.
    fn into_children(self) -> Option<impl Iterator<Item = Value>> {
        let shared = Rc::into_inner(self.shared)?;
        Rc::try_unwrap(shared.entries.take()).ok().map(BTreeMap::into_values)
    }
}

impl Default for Map {
    fn default() -> Self {
        Self::new(Entries::new())
    }
}

/// Deep maps are taken apart without recursion.
impl Drop for Shared {
    fn drop(&mut self) {
        if let Ok(entries) = Rc::try_unwrap(self.entries.take()) {
            bury(entries.into_values());
        }
    }
}

fn is_container(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Map(_) | Value::Object(_))
}

/// Drops `values` and all that only they hold, however deep, in constant stack.
pub(super) fn bury(values: impl IntoIterator<Item = Value>) {
    let mut pending: Vec<Value> = values.into_iter().filter(is_container).collect();
    while let Some(value) = pending.pop() {
        if let Value::List(list) = value {
            let items = list.into_children().into_iter().flatten();
            pending.extend(items.filter(is_container));
        } else if let Value::Map(map) = value {
            let values = map.into_children().into_iter().flatten();
            pending.extend(values.filter(is_container));
        }
    }
}

thread_local! {
    /// Maps that got a collection after they were made: only they can be part of
    /// a cycle, which counting references would never free.
    static CHANGED: RefCell<Vec<Weak<Shared>>> = const { RefCell::new(Vec::new()) };
}

fn remember(map: &Rc<Shared>) {
    CHANGED.with_borrow_mut(|changed| {
        // A loop that sets keys of one map should not fill the list.
        if changed.last().is_none_or(|last| !std::ptr::eq(last.as_ptr(), Rc::as_ptr(map))) {
            changed.push(Rc::downgrade(map));
        }
    });
}

/// The part of a thread's life whose cycles are freed at its end.
pub(crate) struct CycleScope(usize);

impl CycleScope {
    /// Begins a scope, within the one that this thread may be in.
    pub(crate) fn begin() -> Self {
        Self(CHANGED.with_borrow(Vec::len))
    }
}

/// Empties the maps into which a collection was inserted since the scope began,
/// which frees values that hold themselves.
impl Drop for CycleScope {
    fn drop(&mut self) {
        let changed = CHANGED.with_borrow_mut(|changed| changed.split_off(self.0.min(changed.len())));
        free(changed);
    }
}

fn free(changed: Vec<Weak<Shared>>) {
    for map in changed {
        if let Some(map) = map.upgrade() {
            let entries = map.entries.take();
            drop(map);
            if let Ok(entries) = Rc::try_unwrap(entries) {
                bury(entries.into_values());
            }
        }
    }
}

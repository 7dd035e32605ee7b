//! Tables of values that several places share, as Go's maps are shared.
//!
//! Helm hands a table of globals to a dependency by copying its top: what lies below is one table for both, and what is merged
//! into it for the one shows up in the other. The same holds for tables that `import-values` takes over.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::value::{self, Map as Dict};

/// How deeply tables may lie in one another: one that came to lie in itself has no end.
const MAX_DEPTH: usize = 1_024;

/// How many entries the tables of one result may have: what is shared is written out at each place.
const MAX_ENTRIES: usize = 1_000_000;

/// A table; a clone is the same table. Keys and values are those that it was made of.
#[derive(Clone, Default)]
pub(crate) struct Table<'v>(Rc<RefCell<Entries<'v>>>);

type Entries<'v> = BTreeMap<Cow<'v, str>, Node<'v>>;

/// What stands in a table.
#[derive(Clone)]
pub(crate) enum Node<'v> {
    /// A table, which may stand elsewhere, too.
    Table(Table<'v>),
    /// Anything else, which is replaced and never changed.
    Other(&'v Value),
}

/// Tables are too large to be written out, or one lies in itself.
pub(crate) struct Endless;

impl<'v> Node<'v> {
    /// Returns a node for `value` that shares no table.
    pub(crate) fn of(value: &'v Value) -> Self {
        match value {
            Value::Object(map) => Self::Table(Table::of(map)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Self::Other(value)
            }
        }
    }

    /// Returns the value, without what is shared.
    pub(crate) fn value(&self) -> Result<Value, Endless> {
        self.written(0, &mut 0)
    }

    fn written(&self, depth: usize, entries: &mut usize) -> Result<Value, Endless> {
        match self {
            Self::Table(table) => Ok(Value::Object(table.written(depth + 1, entries)?)),
            Self::Other(value) => Ok(Value::clone(value)),
        }
    }

    /// Counts what [`Self::written`] would write.
    fn count(&self, depth: usize, entries: &mut usize) -> Result<(), Endless> {
        match self {
            Self::Table(table) => table.count(depth + 1, entries),
            Self::Other(_) => Ok(()),
        }
    }
}

impl<'v> Table<'v> {
    /// Returns a table of `map` that shares no table.
    pub(crate) fn of(map: &'v Map<String, Value>) -> Self {
        let entries = map.iter().map(|(key, value)| (Cow::Borrowed(key.as_str()), Node::of(value)));
        Self(Rc::new(RefCell::new(entries.collect())))
    }

    /// Returns a table with the same entries; tables below are shared.
    pub(crate) fn top(&self) -> Self {
        Self(Rc::new(RefCell::new(self.0.borrow().clone())))
    }

    /// Reports whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Returns how many entries it has.
    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    pub(crate) fn get(&self, key: &str) -> Option<Node<'v>> {
        self.0.borrow().get(key).cloned()
    }

    pub(crate) fn insert(&self, key: impl Into<Cow<'v, str>>, node: Node<'v>) {
        self.0.borrow_mut().insert(key.into(), node);
    }

    pub(crate) fn remove(&self, key: &str) {
        self.0.borrow_mut().remove(key);
    }

    /// Returns the entries as they are now: a table can be merged into itself.
    pub(crate) fn entries(&self) -> Vec<(Cow<'v, str>, Node<'v>)> {
        self.0.borrow().iter().map(|(key, node)| (key.clone(), node.clone())).collect()
    }

    /// Returns the table at a path with dots, or the key that holds none.
    pub(crate) fn at<'p>(&self, path: &'p str) -> Result<Self, &'p str> {
        let mut table = self.clone();
        for key in path.split('.') {
            match table.get(key) {
                Some(Node::Table(inner)) => table = inner,
                Some(Node::Other(_)) | None => return Err(key),
            }
        }
        Ok(table)
    }

    /// Returns a table with this one at the end of a path with dots; a single dot is the top.
    pub(crate) fn below(self, path: &str) -> Self {
        if path == "." {
            return self;
        }
        path.rsplit('.').fold(self, |inner, key| {
            let outer = Self::default();
            outer.insert(key.to_owned(), Node::Table(inner));
            outer
        })
    }

    /// Returns the values, without what is shared.
    pub(crate) fn map(&self) -> Result<Map<String, Value>, Endless> {
        self.written(0, &mut 0)
    }

    fn written(&self, depth: usize, entries: &mut usize) -> Result<Map<String, Value>, Endless> {
        let table = self.0.borrow();
        *entries += table.len();
        if depth > MAX_DEPTH || *entries > MAX_ENTRIES {
            return Err(Endless);
        }
        table.iter().map(|(key, node)| Ok((key.to_string(), node.written(depth, entries)?))).collect()
    }

    fn count(&self, depth: usize, entries: &mut usize) -> Result<(), Endless> {
        let table = self.0.borrow();
        *entries += table.len();
        if depth > MAX_DEPTH || *entries > MAX_ENTRIES {
            return Err(Endless);
        }
        table.values().try_for_each(|node| node.count(depth, entries))
    }

    /// Returns the values that templates see: a table that stands at several places is one map, as it is in Helm, and takes
    /// the memory of one.
    pub(crate) fn dict(&self) -> Result<Dict, Endless> {
        self.count(0, &mut 0)?;
        Ok(self.shared(0, &mut BTreeMap::new()))
    }

    /// Returns the map of this table; `known` are those of shared tables, by their addresses.
    fn shared(&self, depth: usize, known: &mut BTreeMap<usize, Dict>) -> Dict {
        let address = Rc::as_ptr(&self.0).addr();
        let is_shared = Rc::strong_count(&self.0) > 1;
        if let Some(dict) = known.get(&address).filter(|_| is_shared) {
            return dict.clone();
        }
        let table = self.0.borrow();
        let entries = table.iter().map(|(key, node)| {
            let value = match node {
                Node::Table(_) if depth >= value::MAX_NESTING => value::Value::Nil,
                Node::Table(table) => value::Value::Map(table.shared(depth + 1, known)),
                Node::Other(other) => value::Value::from_typed_json_at(other, depth + 1),
            };
            (Rc::from(key.as_ref()), value)
        });
        let dict = Dict::new(entries.collect());
        if is_shared {
            known.insert(address, dict.clone());
        }
        dict
    }
}

//! Arrays and objects of filters. However deep they nest, dropping them needs little stack.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::value::Val;

/// How many levels are dropped by calls; what is deeper waits in a list.
const LEVELS: usize = 64;

thread_local! {
    static LEVEL: Cell<usize> = const { Cell::new(0) };
    static WAITING: RefCell<Vec<Val>> = const { RefCell::new(Vec::new()) };
}

/// The items of an array.
#[derive(Clone, Debug, Default)]
pub(super) struct List(Vec<Val>);

/// The pairs of an object. Its keys are in order, as the reference operator's filters show them.
#[derive(Clone, Debug, Default)]
pub(super) struct Object(BTreeMap<Arc<str>, Val>);

impl List {
    /// Returns the items themselves.
    pub(super) fn into_items(mut self) -> Vec<Val> {
        std::mem::take(&mut self.0)
    }
}

impl Object {
    /// Returns an object without pairs.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Returns the values, in the order of their keys.
    pub(super) fn into_values(mut self) -> impl Iterator<Item = Val> {
        std::mem::take(&mut self.0).into_values()
    }
}

/// Drops what `take` gives, at once or, when that would be a call too deep, after the calls that are under way.
fn drop_level(take: impl FnOnce() -> Vec<Val>) {
    let level = LEVEL.try_with(Cell::get).unwrap_or(0);
    if level >= LEVELS {
        let values = take();
        // At the end of a thread the list may be gone.
        let _ = WAITING.try_with(|waiting| waiting.borrow_mut().extend(values));
        return;
    }
    let _ = LEVEL.try_with(|cell| cell.set(level + 1));
    drop(take());
    if level == 0 {
        while let Ok(Some(value)) = WAITING.try_with(|waiting| waiting.borrow_mut().pop()) {
            drop(value);
        }
    }
    let _ = LEVEL.try_with(|cell| cell.set(level));
}

impl Drop for List {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            drop_level(|| std::mem::take(&mut self.0));
        }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            drop_level(|| std::mem::take(&mut self.0).into_values().collect());
        }
    }
}

impl Deref for List {
    type Target = Vec<Val>;

    fn deref(&self) -> &Vec<Val> {
        &self.0
    }
}

impl DerefMut for List {
    fn deref_mut(&mut self) -> &mut Vec<Val> {
        &mut self.0
    }
}

impl From<Vec<Val>> for List {
    fn from(items: Vec<Val>) -> Self {
        Self(items)
    }
}

impl Deref for Object {
    type Target = BTreeMap<Arc<str>, Val>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Object {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<const N: usize> From<[(Arc<str>, Val); N]> for Object {
    fn from(pairs: [(Arc<str>, Val); N]) -> Self {
        Self(pairs.into())
    }
}

impl FromIterator<(Arc<str>, Val)> for Object {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Val)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

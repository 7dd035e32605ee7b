//! Things by the names of templates.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A map that compares lengths first: names of templates are long, and begin alike.
#[derive(Clone, Debug)]
pub(super) struct Names<T>(BTreeMap<usize, BTreeMap<Arc<str>, T>>);

impl<T> Names<T> {
    pub(super) fn insert(&mut self, name: Arc<str>, item: T) {
        self.0.entry(name.len()).or_default().insert(name, item);
    }

    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.0.get(&name.len())?.get(name)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.0.get_mut(&name.len())?.get_mut(name)
    }
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

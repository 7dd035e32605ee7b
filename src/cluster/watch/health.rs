//! How watches are: which of them work, and since when.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

/// How a watch is.
#[derive(Clone, Debug)]
pub struct WatchHealth {
    /// What it watches.
    pub name: String,
    /// Since when it is so. A watch that does not work does not since its last sign of life.
    pub since: Instant,
    /// Why it does not work; `None` when it does.
    pub error: Option<String>,
}

/// How all watches are, by name. Its clones share what they know.
#[derive(Clone, Debug, Default)]
pub struct WatchHealths(Arc<Mutex<BTreeMap<String, WatchHealth>>>);

impl WatchHealths {
    /// Returns how each watch is, sorted by name.
    pub fn all(&self) -> Vec<WatchHealth> {
        self.with(|all| all.values().cloned().collect())
    }

    /// Records that a watch works.
    pub(crate) fn works(&self, name: &str) {
        self.with(|all| {
            if all.get(name).is_none_or(|health| health.error.is_some()) {
                let health = WatchHealth { name: name.to_owned(), since: Instant::now(), error: None };
                all.insert(name.to_owned(), health);
            }
        });
    }

    /// Records that a watch does not work; it did until `alive`.
    pub(crate) fn broke(&self, name: &str, error: String, alive: Instant) {
        self.with(|all| {
            let since = all.get(name).filter(|old| old.error.is_some()).map_or(alive, |old| old.since);
            let health = WatchHealth { name: name.to_owned(), since, error: Some(error) };
            all.insert(name.to_owned(), health);
        });
    }

    /// Removes a watch that has ended.
    pub(crate) fn forget(&self, name: &str) {
        self.with(|all| all.remove(name));
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, WatchHealth>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

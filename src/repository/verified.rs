//! Which maps with versions were found to be as they have to be.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Which write of each index map was found to be as it has to be.
#[derive(Default)]
pub(super) struct Verified(Mutex<BTreeMap<String, String>>);

impl Verified {
    pub(super) fn has(&self, name: &str, version: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).is_some_and(|known| known == version)
    }

    pub(super) fn set(&self, name: &str, version: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), version.to_owned());
    }
}

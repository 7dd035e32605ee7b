//! Objects, and fields of objects, that a release has taken over from others.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use engine::TakenObject;

/// How many objects are named of one release. The log names all.
const NAMED: usize = 20;

/// What releases have taken over since it was reported last. It outlives a run that fails: a run that writes an object
/// puts the marks of its own release on it, so that the next one finds nothing to tell.
#[derive(Default)]
pub(super) struct TakenObjects(Mutex<BTreeMap<String, Vec<TakenObject>>>);

impl TakenObjects {
    /// Records that `release` has written what others had.
    pub(super) fn add(&self, release: &str, object: TakenObject) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = all.entry(release.to_owned()).or_default();
        if objects.len() < NAMED && !objects.contains(&object) {
            objects.push(object);
        }
    }

    /// Returns what `release` has taken over, and forgets it.
    pub(super) fn take(&self, release: &str) -> Vec<TakenObject> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(release).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use engine::TakenFrom;

    use super::*;

    #[test]
    fn a_release_names_no_more_than_it_may_and_each_object_once() {
        let taken = TakenObjects::default();
        for number in (0..30).chain(0..30) {
            taken.add(
                "web",
                TakenObject { object: number.to_string(), from: TakenFrom::Release("ops/db".to_owned()) },
            );
        }
        assert_eq!(taken.take("web").len(), NAMED);
        assert!(taken.take("web").is_empty());
    }
}

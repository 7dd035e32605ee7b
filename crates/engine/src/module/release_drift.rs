//! What others did to the objects of a release, as far as people should know of it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::event::{TakenObject, UnwatchedKind};
use crate::time::Time;

/// How many changed objects are remembered of one release.
const OBJECTS: usize = 100;

/// How often others may change one object until that is a quarrel, of which nothing is told any more.
const QUARREL: u32 = 3;

/// How long an object has to be left in peace until its quarrel is forgotten.
const PEACE: Duration = Duration::from_hours(1);

/// What others did to the objects of one release.
#[derive(Debug, Default)]
pub(super) struct ReleaseDrift {
    changed: BTreeMap<String, ChangedObject>,
    taken: Vec<TakenObject>,
    unwatched: Vec<UnwatchedKind>,
}

/// An object with a rendered field that others have changed.
#[derive(Debug)]
struct ChangedObject {
    /// The JSON path of the first field.
    place: String,
    /// Whether it is so now; otherwise it has become as rendered again.
    differs: bool,
    /// How often it became so.
    times: u32,
    last: Time,
}

/// What is told of a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DriftReport {
    Change,
    /// Others change the object back and forth; what follows is not told.
    Quarrel,
}

impl ReleaseDrift {
    /// Records that an object differs at `place` from what was rendered, and returns what is told of that.
    pub(super) fn changed(&mut self, object: &str, place: &str, now: Time) -> Option<DriftReport> {
        if !self.changed.contains_key(object) && self.changed.len() >= OBJECTS {
            return None;
        }
        let known = self.changed.entry(object.to_owned()).or_insert_with(|| ChangedObject {
            place: String::new(),
            differs: false,
            times: 0,
            last: now,
        });
        if !known.differs && now.since(known.last) >= PEACE {
            known.times = 0;
        }
        place.clone_into(&mut known.place);
        known.last = now;
        if std::mem::replace(&mut known.differs, true) {
            return None;
        }
        known.times = known.times.saturating_add(1);
        match known.times {
            ..QUARREL => Some(DriftReport::Change),
            QUARREL => Some(DriftReport::Quarrel),
            _ => None,
        }
    }

    /// Records that an object is as it was rendered again.
    pub(super) fn restored(&mut self, object: &str, now: Time) {
        if let Some(known) = self.changed.get_mut(object) {
            known.differs = false;
            known.last = now;
        }
    }

    /// Records an upgrade: it wrote all objects, and took these over from other releases.
    pub(super) fn upgraded(&mut self, taken: &[TakenObject]) {
        self.changed.clear();
        self.taken = taken.to_vec();
    }

    /// Forgets what was taken over from a release that is gone: `namespace/name`.
    pub(super) fn release_gone(&mut self, release: &str) {
        self.taken.retain(|taken| taken.release != release);
    }

    /// Records which kinds of objects are not watched; returns those that were watched before.
    pub(super) fn unwatched(&mut self, kinds: Vec<UnwatchedKind>) -> Vec<UnwatchedKind> {
        let is_known = |new: &UnwatchedKind| self.unwatched.iter().any(|known| known.kind == new.kind);
        let new = kinds.iter().filter(|kind| !is_known(kind)).cloned().collect();
        self.unwatched = kinds;
        new
    }

    /// Forgets everything: there is no release any more.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the objects that differ, each with the place and, in a quarrel, how often others changed it.
    pub(super) fn differing(&self) -> impl Iterator<Item = String> {
        let differing = self.changed.iter().filter(|(_, known)| known.differs);
        differing.map(|(object, known)| match known.times {
            ..QUARREL => format!("{object} at {}", known.place),
            times => format!("{object} at {}, {times} times", known.place),
        })
    }

    /// Returns the objects that were taken over.
    pub(super) fn taken(&self) -> &[TakenObject] {
        &self.taken
    }

    /// Returns the kinds that are not watched.
    pub(super) fn unwatched_kinds(&self) -> &[UnwatchedKind] {
        &self.unwatched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slip_07_a_quarrel_over_an_object_is_told_three_times_and_again_after_an_hour_of_peace() {
        let mut changes = ReleaseDrift::default();
        let at = |seconds| Time::from_start(Duration::from_secs(seconds));
        let mut told = Vec::new();
        for round in 0..100 {
            told.extend(changes.changed("ops/ConfigMap/a", "/data/k", at(round * 60)));
            assert_eq!(
                changes.changed("ops/ConfigMap/a", "/data/k", at(round * 60 + 1)),
                None,
                "it is known"
            );
            changes.restored("ops/ConfigMap/a", at(round * 60 + 30));
        }
        assert_eq!(told, [DriftReport::Change, DriftReport::Change, DriftReport::Quarrel]);
        assert_eq!(changes.differing().count(), 0);
        assert_eq!(changes.changed("ops/ConfigMap/a", "/data/k", at(20_000)), Some(DriftReport::Change));
        assert_eq!(changes.differing().collect::<Vec<_>>(), ["ops/ConfigMap/a at /data/k"]);
    }

    #[test]
    fn slip_07_no_more_objects_are_remembered_than_people_can_read() {
        let mut changes = ReleaseDrift::default();
        for number in 0..1_000 {
            changes.changed(&number.to_string(), "/data", Time::from_start(Duration::ZERO));
        }
        assert_eq!(changes.differing().count(), OBJECTS);
    }
}

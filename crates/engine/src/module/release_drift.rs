//! What others did to the objects of a release, as far as people should know of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::event::{TakenFrom, TakenObject, UnwatchedKind};
use crate::failure::Failure;
use crate::time::Time;

/// How many changed objects are remembered of one release.
const OBJECTS: usize = 100;

/// How many writers of one object are named.
const WRITERS: usize = 5;

/// How often others may change one object until that is a quarrel, of which nothing is told any more.
const QUARREL: u32 = 3;

/// How long the first mend that failed waits until it is tried again; each further one waits twice as long.
const MEND_AGAIN: Duration = Duration::from_secs(5);

/// How long it waits at most.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// How long an object has to be left in peace until its quarrel is forgotten.
pub(super) const PEACE: Duration = Duration::from_hours(1);

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
    /// Who wrote it in these times, as far as that is known; the last one at the end.
    writers: Vec<String>,
    /// Whether it is so now; otherwise it has become as rendered again.
    differs: bool,
    /// How often it became so.
    times: u32,
    last: Time,
    /// How many mends of it failed, one after the other.
    failed_mends: u32,
    /// Why the last one failed, as everybody may read it.
    mend_failure: Option<Arc<Failure>>,
}

/// What a changed object means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Found {
    /// What is told of it, if anything.
    pub(super) report: Option<DriftReport>,
    /// Whether others win: they changed it again and again.
    pub(super) is_quarrel: bool,
}

/// What is told of a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DriftReport {
    Change,
    /// Others change the object back and forth; what follows is not told.
    Quarrel,
}

impl ReleaseDrift {
    /// Records that an object differs at `place` from what was rendered, and who wrote that. Returns what it means; `None` if
    /// it was known to differ.
    pub(super) fn changed(
        &mut self,
        object: &str,
        place: &str,
        writer: Option<&str>,
        now: Time,
    ) -> Option<Found> {
        if !self.changed.contains_key(object) && self.changed.len() >= OBJECTS {
            return None;
        }
        let known = self.changed.entry(object.to_owned()).or_insert_with(|| ChangedObject {
            place: String::new(),
            writers: Vec::new(),
            differs: false,
            times: 0,
            last: now,
            failed_mends: 0,
            mend_failure: None,
        });
        if !known.differs && now.since(known.last) >= PEACE {
            known.times = 0;
            known.writers.clear();
        }
        place.clone_into(&mut known.place);
        if let Some(writer) = writer {
            known.writers.retain(|known| known != writer);
            known.writers.push(writer.to_owned());
            if known.writers.len() > WRITERS {
                known.writers.remove(0);
            }
        }
        known.last = now;
        if std::mem::replace(&mut known.differs, true) {
            return None;
        }
        known.times = known.times.saturating_add(1);
        let report = match known.times {
            ..QUARREL => Some(DriftReport::Change),
            QUARREL => Some(DriftReport::Quarrel),
            _ => None,
        };
        Some(Found { report, is_quarrel: known.times >= QUARREL })
    }

    /// Returns whether an object differs from what was rendered.
    pub(super) fn differs(&self, object: &str) -> bool {
        self.changed.get(object).is_some_and(|known| known.differs)
    }

    /// Returns the names of the objects that differ.
    pub(super) fn differing_objects(&self) -> impl Iterator<Item = &str> {
        self.changed.iter().filter(|(_, known)| known.differs).map(|(object, _)| object.as_str())
    }

    /// Records why an object could not be put right. Returns how many mends failed one after the other, and how long the next
    /// one waits; `None` if it differs no more.
    pub(super) fn mend_failed(&mut self, object: &str, why: &Failure) -> Option<(u32, Duration)> {
        let known = self.changed.get_mut(object).filter(|known| known.differs)?;
        known.mend_failure = Some(Arc::new(why.for_everybody().clone()));
        known.failed_mends = known.failed_mends.saturating_add(1);
        let doublings = known.failed_mends.saturating_sub(1).min(10);
        Some((known.failed_mends, (MEND_AGAIN * 2_u32.pow(doublings)).min(LONGEST_WAIT)))
    }

    /// Records that an object is as it was rendered again.
    pub(super) fn restored(&mut self, object: &str, now: Time) {
        if let Some(known) = self.changed.get_mut(object) {
            known.differs = false;
            known.failed_mends = 0;
            known.mend_failure = None;
            known.last = now;
        }
    }

    /// Records an upgrade: it wrote all objects, and took these over from others.
    pub(super) fn upgraded(&mut self, taken: &[TakenObject]) {
        self.changed.clear();
        self.taken = taken.to_vec();
    }

    /// Forgets what was taken over from a release that is gone: `namespace/name`.
    pub(super) fn release_gone(&mut self, release: &str) {
        self.taken.retain(|taken| !matches!(&taken.from, TakenFrom::Release(other) if other == release));
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
        differing.map(|(object, known)| {
            let by = known.writers();
            let by = by.map(|writers| format!(" by {writers}")).unwrap_or_default();
            let times =
                if known.times < QUARREL { String::new() } else { format!(", {} times", known.times) };
            format!("{object} at {}{by}{times}", known.place)
        })
    }

    /// Returns the first object that can't be put right, and why the last try failed.
    pub(super) fn unmended(&self) -> Option<(String, Arc<Failure>)> {
        let failed = |(object, known): (&String, &ChangedObject)| {
            Some((object.clone(), known.mend_failure.clone().filter(|_| known.differs)?))
        };
        self.changed.iter().find_map(failed)
    }

    /// Returns whether others changed an object that differs so often that it is left to them for a while.
    pub(super) fn has_quarrel(&self) -> bool {
        self.changed.values().any(|known| known.differs && known.times >= QUARREL)
    }

    /// Returns who changed an object in these times, if anybody is known.
    pub(super) fn writers(&self, object: &str) -> Option<String> {
        self.changed.get(object)?.writers()
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

impl ChangedObject {
    /// Returns who wrote it, in words.
    fn writers(&self) -> Option<String> {
        let (last, rest) = self.writers.split_last()?;
        Some(if rest.is_empty() { last.clone() } else { format!("{} and {last}", rest.join(", ")) })
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
            let found = changes.changed("ops/ConfigMap/a", "/data/k", None, at(round * 60));
            assert_eq!(found.unwrap().is_quarrel, round >= 2);
            told.extend(found.unwrap().report);
            assert_eq!(
                changes.changed("ops/ConfigMap/a", "/data/k", None, at(round * 60 + 1)),
                None,
                "it is known"
            );
            changes.restored("ops/ConfigMap/a", at(round * 60 + 30));
        }
        assert_eq!(told, [DriftReport::Change, DriftReport::Change, DriftReport::Quarrel]);
        assert_eq!(changes.differing().count(), 0);
        let found = changes.changed("ops/ConfigMap/a", "/data/k", Some("kubectl-edit"), at(20_000));
        assert_eq!(found, Some(Found { report: Some(DriftReport::Change), is_quarrel: false }));
        assert_eq!(changes.differing().collect::<Vec<_>>(), ["ops/ConfigMap/a at /data/k by kubectl-edit"]);
    }

    #[test]
    fn mends_that_fail_come_less_and_less_often_until_one_succeeds() {
        let mut changes = ReleaseDrift::default();
        let now = Time::from_start(Duration::ZERO);
        let why = Failure::new(crate::failure::FailureKind::Cluster, "the webhook says no");
        assert_eq!(changes.mend_failed("a", &why), None);
        changes.changed("a", "/data", None, now);
        let waits: Vec<u64> = (0..8).map(|_| changes.mend_failed("a", &why).unwrap().1.as_secs()).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(changes.unmended(), Some(("a".to_owned(), Arc::new(why.clone()))));
        changes.restored("a", now);
        assert_eq!(changes.mend_failed("a", &why), None);
        changes.changed("a", "/data", None, now);
        assert_eq!(changes.unmended(), None);
        assert_eq!(changes.mend_failed("a", &why), Some((1, MEND_AGAIN)));
    }

    #[test]
    fn slip_07_no_more_objects_are_remembered_than_people_can_read() {
        let mut changes = ReleaseDrift::default();
        for number in 0..1_000 {
            changes.changed(&number.to_string(), "/data", None, Time::from_start(Duration::ZERO));
        }
        assert_eq!(changes.differing().count(), OBJECTS);
    }
}

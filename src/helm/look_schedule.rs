//! When objects of releases are looked at. No I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::object::Key;

/// How long after a change an object is looked at. The times of managed fields are in seconds: a second change within
/// the same second shows nothing new, but the look comes after it.
const FIRST: Duration = Duration::from_millis(1_100);

/// How long an object waits at most that others change all the time.
const LONGEST: Duration = Duration::from_mins(5);

/// Why an object is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookReason {
    /// Others may have changed it.
    Changed,
    /// The watch of its kind does not show it: the watch may be late, or somebody deleted the object while we wrote others.
    Unseen,
    /// It left what the watch of its kind shows: somebody deleted it, or took a label off. The mark of its `uid`, if the watch
    /// said it.
    Left(Option<u64>),
}

/// The looks that are due, and when each object was looked at last: one that others change again and again is looked at
/// less and less often, and always once after the last change.
#[derive(Debug, Default)]
pub(super) struct LookSchedule(BTreeMap<(String, Key), Look>);

#[derive(Debug)]
struct Look {
    due: Option<Instant>,
    reason: LookReason,
    last: Option<Instant>,
    pause: Duration,
}

impl LookSchedule {
    /// Has an object of a release looked at soon. One that left what the watch shows is looked for at once.
    pub(super) fn add(&mut self, release: &str, key: &Key, reason: LookReason, now: Instant) {
        let new = || Look { due: None, reason, last: None, pause: FIRST };
        let look = self.0.entry((release.to_owned(), key.clone())).or_insert_with(new);
        if let LookReason::Left(_) = reason {
            let again = look.last.filter(|_| matches!(look.reason, LookReason::Left(_)));
            look.due = Some(again.map_or(now, |last| now.max(last + FIRST)));
            look.reason = reason;
            return;
        }
        if look.due.is_some() {
            if (reason, look.reason) == (LookReason::Changed, LookReason::Unseen) {
                look.reason = reason;
            }
            return;
        }
        look.reason = reason;
        let mut due = now + FIRST;
        if let Some(last) = look.last {
            look.pause =
                if now.duration_since(last) > look.pause * 2 { FIRST } else { (look.pause * 2).min(LONGEST) };
            due = due.max(last + look.pause);
        }
        look.due = Some(due);
    }

    /// Returns when the next look is due, if there is one.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.values().filter_map(|look| look.due).min()
    }

    /// Returns an object that is due, and why.
    pub(super) fn take(&mut self, now: Instant) -> Option<(String, Key, LookReason)> {
        self.0.retain(|_, look| {
            look.due.is_some() || look.last.is_none_or(|last| now.duration_since(last) <= look.pause * 2)
        });
        let (name, look) = self.0.iter_mut().find(|(_, look)| look.due.is_some_and(|due| due <= now))?;
        look.due = None;
        look.last = Some(now);
        let (release, key) = name.clone();
        Some((release, key, look.reason))
    }

    /// Reports whether an object is to be looked for that left what the watch shows.
    pub(super) fn has_left(&self, release: &str, key: &Key) -> bool {
        let is_it = |look: &Look| look.due.is_some() && matches!(look.reason, LookReason::Left(_));
        !self.0.is_empty() && self.0.get(&(release.to_owned(), key.clone())).is_some_and(is_it)
    }

    /// Forgets when an object was looked at: it is gone.
    pub(super) fn forget_object(&mut self, release: &str, key: &Key) {
        self.0.remove(&(release.to_owned(), key.clone()));
    }

    /// Forgets the objects of a release.
    pub(super) fn forget(&mut self, release: &str) {
        self.0.retain(|(own, _), _| own != release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key { group: String::new(), kind: "ConfigMap".into(), namespace: "ns".into(), name: "a".into() }
    }

    #[test]
    fn slip_07_an_object_that_changes_all_the_time_is_looked_at_less_and_less_often() {
        let start = Instant::now();
        let mut schedule = LookSchedule::default();
        let mut looks = Vec::new();
        for second in 0..7_200 {
            let now = start + Duration::from_secs(second);
            schedule.add("web", &key(), LookReason::Changed, now);
            if schedule.take(now).is_some() {
                looks.push(second);
            }
        }
        assert_eq!(looks.get(..5).unwrap(), [2, 5, 10, 19, 37]);
        assert!(looks.len() < 35, "{looks:?}");
        // The last change is seen, too.
        let due = schedule.next().unwrap();
        assert!(schedule.take(due).is_some() && schedule.next().is_none());
        // After a while of peace it is quick again.
        let later = due + LONGEST * 3;
        schedule.add("web", &key(), LookReason::Changed, later);
        assert_eq!(schedule.next(), Some(later + FIRST));
    }

    #[test]
    fn a_change_is_a_reason_to_look_also_at_what_is_looked_for() {
        let start = Instant::now();
        for reasons in [[LookReason::Unseen, LookReason::Changed], [LookReason::Changed, LookReason::Unseen]]
        {
            let mut schedule = LookSchedule::default();
            for reason in reasons {
                schedule.add("web", &key(), reason, start);
            }
            let (.., reason) = schedule.take(start + FIRST).unwrap();
            assert_eq!(reason, LookReason::Changed);
        }
    }

    #[test]
    fn what_left_the_watch_is_looked_for_at_once_and_no_more_than_once_a_second() {
        let start = Instant::now();
        let mut schedule = LookSchedule::default();
        schedule.add("web", &key(), LookReason::Changed, start);
        let left = LookReason::Left(None);
        for (seconds, expected) in [(0, 0), (1, 1_100), (2, 2_200), (60, 60_000)] {
            let now = start + Duration::from_secs(seconds);
            schedule.add("web", &key(), left, now);
            assert!(schedule.has_left("web", &key()));
            let due = schedule.next().unwrap();
            assert_eq!(due, start + Duration::from_millis(expected));
            assert_eq!(schedule.take(due).unwrap().2, left);
            assert!(!schedule.has_left("web", &key()));
        }
        // One that was gone and is back may go again at once.
        schedule.forget_object("web", &key());
        schedule.add("web", &key(), left, start + Duration::from_mins(1));
        assert_eq!(schedule.next(), Some(start + Duration::from_mins(1)));
    }

    #[test]
    fn what_is_looked_at_no_more_is_forgotten() {
        let start = Instant::now();
        let mut schedule = LookSchedule::default();
        schedule.add("web", &key(), LookReason::Unseen, start);
        schedule.take(start + FIRST).unwrap();
        assert!(schedule.take(start + Duration::from_mins(20)).is_none() && schedule.0.is_empty());
        schedule.add("web", &key(), LookReason::Unseen, start);
        schedule.forget("web");
        assert_eq!(schedule.next(), None);
    }
}

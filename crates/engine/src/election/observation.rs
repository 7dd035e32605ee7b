//! What was seen of the Lease, and from when on it may be taken.

use std::sync::Arc;
use std::time::Duration;

use crate::lease::LeaseRecord;
use crate::time::Time;

/// The longest time that the record of somebody else is believed. Nobody may keep all others out for ever by a number.
pub(super) const LONGEST: Duration = Duration::from_mins(10);

/// What who gives a Lease back writes as its duration. An empty holder alone may be somebody's edit.
pub(super) const GIVEN_BACK: Duration = Duration::from_secs(1);

/// The Lease as it was seen last.
#[derive(Clone, Debug)]
pub(super) struct Observation {
    /// Its record; `None` when there is no Lease.
    pub(super) record: Option<LeaseRecord>,
    /// Until when it may be held, whoever holds it: it may be taken from then on.
    pub(super) held_until: Time,
}

impl Observation {
    /// Returns what is known after this was seen at `now`, and what was `before`.
    ///
    /// A Lease that is not given back is held for `shortest` at least, whatever a record says. One that never was there may be
    /// taken after `unknown`.
    pub(super) fn of(
        record: Option<LeaseRecord>,
        before: Option<&Self>,
        now: Time,
        (shortest, unknown): (Duration, Duration),
    ) -> Self {
        // Whoever edits labels renews nothing.
        let said = |record: &LeaseRecord| LeaseRecord { version: String::new(), ..record.clone() };
        let known = before.and_then(|before| before.record.as_ref()).map(said);
        let held_until = match &record {
            Some(record) if Some(said(record)) == known => before.map_or(now, |before| before.held_until),
            Some(record) if record.holder.is_none() && record.duration == Some(GIVEN_BACK) => now,
            Some(record) => {
                now + record.duration.unwrap_or_default().max(shortest).min(LONGEST.max(shortest))
            }
            // Whoever held a Lease that somebody deleted goes on until its own deadline.
            None => before.map_or(now + unknown, |before| before.held_until),
        };
        Self { record, held_until }
    }

    /// Returns who holds it.
    pub(super) fn holder(&self) -> Option<&Arc<str>> {
        self.record.as_ref()?.holder.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORTEST: Duration = Duration::from_secs(35);

    fn at(seconds: u64) -> Time {
        Time::from_start(Duration::from_secs(seconds))
    }

    fn held(duration: u64, version: &str) -> LeaseRecord {
        LeaseRecord {
            holder: Some("other".into()),
            duration: Some(Duration::from_secs(duration)),
            renewed: Some(version.to_owned()),
            version: version.to_owned(),
            ..LeaseRecord::default()
        }
    }

    fn seen(record: Option<LeaseRecord>, before: Option<&Observation>, seconds: u64) -> Observation {
        Observation::of(record, before, at(seconds), (SHORTEST, Duration::from_secs(2)))
    }

    #[test]
    fn a_lease_is_held_for_its_time_from_its_last_change_on() {
        let first = seen(Some(held(35, "1")), None, 100);
        assert_eq!(first.held_until, at(135));
        let same = seen(Some(held(35, "1")), Some(&first), 120);
        assert_eq!(same.held_until, at(135), "seeing it again is no renewal");
        let labelled = LeaseRecord { version: "2".to_owned(), ..held(35, "1") };
        assert_eq!(
            seen(Some(labelled), Some(&same), 130).held_until,
            at(135),
            "an edit of its labels neither"
        );
        assert_eq!(seen(Some(held(35, "3")), Some(&same), 120).held_until, at(155));
    }

    #[test]
    fn no_record_makes_it_shorter_than_ours_or_endless() {
        for (duration, until) in [(1, 135), (60, 160), (600, 700), (1_000_000, 700)] {
            assert_eq!(seen(Some(held(duration, "1")), None, 100).held_until, at(until), "{duration}");
        }
    }

    #[test]
    fn only_a_lease_that_was_given_back_is_free_at_once() {
        let before = seen(Some(held(35, "1")), None, 100);
        let empty = |duration| LeaseRecord { holder: None, ..held(duration, "2") };
        assert_eq!(seen(Some(empty(1)), Some(&before), 110).held_until, at(110));
        assert_eq!(
            seen(Some(empty(35)), Some(&before), 110).held_until,
            at(145),
            "somebody cleared the holder"
        );
        assert_eq!(seen(None, Some(&before), 110).held_until, at(135), "somebody deleted it");
        assert_eq!(seen(None, None, 110).held_until, at(112), "whoever leads makes it again by then");
        assert_eq!(seen(Some(LeaseRecord::default()), None, 110).held_until, at(145), "garbage");
    }
}

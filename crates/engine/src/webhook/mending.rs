//! How often an object is put right that somebody else changes: at once, unless both do so again and again.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Time;

/// How many times in [`WINDOW`] an object is put right at once.
const MOST: usize = 5;

/// How long a change by somebody else is remembered.
const WINDOW: Duration = Duration::from_mins(10);

/// The first pause; it doubles with each that follows it.
const FIRST_PAUSE: Duration = Duration::from_mins(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// What was put right, of one object.
#[derive(Debug, Default)]
pub(super) struct Mending {
    times: VecDeque<Time>,
    pause: Option<Duration>,
    until: Option<Time>,
}

/// Whether an object may be put right.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    /// It may, now.
    Now,
    /// It may when so much time has passed. That is to be told.
    Paused(Duration),
    /// It may later, as was told.
    Later,
}

impl Mending {
    /// Takes a turn at an object that is not as it is to be.
    pub(super) fn turn(&mut self, now: Time) -> Turn {
        match self.until {
            Some(until) if until > now => return Turn::Later,
            // The pause is over: once more, and the next change leads to a longer one.
            Some(_) => {
                self.until = None;
                self.times.push_back(now);
                return Turn::Now;
            }
            None => {}
        }
        self.times.retain(|time| now.since(*time) < WINDOW);
        if self.times.is_empty() {
            self.pause = None;
        }
        if self.pause.is_none() && self.times.len() < MOST {
            self.times.push_back(now);
            return Turn::Now;
        }
        let pause = self.pause.map_or(FIRST_PAUSE, |pause| (pause * 2).min(LONGEST_PAUSE));
        self.pause = Some(pause);
        self.until = Some(now + pause);
        Turn::Paused(pause)
    }

    /// Records that the object is as it is to be.
    pub(super) fn rest(&mut self, now: Time) {
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
        }
        if self.until.is_none() && self.times.back().is_none_or(|time| now.since(*time) >= WINDOW) {
            *self = Self::default();
        }
    }

    /// Returns whether nobody else has written the object for a while.
    pub(super) fn is_over(&self) -> bool {
        self.times.is_empty() && self.until.is_none()
    }

    /// Returns when the object is to be looked at again.
    pub(super) fn next(&self) -> Option<Time> {
        let calm = self.pause.and_then(|_| self.times.back()).map(|time| *time + WINDOW);
        self.until.or(calm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_changed_now_and_then_is_put_right_at_once_for_ever() {
        let mut mending = Mending::default();
        let mut now = Time::START;
        for _ in 0..100 {
            assert_eq!(mending.turn(now), Turn::Now);
            now = now + Duration::from_mins(3);
        }
    }

    #[test]
    fn a_fight_is_paused_for_longer_and_longer_and_forgotten_when_it_is_over() {
        let mut mending = Mending::default();
        let mut now = Time::START;
        for _ in 0..MOST {
            assert_eq!(mending.turn(now), Turn::Now);
            now = now + Duration::from_secs(1);
        }
        for minutes in [1, 2, 4, 8, 10, 10] {
            let until = now + Duration::from_mins(minutes);
            assert_eq!(mending.turn(now), Turn::Paused(Duration::from_mins(minutes)));
            assert_eq!(mending.turn(now + Duration::from_secs(1)), Turn::Later);
            assert!(!mending.is_over() && mending.next() == Some(until));
            assert_eq!(mending.turn(until), Turn::Now);
            now = until + Duration::from_secs(1);
        }
        assert!(mending.next().is_some_and(|at| at < now + WINDOW));
        now = now + WINDOW;
        mending.rest(now);
        assert!(mending.is_over() && mending.next().is_none());
        for _ in 0..MOST {
            assert_eq!(mending.turn(now), Turn::Now);
        }
        assert!(mending.turn(now) == Turn::Paused(FIRST_PAUSE));
    }
}

//! Kubernetes Events about modules, few enough to be read.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Time;

/// How many Events a module may cause within [`WINDOW`].
const LIMIT: usize = 10;
/// The time in which they are counted.
const WINDOW: Duration = Duration::from_mins(10);

/// Which Events about one module were written.
#[derive(Clone, Debug, Default)]
pub(super) struct Announced {
    /// When, in the last [`WINDOW`].
    times: VecDeque<Time>,
    /// What was written last.
    last: String,
    /// How many changes led to no Event since.
    left_out: usize,
}

impl Announced {
    /// Returns the message to write now, if there is room for one.
    pub(super) fn admit(&mut self, message: String, now: Time) -> Option<String> {
        if message == self.last {
            return None;
        }
        while self.times.front().is_some_and(|at| now.since(*at) >= WINDOW) {
            self.times.pop_front();
        }
        if self.times.len() >= LIMIT {
            self.left_out += 1;
            return None;
        }
        self.times.push_back(now);
        self.last.clone_from(&message);
        match std::mem::take(&mut self.left_out) {
            0 => Some(message),
            left_out => Some(format!("{message} ({left_out} changes before it were not told)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_flaps_is_told_of_ten_times_in_ten_minutes() {
        let mut announced = Announced::default();
        let at = |seconds| Time::from_start(Duration::from_secs(seconds));
        let admitted: Vec<_> =
            (0..30).filter_map(|n| announced.admit(format!("change {n}"), at(n))).collect();
        assert_eq!(admitted.len(), LIMIT);
        let later = announced.admit("change 99".to_owned(), at(700)).unwrap();
        assert_eq!(later, "change 99 (20 changes before it were not told)");
        assert_eq!(announced.admit("change 99".to_owned(), at(800)), None, "the same is not told twice");
    }
}

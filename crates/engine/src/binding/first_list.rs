//! The first list of a watch: who waits for it keeps others waiting only while it is about to come.
//!
//! What it fails of may be mended by a module, such as a right, or a webhook that converts the objects. So it is like a kind
//! that does not exist: all others go first, and who waits goes on by itself when the list comes.
//!
//! ```text
//! asked ─▶ fails for 5 s, or is not there after a minute ─▶ late ─▶ comes
//!   └──────────────────────── comes ───────────────────────────────▶
//! ```

use std::time::Duration;

use crate::failure::FailureKind;
use crate::queue::Reason;
use crate::time::Time;

/// How long it fails until others need not wait for it. A right may come a moment later than the operator, and an API server
/// that was begun anew answers a moment later.
const FAILING: Duration = Duration::from_secs(5);

/// How long it takes until others need not wait for it, if nothing says that it fails. Lists of many objects take seconds.
const LONGEST: Duration = Duration::from_mins(1);

/// The first list of a watch, as long as it is not there.
#[derive(Debug)]
pub(super) struct FirstList {
    /// Since when it fails, and of what it failed the last time.
    failing: Option<(Time, FailureKind)>,
    /// From when on others need not wait for it.
    late_at: Time,
    /// Whether that time has come.
    is_late: bool,
}

impl FirstList {
    /// Returns one that is asked for now.
    pub(super) fn asked(now: Time) -> Self {
        Self { failing: None, late_at: now + LONGEST, is_late: false }
    }

    /// Returns one that is asked for now, and that fails for as long as another one of the same objects.
    pub(super) fn asked_like(now: Time, other: &Self) -> Self {
        let mut first = Self { failing: other.failing, ..Self::asked(now) };
        first.judge(now);
        first
    }

    /// Records that it failed.
    pub(super) fn fail(&mut self, kind: FailureKind, now: Time) {
        let since = self.failing.map_or(now, |(since, _)| since);
        self.failing = Some((since, kind));
        self.judge(now);
    }

    /// Looks whether it is late.
    pub(super) fn judge(&mut self, now: Time) {
        if let Some((since, _)) = self.failing {
            self.late_at = self.late_at.min(since + FAILING);
        }
        self.is_late = self.late_at <= now;
    }

    /// Returns since when the objects can't be listed. A filter that fails says nothing about that.
    pub(super) fn failing_since(&self) -> Option<Time> {
        self.failing.filter(|(_, kind)| *kind != FailureKind::HookOutput).map(|(since, _)| since)
    }

    /// Returns when it is late, if it is not yet.
    pub(super) fn late_at(&self) -> Option<Time> {
        (!self.is_late).then_some(self.late_at)
    }

    /// Returns what is missing for it, if others need not wait for it.
    pub(super) fn obstacle(&self, kind: &str) -> Option<Reason> {
        let is_forbidden = matches!(self.failing, Some((_, FailureKind::Forbidden)));
        let reason = if is_forbidden { Reason::Right } else { Reason::LateList };
        self.is_late.then(|| reason(kind.to_owned()))
    }
}

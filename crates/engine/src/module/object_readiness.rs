//! What is known about whether the objects of a release are ready.

use crate::name::RunId;
use crate::time::Time;
use crate::view::ReadinessView;

/// Whether the objects of a release are ready.
#[derive(Clone, Debug, Default)]
pub(super) enum Readiness {
    /// Nobody asks.
    #[default]
    Unasked,
    /// They are not, as far as is known.
    Awaited {
        /// The question that is open.
        run: RunId,
        since: Time,
        /// Those that are not, with the reason; empty before the first answer.
        unready: Vec<String>,
        is_late: bool,
    },
    /// All of them were since the last upgrade.
    Ready,
}

impl Readiness {
    /// Returns a picture of it, if somebody asks.
    pub(super) fn view(&self, now: Time) -> Option<ReadinessView> {
        match self {
            Self::Unasked => None,
            Self::Ready => Some(ReadinessView::default()),
            Self::Awaited { since, unready, is_late, .. } => Some(ReadinessView {
                awaited_for: Some(now.since(*since)),
                is_late: *is_late,
                unready: unready.clone(),
            }),
        }
    }
}

/// Returns which objects are not ready, in one line.
pub(super) fn shown(unready: &[String]) -> String {
    match unready {
        [] => "nobody has looked at them yet".to_owned(),
        [first] => first.clone(),
        [first, rest @ ..] => format!("{first}, and {} more", rest.len()),
    }
}

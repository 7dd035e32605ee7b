//! What a person should know about an object whose hook does not fail.

use std::time::Duration;

/// How long a deleted object may wait for its hook to say that it is finalized before that is told.
pub(super) const OVERDUE: Duration = Duration::from_mins(5);

/// How long what is announced on an object may be.
pub(super) const LONGEST_MESSAGE: usize = 240;

/// What a person should know about an object.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Remark {
    /// Its hook asks for something else each time it runs.
    Loop,
    /// It is deleted, and its hook did not say for long that it is finalized.
    Unfinished,
    /// Its hook says that it is finalized, and it is not being deleted.
    Early,
    /// It is deleted, and stays by a finalizer of a binding that is not there.
    Left,
    /// The API server drops what its hook says of its status.
    Dropped,
}

impl Remark {
    pub(super) const ALL: [Self; 5] = [Self::Loop, Self::Unfinished, Self::Early, Self::Left, Self::Dropped];

    /// Returns the reason of the Event that tells of it.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Loop => "ReconcileLoop",
            Self::Unfinished => "FinalizePending",
            Self::Early => "FinalizedIgnored",
            Self::Left => "FinalizerLeft",
            Self::Dropped => "StatusIgnored",
        }
    }

    /// Returns what a person can do about it.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::Loop => {
                "correct the hook to say the same for the same: no times and no random numbers in children; a change of the object, \
                 of values or of the hook ends the wait"
            }
            Self::Unfinished => {
                "look at what its hook waits for; it writes finalized: true when nothing is left to do, and runs again when a child \
                 or something related changes"
            }
            Self::Early => "correct the hook to write it only if the type of its context is Finalize",
            Self::Left => {
                "bring the binding back; or, if nothing of it is left to do, remove the finalizer from metadata.finalizers of the object \
                 (`kubectl edit`)"
            }
            Self::Dropped => {
                "add the fields to the schema of the status in the CustomResourceDefinition, or let the hook write what is there; they \
                 are written again when the object changes"
            }
        }
    }
}

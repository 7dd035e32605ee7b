//! What is known about one key: how far the work on it is, and what was done before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use values::Checksum;

use super::finalizer_record::Left;
use super::identity::ChildKey;
use super::remark::Remark;
use super::turns::{ChildChange, Turns};
use crate::catalog::Hook;
use crate::configuration::Prepared;
use crate::effect::ValuesInput;
use crate::event::{HookOutput, Usage};
use crate::failure::Failure;
use crate::hook::reconcile::ReconcileResult;
use crate::name::RunId;
use crate::time::Time;

/// What was tried with a child.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Attempt {
    /// What it should be, and its place among those that are made with it.
    pub(super) declared: Checksum,
    pub(super) place: usize,
    /// What it was then; `None` if it was not there.
    pub(super) living: Option<Checksum>,
}

/// What is known about one key.
#[derive(Debug, Default)]
pub(super) struct KeyState {
    pub(super) pass: Pass,
    /// The answer to the effect of its pass.
    pub(super) answer: Option<Answer>,
    /// Whether something else than the end of a child changed while it waits.
    pub(super) is_stale: bool,
    /// What was tried with its children and need not be tried again.
    pub(super) attempts: BTreeMap<ChildKey, Attempt>,
    /// The children that somebody removed since the hook was shown them: it decides once more whether they are to be made.
    pub(super) gone: BTreeSet<ChildKey>,
    /// The children that were made before, and that no watch tells of. They are not as they should be.
    pub(super) unseen: BTreeSet<ChildKey>,
    /// A child that has to be gone before it can be made again.
    pub(super) leaving: Option<ChildKey>,
    /// The object as it is after our own write of its status: such a change is no news.
    pub(super) expected: Option<Checksum>,
    /// The version of the object that our finalizer was added to. Until another one is seen, nothing is known of what came of it.
    pub(super) finalizer_added_to: Option<String>,
    /// The version of the object that our last write named. Where it was taken, the version that is seen next has what was written,
    /// for nobody wrote in between.
    pub(super) written_to: Option<String>,
    /// What was written into the status, and what that was before.
    pub(super) written: Option<(Checksum, Checksum)>,
    /// Whether its hook said that it is finalized: it is not asked again.
    pub(super) end: End,
    /// What was announced last on the object, if that is a failure.
    pub(super) announced: Option<String>,
    /// What was done to its children since a run changed none.
    pub(super) turns: Turns,
    /// Since when its hook ends well in `Finalize` and does not say that it is finalized.
    pub(super) unfinished_since: Option<Time>,
    /// The finalizer that keeps it, once ours is gone, and that nobody removes.
    pub(super) left: Option<Left>,
    /// Since when it stays by such a finalizer.
    pub(super) stays_since: Option<Time>,
    /// What of the status that its hook says the API server dropped.
    pub(super) dropped: Option<String>,
    /// Whether its hook says that it is finalized while it is not being deleted.
    pub(super) is_finalized_early: bool,
    /// What was told about it that still holds.
    pub(super) told: BTreeSet<Remark>,
    pub(super) obstacle: Obstacle,
}

/// Whether the hook of an object that is being deleted said that nothing is left to do.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum End {
    /// It did not, as far as this process knows.
    #[default]
    Open,
    /// It did.
    Said,
    /// The object says so as well: whoever comes after this process knows it.
    Recorded,
    /// Our finalizer was removed: nothing is done about the object any more.
    Released,
}

/// What keeps the hook of a key from running, as far as the object says it.
#[derive(Debug, Default)]
pub(super) struct Obstacle {
    /// What was announced.
    pub(super) announced: Option<String>,
    /// Whether the condition was written, or removed, as far as it can be.
    pub(super) is_marked: bool,
    /// The version of the object that it was written to. Until another one is seen, nothing is known of what came of it.
    pub(super) written_to: Option<String>,
}

/// How far the work on a key is.
///
/// ```text
/// Idle ─▶ Finalizing ─▶ Idle ─▶ Process ─▶ Carrying ─▶ Applying ─▶ Status ─▶ Pruning ─▶ Unfinalizing
///   ▲                                                                          │ ▲
///   │                                                                          ▼ │ before what is finalized loses a child
///   │                                                                        Recording
///   └────────────────── something changed, or children are gone ───────────────┘
/// ```
#[derive(Debug, Default)]
pub(super) enum Pass {
    #[default]
    Idle,
    /// The finalizer is being added.
    Finalizing,
    /// The hook runs.
    Process(Box<Process>),
    /// What it wrote into other files is carried out.
    Carrying(Box<Process>, Wanted, Carrying),
    /// Its children are being applied: these, once that has begun.
    Applying(Wanted, Vec<ChildChange>),
    /// The status is being written.
    Status(Wanted, (Checksum, Checksum)),
    /// Children are being deleted, one after the other.
    Pruning(Wanted, Pruning),
    /// It is being written on children of a binding that is not there any more that they are those of this one.
    TakingOver,
    /// It is being written on the object that its hook said that it is finalized.
    Recording(Wanted),
    /// The finalizer is being removed.
    Unfinalizing,
    /// The condition is being written, or removed, that says why the hook can't run.
    Stalling,
}

/// A hook that runs, or ran.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) hook: Arc<Hook>,
    pub(super) values: ValuesInput,
    pub(super) is_finalize: bool,
    /// The generation of the object that it is shown.
    pub(super) generation: i64,
}

/// Which step of a hook's output is carried out.
#[derive(Debug)]
pub(super) enum Carrying {
    Patching(Box<Prepared>),
    Saving(Box<Prepared>),
}

/// What should be.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) result: ReconcileResult,
    pub(super) is_finalize: bool,
    /// The identity of the object that it was said of, and its generation.
    pub(super) uid: Arc<str>,
    pub(super) generation: i64,
}

/// How far pruning is.
#[derive(Debug, Default)]
pub(super) struct Pruning {
    /// What was deleted.
    pub(super) deleted: BTreeSet<ChildKey>,
    /// Whether the status that was written before was waited for.
    pub(super) has_waited: bool,
}

/// What came of an effect.
#[derive(Debug)]
pub(super) enum Answer {
    Hook(Box<Result<HookOutput, Failure>>, Option<Usage>),
    Patched(Result<(), Failure>),
    Saved(RunId, Result<String, Failure>),
}

impl KeyState {
    /// Returns how many things are kept by name.
    pub(super) fn entries(&self) -> usize {
        self.attempts.len() + self.gone.len() + self.unseen.len() + self.turns.len()
    }

    /// Returns whether our finalizer was removed.
    pub(super) fn is_released(&self) -> bool {
        self.end == End::Released
    }

    /// Returns whether the next step begins with the object as it is.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.pass, Pass::Idle)
    }
}

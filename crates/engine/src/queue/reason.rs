//! What a task waits for, and what a person can do about it.

use std::fmt;
use std::time::Duration;

use crate::time::Time;

/// What a task waits for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reason {
    /// A new version of its module's files is broken.
    BrokenVersion(String),
    /// A stale effect of the same module has to end first.
    EarlierRun,
    /// Objects that are being deleted, and that the hooks of a module finalize which is removed.
    Finalizing {
        /// Which.
        what: String,
        /// When it is not waited for any more.
        until: Time,
    },
    /// The hooks of its module, which are asked what they want.
    Hooks,
    /// The kind of a binding does not exist.
    Kind(String),
    /// The first list of a kind, which fails or hangs.
    LateList(String),
    /// The first list of a watch.
    List(String),
    /// Other modules.
    Modules(String),
    /// Somebody, since all attempts that its hook asks for have failed.
    Parked(String),
    /// The registry of module sources, which is written before the first revision of a release.
    Registry,
    /// The right to list and watch the kind of a binding.
    Right(String),
    /// Its hook may not run again so soon.
    Rate {
        /// When it may.
        until: Time,
    },
    /// Too many hooks run.
    Slot,
    /// The Synchronization of bindings.
    Synchronization(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BrokenVersion(why) => write!(f, "its new version is broken: {why}"),
            Self::EarlierRun => f.write_str("an earlier run of the module has to end first"),
            Self::Finalizing { what, .. } => f.write_str(what),
            Self::Hooks => f.write_str("hooks of the module answer --config"),
            Self::Kind(kind) => write!(f, "kind {kind} does not exist yet"),
            Self::LateList(kind) => write!(f, "the first list of kind {kind}, which does not come"),
            Self::List(what) => write!(f, "the first list of {what}"),
            Self::Modules(names) => write!(f, "modules {names}"),
            Self::Parked(why) => f.write_str(why),
            Self::Registry => f.write_str(
                "the registry of module sources: that it may have a release is recorded there first",
            ),
            Self::Right(kind) => write!(f, "the right to list and watch kind {kind}"),
            Self::Rate { .. } => f.write_str("executionMinInterval of its hook"),
            Self::Slot => f.write_str("a free place among the running hooks (--max-hooks)"),
            Self::Synchronization(what) => write!(f, "Synchronization of {what}"),
        }
    }
}

impl Reason {
    /// Returns whether a module may bring it. It may stand anywhere behind in the same queue, so all others go first.
    pub(crate) fn may_come_from_modules(&self) -> bool {
        matches!(self, Self::Kind(_) | Self::LateList(_) | Self::Right(_))
    }

    /// Returns whether who waits for it keeps nobody else of its queue waiting.
    pub(crate) fn stands_aside(&self) -> bool {
        self.may_come_from_modules() || matches!(self, Self::Parked(_) | Self::Registry)
    }

    /// Returns how long it may take until it is seen that the last module has brought what is missing.
    pub(crate) fn patience(&self) -> Duration {
        // A list that failed is tried again after at most a minute, and a kind is seen at once.
        let seconds = if matches!(self, Self::LateList(_) | Self::Right(_)) { 75 } else { 5 };
        Duration::from_secs(seconds)
    }

    /// Returns whether it does not end by itself: a person has to do something.
    pub(crate) fn needs_help(&self) -> bool {
        self.may_come_from_modules() || matches!(self, Self::BrokenVersion(_) | Self::Parked(_))
    }

    /// Returns what a person can do about it.
    pub(crate) fn advice(&self) -> String {
        match self {
            Self::BrokenVersion(_) => {
                "correct the file that the message names; it is read again by itself".to_owned()
            }
            Self::EarlierRun => "nothing: it goes on when that run has ended".to_owned(),
            Self::Finalizing { .. } => {
                "look at the hook that finalizes it: `addon-operator why queue NAME`; it is waited for 5 minutes, and then left".to_owned()
            }
            Self::Hooks => "nothing: it goes on when they have answered".to_owned(),
            Self::Kind(kind) => format!(
                "install the CustomResourceDefinition of {kind}, or switch the module on that brings it (for its own hooks in `crds/` of its chart, not in `templates/`); the task goes on by itself"
            ),
            Self::LateList(kind) => format!(
                "look whether the API server lists {kind} (`addon-operator status` says what that fails of), or switch the module on that mends it; the task goes on by itself"
            ),
            Self::List(_) => {
                "look whether the API server answers and whether the operator may list and watch that kind (RBAC); \
                 the task goes on by itself"
                    .to_owned()
            }
            Self::Modules(_) => {
                "look at those modules: `addon-operator why module NAME`".to_owned()
            }
            Self::Parked(_) => {
                "correct the hook or what it needs; it goes on when files or the ConfigMap change, or with `addon-operator module resume NAME`"
                    .to_owned()
            }
            Self::Registry => {
                "nothing, unless it lasts: then look into the log why the operator can't write Secrets in its own namespace".to_owned()
            }
            Self::Right(kind) => format!(
                "grant the operator's ServiceAccount list and watch of {kind} (RBAC), or switch the module on that does; the task goes on by itself"
            ),
            Self::Rate { .. } => {
                "nothing: settings.executionMinInterval of the hook asks for this pause".to_owned()
            }
            Self::Slot => "nothing, unless it lasts: then raise --max-hooks, or look for a hook that hangs".to_owned(),
            Self::Synchronization(_) => {
                "look at the queue of that hook: `addon-operator why queue NAME`".to_owned()
            }
        }
    }
}

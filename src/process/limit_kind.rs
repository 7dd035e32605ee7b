//! What can be limited of a program, and a limit that it met.

use std::fmt;

/// What can be limited.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LimitKind {
    /// The rate of computing.
    Cpu,
    /// Memory.
    Memory,
    /// What is printed and written into the files of a run.
    Output,
    /// Processes and threads at a time.
    Processes,
}

/// A limit that a program has met.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MetLimit {
    /// Which one.
    pub kind: LimitKind,
    /// How much it allows, in the unit of [`HookLimits`](engine::hook::HookLimits).
    pub most: u64,
}

impl LimitKind {
    /// Returns the controller of control groups that limits it.
    pub(super) const fn controller(self) -> Option<&'static str> {
        match self {
            Self::Cpu => Some("cpu"),
            Self::Memory => Some("memory"),
            Self::Processes => Some("pids"),
            Self::Output => None,
        }
    }

    /// Returns its key in `settings.limits`.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Output => "output",
            Self::Processes => "processes",
        }
    }
}

impl fmt::Display for MetLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, most } = self;
        match kind {
            LimitKind::Cpu => write!(f, "it may use {most} thousandths of a CPU at most")?,
            LimitKind::Memory => write!(f, "it needs more memory than the {most} bytes that it may use")?,
            LimitKind::Output => write!(f, "it printed and wrote more than the {most} bytes that it may")?,
            LimitKind::Processes => write!(f, "it starts more than the {most} processes that it may have")?,
        }
        write!(f, " (settings.limits.{})", kind.key())
    }
}

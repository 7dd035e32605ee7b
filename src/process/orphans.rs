//! Collects orphaned processes when the operator is the first process of a container.
//!
//! A program that a hook started in the background and that outlived the hook becomes a child of process 1.
//! Without `wait` it would stay as a zombie for ever.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, WaitOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

/// The processes whose runs wait for them.
static AWAITED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// The lock for starting a process or collecting orphans: a new child is registered before it can be taken for an orphan.
pub(super) struct Register(MutexGuard<'static, BTreeSet<i32>>);

impl Register {
    pub(super) fn open() -> Self {
        Self(AWAITED.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records that a run waits for `pid`.
    pub(super) fn enter(mut self, pid: Pid) {
        self.0.insert(pid.as_raw_nonzero().get());
    }

    /// Records that `pid` was collected.
    pub(super) fn leave(mut self, pid: Pid) {
        self.0.remove(&pid.as_raw_nonzero().get());
    }
}

/// Collects orphans from now on if this is process 1.
///
/// # Errors
///
/// When SIGCHLD can't be received.
pub fn adopt() -> io::Result<Option<JoinHandle<()>>> {
    if !rustix::process::getpid().is_init() {
        return Ok(None);
    }
    let mut ended = signal(SignalKind::child())?;
    Ok(Some(tokio::spawn(async move {
        while ended.recv().await.is_some() {
            let collected = collect(rustix::process::getpid());
            if collected > 0 {
                tracing::debug!("{collected} orphans of hooks have ended");
            }
        }
    })))
}

/// Collects the ended children of `parent` that no run waits for. Returns their number.
fn collect(parent: Pid) -> usize {
    let register = Register::open();
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    processes
        .flatten()
        .filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| !register.0.contains(pid) && is_zombie_of(*pid, parent))
        .filter_map(Pid::from_raw)
        .filter(|pid| matches!(rustix::process::waitpid(Some(*pid), WaitOptions::NOHANG), Ok(Some(_))))
        .count()
}

fn is_zombie_of(pid: i32, parent: Pid) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    zombie_parent(&stat) == Some(parent.as_raw_nonzero().get())
}

/// Returns the parent in a line of `/proc/PID/stat`, if the process has ended.
///
/// The name of the program stands in parentheses and may hold anything, parentheses too.
fn zombie_parent(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    (fields.next()? == "Z").then(|| fields.next()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_is_told_by_its_state_whatever_its_name() {
        for (stat, parent) in [
            ("12 (sleep) Z 1 12 12 0", Some(1)),
            ("12 (sleep) S 1 12 12 0", None),
            ("12 (a) Z 7 (b) Z 1 12", Some(1)),
            ("12 (a b) Z x", None),
            ("", None),
        ] {
            assert_eq!(zombie_parent(stat), parent, "{stat}");
        }
    }
}

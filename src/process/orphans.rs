//! Adopts what hooks leave behind: collects orphans when they have ended, and ends them with the operator.
//!
//! A program that a hook started in the background and that outlived the hook becomes a child of the operator.
//! Without `wait` it would stay as a zombie for ever. Children that somebody else in this process waits for, such as
//! plugins for credentials, are left alone: who waits for a child gets its status.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::child_signal::ChildSignals;
use super::descendants::{Descendants, stat};
use super::{child_signal, wait};

/// The processes whose runs wait for them.
static AWAITED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Told when an awaited process was collected, and another one has ended.
static COLLECTED: Notify = Notify::const_new();

/// What descended from this process before it ran hooks.
static EARLIER: OnceLock<Descendants> = OnceLock::new();

/// How long a process that has ended, and that may be somebody else's, is left to whoever waits for it.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long to wait before such a process is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The lock for starting a process or collecting orphans: a new child is registered before it can be taken for an orphan.
pub(super) struct Register(MutexGuard<'static, BTreeSet<i32>>);

impl Register {
    pub(super) fn open() -> Self {
        Self(AWAITED.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records that a run waits for `pid`.
    pub(super) fn enter(mut self, pid: Pid) {
        self.0.insert(pid.as_raw_nonzero().get());
        child_signal::ignore(pid);
    }

    /// Records that `pid` was collected. Returns whether nothing that descends from this process lives.
    pub(super) fn leave(mut self, pid: Pid) -> bool {
        self.0.remove(&pid.as_raw_nonzero().get());
        child_signal::heed(pid);
        let ended = wait::look();
        // Signals that come at the same time are one, and that may have been told of this process.
        if matches!(ended, Ok(Some(_))) {
            COLLECTED.notify_one();
        }
        // Whoever loses a parent becomes a child of this process once it adopts.
        let has_no_child = ended.is_err_and(|error| error.raw_os_error() == Some(libc::ECHILD));
        has_no_child && EARLIER.get().is_some()
    }
}

/// Makes this process the parent of all orphans of its hooks, and collects them when they have ended.
///
/// # Errors
///
/// When the system refuses that, or SIGCHLD can't be received.
pub fn adopt() -> io::Result<JoinHandle<()>> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    EARLIER.get_or_init(|| {
        let mut earlier = Descendants::default();
        earlier.find(rustix::process::getpid(), None);
        earlier
    });
    let ended = ChildSignals::listen()?;
    Ok(tokio::spawn(async move {
        let mut collector = Collector::default();
        loop {
            let again = collector.collect();
            tokio::select! {
                signal = ended.next() => if signal.is_err() { return },
                () = COLLECTED.notified() => {}
                () = sleep(again) => {}
            }
        }
    }))
}

/// Kills what still descends from this process, at once. Call it when this process is about to end.
pub fn end_all() {
    // Most operators leave nothing behind, and need not look at all processes.
    if wait::has_children()
        && let Some(earlier) = EARLIER.get()
    {
        Descendants::default().kill(rustix::process::getpid(), None, earlier);
    }
}

async fn sleep(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

#[derive(Default)]
struct Collector {
    /// A process that has ended and may be somebody else's, and since when it is seen.
    foreign: Option<(Pid, Instant)>,
}

impl Collector {
    /// Collects the orphans that have ended. Returns when to look again, if something else stands before them.
    fn collect(&mut self) -> Option<Duration> {
        // Each turn collects one, so a flood of orphans ends with them.
        loop {
            // Before it is looked for: a process that a run collects meanwhile would not be found in the register.
            let register = Register::open();
            let Some(pid) = wait::first_ended() else { break };
            if register.0.contains(&pid.as_raw_nonzero().get()) {
                // Whoever waits for it looks for others behind it.
                return None;
            }
            if !self.is_orphan(pid) {
                return Some(LOOK_AGAIN);
            }
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
        self.foreign = None;
        None
    }

    /// Returns whether nobody waits for a child that has ended.
    ///
    /// Hooks lead groups of their own, and what they start is in those or in newer ones. What is in the group of this
    /// process was started by a part of it that waits for it.
    fn is_orphan(&mut self, pid: Pid) -> bool {
        let group = |pid: Pid| stat(pid.as_raw_nonzero().get()).map(|stat| stat.group);
        if group(pid) != group(rustix::process::getpid()) {
            return true;
        }
        match self.foreign {
            Some((known, since)) if known == pid => since.elapsed() > PATIENCE,
            _ => {
                self.foreign = Some((pid, Instant::now()));
                false
            }
        }
    }
}

//! Waits for the exit of a child and its resource usage.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::unix::AsyncFd;

/// Registers `pidfd` with the runtime. It becomes readable when its process has exited.
pub(super) fn follow(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(
        unsafe_code,
        reason = "the runtime can't check that a descriptor stays valid while it is watched"
    )]
    // SAFETY: `OwnedFd` owns a valid descriptor, which is not replaced or closed while `AsyncFd` owns it.
    let followed = unsafe { AsyncFd::register(pidfd) };
    Ok(followed?)
}

/// How a child ended and what it used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reaped {
    /// Its exit status, or `None` when a signal ended it.
    pub(super) code: Option<i32>,
    /// The signal that ended it.
    pub(super) signal: Option<i32>,
    /// Processor time in user mode.
    pub(super) user: Duration,
    /// Processor time in the kernel.
    pub(super) system: Duration,
    /// The largest resident memory in bytes.
    pub(super) max_rss: u64,
}

/// Collects the child `pid`, which has exited. Blocks when it has not.
pub(super) fn reap(pid: Pid) -> io::Result<Reaped> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    loop {
        #[expect(unsafe_code, reason = "wait4 is the only call that tells the resource usage of one child")]
        // SAFETY: both pointers are valid for writes during the call, and `rusage` is plain
        // data for which all zeros is a valid value, so it is initialised even if the call fails.
        let (result, usage) = unsafe {
            let result = libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, usage.as_mut_ptr());
            (result, usage.assume_init())
        };
        if result >= 0 {
            let exited = libc::WIFEXITED(status);
            return Ok(Reaped {
                code: exited.then(|| libc::WEXITSTATUS(status)),
                signal: (!exited).then(|| libc::WTERMSIG(status)),
                user: duration(usage.ru_utime),
                system: duration(usage.ru_stime),
                max_rss: u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024),
            });
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Returns a child that has ended and was not collected yet. It stays as it is.
pub(super) fn first_ended() -> Option<Pid> {
    look().ok().flatten()
}

/// Returns whether this process has any child, living or not collected.
pub(super) fn has_children() -> bool {
    look().is_ok()
}

/// Looks for a child that has ended, without collecting it. Where there is no child at all, the error is `ECHILD`.
pub(super) fn look() -> io::Result<Option<Pid>> {
    let mut found = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    #[expect(unsafe_code, reason = "the safe wrapper does not tell which child it is")]
    // SAFETY: the pointer is valid for writes during the call, and all zeros is a valid value, which the call leaves
    // there when no child has ended. The number is read from what the call wrote for a child.
    let (result, pid) = unsafe {
        let result = libc::waitid(libc::P_ALL, 0, found.as_mut_ptr(), options);
        (result, found.assume_init().si_pid())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Pid::from_raw(pid)) }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

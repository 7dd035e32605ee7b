//! SIGCHLD: who has ended that no run waits for.
//!
//! The end of a process that a run waits for is seen through its pidfd. To have the runtime woken by the signal, too, took as
//! long as a tenth of all that a run of a hook takes, so the handler passes on only what nobody waits for.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::Pid;
use tokio::io::unix::AsyncFd;

/// The processes whose signals are ignored; 0 for none. What finds no place here wakes the runtime in vain.
static IGNORED: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];

/// What the handler writes to.
static ENDED: OnceLock<OwnedFd> = OnceLock::new();

/// Ignores the signal of a process that somebody waits for.
pub(super) fn ignore(pid: Pid) {
    replace(0, pid.as_raw_nonzero().get());
}

/// Ignores it no longer: its number may be given to another one.
pub(super) fn heed(pid: Pid) {
    replace(pid.as_raw_nonzero().get(), 0);
}

fn replace(before: i32, after: i32) {
    let _ = IGNORED
        .iter()
        .any(|place| place.compare_exchange(before, after, Ordering::SeqCst, Ordering::SeqCst).is_ok());
}

/// The signals of processes that nobody waits for. Several that come at the same time are one.
pub(super) struct ChildSignals(AsyncFd<OwnedFd>);

impl ChildSignals {
    /// Handles SIGCHLD from now on.
    pub(super) fn listen() -> io::Result<Self> {
        let ended = if let Some(ended) = ENDED.get() {
            ended
        } else {
            let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            ENDED.get_or_init(|| made)
        };
        let ended = super::wait::follow(ended.try_clone()?)?;
        handle()?;
        Ok(Self(ended))
    }

    /// Waits for the next one.
    pub(super) async fn next(&self) -> io::Result<()> {
        let mut count = [0; 8];
        loop {
            let mut ready = self.0.readable().await?;
            match rustix::io::read(ready.get_inner(), &mut count) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Has `told` called for each SIGCHLD but those of processes that only stop.
fn handle() -> io::Result<()> {
    #[expect(
        unsafe_code,
        reason = "a handler that reads which process it is about can't be set in a safe way"
    )]
    // SAFETY: all zeros is a valid `sigaction`, whose fields are set to a function of the kind that SA_SIGINFO asks for. That
    // function makes only calls that a handler may make.
    let answer = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = told as extern "C" fn(_, _, _) as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_NOCLDSTOP | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut())
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Handles one signal. It may be called anywhere, so it only reads numbers and writes one.
extern "C" fn told(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    #[expect(unsafe_code, reason = "the system passes a pointer")]
    // SAFETY: with SA_SIGINFO the system passes a valid `siginfo_t`, which holds a process for SIGCHLD.
    let pid = unsafe { (*info).si_pid() };
    if IGNORED.iter().any(|place| place.load(Ordering::SeqCst) == pid) {
        return;
    }
    let Some(ended) = ENDED.get() else { return };
    let one = 1_u64;
    #[expect(unsafe_code, reason = "the error of the thread must stay what it was")]
    // SAFETY: `errno` is a variable of this thread, and the descriptor is open as long as the program runs.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(ended.as_raw_fd(), (&raw const one).cast(), 8);
        *errno = before;
    }
}

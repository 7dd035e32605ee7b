//! One run of a program, from its start to the last line it printed.

use std::ffi::OsString;
use std::fmt;
use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use engine::Usage;
use rustix::process::{Pid, PidfdFlags, Signal};
use thiserror::Error;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;

use super::orphans::Register;
use super::wait;

/// How long a process group has between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// How many bytes a process may print in all before the rest is read but dropped.
const LONGEST_OUTPUT: u64 = 64 * 1024 * 1024;

/// How many bytes of what a process prints to standard error are kept from its beginning, and as many from its end.
const STDERR_KEPT: usize = 32 * 1024;

/// A program to run, with its arguments, environment and limits.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment; nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// The time limit; `None` for no limit.
    pub timeout: Option<Duration>,
}

/// Which stream a line was printed to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exit {
    /// By itself, with this status.
    Code(i32),
    /// By a signal that we did not send.
    Signal(i32),
    /// We ended it because it took longer than it may.
    TimedOut(Duration),
    /// We ended it because its run was cancelled.
    Cancelled,
}

/// The result of a program that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// The resources that it used.
    pub usage: Usage,
    /// What it printed to standard error; of a long text the beginning and the end.
    pub stderr: String,
}

/// Why a program could not be run.
#[derive(Debug, Error)]
pub enum RunError {
    /// It could not be started at all.
    #[error("can't start {path}: {}", hint(.source))]
    Start {
        /// The executable.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// It was started, but can't be followed.
    #[error("can't follow process {pid} of {path}")]
    Follow {
        /// The executable.
        path: PathBuf,
        /// Its process id.
        pid: u32,
        /// The error of the system.
        source: io::Error,
    },
}

/// Returns the error of the system with its usual reason.
fn hint(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => {
            format!("{error} (does the file exist, and the interpreter in its first line?)")
        }
        Some(libc::ENOEXEC) => {
            format!("{error} (its first line should name an interpreter: #!/usr/bin/env bash)")
        }
        Some(libc::EACCES) => format!("{error} (is it executable? try chmod +x)"),
        _ => error.to_string(),
    }
}

impl Program {
    /// Runs the program to its end and passes what it prints to `print`, piece by piece.
    ///
    /// Ends it when it takes longer than it may, or when `cancel` is sent or
    /// dropped with a value: SIGTERM to its group, after five seconds SIGKILL.
    /// A child that keeps the streams open after the program has ended is not
    /// waited for; what it prints is still passed on. A run that is dropped kills the group.
    pub async fn run(
        self,
        mut cancel: oneshot::Receiver<()>,
        mut print: impl FnMut(Stream, &[u8]) + Send + 'static,
    ) -> Result<Finished, RunError> {
        let begun = Instant::now();
        let mut running = Running::start(&self)?;
        let mut timeout = std::pin::pin!(sleep(self.timeout));
        let mut ending: Option<Exit> = None;
        let mut kill = std::pin::pin!(sleep(None));
        let mut killed = false;
        loop {
            tokio::select! {
                exited = running.pidfd.readable() => {
                    exited.map_err(|source| self.cannot_follow(running.pid, source))?.retain_ready();
                    break;
                }
                () = running.streams.read(&mut print) => {}
                () = &mut timeout, if ending.is_none() => {
                    ending = Some(Exit::TimedOut(self.timeout.unwrap_or_default()));
                    running.signal(Signal::TERM);
                    kill.set(sleep(Some(GRACE)));
                }
                Ok(()) = &mut cancel, if ending.is_none() => {
                    ending = Some(Exit::Cancelled);
                    running.signal(Signal::TERM);
                    kill.set(sleep(Some(GRACE)));
                }
                () = &mut kill, if !killed => {
                    killed = true;
                    running.signal(Signal::KILL);
                }
            }
        }
        running.unwatched.0 = None;
        if ending.is_some() {
            running.signal(Signal::KILL);
        }
        let reaped = collect(running.pid).map_err(|source| self.cannot_follow(running.pid, source))?;
        running.streams.drain(&mut print);
        let stderr = running.streams.kept.text();
        running.streams.leave(print);
        let exit = ending.unwrap_or(match (reaped.code, reaped.signal) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or(0)),
        });
        let usage = Usage {
            took: begun.elapsed(),
            user: reaped.user,
            system: reaped.system,
            max_rss: reaped.max_rss,
        };
        Ok(Finished { exit, usage, stderr })
    }

    fn cannot_follow(&self, pid: Pid, source: io::Error) -> RunError {
        RunError::Follow { path: self.path.clone(), pid: pid.as_raw_nonzero().get().unsigned_abs(), source }
    }
}

/// Collects a child that has ended.
fn collect(pid: Pid) -> io::Result<wait::Reaped> {
    // The number may be given to another child as soon as it is free.
    let register = Register::open();
    let reaped = wait::reap(pid);
    register.leave(pid);
    reaped
}

async fn sleep(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

struct Running {
    pid: Pid,
    unwatched: Unwatched,
    pidfd: AsyncFd<OwnedFd>,
    streams: Streams,
}

/// A process group that is killed when the run of its program is dropped.
struct Unwatched(Option<Pid>);

impl Drop for Unwatched {
    fn drop(&mut self) {
        if let Some(pid) = self.0.take() {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            let _ = collect(pid);
        }
    }
}

impl Running {
    fn start(program: &Program) -> Result<Self, RunError> {
        let cannot_start = |source| RunError::Start { path: program.path.clone(), source };
        let register = Register::open();
        let mut child = Command::new(&program.path)
            .args(&program.args)
            .env_clear()
            .envs(program.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(cannot_start)?;
        let raw = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = raw.ok_or_else(|| cannot_start(io::Error::other("no process id")))?;
        register.enter(pid);
        let unwatched = Unwatched(Some(pid));
        let mut follow = || -> io::Result<(AsyncFd<OwnedFd>, Streams)> {
            let stdout = child.stdout.take().map(OwnedFd::from);
            let stderr = child.stderr.take().map(OwnedFd::from);
            let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
                return Err(io::Error::other("its streams are missing"));
            };
            let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK)?;
            Ok((wait::follow(pidfd)?, Streams::new(stdout, stderr)?))
        };
        let (pidfd, streams) = follow().map_err(|source| program.cannot_follow(pid, source))?;
        Ok(Self { pid, unwatched, pidfd, streams })
    }

    /// Sends `signal` to the whole group. A group that is gone already is fine.
    fn signal(&self, signal: Signal) {
        let _ = rustix::process::kill_process_group(self.pid, signal);
    }
}

/// Both streams of a process.
struct Streams {
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
    kept: Excerpt,
    printed: u64,
}

impl Streams {
    fn new(stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Self> {
        let pipe = |fd: OwnedFd| -> io::Result<Option<Receiver>> {
            rustix::io::ioctl_fionbio(&fd, true)?;
            Ok(Some(Receiver::from_owned_fd(fd)?))
        };
        Ok(Self { stdout: pipe(stdout)?, stderr: pipe(stderr)?, kept: Excerpt::default(), printed: 0 })
    }

    /// Waits for output and passes it on. Never returns when both streams have ended.
    async fn read(&mut self, print: &mut impl FnMut(Stream, &[u8])) {
        tokio::select! {
            () = readable(self.stdout.as_ref()) => self.take(Stream::Stdout, Receiver::try_read, print),
            () = readable(self.stderr.as_ref()) => self.take(Stream::Stderr, Receiver::try_read, print),
        };
    }

    /// Passes on what `read` returns without waiting. Returns whether there was anything.
    fn take(
        &mut self,
        stream: Stream,
        read: impl Fn(&Receiver, &mut [u8]) -> io::Result<usize>,
        print: &mut impl FnMut(Stream, &[u8]),
    ) -> bool {
        let mut buffer = [0; 16 * 1024];
        let pipe = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let Some(open) = pipe else { return false };
        match read(open, &mut buffer) {
            Ok(count) if count > 0 => {
                let bytes = buffer.get(..count).unwrap_or_default();
                if stream == Stream::Stderr {
                    self.kept.push(bytes);
                }
                let before = self.printed;
                self.printed = before.saturating_add(count as u64);
                if before < LONGEST_OUTPUT {
                    print(stream, bytes);
                    if self.printed >= LONGEST_OUTPUT {
                        print(
                            stream,
                            "\n… more than 64 MiB were printed; the rest is not shown\n".as_bytes(),
                        );
                    }
                }
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Ok(_) | Err(_) => {
                *pipe = None;
                false
            }
        }
    }

    /// Passes on what was printed before the process ended.
    ///
    /// This reads from the pipes themselves: the runtime may not know of the last bytes yet.
    fn drain(&mut self, print: &mut impl FnMut(Stream, &[u8])) {
        let read = |pipe: &Receiver, buffer: &mut [u8]| {
            Ok(rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut *buffer))?)
        };
        for stream in [Stream::Stdout, Stream::Stderr] {
            while self.take(stream, read, print) {}
        }
    }

    /// Continues to read in the background while another process holds the streams open.
    fn leave(mut self, mut print: impl FnMut(Stream, &[u8]) + Send + 'static) {
        if self.stdout.is_none() && self.stderr.is_none() {
            return;
        }
        tokio::spawn(async move {
            while self.stdout.is_some() || self.stderr.is_some() {
                self.read(&mut print).await;
            }
        });
    }
}

/// Waits until a pipe can be read; for ever, if it has ended.
async fn readable(pipe: Option<&Receiver>) {
    match pipe {
        // The read that follows reports an error.
        Some(pipe) => drop(pipe.readable().await),
        None => std::future::pending().await,
    }
}

/// The beginning and the end of a text of any length.
#[derive(Default)]
struct Excerpt {
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: usize,
}

impl Excerpt {
    fn push(&mut self, bytes: &[u8]) {
        let room = STDERR_KEPT.saturating_sub(self.head.len()).min(bytes.len());
        let (head, tail) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(tail);
        if self.tail.len() > 2 * STDERR_KEPT {
            let excess = self.tail.len() - STDERR_KEPT;
            self.tail.drain(..excess);
            self.dropped += excess;
        }
    }

    fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.dropped > 0 {
            let _ = write!(text, "\n… {} bytes left out …\n", self.dropped);
        }
        text.push_str(&String::from_utf8_lossy(&self.tail));
        text
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "signal: {}", signal_name(*signal)),
            Self::TimedOut(limit) => write!(f, "ended after {} s, the time it may take", limit.as_secs_f64()),
            Self::Cancelled => f.write_str("ended because the operator ends"),
        }
    }
}

fn signal_name(signal: i32) -> String {
    match signal {
        libc::SIGKILL => "killed".to_owned(),
        libc::SIGTERM => "terminated".to_owned(),
        libc::SIGSEGV => "segmentation fault".to_owned(),
        libc::SIGABRT => "aborted".to_owned(),
        libc::SIGPIPE => "broken pipe".to_owned(),
        other => other.to_string(),
    }
}

//! One run of a program, from its start to the last line it printed.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use engine::Usage;
use engine::hook::HookLimits;
use rustix::process::{Pid, PidfdFlags, Signal};
use thiserror::Error;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

use super::chroot::{Chroot, Then};
use super::descendants::Descendants;
use super::limit_kind::MetLimit;
use super::limits::{AppliedLimits, PreparedLimits};
use super::orphans::Register;
use super::spawn::{Image, Printed, Spawned};
use super::streams::{Stream, Streams};
use super::variables::Variables;
use super::wait;
use super::written::Written;

/// How long a process group has between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// A program to run, with its arguments, environment and limits.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment; nothing is inherited.
    pub environment: Variables,
    /// The time limit; `None` for no limit.
    pub timeout: Option<Duration>,
    /// The variable of the environment whose value no other run has. What the program started is known by it,
    /// wherever it went.
    pub mark: Option<&'static str>,
    /// What it and all that it starts may use at most.
    pub limits: HookLimits,
    /// The files of one directory that are its output, like what it prints.
    pub outputs: Vec<PathBuf>,
    /// The files that it sees; `None` for those of this process.
    pub chroot: Option<Chroot>,
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
    /// It met a limit of what it may use.
    Limited(MetLimit),
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
    /// Whether something that it started may run still.
    pub survivors: Survivors,
}

/// Whether something that a program started lives when the program has ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Survivors {
    /// Nothing: this process is the parent of all orphans, and has no child.
    None,
    /// Nothing that is in its group, or has its streams open.
    Perhaps,
    /// Something that is in its group, or has its streams open.
    Some,
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
    /// It can't have a limit that it must have.
    #[error("won't run {path}: {problem}; settings.limits.strict or --hook-limits asks for that")]
    Limit {
        /// The executable.
        path: PathBuf,
        /// What can't be limited.
        problem: String,
    },
    /// It can't be started where it sees only a part of the files.
    #[error("can't run {path} in the chroot {root}: {}", hint_in_chroot(source))]
    Chroot {
        /// The executable, as it is seen there.
        path: PathBuf,
        /// The directory that is the root of all files there.
        root: PathBuf,
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

/// Returns the error of the system with its usual reason where not all files are there.
fn hint_in_chroot(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => format!(
            "{error} (is the file there, what it links to, and the interpreter in its first line? docs/security.md#hooks-in-a-chroot says what is)"
        ),
        _ => hint(error),
    }
}

impl Program {
    /// Runs the program to its end and passes what it prints to `print`, piece by piece.
    ///
    /// Ends it when it takes longer than it may, or when `cancel` is sent or
    /// dropped with a value: SIGTERM to all it started, after five seconds SIGKILL.
    /// A child that keeps the streams open after the program has ended is not
    /// waited for; what it prints is passed on up to a limit, then its streams
    /// are closed. A run that is dropped kills all it started.
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
                read = running.streams.read(&mut print) => {
                    read.map_err(|source| self.cannot_follow(running.pid, source))?;
                    if ending.is_none() && let Some(met) = running.met_by_output() {
                        ending = Some(Exit::Limited(met));
                        running.started.terminate();
                        kill.set(sleep(Some(GRACE)));
                    }
                }
                () = running.written.changed(), if ending.is_none() => {
                    if let Some(met) = running.met_by_output() {
                        ending = Some(Exit::Limited(met));
                        // In the time to end by itself it could fill the disk.
                        killed = true;
                        running.started.kill();
                    }
                }
                () = &mut timeout, if ending.is_none() => {
                    ending = Some(Exit::TimedOut(self.timeout.unwrap_or_default()));
                    running.started.terminate();
                    kill.set(sleep(Some(GRACE)));
                }
                Ok(()) = &mut cancel, if ending.is_none() => {
                    ending = Some(Exit::Cancelled);
                    running.started.terminate();
                    kill.set(sleep(Some(GRACE)));
                }
                () = &mut kill, if !killed => {
                    killed = true;
                    running.started.kill();
                }
            }
        }
        running.started.is_over = true;
        if ending.is_some() {
            running.started.kill();
        }
        let (reaped, is_alone) =
            collect(running.pid).map_err(|source| self.cannot_follow(running.pid, source))?;
        running.streams.drain(is_alone, &mut print);
        let stderr = running.streams.stderr();
        let survivors = running.survivors(is_alone);
        let limited = match reaped.code {
            Some(0) => running.met_by_output(),
            Some(_) | None => running.met_by_output().or_else(|| running.limits.met(&stderr)),
        };
        running.streams.leave(print);
        let exit = ending.or(limited.map(Exit::Limited)).unwrap_or(match (reaped.code, reaped.signal) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or(0)),
        });
        let usage = Usage {
            took: begun.elapsed(),
            user: reaped.user,
            system: reaped.system,
            max_rss: reaped.max_rss,
        };
        Ok(Finished { exit, usage, stderr, survivors })
    }

    /// Returns the entry of the environment that no other run has.
    fn marked(&self) -> Option<Vec<u8>> {
        let mark = self.mark?;
        let value = self.environment.get(mark)?;
        Some([mark.as_bytes(), b"=", value.as_bytes()].concat())
    }

    fn cannot_follow(&self, pid: Pid, source: io::Error) -> RunError {
        RunError::Follow { path: self.path.clone(), pid: pid.as_raw_nonzero().get().unsigned_abs(), source }
    }
}

/// Collects a child that has ended. Returns also whether nothing of what this process started lives.
fn collect(pid: Pid) -> io::Result<(wait::Reaped, bool)> {
    // The number may be given to another child as soon as it is free.
    let register = Register::open();
    let reaped = wait::reap(pid);
    let is_alone = register.leave(pid);
    Ok((reaped?, is_alone))
}

/// Returns whether a process is in the group that `leader` led, which was collected.
fn has_members(leader: Pid) -> bool {
    rustix::process::test_kill_process_group(leader) != Err(rustix::io::Errno::SRCH)
}

async fn sleep(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

struct Running {
    pid: Pid,
    started: Started,
    pidfd: AsyncFd<OwnedFd>,
    streams: Streams,
    /// Its files, if its output is limited.
    written: Written,
    limits: AppliedLimits,
}

/// All that a program started. It is killed when the run is dropped before its end.
struct Started {
    pid: Pid,
    /// What was found of it when it was to end.
    found: Descendants,
    /// The entry of the environment that all of it has.
    mark: Option<Vec<u8>>,
    is_over: bool,
}

impl Started {
    /// Sends SIGTERM to the group, and to what left it.
    fn terminate(&mut self) {
        self.found.find(self.pid, self.mark.as_deref());
        // A group that is gone already is fine.
        let _ = rustix::process::kill_process_group(self.pid, Signal::TERM);
        self.found.signal(Signal::TERM, |group| group != self.pid.as_raw_nonzero().get());
    }

    /// Kills the group, and what left it.
    fn kill(&mut self) {
        // The children of a process that is killed have another parent from then on.
        self.found.find(self.pid, self.mark.as_deref());
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        self.found.kill(self.pid, self.mark.as_deref(), &Descendants::default());
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.is_over {
            self.kill();
            let _ = collect(self.pid);
        }
    }
}

impl Running {
    fn start(program: &Program) -> Result<Self, RunError> {
        let cannot_start = |source| match &program.chroot {
            None => RunError::Start { path: program.path.clone(), source },
            Some(chroot) => {
                RunError::Chroot { path: program.path.clone(), root: chroot.root().to_owned(), source }
            }
        };
        let limits = PreparedLimits::new(program.limits);
        let is_looked_for = program.path.parent().is_none_or(|parent| parent.as_os_str().is_empty());
        let needs_command = program.chroot.is_some() || is_looked_for;
        let command = needs_command.then(|| command(program, &limits)).transpose().map_err(cannot_start)?;
        // Before it begins, so that nothing is missed.
        let written = Written::new(program.limits.output.map_or(&[], |_| &program.outputs));
        let register = Register::open();
        let spawned = if let Some(mut command) = command {
            command.spawn().and_then(followed)
        } else {
            let mut entrance = limits.entrance();
            let before = entrance.as_mut().map(|entrance| entrance as &mut dyn FnMut());
            let Program { path, args, environment, .. } = program;
            Image { path, args, environment, before }.spawn()
        };
        let Spawned { pid, pidfd, stdout, stderr } = spawned.map_err(cannot_start)?;
        register.enter(pid);
        let started = Started { pid, found: Descendants::default(), mark: program.marked(), is_over: false };
        let limits =
            limits.started(pid).map_err(|problem| RunError::Limit { path: program.path.clone(), problem })?;
        let pidfd = wait::follow(pidfd).map_err(|source| program.cannot_follow(pid, source))?;
        let streams = Streams::new(stdout, stderr);
        Ok(Self { pid, started, pidfd, streams, written, limits })
    }

    /// Returns what lives of all that it started, now that it was collected. `is_alone` says that this process has no child.
    fn survivors(&self, is_alone: bool) -> Survivors {
        if self.streams.are_open() {
            Survivors::Some
        } else if is_alone {
            Survivors::None
        } else if has_members(self.pid) {
            Survivors::Some
        } else {
            Survivors::Perhaps
        }
    }

    /// Returns the limit of output, if it printed and wrote more.
    fn met_by_output(&self) -> Option<MetLimit> {
        let all = self.streams.printed().saturating_add(self.written.bytes());
        self.limits.met_by_output(all)
    }
}

/// Returns what starts a program that is looked for, or that sees only a part of the files.
fn command(program: &Program, limits: &PreparedLimits) -> io::Result<Command> {
    let mut command = Command::new(&program.path);
    command
        .args(&program.args)
        .env_clear()
        .envs(program.environment.iter())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    // In a chroot the control groups are not there any more.
    limits.enter(&mut command);
    if let Some(chroot) = &program.chroot {
        chroot.prepare()?.enter(&mut command, Then::Run);
    }
    Ok(command)
}

/// Returns a child as one that is followed.
fn followed(mut child: Child) -> io::Result<Spawned> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("no process id"))?;
    let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK);
    match (pidfd, child.stdout.take(), child.stderr.take()) {
        (Ok(pidfd), Some(stdout), Some(stderr)) => {
            let printed = |reader| Printed { reader, writer: None };
            Ok(Spawned { pid, pidfd, stdout: printed(stdout.into()), stderr: printed(stderr.into()) })
        }
        (pidfd, ..) => {
            // Nobody could follow it.
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            let _ = wait::reap(pid);
            Err(pidfd.err().map_or_else(|| io::Error::other("its streams are missing"), io::Error::from))
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "signal: {}", signal_name(*signal)),
            Self::TimedOut(limit) => write!(f, "ended after {} s, the time it may take", limit.as_secs_f64()),
            Self::Cancelled => f.write_str("ended because the operator ends"),
            Self::Limited(met) => met.fmt(f),
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

//! A process beside the operator that ends it and all it started when its time is over.
//!
//! A process that is stopped (SIGSTOP) can't end itself, and what it started goes on. This one is told until when the
//! operator may act. It kills everything when nobody has told it of more time, and what is left when the operator has died.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::clock::since_boot;
use super::descendants::Descendants;

/// The name of the command that runs it. People do not use it.
pub const COMMAND: &str = "guard";

/// How long it waits at most before it looks at the clock again: the machine may have slept.
const LOOK: Duration = Duration::from_secs(1);

/// How long it waits before it kills again what is not dead yet.
const AGAIN: Duration = Duration::from_millis(50);

/// A guard of this process.
#[derive(Debug)]
pub struct Guard {
    child: Child,
}

impl Guard {
    /// Starts a guard of this process, which does nothing before it is told a time.
    ///
    /// `mark` is the entry of the environment, `NAME=value`, that all have that this process starts, and nobody else.
    ///
    /// # Errors
    ///
    /// When it can't be started.
    pub fn start(mark: &str) -> io::Result<Self> {
        // Not by its path: another version may be there by now.
        let child = Command::new("/proc/self/exe")
            .arg(COMMAND)
            .arg(std::process::id().to_string())
            .arg(mark)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { child })
    }

    /// Tells it until when this process may act, on the clock of [`since_boot`].
    ///
    /// # Errors
    ///
    /// When it is not there any more.
    pub fn allow(&mut self, until: Duration) -> io::Result<()> {
        let nanos = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        let Some(pipe) = &mut self.child.stdin else { return Err(io::ErrorKind::BrokenPipe.into()) };
        pipe.write_all(&nanos.to_le_bytes())
    }
}

/// Runs the guard until the operator has died. `arguments` are those that [`Guard::start`] gave it.
pub fn run(arguments: &[OsString]) -> bool {
    let [operator, mark] = arguments else { return false };
    let pid = operator.to_str().and_then(|text| text.parse().ok()).and_then(Pid::from_raw);
    let Some(operator) = pid else { return false };
    watch(operator, mark.as_bytes(), io::stdin());
    true
}

fn watch(operator: Pid, mark: &[u8], mut told: impl Read + Send + 'static) {
    let (sender, times) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 8];
        while told.read_exact(&mut bytes).is_ok() {
            if sender.send(Duration::from_nanos(u64::from_le_bytes(bytes))).is_err() {
                return;
            }
        }
    });
    let mut until: Option<Duration> = None;
    loop {
        let left = until.map_or(LOOK, |until| until.saturating_sub(since_boot()).clamp(AGAIN, LOOK));
        match times.recv_timeout(left) {
            Ok(time) => until = Some(time),
            // It has died. What it started has another parent now, and is known by its mark.
            Err(RecvTimeoutError::Disconnected) => return end(rustix::process::getpid(), mark),
            Err(RecvTimeoutError::Timeout) if until.is_some_and(|until| until <= since_boot()) => {
                // The operator first, so that it starts nothing more. As the first process of a container it is not killed by
                // this; then it finds out itself as soon as it runs again.
                if rustix::process::getppid() == Some(operator) {
                    let _ = rustix::process::kill_process(operator, Signal::KILL);
                }
                end(operator, mark);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Kills all that descends from `ancestor` or has the mark, but for this process.
fn end(ancestor: Pid, mark: &[u8]) {
    Descendants::default().kill(ancestor, Some(mark), &Descendants::only(rustix::process::getpid()));
}

//! Starts a program: the calls that it takes, and none beside them.
//!
//! The child shares the memory of this process until it becomes the program, and this thread waits for that, as with
//! `posix_spawn`. That of the C library makes a stack for each child, asks for a limit for each descriptor, and another call
//! follows the process then: it took twice as long.

use std::ffi::{OsStr, OsString, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::process::Pid;

use super::pipes::{OutputPipe, Writer};
use super::variables::Variables;
use super::wait;

/// How large the stack of a child is, in bytes. It makes some calls of the system on it.
const STACK: usize = 64 * 1024;

/// The stack of the child that is about to become a program: one at a time does.
static CHILD_STACK: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// What programs read who are told nothing.
static NOTHING: OnceLock<OwnedFd> = OnceLock::new();

/// How many variables of the operator itself most programs get.
const SHARED: usize = 32;

/// The last of the signals that have handlers here.
const LAST_SIGNAL: c_int = 31;

/// A program that was started.
pub(super) struct Spawned {
    pub(super) pid: Pid,
    /// Readable when it has ended.
    pub(super) pidfd: OwnedFd,
    pub(super) stdout: Printed,
    pub(super) stderr: Printed,
}

/// What is printed to one of the streams of a program.
pub(super) struct Printed {
    /// Where it is read.
    pub(super) reader: OwnedFd,
    /// Where it is written, if this process holds that, too.
    pub(super) writer: Option<Writer>,
}

impl From<OutputPipe> for Printed {
    fn from(OutputPipe { reader, writer }: OutputPipe) -> Self {
        Self { reader, writer: Some(writer) }
    }
}

/// A program to start.
pub(super) struct Image<'a> {
    /// The executable, with a slash in it: it is not looked for.
    pub(super) path: &'a Path,
    pub(super) args: &'a [OsString],
    pub(super) environment: &'a Variables,
    /// What the child does before it becomes the program. It takes no memory and no lock.
    pub(super) before: Option<&'a mut dyn FnMut()>,
}

impl Image<'_> {
    /// Starts the program as the leader of a process group, with nothing to read and pipes to print to.
    ///
    /// # Errors
    ///
    /// The error of the system, or that a text holds a zero.
    pub(super) fn spawn(self) -> io::Result<Spawned> {
        let mut texts = Texts { bytes: Vec::with_capacity(1024), begins: Vec::with_capacity(16) };
        texts.push(&[self.path.as_os_str()])?;
        for arg in self.args {
            texts.push(&[arg])?;
        }
        let args = texts.count();
        for (name, value) in self.environment.own() {
            texts.push(&[name, OsStr::new("="), value])?;
        }
        let (args, own) = texts.pointers(args);
        let mut environment = Vec::with_capacity(own.len() + SHARED);
        for text in self.environment.shared() {
            environment.push(text.ok_or_else(zero)?.as_ptr());
        }
        environment.extend(own);
        let (stdout, stderr) = (OutputPipe::take()?, OutputPipe::take()?);
        let streams = [nothing()?, &stdout.writer.end, &stderr.writer.end].map(AsRawFd::as_raw_fd);
        let child = Child {
            args: args.as_ptr(),
            environment: environment.as_ptr(),
            streams,
            before: self.before,
            error: 0,
        };
        let (pid, pidfd) = start(child)?;
        Ok(Spawned { pid, pidfd, stdout: stdout.into(), stderr: stderr.into() })
    }
}

/// Returns what is read by programs that are told nothing.
fn nothing() -> io::Result<&'static OwnedFd> {
    if let Some(nothing) = NOTHING.get() {
        return Ok(nothing);
    }
    let opened = OwnedFd::from(File::open("/dev/null")?);
    Ok(NOTHING.get_or_init(|| opened))
}

fn zero() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a zero byte is in an argument or a variable")
}

/// Texts that end with a zero, one behind the other.
struct Texts {
    bytes: Vec<u8>,
    /// Where each begins.
    begins: Vec<usize>,
}

impl Texts {
    /// Adds a text that consists of these parts.
    fn push(&mut self, parts: &[&OsStr]) -> io::Result<()> {
        self.begins.push(self.bytes.len());
        for part in parts {
            if part.as_bytes().contains(&0) {
                return Err(zero());
            }
            self.bytes.extend_from_slice(part.as_bytes());
        }
        self.bytes.push(0);
        Ok(())
    }

    fn count(&self) -> usize {
        self.begins.len()
    }

    /// Returns where the first `count` texts are, and where the others are, as the system wants to be told. They are valid as long
    /// as the texts are.
    fn pointers(&self, count: usize) -> (Vec<*const c_char>, Vec<*const c_char>) {
        let list = |begins: &[usize]| {
            let all = begins.iter().filter_map(|begin| Some(self.bytes.get(*begin..)?.as_ptr().cast()));
            all.chain([ptr::null()]).collect()
        };
        let (first, others) = self.begins.split_at(count.min(self.begins.len()));
        (list(first), list(others))
    }
}

/// What the child reads and writes of the memory that it shares with this process.
struct Child<'a> {
    /// The first one is the path.
    args: *const *const c_char,
    environment: *const *const c_char,
    streams: [c_int; 3],
    before: Option<&'a mut dyn FnMut()>,
    /// Why it did not become the program.
    error: c_int,
}

/// Starts a child and waits until it became the program.
fn start(mut child: Child<'_>) -> io::Result<(Pid, OwnedFd)> {
    let mut stack = CHILD_STACK.lock().unwrap_or_else(PoisonError::into_inner);
    stack.resize(STACK, 0);
    let top = stack.as_mut_ptr_range().end;
    let (place, mut pidfd) = (&raw mut child, -1);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    #[expect(unsafe_code, reason = "a child is started that shares the memory of this process")]
    // SAFETY: the child runs on a stack of its own, which nobody else uses while the lock is held, and its upper end is aligned below.
    // It reads and writes what `place` points to, which lives until it became the program or ended: that is what CLONE_VFORK waits
    // for. It takes no memory and no lock, and no handler of a signal runs in it, since all signals are held back until it has
    // none. The descriptor is written by the system if the call succeeds.
    let (pid, error) = unsafe {
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let top = top.sub(top.align_offset(16).wrapping_neg() & 15);
        let pid = libc::clone(become_program, top.cast(), flags, place.cast(), &raw mut pidfd);
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        (pid, error)
    };
    drop(stack);
    let pid = if pid < 0 { None } else { Pid::from_raw(pid) };
    let pid = pid.ok_or(error)?;
    #[expect(unsafe_code, reason = "the system made the descriptor and left it to us")]
    // SAFETY: the call succeeded, so the descriptor is open and nobody else's; the memory is read when the child does not use it any
    // more.
    let (pidfd, error) =
        unsafe { (OwnedFd::from_raw_fd(pidfd), ptr::read_volatile(&raw const (*place).error)) };
    if error != 0 {
        wait::reap(pid)?;
        return Err(io::Error::from_raw_os_error(error));
    }
    Ok((pid, pidfd))
}

/// What the child does.
extern "C" fn become_program(child: *mut c_void) -> c_int {
    #[expect(unsafe_code, reason = "the child is told by a pointer what to do")]
    // SAFETY: `start` passes a pointer to a `Child`, which nobody else uses meanwhile.
    let child = unsafe { &mut *child.cast::<Child<'_>>() };
    child.error = try_to_become(child);
    127
}

/// Becomes the program. Returns why not.
fn try_to_become(child: &mut Child<'_>) -> c_int {
    #[expect(
        unsafe_code,
        reason = "between the start of a child and its program there are only calls of the system"
    )]
    // SAFETY: all pointers are valid, and the lists of texts end with none. Each call may be made here: none takes memory or a lock.
    unsafe {
        if libc::setpgid(0, 0) != 0 {
            return last_error();
        }
        for (target, stream) in (0..).zip(child.streams) {
            if libc::dup2(stream, target) < 0 {
                return last_error();
            }
        }
        // What is ignored stays so, as it does for all that this process starts, but SIGPIPE, which Rust ignores.
        for signal in 1..=LAST_SIGNAL {
            let mut action: libc::sigaction = std::mem::zeroed();
            let is_known = libc::sigaction(signal, ptr::null(), &raw mut action) == 0;
            let is_handled = action.sa_sigaction != libc::SIG_DFL
                && (action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE);
            if is_known && is_handled {
                action = std::mem::zeroed();
                libc::sigaction(signal, &raw const action, ptr::null_mut());
            }
        }
        if let Some(before) = &mut child.before {
            before();
        }
        let mut none = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
        libc::execve(*child.args, child.args, child.environment);
        last_error()
    }
}

fn last_error() -> c_int {
    #[expect(unsafe_code, reason = "the number of the error is asked for without taking memory")]
    // SAFETY: the place is a variable of the thread.
    unsafe {
        *libc::__errno_location()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// Runs a program of the system to its end. Returns what it printed, and its code.
    fn ran(path: &str, args: &[&str], environment: &[(&str, &str)]) -> io::Result<(String, Option<i32>)> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let environment: Vec<(OsString, OsString)> =
            environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let environment = Variables::from(environment);
        let image = Image { path: Path::new(path), args: &args, environment: &environment, before: None };
        let Spawned { pid, stdout, stderr, .. } = image.spawn()?;
        let mut text = String::new();
        for Printed { reader, writer } in [stdout, stderr] {
            drop(writer);
            File::from(reader).read_to_string(&mut text)?;
        }
        Ok((text, wait::reap(pid)?.code))
    }

    #[test]
    fn a_program_gets_its_arguments_and_its_environment_alone_and_the_last_of_two_values() {
        let script = "echo \"$0 $1\"; env | sort; cat; read -r a b c d group e < /proc/$$/stat; [ $group = $$ ] && echo leads; exit 7";
        let variables = [("A", "1"), ("PATH", "/usr/bin:/bin"), ("A", "2"), ("B", "x=y z")];
        let (text, code) = ran("/bin/sh", &["-c", script, "zero", "one two"], &variables).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("PWD=")).collect();
        let set = |line: &&str| {
            !line.starts_with("SHLVL=") && !line.starts_with("_=") && !line.starts_with("OLDPWD")
        };
        let lines: Vec<&str> = lines.into_iter().filter(set).collect();
        assert_eq!(lines, ["zero one two", "A=2", "B=x=y z", "PATH=/usr/bin:/bin", "leads"]);
        assert_eq!(code, Some(7));
    }

    #[test]
    fn a_program_begins_without_handlers_and_held_back_signals_and_its_pipe_may_break() {
        // Some programs set handlers for themselves.
        let (text, _) = ran("/bin/cat", &["/proc/self/status"], &[]).unwrap();
        let mask = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        let masks =
            ["SigBlk:", "SigIgn:", "SigCgt:"].map(|name| u64::from_str_radix(mask(name), 16).unwrap());
        let [held_back, ignored, caught] = masks;
        assert_eq!((held_back, caught, ignored & 1 << (libc::SIGPIPE - 1)), (0, 0, 0), "{text}");
    }

    #[test]
    fn what_can_not_be_started_is_an_error_of_the_system_and_leaves_no_child() {
        let error = |path: &str| ran(path, &[], &[]).unwrap_err().raw_os_error();
        assert_eq!(error("/nowhere/at/all"), Some(libc::ENOENT));
        assert_eq!(error("/etc/passwd"), Some(libc::EACCES));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("no-program");
        std::fs::write(&path, "plain text").unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(error(path.to_str().unwrap()), Some(libc::ENOEXEC));
        for zero in [ran("/bin/sh", &["a\0b"], &[]), ran("/bin/sh", &[], &[("A", "\0")])] {
            assert_eq!(zero.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn what_is_to_be_done_before_is_done_by_the_child() {
        let (mut read, write) = std::io::pipe().unwrap();
        let mut before = || {
            let _ = rustix::io::write(&write, b"here");
        };
        let path = Path::new("/bin/true");
        let image = Image { path, args: &[], environment: &Variables::default(), before: Some(&mut before) };
        let spawned = image.spawn().unwrap();
        drop(write);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), wait::reap(spawned.pid).unwrap().code), ("here", Some(0)));
    }

    #[test]
    fn many_are_started_at_the_same_time() {
        let threads: Vec<_> = (0..8)
            .map(|number: u32| {
                std::thread::spawn(move || {
                    (0..20).all(|_| {
                        let text = number.to_string();
                        ran("/bin/echo", &[&text], &[]).unwrap() == (format!("{text}\n"), Some(0))
                    })
                })
            })
            .collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    }
}

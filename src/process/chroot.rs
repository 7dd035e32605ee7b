//! Programs that see a directory as the root of all files: `--shell-chroot-dir`. See docs/security.md#hooks-in-a-chroot.
//!
//! Each program has a mount namespace of its own. What is mounted for it is gone with its last process, whatever happens
//! to the operator, and nobody else sees it. Only empty directories stay, on which it was mounted.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use thiserror::Error;

/// What of the operator's files every program sees, read-only, unless its directory has it already.
const SYSTEM: &[&str] = &[
    "bin",
    "sbin",
    "lib",
    "lib32",
    "lib64",
    "usr",
    "etc",
    "shell_lib.sh",
    "framework",
    "frameworks",
    "var/run/secrets",
];

/// What is seen as it is: devices are written to, and `/proc` is of the process that looks.
const DEVICES: &[&str] = &["dev", "proc"];

/// The directories below which programs of modules run, one for each module.
#[derive(Clone, Debug)]
pub struct Chroots {
    directory: PathBuf,
}

/// What one program sees.
#[derive(Clone, Debug)]
pub struct Chroot {
    root: PathBuf,
    /// Directories that are seen at their own paths, and can be written to.
    shared: Vec<PathBuf>,
    /// Directories of whose content only what is shared is seen.
    hidden: Vec<PathBuf>,
}

/// Why programs can't run in chroots.
#[derive(Debug, Error)]
#[error(
    "--shell-chroot-dir {directory}: nothing can be mounted for hooks here: {source}. Give the operator the capability \
     SYS_ADMIN, or allow it user namespaces; or leave the option out: hooks then see all files of the operator"
)]
pub struct ChrootError {
    directory: PathBuf,
    source: io::Error,
}

impl Chroots {
    /// Returns the directories below `directory`.
    ///
    /// # Errors
    ///
    /// When nothing can be mounted for programs of this process.
    pub fn new(directory: &Path) -> Result<Self, ChrootError> {
        Self::probed(directory).map_err(|source| ChrootError { directory: directory.to_owned(), source })
    }

    fn probed(directory: &Path) -> io::Result<Self> {
        let directory = std::path::absolute(directory)?;
        make_directory(&directory, 0o755)?;
        let probe = Entry {
            ids: Ids::of_process(),
            root: text(&directory)?,
            steps: vec![
                Step::Bind { source: text(&directory)?, target: text(&directory)?, is_read_only: true },
                Step::Memory { target: text(&directory)? },
            ],
        };
        let mut command = Command::new("/");
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.enter(&mut command, Then::End);
        let status = command.spawn()?.wait()?;
        if status.success() { Ok(Self { directory }) } else { Err(io::Error::other(status.to_string())) }
    }

    /// Returns what programs of a module see: its directory, and what the directory of its name has.
    pub fn of_module(&self, module: &str, path: &Path) -> Chroot {
        Chroot { root: self.directory.join(module), shared: vec![path.to_owned()], hidden: Vec::new() }
    }
}

impl Chroot {
    /// Returns it with a directory that is seen, but nothing of what is beside it.
    #[must_use]
    pub fn with_alone(mut self, directory: &Path, above: &Path) -> Self {
        self.shared.push(directory.to_owned());
        self.hidden.push(above.to_owned());
        self
    }

    /// Returns it with the directories of what variables of its environment name: kubeconfigs, and what bash runs first.
    #[must_use]
    pub fn with_named_in<'v>(
        mut self,
        environment: impl IntoIterator<Item = (&'v OsStr, &'v OsStr)>,
    ) -> Self {
        for (name, text) in environment {
            if name != "BASH_ENV" && name != "KUBECONFIG" {
                continue;
            }
            for file in std::env::split_paths(text).filter(|file| file.is_absolute()) {
                let directory = file.parent().filter(|directory| directory.is_dir());
                self.shared.extend(directory.map(Path::to_owned));
            }
        }
        self
    }

    /// Returns the directory that is seen as the root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the directories on which anything is mounted, and returns what is left to do for the program.
    pub(super) fn prepare(&self) -> io::Result<Entry> {
        let mut entry = Entry { ids: Ids::of_process(), root: text(&self.root)?, steps: Vec::new() };
        make_directory(&self.root, 0o755)?;
        make_directory(&self.root.join("tmp"), 0o1777)?;
        for name in SYSTEM.iter().chain(DEVICES) {
            let (source, target) = (Path::new("/").join(name), self.root.join(name));
            if self.place(&source, &target)? {
                let is_read_only = SYSTEM.contains(name);
                entry.steps.push(Step::Bind { source: text(&source)?, target: text(&target)?, is_read_only });
            }
        }
        // What is below a directory of the system is seen with it.
        let of_system = |path: &Path| {
            path == Path::new("/") || SYSTEM.iter().any(|name| path.starts_with(Path::new("/").join(name)))
        };
        let shared = self.shared.iter().filter(|path| !of_system(path)).map(|path| (path, Kind::Shared));
        let mut mounted: Vec<(&PathBuf, Kind)> = shared.collect();
        mounted.extend(self.hidden.iter().map(|path| (path, Kind::Hidden)));
        // A directory comes before those in it: it would cover them.
        mounted.sort();
        mounted.dedup();
        for (path, kind) in mounted {
            let target = self.inside(path);
            match self.hidden.iter().find(|hidden| path.starts_with(hidden) && path != *hidden) {
                None => make_directory(&target, 0o755)?,
                // What is made below is gone with what hides it.
                Some(hidden) => {
                    let mut made = self.inside(hidden);
                    for part in path.strip_prefix(hidden).into_iter().flatten() {
                        made.push(part);
                        entry.steps.push(Step::Make { target: text(&made)? });
                    }
                }
            }
            let target = text(&target)?;
            entry.steps.push(match kind {
                Kind::Hidden => Step::Memory { target },
                Kind::Shared => Step::Bind { source: text(path)?, target, is_read_only: false },
            });
        }
        Ok(entry)
    }

    /// Returns where a path of the operator is below the root.
    fn inside(&self, path: &Path) -> PathBuf {
        let parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
        parts.fold(self.root.clone(), |inside, part| inside.join(part))
    }

    /// Makes the place for a file or directory of the system. Returns whether it has to be mounted there.
    fn place(&self, source: &Path, target: &Path) -> io::Result<bool> {
        let Ok(found) = fs::symlink_metadata(source) else { return Ok(false) };
        let there = fs::symlink_metadata(target).ok();
        if found.is_symlink() {
            if there.is_none() {
                ignore_existing(symlink(fs::read_link(source)?, target))?;
            }
            return Ok(false);
        }
        match there {
            // Who runs the operator put it there.
            Some(there) if there.is_dir() => Ok(found.is_dir() && fs::read_dir(target)?.next().is_none()),
            Some(there) => Ok(found.is_file() && there.is_file() && there.len() == 0),
            None if found.is_dir() => make_directory(target, 0o755).map(|()| true),
            None => {
                make_directory(target.parent().unwrap_or(&self.root), 0o755)?;
                fs::write(target, "").map(|()| true)
            }
        }
    }
}

/// What becomes of a directory.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Kind {
    /// It is seen.
    Shared,
    /// It is empty.
    Hidden,
}

/// What a process does before it becomes the program.
#[derive(Debug)]
pub(super) struct Entry {
    ids: Ids,
    root: CString,
    steps: Vec<Step>,
}

/// What a process does then.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// It becomes the program.
    Run,
    /// It ends: it was only to see whether it can get there.
    End,
}

#[derive(Debug)]
enum Step {
    /// Mounts a file or directory at another path.
    Bind { source: CString, target: CString, is_read_only: bool },
    /// Mounts an empty directory in memory.
    Memory { target: CString },
    /// Makes a directory.
    Make { target: CString },
}

/// What maps the user and the group of this process to themselves, in the form of `uid_map` and `gid_map`.
#[derive(Debug)]
struct Ids {
    user: Vec<u8>,
    group: Vec<u8>,
}

impl Ids {
    fn of_process() -> Self {
        let map = |id: u32| format!("{id} {id} 1\n").into_bytes();
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self { user: map(user), group: map(group) }
    }
}

impl Entry {
    /// Lets the process of `command` go there before it becomes the program.
    pub(super) fn enter(self, command: &mut Command, then: Then) {
        let enter = move || {
            self.go()?;
            match then {
                Then::Run => Ok(()),
                Then::End => {
                    #[expect(
                        unsafe_code,
                        reason = "there is no safe way to end a child before it is a program"
                    )]
                    // SAFETY: it ends this process, which shares no memory with its parent.
                    unsafe {
                        libc::_exit(0)
                    }
                }
            }
        };
        #[expect(unsafe_code, reason = "namespaces are entered between the two calls that start a program")]
        // SAFETY: the closure allocates nothing, takes no lock and makes only calls of the system on what was made before.
        unsafe {
            command.pre_exec(enter);
        }
    }

    fn go(&self) -> io::Result<()> {
        self.unshare()?;
        mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
        for step in &self.steps {
            match step {
                Step::Bind { source, target, is_read_only } => {
                    mount(Some(source), target, None, libc::MS_BIND | libc::MS_REC)?;
                    if *is_read_only {
                        make_read_only(target)?;
                    }
                }
                Step::Memory { target } => {
                    mount(Some(c"tmpfs"), target, Some(c"tmpfs"), libc::MS_NOSUID | libc::MS_NODEV)?;
                }
                Step::Make { target } => make(target)?,
            }
        }
        #[expect(unsafe_code, reason = "the library for calls of the system is built without these two")]
        // SAFETY: the texts end with a zero byte and live as long as the calls.
        let gone = unsafe { libc::chroot(self.root.as_ptr()) == 0 && libc::chdir(c"/".as_ptr()) == 0 };
        if gone { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Gets a mount namespace: as this user, else in a user namespace of its own.
    fn unshare(&self) -> io::Result<()> {
        if unshare(libc::CLONE_NEWNS).is_ok() {
            return Ok(());
        }
        unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
        // A group can be mapped only by who gave up to change groups.
        write(c"/proc/self/setgroups", b"deny")?;
        write(c"/proc/self/uid_map", &self.ids.user)?;
        write(c"/proc/self/gid_map", &self.ids.group)
    }
}

fn unshare(flags: libc::c_int) -> io::Result<()> {
    #[expect(unsafe_code, reason = "the library for calls of the system is built without this one")]
    // SAFETY: it takes a number, and this process has one thread.
    let done = unsafe { libc::unshare(flags) };
    result(done)
}

fn mount(source: Option<&CStr>, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    #[expect(unsafe_code, reason = "the library for calls of the system is built without this one")]
    // SAFETY: the texts end with a zero byte and live as long as the call; the others may be null.
    let done =
        unsafe { libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, std::ptr::null()) };
    result(done)
}

/// Makes all that is mounted at and below a path read-only, or on old kernels only what is mounted at it.
fn make_read_only(target: &CStr) -> io::Result<()> {
    let attributes =
        libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    #[expect(unsafe_code, reason = "the system has no other name for this call")]
    // SAFETY: the text ends with a zero byte, the structure has the size that is given, and both live as long as the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            target.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOSYS) => mount(None, target, None, libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY),
        _ => Err(error),
    }
}

fn make(target: &CStr) -> io::Result<()> {
    #[expect(
        unsafe_code,
        reason = "the usual way allocates, which a child may not do before it is a program"
    )]
    // SAFETY: the text ends with a zero byte and lives as long as the call.
    let done = unsafe { libc::mkdir(target.as_ptr(), 0o755) };
    ignore_existing(result(done))
}

fn write(path: &CStr, text: &[u8]) -> io::Result<()> {
    #[expect(
        unsafe_code,
        reason = "the usual way allocates, which a child may not do before it is a program"
    )]
    // SAFETY: the path ends with a zero byte, the text has the length that is given, and both live as long as the calls.
    let written = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file < 0 { -1 } else { libc::write(file, text.as_ptr().cast(), text.len()) }
    };
    if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn result(done: libc::c_int) -> io::Result<()> {
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn ignore_existing(made: io::Result<()>) -> io::Result<()> {
    made.or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
}

/// Makes a directory and those above it. The rights are those of the directory alone.
fn make_directory(path: &Path, rights: u32) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o755).create(path)?;
    if rights == 0o755 { Ok(()) } else { fs::set_permissions(path, fs::Permissions::from_mode(rights)) }
}

fn text(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_before_what_is_in_them_and_what_is_hidden_is_made_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let seen = |name: &str| dir.path().join(name);
        fs::create_dir_all(seen("module/tmp/run-1/7")).unwrap();
        let chroot = Chroot { root: seen("root"), shared: vec![seen("module")], hidden: Vec::new() };
        let entry = chroot.with_alone(&seen("module/tmp/run-1/7"), &seen("module/tmp")).prepare().unwrap();
        let own = dir.path().to_str().unwrap();
        let steps: Vec<String> = entry
            .steps
            .iter()
            .map(|step| match step {
                Step::Bind { target, is_read_only, .. } => {
                    (target, if *is_read_only { "reads" } else { "shares" })
                }
                Step::Memory { target } => (target, "hides"),
                Step::Make { target } => (target, "makes"),
            })
            .map(|(target, what)| format!("{what} {}", target.to_str().unwrap()))
            .filter_map(|step| {
                step.split_once(&format!("/root{own}")).map(|(what, path)| (what.to_owned(), path.to_owned()))
            })
            .map(|(what, path)| format!("{} {path}", what.split(' ').next().unwrap()))
            .collect();
        let expected =
            ["shares /module", "hides /module/tmp", "makes /module/tmp/run-1", "makes /module/tmp/run-1/7"];
        assert_eq!(steps[..4], expected);
        assert_eq!(steps[4..], ["shares /module/tmp/run-1/7"]);
        assert!(!seen("root").join(own.trim_start_matches('/')).join("module/tmp/run-1").exists());
    }

    #[test]
    fn what_the_directory_has_already_is_not_covered() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("etc")).unwrap();
        fs::write(dir.path().join("etc/hosts"), "").unwrap();
        let chroot = Chroot { root: dir.path().to_owned(), shared: Vec::new(), hidden: Vec::new() };
        for _ in 0..2 {
            let entry = chroot.prepare().unwrap();
            let targets = |name: &str| {
                let target = text(&dir.path().join(name)).unwrap();
                entry
                    .steps
                    .iter()
                    .any(|step| matches!(step, Step::Bind { target: found, .. } if *found == target))
            };
            assert!(!targets("etc") && targets("usr") && targets("proc"));
        }
    }

    #[test]
    fn a_place_where_nothing_can_be_mounted_is_refused_with_what_to_do() {
        let error = Chroots::new(Path::new("/proc/nowhere")).unwrap_err().to_string();
        assert!(error.starts_with("--shell-chroot-dir /proc/nowhere: nothing can be mounted"), "{error}");
        assert!(error.contains("SYS_ADMIN") && error.contains("user namespaces"), "{error}");
    }
}

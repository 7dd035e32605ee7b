//! The private temporary directory for the files that hooks read and write. [`RunFiles`] are those of one run.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, openat};

use super::error::ScratchError;
use super::run_files::{LOCK, Layout, RunDirectories, RunFiles};
use crate::directory_trust::{self, Refusal, STICKY, Trust, judge};
use crate::file_lock::FileLock;

/// A directory of mode 0700, locked while the operator runs.
///
/// A directory without a lock was left by a killed operator; the
/// next one removes it.
#[derive(Debug)]
pub struct Scratch {
    runs: Arc<RunDirectories>,
}

const PREFIX: &str = "run-";

impl Scratch {
    /// Makes a new directory below `parent`, or below the system's if there is none.
    ///
    /// With `keep` the files stay when their run is over.
    pub fn open(parent: Option<&Path>, keep: bool) -> Result<Self, ScratchError> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        directory_trust::make(&parent).map_err(|refusal| ScratchError::refused(&parent, refusal))?;
        check(&parent)?;
        sweep(&parent);
        let made = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(|source| ScratchError::Make { path: parent.clone(), source })?;
        let runs = RunDirectories::new(made.keep(), keep);
        runs.lock()?;
        Ok(Self { runs: Arc::new(runs) })
    }

    /// Returns a directory for the files of one run, which are those of `layout`. It may have been that of another run.
    ///
    /// Its path is one that no run had before. Where files are kept, `label` is the beginning of their names.
    ///
    /// # Errors
    ///
    /// When there is none, and none can be made.
    pub fn run(
        &self,
        layout: &'static Layout,
        label: impl FnOnce() -> String,
    ) -> Result<RunFiles, ScratchError> {
        self.runs.take(layout, label)
    }

    /// Returns whether the files are kept in memory, and not on a disk.
    pub fn is_in_memory(&self) -> bool {
        self.runs.is_in_memory()
    }

    /// Returns the directory, for files that live as long as the operator.
    pub fn path(&self) -> &Path {
        self.runs.path()
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        self.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.runs.remove();
    }
}

/// Checks that nobody else can replace what is in `parent`. One of our own is made safe.
fn check(parent: &Path) -> Result<(), ScratchError> {
    let make = |source| ScratchError::Make { path: parent.to_owned(), source };
    let found = fs::metadata(parent).map_err(make)?;
    match judge(found.uid(), found.mode(), rustix::process::geteuid().as_raw()) {
        Trust::Safe => Ok(()),
        // Others may go on to write there, but can't touch what is ours.
        Trust::NeedsSticky => {
            fs::set_permissions(parent, fs::Permissions::from_mode((found.mode() & 0o7777) | STICKY))
                .map_err(make)
        }
        Trust::Never(problem) => {
            Err(ScratchError::refused(parent, Refusal::Untrusted(parent.to_owned(), problem)))
        }
    }
}

/// Removes the directories of operators that were killed.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let has_name = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if has_name && abandoned(&entry.path()).is_ok_and(|is_abandoned| is_abandoned) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns whether a directory is of this user and its operator has ended.
///
/// Whatever stands there follows no link and waits for nobody: somebody else may have put it there.
fn abandoned(path: &Path) -> io::Result<bool> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let directory = openat(rustix::fs::CWD, path, flags | OFlags::DIRECTORY, Mode::empty())?;
    let own = rustix::process::geteuid().as_raw();
    let found = rustix::fs::fstat(&directory)?;
    if found.st_uid != own || found.st_mode & 0o077 != 0 {
        return Ok(false);
    }
    let lock = openat(&directory, LOCK, flags | OFlags::NONBLOCK, Mode::empty())?;
    let found = rustix::fs::fstat(&lock)?;
    let is_file = rustix::fs::FileType::from_raw_mode(found.st_mode).is_file();
    // A lock that is held is left alone, also by a child of an operator that has just ended: the next start looks again.
    Ok(is_file && found.st_uid == own && FileLock::new(lock.into(), Duration::ZERO).is_ok())
}

#[cfg(test)]
mod tests {
    use std::fs::DirBuilder;
    use std::io::Write;
    use std::os::unix::fs::{DirBuilderExt, symlink};

    use super::super::run_files::NEW_LOCK;
    use super::*;
    use crate::process::Survivors;

    static LAYOUT: Layout = Layout { inputs: &["values.json"], outputs: &["metrics.json"] };

    #[test]
    fn files_are_private_and_gone_with_the_operator() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::open(Some(parent.path()), false).unwrap();
        let mut run = scratch.run(&LAYOUT, String::new).unwrap();
        let input = run.input("values.json", |out| out.write_all(b"{}")).unwrap();
        for path in [&input, &run.output("metrics.json").unwrap()] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        for path in [input.parent().unwrap(), scratch.path()] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
        }
        run.finish(Survivors::Perhaps);
        assert!(!input.exists());
        drop(scratch);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn it_is_known_whether_files_are_in_memory() {
        let memory = Path::new("/dev/shm");
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        if !mounts.contains(" /dev/shm tmpfs rw") {
            return;
        }
        let parent = tempfile::tempdir_in(memory).unwrap();
        assert!(Scratch::open(Some(parent.path()), false).unwrap().is_in_memory());
        let somewhere = tempfile::tempdir().unwrap();
        let is_in_memory = Scratch::open(Some(somewhere.path()), false).unwrap().is_in_memory();
        assert_eq!(is_in_memory, rustix::fs::statfs(somewhere.path()).unwrap().f_type == libc::TMPFS_MAGIC);
    }

    #[test]
    fn what_a_killed_operator_left_behind_is_removed_by_the_next() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("run-dead");
        DirBuilder::new().mode(0o700).create(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        fs::write(left.join("values.json"), "secret").unwrap();
        let living = Scratch::open(Some(parent.path()), false).unwrap();
        assert!(!left.exists());
        let second = Scratch::open(Some(parent.path()), false).unwrap();
        assert!(living.path().exists(), "the directory of a living operator stays");
        assert_ne!(living.path(), second.path());
    }

    /// As cleaners of /tmp do, while the operator runs.
    #[test]
    fn a_directory_that_was_made_again_is_removed_behind_a_kill_as_the_first_one_is() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::open(Some(parent.path()), false).unwrap();
        fs::remove_dir_all(scratch.path()).unwrap();
        let mut run = scratch.run(&LAYOUT, String::new).unwrap();
        let input = run.input("values.json", |out| out.write_all(b"secret")).unwrap();
        Scratch::open(Some(parent.path()), false).unwrap();
        assert!(input.exists(), "the directory of a living operator stays");
        // A killed one holds no lock, and removes nothing.
        scratch.runs.unlock();
        Scratch::open(Some(parent.path()), false).unwrap();
        assert!(!scratch.path().exists());
    }

    #[test]
    fn slip_12_what_stands_in_the_way_of_the_start_is_passed_by() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32| {
            let path = parent.path().join(name);
            DirBuilder::new().mode(mode).create(&path).unwrap();
            path
        };
        let private = Mode::RUSR | Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, make("run-fifo", 0o700).join(LOCK), private).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, parent.path().join("run-pipe"), private).unwrap();
        // A lock that is a link, and a directory that is one.
        let elsewhere = make("elsewhere", 0o700);
        fs::write(elsewhere.join(LOCK), "").unwrap();
        std::os::unix::fs::symlink(elsewhere.join(LOCK), make("run-link", 0o700).join(LOCK)).unwrap();
        std::os::unix::fs::symlink(&elsewhere, parent.path().join("run-directory")).unwrap();
        // Others may have put files there.
        let open = make("run-open", 0o700);
        fs::write(open.join(LOCK), "").unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        // Opening a pipe would wait for ever, so this runs on a thread of its own.
        let (sender, opened) = std::sync::mpsc::channel();
        let place = parent.path().to_owned();
        std::thread::spawn(move || sender.send(Scratch::open(Some(&place), false).is_ok()));
        assert!(opened.recv_timeout(std::time::Duration::from_mins(1)).unwrap());
        for name in ["run-fifo", "run-pipe", "run-link", "run-directory", "run-open", "elsewhere/lock"] {
            assert!(fs::symlink_metadata(parent.path().join(name)).is_ok(), "{name} is gone");
        }
    }

    #[test]
    fn slip_12_a_directory_where_others_may_write_is_made_safe_or_refused() {
        let parent = tempfile::tempdir().unwrap();
        fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o777)).unwrap();
        Scratch::open(Some(parent.path()), false).unwrap();
        assert_eq!(fs::metadata(parent.path()).unwrap().mode() & 0o7777, 0o1777);
    }

    /// Gives a file to somebody else. Returns whether this user may.
    fn give_away(path: &Path) -> bool {
        let is_given = std::os::unix::fs::lchown(path, Some(65_534), None).is_ok();
        if !is_given {
            eprintln!("skipped: only root gives files away");
        }
        is_given
    }

    #[test]
    fn slip_12_a_parent_that_somebody_else_owns_is_refused_and_stays_as_it_is() {
        let parent = tempfile::tempdir().unwrap();
        fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o777)).unwrap();
        if !give_away(parent.path()) {
            return;
        }
        let error = Scratch::open(Some(parent.path()), false).unwrap_err();
        assert!(matches!(error, ScratchError::Untrusted { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(&parent.path().display().to_string()), "{text}");
        assert!(text.contains("user 65534 owns it"), "{text}");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
        assert_eq!(fs::metadata(parent.path()).unwrap().mode() & 0o7777, 0o777);
    }

    #[test]
    fn slip_12_a_parent_that_somebody_else_can_replace_is_refused() {
        let above = tempfile::tempdir().unwrap();
        fs::set_permissions(above.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let parent = above.path().join("x");
        for _ in 0..2 {
            let error = Scratch::open(Some(&parent), false).unwrap_err();
            assert!(
                matches!(&error, ScratchError::Untrusted { path, .. } if path == above.path()),
                "{error}"
            );
            // Also one that is there already.
            let _ = DirBuilder::new().mode(0o700).create(&parent);
        }
        fs::set_permissions(above.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        Scratch::open(Some(&parent), false).unwrap();
        let (link, elsewhere) = (above.path().join("link"), tempfile::tempdir().unwrap());
        symlink(elsewhere.path(), &link).unwrap();
        if give_away(&link) {
            let error = Scratch::open(Some(&link), false).unwrap_err();
            assert!(matches!(&error, ScratchError::Untrusted { path, .. } if *path == link), "{error}");
        }
    }

    #[test]
    fn slip_12_a_directory_that_somebody_else_made_again_is_not_used() {
        let above = tempfile::tempdir().unwrap();
        fs::set_permissions(above.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let parent = above.path().join("x");
        let scratch = Scratch::open(Some(&parent), false).unwrap();
        // As cleaners of /tmp do.
        fs::remove_dir_all(&parent).unwrap();
        drop(scratch.run(&LAYOUT, String::new).unwrap());
        fs::remove_dir_all(&parent).unwrap();
        DirBuilder::new().mode(0o777).create(&parent).unwrap();
        if give_away(&parent) {
            let error = scratch.run(&LAYOUT, String::new).unwrap_err();
            assert!(matches!(&error, ScratchError::Untrusted { path, .. } if *path == parent), "{error}");
        }
    }

    #[test]
    fn slip_12_what_somebody_else_put_below_the_parent_is_not_removed() {
        let parent = tempfile::tempdir().unwrap();
        // The directory is another user's, or only its lock.
        for (name, given) in [("run-directory", ""), ("run-lock", LOCK)] {
            let left = parent.path().join(name);
            DirBuilder::new().mode(0o700).create(&left).unwrap();
            fs::write(left.join(LOCK), "").unwrap();
            if !give_away(&left.join(given)) {
                return;
            }
        }
        Scratch::open(Some(parent.path()), false).unwrap();
        assert!(parent.path().join("run-directory").exists() && parent.path().join("run-lock").exists());
    }

    #[test]
    fn slip_12_what_a_new_operator_has_not_locked_yet_is_not_removed() {
        let parent = tempfile::tempdir().unwrap();
        let starting = parent.path().join("run-starting");
        DirBuilder::new().mode(0o700).create(&starting).unwrap();
        fs::write(starting.join(NEW_LOCK), "").unwrap();
        Scratch::open(Some(parent.path()), false).unwrap();
        assert!(starting.exists());
    }

    #[test]
    fn an_unwritable_place_is_named() {
        let error = Scratch::open(Some(Path::new("/proc/nowhere")), false).unwrap_err().to_string();
        assert!(error.starts_with("can't make /proc/nowhere: "), "{error}");
    }
}

//! The private temporary directory for the files that hooks read and write.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

/// A directory of mode 0700, locked while the operator runs.
///
/// A directory without a lock was left by a killed operator; the
/// next one removes it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    keep: bool,
    next: AtomicU64,
    lock: File,
}

/// Why files of hooks can't be written.
#[derive(Debug, Error)]
pub enum ScratchError {
    /// The directory can't be made.
    #[error("can't make {path}: {source} (--tmp-dir names the directory for the files of hooks)")]
    Make {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file can't be written.
    #[error("can't write {path}: {source} (is the file system of --tmp-dir full or read-only?)")]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

const LOCK: &str = "lock";
const PREFIX: &str = "run-";

impl Scratch {
    /// Makes a new directory below `parent`, or below the system's if there is none.
    ///
    /// With `keep` the files stay when their run is over.
    pub fn open(parent: Option<&Path>, keep: bool) -> Result<Self, ScratchError> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        fs::create_dir_all(&parent).map_err(|source| ScratchError::Make { path: parent.clone(), source })?;
        sweep(&parent);
        let made = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(|source| ScratchError::Make { path: parent.clone(), source })?;
        let path = made.keep();
        let lock_path = path.join(LOCK);
        let lock = create(&lock_path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| ScratchError::Write { path: lock_path, source: error.into() })?;
        Ok(Self { path, keep, next: AtomicU64::new(1), lock })
    }

    /// Makes a directory for the files of one run. They are gone when it is dropped.
    pub fn run(&self) -> Result<RunFiles, ScratchError> {
        let path = self.path.join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        let make = || {
            DirBuilder::new().mode(0o700).create(&path).or_else(|error| {
                if error.kind() == io::ErrorKind::NotFound {
                    // The directory was removed while the operator runs, as cleaners of /tmp do.
                    return DirBuilder::new().mode(0o700).recursive(true).create(&path);
                }
                Err(error)
            })
        };
        make().map_err(|source| ScratchError::Make { path: path.clone(), source })?;
        Ok(RunFiles { path, keep: self.keep })
    }

    /// Returns the directory, for files that live as long as the operator.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

/// Removes the directories of operators that were killed.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if ours && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The files of one run.
#[derive(Debug)]
pub struct RunFiles {
    path: PathBuf,
    keep: bool,
}

impl RunFiles {
    /// Writes a file of mode 0600 and returns its path.
    pub fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
    ) -> Result<PathBuf, ScratchError> {
        let path = self.path.join(name);
        let mut out = io::BufWriter::with_capacity(64 * 1024, create(&path)?);
        let written = write(&mut out).and_then(|()| io::Write::flush(&mut out));
        written.map_err(|source| ScratchError::Write { path: path.clone(), source })?;
        Ok(path)
    }

    /// Makes an empty file of mode 0600 and returns its path.
    pub fn empty(&self, name: &str) -> Result<PathBuf, ScratchError> {
        let path = self.path.join(name);
        create(&path)?;
        Ok(path)
    }
}

impl Drop for RunFiles {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn create(path: &Path) -> Result<File, ScratchError> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|source| ScratchError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn files_are_private_and_gone_after_their_run() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::open(Some(parent.path()), false).unwrap();
        let run = scratch.run().unwrap();
        let path = run.write("values.json", |out| out.write_all(b"{}")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(scratch.path()).unwrap().permissions().mode() & 0o777, 0o700);
        drop(run);
        assert!(!path.exists());
        drop(scratch);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_operator_left_behind_is_removed_by_the_next() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("run-dead");
        fs::create_dir(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        fs::write(left.join("values.json"), "secret").unwrap();
        let living = Scratch::open(Some(parent.path()), false).unwrap();
        assert!(!left.exists());
        let second = Scratch::open(Some(parent.path()), false).unwrap();
        assert!(living.path().exists(), "the directory of a living operator stays");
        assert_ne!(living.path(), second.path());
    }

    #[test]
    fn an_unwritable_place_is_named() {
        let error = Scratch::open(Some(Path::new("/proc/nowhere")), false).unwrap_err().to_string();
        assert!(error.starts_with("can't make /proc/nowhere: "), "{error}");
    }
}

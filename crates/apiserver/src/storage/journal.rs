//! The log beside a state file: each change is written down before it is answered.
//!
//! A line is one `write`. It is in the hands of the kernel then, so that it outlives the process, however that ends.
//! Nothing is synced: the end of the machine may take what came after the last snapshot.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::error::StateError;
use super::recovery::{Line, beside};
use crate::regular_file;
use crate::store::{Change, Event, ObjectRef};

/// The largest log. It is that large only while no snapshot can be written.
const LIMIT: u64 = 1 << 30;

/// The log of the changes after the latest snapshot.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    /// Where the log before lies until a snapshot holds what is in it.
    older: PathBuf,
    has_older: bool,
    /// Nothing while no file could be begun.
    file: Option<File>,
    length: u64,
    limit: u64,
    /// Whether the last line is a part of one. Nothing may follow it.
    is_torn: bool,
    _lock: Lock,
}

/// Keeps other servers from a state file. It is unlocked explicitly: a child that was just forked may have it open, too.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Takes the lock of a state file.
    pub(super) fn of(path: &Path) -> Result<Lock, StateError> {
        let beside = beside(path, ".lock");
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(0o600);
        let file = regular_file::open(&mut options, &beside);
        let file = file.map_err(|source| StateError::Write(beside.clone(), source))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => Err(StateError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => Err(StateError::Write(beside, source)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Returns where the logs of a state file lie, the older one first.
pub(super) fn logs(path: &Path) -> [PathBuf; 2] {
    [beside(path, ".log.1"), beside(path, ".log")]
}

/// Removes the logs of a state file, which a snapshot holds.
pub(super) fn remove_logs(path: &Path) -> Result<(), StateError> {
    // The older one first: what is left of two must follow the snapshot.
    for log in logs(path) {
        remove(&log).map_err(|source| StateError::Write(log.clone(), source))?;
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn begin(path: &Path) -> io::Result<File> {
    // Clusters hold secrets: only the owner reads the file.
    File::options().create_new(true).append(true).mode(0o600).open(path)
}

impl Journal {
    /// Begins the log of a state file that has none.
    pub(super) fn begin(path: &Path, lock: Lock) -> Result<Journal, StateError> {
        let [older, path] = logs(path);
        let file = begin(&path).map_err(|source| StateError::Write(path.clone(), source))?;
        Ok(Journal {
            path,
            older,
            has_older: false,
            file: Some(file),
            length: 0,
            limit: LIMIT,
            is_torn: false,
            _lock: lock,
        })
    }

    /// Writes a change down.
    ///
    /// # Errors
    ///
    /// When it could not be written. What could be is taken back.
    pub(super) fn append(&mut self, object: &ObjectRef, event: &Event) -> Result<(), StateError> {
        self.write(object, event).map_err(|source| StateError::Write(self.path.clone(), source))
    }

    fn write(&mut self, object: &ObjectRef, event: &Event) -> io::Result<()> {
        let body: &[u8] = if event.change == Change::Deleted { b"null" } else { &event.object.body };
        let line = Line {
            table: object.table.to_string(),
            key: object.key.to_string(),
            revision: event.revision,
            object: serde_json::from_slice(body)?,
        };
        let mut line = serde_json::to_vec(&line)?;
        line.push(b'\n');
        let Some(file) = self.file.as_mut().filter(|_| !self.is_torn) else {
            return Err(io::Error::other("an earlier change could not be written"));
        };
        let length = self.length + line.len() as u64;
        if length > self.limit {
            return Err(io::Error::other("too many changes wait for a snapshot"));
        }
        if let Err(error) = file.write_all(&line) {
            self.is_torn = file.set_len(self.length).is_err();
            return Err(error);
        }
        self.length = length;
        Ok(())
    }

    /// Begins a new file. Nothing may be committed meanwhile, and a snapshot of this moment must follow.
    ///
    /// While no snapshot holds what is in the older file, the present one goes on.
    pub(super) fn rotate(&mut self) -> Result<(), StateError> {
        let rotated = self.next_file();
        rotated.map_err(|source| StateError::Write(self.path.clone(), source))
    }

    fn next_file(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            if self.has_older {
                return Ok(());
            }
            fs::rename(&self.path, &self.older)?;
            // The file that is open is the older one now.
            (self.has_older, self.file) = (true, None);
        }
        self.file = Some(begin(&self.path)?);
        (self.length, self.is_torn) = (0, false);
        Ok(())
    }

    /// Removes the older file: a snapshot holds what is in it.
    pub(super) fn drop_older(&mut self) -> Result<(), StateError> {
        remove(&self.older).map_err(|source| StateError::Write(self.older.clone(), source))?;
        self.has_older = false;
        Ok(())
    }
}

#[cfg(test)]
impl Journal {
    /// Goes on with another file.
    pub(super) fn put_file(&mut self, file: File) {
        self.file = Some(file);
    }

    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }
}

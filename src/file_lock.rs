//! A file that is locked as long as a value lives.

use std::fs::File;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How often a lock that is held is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The patience with a process that has just ended: a child that it had forked holds its locks until it becomes another
/// program.
pub(crate) const HANDOVER: Duration = Duration::from_secs(1);

/// A lock of a file, which no other process has.
#[derive(Debug)]
pub(crate) struct FileLock(File);

impl FileLock {
    /// Locks a file. A lock that is held is waited for, for as long as `patience`: [`HANDOVER`] at least where the lock of
    /// a process that has just ended is taken over, and zero where a lock that is held is not wanted.
    ///
    /// # Errors
    ///
    /// [`Errno::WOULDBLOCK`] when it is still held in the end; others when the file can't be locked.
    pub(crate) fn new(file: File, patience: Duration) -> Result<Self, Errno> {
        let end = Instant::now() + patience;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(file)),
                Err(Errno::WOULDBLOCK) if Instant::now() < end => std::thread::sleep(LOOK_AGAIN),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for FileLock {
    /// Unlocks it. To close it is not enough: a child that was just forked may have it open, too.
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_file_keeps_no_lock_that_was_given_up() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let open = || File::open(path.path()).unwrap();
        let file = open();
        let forked = file.try_clone().unwrap();
        let lock = FileLock::new(file, Duration::ZERO).unwrap();
        assert_eq!(FileLock::new(open(), Duration::ZERO).unwrap_err(), Errno::WOULDBLOCK);
        drop(lock);
        assert!(FileLock::new(open(), Duration::ZERO).is_ok());
        drop(forked);
    }

    #[test]
    fn a_lock_that_is_soon_given_up_is_waited_for() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let open = || File::open(path.path()).unwrap();
        // As a child does that holds the lock of a killed process.
        let held = open();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| FileLock::new(open(), Duration::from_mins(1)));
            drop(held);
            assert!(waits.join().unwrap().is_ok());
        });
    }
}

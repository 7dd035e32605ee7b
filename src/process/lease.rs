//! Whether anybody else has a file open.

use std::fs::File;
use std::ops::Deref;
use std::os::fd::AsRawFd;

/// The request that says by which signal a lease is called back. `libc` has no name for it on Linux.
const F_SETSIG: libc::c_int = 10;

/// A file, open for writing, that can say whether anybody else has it open.
#[derive(Debug)]
pub struct WatchedFile {
    file: File,
    /// Whether a lease of it can be called back without harm.
    can_lease: bool,
}

impl WatchedFile {
    /// Returns the file.
    pub fn new(file: File) -> Self {
        // SIGIO, which is sent otherwise to who holds a lease that somebody waits for, would end this process.
        let can_lease = ask(&file, F_SETSIG, libc::SIGURG);
        Self { file, can_lease }
    }

    /// Returns the file alone.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Returns whether nobody has it open or mapped, except through this.
    ///
    /// It returns `false`, too, where the file system does not tell.
    ///
    /// The system grants a lease for writing only on such a file. It is given back at once: whoever opens the file meanwhile
    /// waits that long.
    pub fn is_open_nowhere_else(&self) -> bool {
        self.can_lease
            && [libc::F_WRLCK, libc::F_UNLCK].into_iter().all(|kind| ask(&self.file, libc::F_SETLEASE, kind))
    }
}

impl Deref for WatchedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

/// Returns whether the system does as it is asked.
fn ask(file: &File, request: libc::c_int, argument: libc::c_int) -> bool {
    #[expect(unsafe_code, reason = "there is no safe wrapper for leases")]
    // SAFETY: the descriptor is open as long as `file` is borrowed, and both requests take a number.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), request, argument) };
    answer == 0
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn who_reads_or_writes_a_file_is_noticed_as_long_as_it_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = WatchedFile::new(File::create(&path).unwrap());
        assert!(file.is_open_nowhere_else());
        for options in [OpenOptions::new().read(true), OpenOptions::new().append(true)] {
            let other = options.open(&path).unwrap();
            assert!(!file.is_open_nowhere_else(), "{options:?}");
            drop(other);
            assert!(file.is_open_nowhere_else(), "{options:?}");
        }
        // A lease that is held still would stop who opens the file now.
        File::open(&path).unwrap();
    }
}

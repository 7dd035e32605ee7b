//! Whether anybody else has a file open.

use std::fs::File;
use std::os::fd::AsRawFd;

/// The request that says by which signal a lease is called back. `libc` has no name for it on Linux.
const F_SETSIG: libc::c_int = 10;

/// Returns whether nobody has a file open or mapped, except through `file` itself, which is open for writing.
///
/// It returns `false`, too, where the file system does not tell.
///
/// The system grants a lease for writing only on such a file. It is given back at once: whoever opens the file meanwhile
/// waits that long.
pub fn is_open_nowhere_else(file: &File) -> bool {
    let descriptor = file.as_raw_fd();
    // SIGIO, which is sent otherwise to who holds a lease that somebody waits for, would end this process.
    let set =
        [(F_SETSIG, libc::SIGURG), (libc::F_SETLEASE, libc::F_WRLCK), (libc::F_SETLEASE, libc::F_UNLCK)];
    set.into_iter().all(|(request, argument)| {
        #[expect(unsafe_code, reason = "there is no safe wrapper for leases")]
        // SAFETY: the descriptor is open as long as `file` is borrowed, and both requests take a number.
        let answer = unsafe { libc::fcntl(descriptor, request, argument) };
        answer == 0
    })
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn who_reads_or_writes_a_file_is_noticed_as_long_as_it_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = File::create(&path).unwrap();
        assert!(is_open_nowhere_else(&file));
        for options in [OpenOptions::new().read(true), OpenOptions::new().append(true)] {
            let other = options.open(&path).unwrap();
            assert!(!is_open_nowhere_else(&file), "{options:?}");
            drop(other);
            assert!(is_open_nowhere_else(&file), "{options:?}");
        }
        // A lease that is held still would stop who opens the file now.
        File::open(&path).unwrap();
    }
}

//! The pipes that programs print to. They go from one program to the next when nobody else can hold them.
//!
//! To make two pipes for each program and to close their four ends took as long as a twentieth of all that a run of a hook takes.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{OFlags, fcntl_setfl, fstat};
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};

/// How many pipes wait for the next program. They wait only while no program runs, so there is no use for many.
const MOST_IDLE: usize = 4;

/// The pipes that wait.
static IDLE: Mutex<Vec<OutputPipe>> = Mutex::new(Vec::new());

/// A pipe with both of its ends.
#[derive(Debug)]
pub(super) struct OutputPipe {
    pub(super) reader: OwnedFd,
    pub(super) writer: Writer,
}

/// The end that a program writes to.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) end: OwnedFd,
    as_made: Traits,
}

/// What a program can change of a pipe for those who have it later, beside what is in it.
#[derive(Debug, Eq, PartialEq)]
struct Traits {
    size: usize,
    rights: u32,
    owner: (u32, u32),
}

impl Traits {
    fn of(end: &OwnedFd) -> io::Result<Self> {
        let (size, found) = (fcntl_getpipe_size(end)?, fstat(end)?);
        Ok(Self { size, rights: found.st_mode, owner: (found.st_uid, found.st_gid) })
    }
}

impl OutputPipe {
    /// Returns a pipe that waited, or a new one.
    pub(super) fn take() -> io::Result<Self> {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(Self::new, Ok)
    }

    fn new() -> io::Result<Self> {
        let (reader, end) = pipe_with(PipeFlags::CLOEXEC)?;
        let as_made = Traits::of(&end)?;
        Ok(Self { reader, writer: Writer { end, as_made } })
    }

    /// Keeps the pipe for the next program, if it is as it was made. It has to be empty, and nobody else may hold it.
    pub(super) fn give_back(self) {
        let Some(pipe) = self.if_as_made() else { return };
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE {
            idle.push(pipe);
        }
    }

    /// Returns the pipe as it was made; nothing if it is another one now.
    fn if_as_made(self) -> Option<Self> {
        // What makes writes fail that would wait is no trait of the pipe, but of its end, which was lent.
        fcntl_setfl(&self.writer.end, OFlags::empty()).ok()?;
        (Traits::of(&self.writer.end).ok()? == self.writer.as_made).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Mode, fchmod, fcntl_getfl};
    use rustix::pipe::fcntl_setpipe_size;

    use super::*;

    /// Returns whether a pipe can be used again after something was done with its end.
    fn is_next(deed: impl FnOnce(&OwnedFd)) -> bool {
        let pipe = OutputPipe::new().unwrap();
        deed(&pipe.writer.end);
        pipe.if_as_made().is_some_and(|pipe| {
            let flags = fcntl_getfl(&pipe.writer.end).unwrap();
            !flags.intersects(OFlags::NONBLOCK | OFlags::APPEND | OFlags::DIRECT)
        })
    }

    #[test]
    fn a_pipe_is_used_again_if_it_is_as_it_was_made() {
        assert!(is_next(|_| {}));
        let flags = OFlags::NONBLOCK | OFlags::APPEND | OFlags::DIRECT;
        assert!(is_next(|end| fcntl_setfl(end, flags).unwrap()), "the flags of its end are set back");
        let shrink = |end: &OwnedFd| assert!(fcntl_setpipe_size(end, 4096).is_ok());
        assert!(!is_next(shrink), "it holds less now");
        assert!(!is_next(|end| fchmod(end, Mode::from_raw_mode(0o666)).unwrap()), "others may write now");
    }
}

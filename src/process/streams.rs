//! The streams of a process: read while it runs, to their end, and for a while behind it.

use std::fmt::Write as _;
use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::pipes::{OutputPipe, Writer};
use super::spawn::Printed;

/// How many bytes a process may print in all before the rest is read but dropped.
const LONGEST_OUTPUT: u64 = 64 * 1024 * 1024;

/// How many bytes are passed on that children in the background print after their program has ended.
const LONGEST_REST: u64 = 256 * 1024;

/// How many programs may have children in the background whose output is passed on.
static RESTS: Semaphore = Semaphore::const_new(64);

/// How long nobody waits for output. Most programs are over by then, and print little: it is read when they have ended, which
/// spares what it costs to wait for two more descriptors, and to be woken by each.
const UNHEARD: Duration = Duration::from_millis(5);

/// How many bytes of what a process prints to standard error are kept from its beginning, and as many from its end.
const STDERR_KEPT: usize = 32 * 1024;

/// Which stream a line was printed to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Both streams of a process.
pub(super) struct Streams {
    stdout: Pipe,
    stderr: Pipe,
    /// The other ends of both, as long as this process holds them.
    writers: [Option<Writer>; 2],
    /// From when on output is waited for.
    heard_from: Instant,
    kept: Excerpt,
    printed: u64,
}

/// The end of a pipe that is read from.
enum Pipe {
    /// Nobody waits for what comes.
    Unheard(OwnedFd),
    /// The runtime says when there is something.
    Heard(Receiver),
    /// Nobody holds it open any more, and all was read.
    Ended,
}

impl Pipe {
    /// Has the runtime say when there is something.
    fn hear(&mut self) -> io::Result<()> {
        *self = match mem::replace(self, Self::Ended) {
            Self::Unheard(pipe) => {
                rustix::io::ioctl_fionbio(&pipe, true)?;
                Self::Heard(Receiver::from_owned_fd(pipe)?)
            }
            Self::Heard(pipe) => Self::Heard(pipe),
            Self::Ended => Self::Ended,
        };
        Ok(())
    }

    /// Waits until it can be read; for ever, if it has ended.
    async fn readable(&self) {
        match self {
            Self::Heard(pipe) => drop(pipe.readable().await), // The read that follows reports an error.
            Self::Unheard(_) | Self::Ended => std::future::pending().await,
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Unheard(pipe) => Some(pipe.as_fd()),
            Self::Heard(pipe) => Some(pipe.as_fd()),
            Self::Ended => None,
        }
    }
}

impl Streams {
    pub(super) fn new(stdout: Printed, stderr: Printed) -> Self {
        Self {
            stdout: Pipe::Unheard(stdout.reader),
            stderr: Pipe::Unheard(stderr.reader),
            writers: [stdout.writer, stderr.writer],
            heard_from: Instant::now() + UNHEARD,
            kept: Excerpt::default(),
            printed: 0,
        }
    }

    /// Waits for output and passes it on. Never returns when both streams have ended.
    ///
    /// # Errors
    ///
    /// When the runtime can't wait for it.
    pub(super) async fn read(&mut self, print: &mut impl FnMut(Stream, &[u8])) -> io::Result<()> {
        if matches!((&self.stdout, &self.stderr), (Pipe::Unheard(_), _) | (_, Pipe::Unheard(_))) {
            tokio::time::sleep_until(self.heard_from).await;
            self.stdout.hear()?;
            self.stderr.hear()?;
        }
        let stream = tokio::select! {
            () = self.stdout.readable() => Stream::Stdout,
            () = self.stderr.readable() => Stream::Stderr,
        };
        if self.take(stream, print) {
            // One who prints without end has something to read each time, and all others wait for their turn.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Passes on what can be read at once. Returns whether there may be more.
    fn take(&mut self, stream: Stream, print: &mut impl FnMut(Stream, &[u8])) -> bool {
        let mut buffer = [0; 16 * 1024];
        let pipe = self.pipe(stream);
        let Pipe::Heard(open) = pipe else { return false };
        match open.try_read(&mut buffer) {
            Ok(count) if count > 0 => {
                self.pass_on(stream, buffer.get(..count).unwrap_or_default(), print);
                count == buffer.len()
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Ok(_) | Err(_) => {
                *pipe = Pipe::Ended;
                false
            }
        }
    }

    fn pipe(&mut self, stream: Stream) -> &mut Pipe {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn pass_on(&mut self, stream: Stream, bytes: &[u8], print: &mut impl FnMut(Stream, &[u8])) {
        if stream == Stream::Stderr {
            self.kept.push(bytes);
        }
        let before = self.printed;
        self.printed = before.saturating_add(bytes.len() as u64);
        if before < LONGEST_OUTPUT {
            print(stream, bytes);
            if self.printed >= LONGEST_OUTPUT {
                print(stream, "\n… more than 64 MiB were printed; the rest is not shown\n".as_bytes());
            }
        }
    }

    /// Passes on what was printed before the process ended. `is_alone` says that nothing lives that this process started: then
    /// nobody holds the streams any more.
    ///
    /// This reads from the pipes themselves: the runtime may not know of the last bytes yet. What a child in the
    /// background prints meanwhile is not read: it may print faster than we read.
    pub(super) fn drain(&mut self, is_alone: bool, print: &mut impl FnMut(Stream, &[u8])) {
        if !is_alone {
            // Only then is it seen whether others hold them.
            self.writers = [None, None];
        }
        for (stream, found) in self.waiting() {
            let pipe = self.pipe(stream);
            let waiting = match pipe.descriptor() {
                Some(pipe) if found.contains(PollFlags::IN) => rustix::io::ioctl_fionread(pipe).unwrap_or(0),
                Some(_) | None => 0,
            };
            let mut left = usize::try_from(waiting).unwrap_or(usize::MAX);
            while left > 0 {
                let mut buffer = [0; 4 * 1024];
                let most = left.min(buffer.len());
                let room = buffer.get_mut(..most).unwrap_or_default();
                let Some(pipe) = self.pipe(stream).descriptor() else { break };
                let read = rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut *room));
                let Some(count) = read.ok().filter(|count| *count > 0) else { break };
                self.pass_on(stream, buffer.get(..count).unwrap_or_default(), print);
                left -= count;
            }
            // Nobody could write any more when it was looked at, so that was all.
            if left == 0 && found.intersects(PollFlags::HUP | PollFlags::ERR) {
                *self.pipe(stream) = Pipe::Ended;
            }
            if left == 0 && is_alone {
                self.give_back(stream);
            }
        }
    }

    /// Gives a pipe to the next program, if this process holds both ends. It was read to its end, and nobody else holds it.
    fn give_back(&mut self, stream: Stream) {
        let [stdout, stderr] = &mut self.writers;
        let writer = match stream {
            Stream::Stdout => stdout.take(),
            Stream::Stderr => stderr.take(),
        };
        let Some(writer) = writer else { return };
        let reader = match mem::replace(self.pipe(stream), Pipe::Ended) {
            Pipe::Unheard(reader) => Some(reader),
            Pipe::Heard(reader) => reader.into_blocking_fd().ok(),
            Pipe::Ended => None,
        };
        if let Some(reader) = reader {
            OutputPipe { reader, writer }.give_back();
        }
    }

    /// Returns what can be found out about each stream without waiting.
    fn waiting(&self) -> Vec<(Stream, PollFlags)> {
        let pipes = [(Stream::Stdout, &self.stdout), (Stream::Stderr, &self.stderr)];
        let (streams, mut polled): (Vec<Stream>, Vec<PollFd<'_>>) = pipes
            .into_iter()
            .filter_map(|(stream, pipe)| {
                Some((stream, PollFd::from_borrowed_fd(pipe.descriptor()?, PollFlags::IN)))
            })
            .unzip();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if polled.is_empty() || rustix::io::retry_on_intr(|| poll(&mut polled, Some(&at_once))).is_err() {
            return Vec::new();
        }
        streams.into_iter().zip(polled.iter().map(PollFd::revents)).collect()
    }

    /// Returns how many bytes were printed.
    pub(super) const fn printed(&self) -> u64 {
        self.printed
    }

    /// Returns what was printed to standard error; of a long text the beginning and the end.
    pub(super) fn stderr(&self) -> String {
        self.kept.text()
    }

    /// Returns whether somebody may print still.
    pub(super) fn are_open(&self) -> bool {
        self.stdout.descriptor().is_some() || self.stderr.descriptor().is_some()
    }

    /// Continues to read in the background while another process holds the streams open, up to a limit.
    ///
    /// Behind the limit the streams are closed. A process that goes on printing is ended by SIGPIPE then.
    pub(super) fn leave(mut self, mut print: impl FnMut(Stream, &[u8]) + Send + 'static) {
        if !self.are_open() {
            return;
        }
        let Ok(place) = RESTS.try_acquire() else {
            print(
                Stream::Stderr,
                "\n… too many programs in the background; this one is not heard\n".as_bytes(),
            );
            return;
        };
        let end = self.printed.saturating_add(LONGEST_REST);
        tokio::spawn(async move {
            while self.are_open() && self.printed < end && self.read(&mut print).await.is_ok() {}
            if self.printed >= end {
                print(
                    Stream::Stderr,
                    "\n… it printed too much in the background and is not heard any more\n".as_bytes(),
                );
            }
            drop(place);
        });
    }
}

/// The beginning and the end of a text of any length.
#[derive(Default)]
struct Excerpt {
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: usize,
}

impl Excerpt {
    fn push(&mut self, bytes: &[u8]) {
        let room = STDERR_KEPT.saturating_sub(self.head.len()).min(bytes.len());
        let (head, tail) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(tail);
        if self.tail.len() > 2 * STDERR_KEPT {
            let excess = self.tail.len() - STDERR_KEPT;
            self.tail.drain(..excess);
            self.dropped += excess;
        }
    }

    /// Returns the text. Where something is left out, whole lines are: half of a value is not recognised any more.
    fn text(&self) -> String {
        if self.dropped == 0 {
            let whole = [self.head.as_slice(), self.tail.as_slice()].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let head_end = self.head.iter().rposition(|byte| *byte == b'\n').unwrap_or(self.head.len());
        let head = self.head.get(..head_end).unwrap_or_default();
        // An end without lines begins anywhere: what is left of a value there is recognised by the words before it.
        let line = self.tail.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
        let tail =
            self.tail.get(line.filter(|line| *line < self.tail.len()).unwrap_or(0)..).unwrap_or_default();
        let dropped = self.dropped + self.head.len() - head.len() + self.tail.len() - tail.len();
        let mut text = String::from_utf8_lossy(head).into_owned();
        // Directly behind a line that was cut, as a mark.
        let between = if head_end < self.head.len() { "\n" } else { "" };
        let _ = writeln!(text, "{between}… {dropped} bytes left out …");
        text.push_str(&String::from_utf8_lossy(tail));
        text
    }
}

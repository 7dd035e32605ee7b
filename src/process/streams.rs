//! The streams of a process: read while it runs, to their end, and for a while behind it.

use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe::Receiver;
use tokio::sync::Semaphore;

/// How many bytes a process may print in all before the rest is read but dropped.
const LONGEST_OUTPUT: u64 = 64 * 1024 * 1024;

/// How many bytes are passed on that children in the background print after their program has ended.
const LONGEST_REST: u64 = 256 * 1024;

/// How many programs may have children in the background whose output is passed on.
static RESTS: Semaphore = Semaphore::const_new(64);

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
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
    kept: Excerpt,
    printed: u64,
}

impl Streams {
    pub(super) fn new(stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Self> {
        let pipe = |fd: OwnedFd| -> io::Result<Option<Receiver>> {
            rustix::io::ioctl_fionbio(&fd, true)?;
            Ok(Some(Receiver::from_owned_fd(fd)?))
        };
        Ok(Self { stdout: pipe(stdout)?, stderr: pipe(stderr)?, kept: Excerpt::default(), printed: 0 })
    }

    /// Waits for output and passes it on. Never returns when both streams have ended.
    pub(super) async fn read(&mut self, print: &mut impl FnMut(Stream, &[u8])) {
        tokio::select! {
            () = readable(self.stdout.as_ref()) => self.take(Stream::Stdout, usize::MAX, Receiver::try_read, print),
            () = readable(self.stderr.as_ref()) => self.take(Stream::Stderr, usize::MAX, Receiver::try_read, print),
        };
    }

    /// Passes on what `read` returns without waiting, at most `most` bytes. Returns how many there were.
    fn take(
        &mut self,
        stream: Stream,
        most: usize,
        read: impl Fn(&Receiver, &mut [u8]) -> io::Result<usize>,
        print: &mut impl FnMut(Stream, &[u8]),
    ) -> usize {
        let mut buffer = [0; 16 * 1024];
        let most = most.min(buffer.len());
        let pipe = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let Some(open) = pipe else { return 0 };
        match read(open, buffer.get_mut(..most).unwrap_or_default()) {
            Ok(count) if count > 0 => {
                let bytes = buffer.get(..count).unwrap_or_default();
                if stream == Stream::Stderr {
                    self.kept.push(bytes);
                }
                let before = self.printed;
                self.printed = before.saturating_add(count as u64);
                if before < LONGEST_OUTPUT {
                    print(stream, bytes);
                    if self.printed >= LONGEST_OUTPUT {
                        print(
                            stream,
                            "\n… more than 64 MiB were printed; the rest is not shown\n".as_bytes(),
                        );
                    }
                }
                count
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Ok(_) | Err(_) => {
                *pipe = None;
                0
            }
        }
    }

    /// Passes on what was printed before the process ended.
    ///
    /// This reads from the pipes themselves: the runtime may not know of the last bytes yet. What a child in the
    /// background prints meanwhile is not read: it may print faster than we read.
    pub(super) fn drain(&mut self, print: &mut impl FnMut(Stream, &[u8])) {
        let read = |pipe: &Receiver, buffer: &mut [u8]| {
            Ok(rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut *buffer))?)
        };
        for stream in [Stream::Stdout, Stream::Stderr] {
            let pipe = match stream {
                Stream::Stdout => self.stdout.as_ref(),
                Stream::Stderr => self.stderr.as_ref(),
            };
            let waiting = pipe.and_then(|pipe| rustix::io::ioctl_fionread(pipe).ok()).unwrap_or(0);
            let mut left = usize::try_from(waiting).unwrap_or(usize::MAX);
            // One more read finds the end of a stream that nobody holds open.
            loop {
                let count = self.take(stream, left.max(1), read, print);
                if count == 0 || left == 0 {
                    break;
                }
                left = left.saturating_sub(count);
            }
        }
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
    pub(super) const fn are_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
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
            while self.are_open() && self.printed < end {
                self.read(&mut print).await;
            }
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

/// Waits until a pipe can be read; for ever, if it has ended.
async fn readable(pipe: Option<&Receiver>) {
    match pipe {
        Some(pipe) => drop(pipe.readable().await), // The read that follows reports an error.
        None => std::future::pending().await,
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

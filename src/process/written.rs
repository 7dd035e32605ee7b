//! What a program writes into files, while it runs: a limit has to be known as met before a disk is full.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt as _;
use inotify::{EventStream, Inotify, WatchMask};
use tokio::time::{Instant, sleep_until};

/// What makes a file longer, or puts another one into its place.
const CHANGES: WatchMask = WatchMask::MODIFY.union(WatchMask::CREATE).union(WatchMask::MOVED_TO);

/// How long nobody looks again after a look. Who writes without end changes a file thousands of times a second.
const PAUSE: Duration = Duration::from_millis(5);

/// How long nobody looks where the kernel has no place for another watch.
const PAUSE_UNWATCHED: Duration = Duration::from_millis(100);

/// How many bytes of events are read at a time.
const EVENTS: usize = 1024;

/// Files of one directory into which a program writes.
pub(super) struct Written {
    files: Vec<PathBuf>,
    changes: Option<EventStream<Vec<u8>>>,
    looked: Instant,
}

impl Written {
    /// Returns the files as they are. Without any, nothing is watched.
    pub(super) fn new(files: &[PathBuf]) -> Self {
        let directory = files.first().and_then(|file| file.parent());
        // Without a watch they are looked at now and then.
        let changes = directory.and_then(|directory| watch(directory).ok());
        Self { files: files.to_vec(), changes, looked: Instant::now() }
    }

    /// Waits until something may have been written; for ever, if there are no files.
    pub(super) async fn changed(&mut self) {
        if self.files.is_empty() {
            return std::future::pending().await;
        }
        match &mut self.changes {
            Some(changes) => {
                sleep_until(self.looked + PAUSE).await;
                if !matches!(changes.next().await, Some(Ok(_))) {
                    self.changes = None;
                }
            }
            None => sleep_until(self.looked + PAUSE_UNWATCHED).await,
        }
        self.looked = Instant::now();
    }

    /// Returns how many bytes are in the files.
    pub(super) fn bytes(&self) -> u64 {
        let lengths = self.files.iter().filter_map(|file| std::fs::metadata(file).ok());
        lengths.fold(0, |all, file| all.saturating_add(file.len()))
    }
}

fn watch(directory: &Path) -> io::Result<EventStream<Vec<u8>>> {
    let inotify = Inotify::init()?;
    inotify.watches().add(directory, CHANGES | WatchMask::ONLYDIR)?;
    inotify.into_event_stream(vec![0; EVENTS])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn what_is_written_or_put_in_place_is_seen_with_a_watch_and_without_one() {
        for is_watched in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let path = |name: &str| directory.path().join(name);
            let files = [path("a"), path("b")];
            fs::write(&files[0], "").unwrap();
            let mut written = Written::new(&files);
            written.changes.take_if(|_| !is_watched);
            assert_eq!(written.bytes(), 0);
            fs::write(&files[0], "12345").unwrap();
            until(&mut written, 5).await;
            fs::write(path("draft"), "123").unwrap();
            fs::rename(path("draft"), &files[1]).unwrap();
            until(&mut written, 8).await;
            assert_eq!(written.changes.is_some(), is_watched);
        }
    }

    async fn until(written: &mut Written, bytes: u64) {
        while written.bytes() != bytes {
            tokio::time::timeout(Duration::from_mins(1), written.changed()).await.unwrap();
        }
    }
}

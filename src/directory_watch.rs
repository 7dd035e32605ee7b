//! Watches directories with the kernel's inotify and says when something in them changed.
//!
//! It asks for changes only. That a file was opened or read is none, and every run of a hook opens and reads files below
//! the directories of modules: the operator would be woken by each.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use inotify::{Event, EventMask, Inotify, WatchDescriptor, WatchMask, Watches};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// What is a change: of names, of contents, of rights, and of the directory itself.
const CHANGES: WatchMask = WatchMask::MODIFY
    .union(WatchMask::CLOSE_WRITE)
    .union(WatchMask::ATTRIB)
    .union(WatchMask::CREATE)
    .union(WatchMask::DELETE)
    .union(WatchMask::MOVE)
    .union(WatchMask::DELETE_SELF)
    .union(WatchMask::MOVE_SELF);

/// How many bytes of events are read at a time: some hundred.
const EVENTS: usize = 16 * 1024;

/// Which directory each watch is of. A directory has one watch, and may have several paths.
type Paths = Arc<Mutex<BTreeMap<WatchDescriptor, BTreeSet<PathBuf>>>>;

/// Directories that are watched, not with what is below them. The watch ends when it is dropped.
#[derive(Debug)]
pub(crate) struct DirectoryWatch {
    watches: Watches,
    paths: Paths,
    reader: JoinHandle<()>,
}

impl Drop for DirectoryWatch {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl DirectoryWatch {
    /// Watches nothing yet. `signal` gets one message for the changes since it was read; only changes of paths of which
    /// `concerns` says so count. What the kernel lost counts, too.
    ///
    /// # Errors
    ///
    /// When the system has no place for another watch.
    pub(crate) fn new(
        signal: mpsc::Sender<()>,
        concerns: impl Fn(&Path) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let inotify = Inotify::init().map_err(|error| explained(error, "fs.inotify.max_user_instances"))?;
        let mut watches = inotify.watches();
        let mut events = inotify.into_event_stream(vec![0; EVENTS])?;
        let (kept, paths) = (watches.clone(), Paths::default());
        let known = Arc::clone(&paths);
        let reader = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let is_change = match &event {
                    Ok(event) => is_change(event, &known, &mut watches, &concerns),
                    // What can't be read may have been anything.
                    Err(_) => true,
                };
                // A full channel already holds the signal.
                if is_change && signal.try_send(()).is_err() && signal.is_closed() {
                    return;
                }
            }
        });
        Ok(Self { watches: kept, paths, reader })
    }

    /// Watches a directory, or goes on to.
    ///
    /// # Errors
    ///
    /// When it can't be read, is no directory, or the system has no place for another watch.
    pub(crate) fn add(&mut self, directory: &Path) -> io::Result<()> {
        // The reader must not see an event of a watch whose path is not known yet.
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let watch = self
            .watches
            .add(directory, CHANGES | WatchMask::ONLYDIR)
            .map_err(|error| explained(error, "fs.inotify.max_user_watches"))?;
        paths.entry(watch).or_default().insert(directory.to_owned());
        Ok(())
    }
}

/// Names the setting that is too low, if that is the reason.
fn explained(error: io::Error, setting: &str) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EMFILE) => io::Error::new(
            error.kind(),
            format!("{error} ({setting} of the system is too low for what is watched: raise it)"),
        ),
        _ => error,
    }
}

/// Returns whether an event is a change of a path that counts. Forgets watches of directories that are gone.
fn is_change<S: AsRef<OsStr>>(
    event: &Event<S>,
    paths: &Paths,
    watches: &mut Watches,
    concerns: &impl Fn(&Path) -> bool,
) -> bool {
    if event.mask.contains(EventMask::Q_OVERFLOW) {
        return true;
    }
    let mut paths = paths.lock().unwrap_or_else(PoisonError::into_inner);
    if event.mask.contains(EventMask::IGNORED) {
        paths.remove(&event.wd);
        return false;
    }
    // A watch stays with a directory that moved away. What watches adds it again where it is now.
    let is_gone = event.mask.intersects(EventMask::MOVE_SELF | EventMask::DELETE_SELF);
    let found = if is_gone { paths.remove(&event.wd) } else { paths.get(&event.wd).cloned() };
    if event.mask.contains(EventMask::MOVE_SELF) {
        let _ = watches.remove(event.wd.clone());
    }
    found.into_iter().flatten().any(|directory| {
        let path = event.name.as_ref().map(|name| directory.join(name.as_ref()));
        concerns(path.as_deref().unwrap_or(&directory))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    struct World {
        parent: tempfile::TempDir,
        watch: DirectoryWatch,
        changes: mpsc::Receiver<()>,
    }

    /// Watches the directory `watched`, but for paths that end with `.log`.
    fn world() -> World {
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir(parent.path().join("watched")).unwrap();
        fs::write(parent.path().join("watched/hook.sh"), "echo").unwrap();
        let (signal, changes) = mpsc::channel(1);
        let concerns = |path: &Path| path.extension().is_none_or(|extension| extension != "log");
        let mut watch = DirectoryWatch::new(signal, concerns).unwrap();
        watch.add(&parent.path().join("watched")).unwrap();
        World { parent, watch, changes }
    }

    impl World {
        fn path(&self, path: &str) -> PathBuf {
            self.parent.path().join(path)
        }

        /// Waits for a change, and for all that belong to it: the kernel tells them in their order, so the one of a file
        /// that is made now is the last.
        async fn changed(&mut self) {
            tokio::time::timeout(Duration::from_secs(20), self.changes.recv()).await.unwrap().unwrap();
        }

        /// Returns whether there was a change before that of a file that is made now.
        async fn is_quiet(&mut self) -> bool {
            // The channel holds one signal, so two changes can't be told from one: the mark is looked for by its watch.
            let mark = self.path("watched/mark");
            let (signal, mut marks) = mpsc::channel(1);
            let seen = mark.clone();
            let mut watch = DirectoryWatch::new(signal, move |path| path == seen).unwrap();
            watch.add(&self.path("watched")).unwrap();
            let is_quiet = self.changes.try_recv().is_err();
            fs::write(&mark, "").unwrap();
            marks.recv().await.unwrap();
            self.changed().await;
            is_quiet
        }
    }

    #[tokio::test]
    async fn what_is_written_made_moved_removed_or_made_executable_is_a_change() {
        use std::os::unix::fs::PermissionsExt as _;

        let changes: [fn(&World); 5] = [
            |world| fs::write(world.path("watched/hook.sh"), "true").unwrap(),
            |world| fs::create_dir(world.path("watched/new")).unwrap(),
            |world| fs::rename(world.path("watched/hook.sh"), world.path("watched/other.sh")).unwrap(),
            |world| fs::remove_file(world.path("watched/hook.sh")).unwrap(),
            |world| {
                let executable = fs::Permissions::from_mode(0o755);
                fs::set_permissions(world.path("watched/hook.sh"), executable).unwrap();
            },
        ];
        for change in changes {
            let mut world = world();
            change(&world);
            world.changed().await;
        }
    }

    #[tokio::test]
    async fn what_is_only_read_or_does_not_concern_wakes_nobody() {
        let mut world = world();
        fs::read(world.path("watched/hook.sh")).unwrap();
        fs::read_dir(world.path("watched")).unwrap().for_each(drop);
        fs::write(world.path("watched/hook.log"), "noise").unwrap();
        fs::write(world.path("beside"), "noise").unwrap();
        assert!(world.is_quiet().await);
    }

    #[tokio::test]
    async fn a_directory_that_moved_away_is_watched_no_more_and_again_where_it_was_added() {
        let mut world = world();
        fs::rename(world.path("watched"), world.path("moved")).unwrap();
        world.changed().await;
        assert!(world.watch.paths.lock().unwrap().is_empty());
        world.watch.add(&world.path("moved")).unwrap();
        while world.changes.try_recv().is_ok() {}
        fs::write(world.path("moved/hook.sh"), "true").unwrap();
        world.changed().await;
    }

    #[tokio::test]
    async fn a_directory_that_was_removed_and_made_again_can_be_watched_again() {
        let mut world = world();
        fs::remove_dir_all(world.path("watched")).unwrap();
        world.changed().await;
        fs::create_dir(world.path("watched")).unwrap();
        world.watch.add(&world.path("watched")).unwrap();
        while world.changes.try_recv().is_ok() {}
        fs::write(world.path("watched/hook.sh"), "true").unwrap();
        world.changed().await;
    }

    #[tokio::test]
    async fn what_is_no_directory_is_refused() {
        let mut world = world();
        let path = world.path("watched/hook.sh");
        assert!(world.watch.add(&path).is_err());
        assert!(world.watch.add(&world.parent.path().join("absent")).is_err());
    }
}

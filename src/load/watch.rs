//! Watches the files of modules and hooks and loads them again when they change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::{Catalog, Event, Failure, FailureKind};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::Loader;
use super::error::LoadError;
use super::walk::walk;
use crate::directory_watch::DirectoryWatch;
use crate::driver::Inbox;
use crate::lasting_task::lasting;

/// How long files must be unchanged before they are loaded: editors write in several steps.
const PAUSE: Duration = Duration::from_millis(100);

/// How long to wait at most for files that change all the time.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// How long to wait, when a change broke something, before that is reported.
const HALF_WRITTEN: Duration = Duration::from_millis(200);

/// A running watch of files. It ends when it is dropped.
#[derive(Debug)]
pub struct FileWatch(JoinHandle<()>);

impl Drop for FileWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts to watch the directories of `loader`. Each new catalog is sent to `inbox`.
pub fn watch(loader: Arc<Loader>, inbox: &Inbox) -> Result<FileWatch, LoadError> {
    let (signal, changes) = mpsc::channel(1);
    let roots = Roots::of(&loader.directories());
    let first = roots.directories.first().cloned().unwrap_or_default();
    let wanted = roots.clone();
    let watcher = DirectoryWatch::new(signal, move |path| wanted.concerns(path));
    let mut watcher = watcher.map_err(|error| unwatchable(&first, error))?;
    roots.watch(&mut watcher)?;
    loader.check()?;
    let files =
        Files { loader, roots, watcher, inbox: inbox.clone(), broken: BTreeSet::new(), is_unread: false };
    let state = Arc::new(Mutex::new((files, changes)));
    Ok(FileWatch(tokio::spawn(async move {
        lasting("the watch of files", || {
            let state = Arc::clone(&state);
            async move {
                let (files, changes) = &mut *state.lock().await;
                files.follow(changes).await;
            }
        })
        .await;
    })))
}

fn unwatchable(path: &Path, source: std::io::Error) -> LoadError {
    LoadError::Unreadable { path: path.to_owned(), source }
}

/// The paths that are watched.
#[derive(Clone, Debug)]
struct Roots {
    /// The directories that are watched with all that is in them.
    directories: Vec<PathBuf>,
    /// The directories and the links on their paths. They may be replaced, so their parents are watched.
    ways: Vec<PathBuf>,
}

impl Roots {
    fn of(directories: &[PathBuf]) -> Self {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let directories: Vec<PathBuf> = directories.iter().map(absolute).collect();
        let is_link = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        let ways = directories.iter().flat_map(|directory| {
            directory.ancestors().filter(move |way| *way == directory || is_link(way)).map(Path::to_owned)
        });
        let ways = ways.collect();
        Self { directories, ways }
    }

    /// Returns whether a path is one of our files and not a neighbour of theirs.
    fn concerns(&self, path: &Path) -> bool {
        self.directories.iter().any(|directory| path.starts_with(directory))
            || self.ways.iter().any(|way| way == path)
    }

    /// Adds watches for all directories that are not watched yet: new ones, and the targets of new links.
    fn watch(&self, watcher: &mut DirectoryWatch) -> Result<(), LoadError> {
        for parent in self.ways.iter().filter_map(|way| way.parent()) {
            // A parent that may not be read can't be watched; the directory itself still is.
            let _ = watcher.add(parent);
        }
        for directory in &self.directories {
            // The watcher's own recursion would follow links in circles.
            for entry in walk(directory).filter(|entry| entry.file_type().is_dir()) {
                match watcher.add(entry.path()) {
                    // It was removed meanwhile.
                    Err(_) if entry.depth() > 0 && !entry.path().exists() => {}
                    outcome => outcome.map_err(|error| unwatchable(entry.path(), error))?,
                }
            }
        }
        Ok(())
    }
}

/// Loads the catalog after changes.
struct Files {
    loader: Arc<Loader>,
    roots: Roots,
    watcher: DirectoryWatch,
    inbox: Inbox,
    /// What was broken when the files were loaded last.
    broken: BTreeSet<String>,
    /// Whether a change was seen that is not loaded yet.
    is_unread: bool,
}

impl Files {
    async fn follow(&mut self, changes: &mut mpsc::Receiver<()>) {
        while self.is_unread || changes.recv().await.is_some() {
            self.is_unread = true;
            wait_for_pause(changes, PAUSE, MAX_WAIT).await;
            let mut outcome = self.load().await;
            if !broken(&outcome).is_subset(&self.broken) {
                // It may be half written, so wait for further changes.
                wait_for_pause(changes, HALF_WRITTEN, HALF_WRITTEN).await;
                outcome = self.load().await;
            }
            self.broken = broken(&outcome);
            self.is_unread = false;
            let event = match outcome {
                Ok(catalog) => Event::CatalogChanged { catalog },
                Err(failure) => Event::CatalogRejected { failure },
            };
            if !self.inbox.event(event).await {
                return;
            }
        }
    }

    async fn load(&mut self) -> Result<Catalog, Failure> {
        let failed = |error: LoadError| Failure::of(FailureKind::Files, &error);
        self.roots.watch(&mut self.watcher).map_err(failed)?;
        self.loader.check().map_err(failed)?;
        self.loader.reload().await.map_err(failed)
    }
}

/// Waits until nothing has changed for `pause`, at most for `max_wait`.
async fn wait_for_pause(changes: &mut mpsc::Receiver<()>, pause: Duration, max_wait: Duration) {
    let end = Instant::now() + max_wait;
    while timeout_at(end, timeout(pause, changes.recv()))
        .await
        .is_ok_and(|quiet| quiet.is_ok_and(|c| c.is_some()))
    {}
}

/// Returns what is broken, each as a text that is unique.
fn broken(outcome: &Result<Catalog, Failure>) -> BTreeSet<String> {
    match outcome {
        Err(failure) => BTreeSet::from([failure.to_string()]),
        Ok(catalog) => {
            let modules = catalog.modules.iter().filter_map(|module| module.broken.as_ref());
            let global = catalog.global.broken.iter().map(|part| &part.failure);
            modules.chain(global).map(ToString::to_string).collect()
        }
    }
}

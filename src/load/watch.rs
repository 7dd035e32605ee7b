//! Watches the files of modules and hooks and loads them again when they change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::{Catalog, Event, Failure, FailureKind};
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::walk::walk;
use super::{LoadError, Loader};
use crate::driver::Inbox;

/// How long files must be quiet before they are loaded: editors write in several steps.
const QUIET: Duration = Duration::from_millis(100);

/// How long files that never become quiet are waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a file that is broken since this change has for becoming whole before it is told to be broken.
const HALF_WRITTEN: Duration = Duration::from_millis(200);

/// A running watch of files. It ends when it is dropped.
#[derive(Debug)]
pub struct Watched(JoinHandle<()>);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Begins to watch the directories of `loader` and tells `inbox` of each new catalog.
pub fn watch(loader: Arc<Loader>, inbox: &Inbox) -> Result<Watched, LoadError> {
    let (news, changes) = mpsc::channel(1);
    let roots = Roots::of(&loader.directories());
    let first = roots.directories.first().cloned().unwrap_or_default();
    let wanted = roots.clone();
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // A full channel already holds the news.
        if event.is_ok_and(|event| is_change(event.kind) && wanted.concerns(&event)) {
            let _ = news.try_send(());
        }
    });
    let mut watcher = watcher.map_err(|error| unwatchable(&first, &error))?;
    roots.watch(&mut watcher)?;
    let files = Files { loader, roots, watcher, inbox: inbox.clone(), broken: BTreeSet::new() };
    Ok(Watched(tokio::spawn(files.follow(changes))))
}

fn unwatchable(path: &Path, error: &notify::Error) -> LoadError {
    let is_full = matches!(error.kind, notify::ErrorKind::MaxFilesWatch);
    let hint = if is_full { " (fs.inotify.max_user_watches is less than there are directories)" } else { "" };
    LoadError::Unreadable { path: path.to_owned(), source: std::io::Error::other(format!("{error}{hint}")) }
}

/// Reading files is no change; the end of writing one is.
fn is_change(kind: EventKind) -> bool {
    !kind.is_access() || matches!(kind, EventKind::Access(AccessKind::Close(AccessMode::Write)))
}

/// What is watched.
#[derive(Clone, Debug)]
struct Roots {
    /// With all that is in them.
    directories: Vec<PathBuf>,
    /// They and the links on the way to them, which may be replaced: their parents are watched.
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

    /// Returns whether an event is about our files and not about their neighbours.
    fn concerns(&self, event: &notify::Event) -> bool {
        let is_ours = |path: &PathBuf| {
            self.directories.iter().any(|directory| path.starts_with(directory)) || self.ways.contains(path)
        };
        event.need_rescan() || event.paths.is_empty() || event.paths.iter().any(is_ours)
    }

    /// Watches all of it. What is watched already stays so; new directories, and what is behind new links, are found.
    fn watch(&self, watcher: &mut RecommendedWatcher) -> Result<(), LoadError> {
        for parent in self.ways.iter().filter_map(|way| way.parent()) {
            // A parent that may not be read can't be watched; the directory itself still is.
            let _ = watcher.watch(parent, RecursiveMode::NonRecursive);
        }
        for directory in &self.directories {
            // Not left to the watcher: it would follow links in circles.
            for entry in walk(directory).filter(|entry| entry.file_type().is_dir()) {
                match watcher.watch(entry.path(), RecursiveMode::NonRecursive) {
                    // It has gone meanwhile.
                    Err(_) if entry.depth() > 0 && !entry.path().exists() => {}
                    outcome => outcome.map_err(|error| unwatchable(entry.path(), &error))?,
                }
            }
            std::fs::read_dir(directory)
                .map_err(|source| LoadError::Unreadable { path: directory.clone(), source })?;
        }
        Ok(())
    }
}

/// The files and who hears of them.
struct Files {
    loader: Arc<Loader>,
    roots: Roots,
    watcher: RecommendedWatcher,
    inbox: Inbox,
    /// What was broken when the files were loaded last.
    broken: BTreeSet<String>,
}

impl Files {
    async fn follow(mut self, mut changes: mpsc::Receiver<()>) {
        while changes.recv().await.is_some() {
            quiet(&mut changes, QUIET, PATIENCE).await;
            let mut outcome = self.load().await;
            if !broken(&outcome).is_subset(&self.broken) {
                // It may be half written: what follows at once is part of the change.
                quiet(&mut changes, HALF_WRITTEN, HALF_WRITTEN).await;
                outcome = self.load().await;
            }
            self.broken = broken(&outcome);
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
        self.loader.reload().await.map_err(failed)
    }
}

/// Waits until nothing has changed for `pause`, at most for `patience`.
async fn quiet(changes: &mut mpsc::Receiver<()>, pause: Duration, patience: Duration) {
    let end = Instant::now() + patience;
    while timeout_at(end, timeout(pause, changes.recv()))
        .await
        .is_ok_and(|quiet| quiet.is_ok_and(|c| c.is_some()))
    {}
}

/// Returns what can't be used, each as a text that tells it from everything else.
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

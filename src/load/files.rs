//! Watches the files of modules and hooks and loads them again when they change.

use std::sync::Arc;
use std::time::Duration;

use engine::Event;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

use super::{LoadError, Loader};
use crate::driver::Inbox;

/// How long files must be quiet before they are loaded: editors write in several steps.
const QUIET: Duration = Duration::from_millis(100);

/// How long files that never become quiet are waited for.
const PATIENCE: Duration = Duration::from_millis(700);

/// A running watch of files. It ends when it is dropped.
#[derive(Debug)]
pub struct Watched {
    _watcher: RecommendedWatcher,
}

/// Begins to watch the directories of `loader` and tells `inbox` of each new catalog.
pub fn watch(loader: Arc<Loader>, inbox: &Inbox) -> Result<Watched, LoadError> {
    let (news, changes) = mpsc::channel(1);
    let unwatchable = |path: &std::path::Path, error: notify::Error| LoadError::Unreadable {
        path: path.to_owned(),
        source: std::io::Error::other(error),
    };
    let directories = loader.directories();
    let first = directories.first().cloned().unwrap_or_default();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading files is no change. A full channel already holds the news.
        if event.is_ok_and(|event| !event.kind.is_access()) {
            let _ = news.try_send(());
        }
    })
    .map_err(|error| unwatchable(&first, error))?;
    for directory in directories {
        watcher
            .watch(&directory, RecursiveMode::Recursive)
            .map_err(|error| unwatchable(&directory, error))?;
    }
    tokio::spawn(reload(loader, inbox.clone(), changes));
    Ok(Watched { _watcher: watcher })
}

async fn reload(loader: Arc<Loader>, inbox: Inbox, mut changes: mpsc::Receiver<()>) {
    while changes.recv().await.is_some() {
        let patience = tokio::time::Instant::now() + PATIENCE;
        while tokio::time::timeout_at(patience, tokio::time::timeout(QUIET, changes.recv()))
            .await
            .is_ok_and(|quiet| quiet.is_ok())
        {}
        match loader.load().await {
            Ok(catalog) => {
                if !inbox.event(Event::CatalogChanged { catalog }).await {
                    return;
                }
            }
            Err(error) => {
                let failure = engine::Failure::of(engine::FailureKind::Files, &error);
                tracing::error!(error = %failure, "changed files can't be loaded; the old ones stay in force");
            }
        }
    }
}

//! What is not needed any more of the store directory. It goes out of the way by a rename, and is deleted on a thread of its
//! own: a bundle may have thousands of files, and nobody waits until they are gone.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A directory whose content is being deleted.
#[derive(Debug)]
pub(super) struct Gone {
    directory: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many names were given.
    taken: u64,
    is_deleting: bool,
}

impl Gone {
    /// Returns this directory, which has to be made before anything is taken.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a file or a directory out of the way.
    pub(super) fn take(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        loop {
            state.taken += 1;
            // A process before may have left something under that name.
            match fs::rename(path, self.directory.join(state.taken.to_string())) {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::AlreadyExists
                            | io::ErrorKind::DirectoryNotEmpty
                            | io::ErrorKind::NotADirectory
                            | io::ErrorKind::IsADirectory
                    ) => {}
                outcome => return outcome,
            }
        }
    }

    /// Has everything deleted that was taken. Nobody waits for it, and a kill leaves the rest to the next process.
    pub(super) fn delete(self: &Arc<Self>) {
        if std::mem::replace(&mut self.state().is_deleting, true) {
            return;
        }
        let gone = Arc::clone(self);
        let thread = std::thread::Builder::new().name("gone bundles".to_owned());
        if thread.spawn(move || gone.delete_all()).is_err() {
            self.delete_all();
        }
    }

    fn delete_all(&self) {
        // What can't be deleted stays until the next start.
        let mut tried = BTreeSet::new();
        while let Some(name) = self.next(&tried) {
            let path = self.directory.join(&name);
            if fs::remove_dir_all(&path).is_err() && fs::remove_file(&path).is_err() {
                tried.insert(name);
            }
        }
    }

    /// Returns what has to be deleted next. Without that, nobody is deleting any more.
    fn next(&self, tried: &BTreeSet<OsString>) -> Option<OsString> {
        let mut state = self.state();
        let names = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let next = names.map(|entry| entry.file_name()).find(|name| !tried.contains(name));
        state.is_deleting = next.is_some();
        next
    }
}

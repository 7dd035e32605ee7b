//! The state file: the whole cluster, one object a line, written at most once a second.
//!
//! A file is written beside the old one and takes its name when it is complete. The last line says how many objects
//! there are, so that a file that was cut off is not mistaken for a small cluster.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Storage;
use crate::registry::DEFINITIONS;
use crate::store::ObjectRef;
use crate::sync::lock;

/// The format in the first line of each state file.
const FORMAT: &str = "addon-operator apiserver state 1";

/// The largest revision that a file may have. Those of etcd have 63 bits, and there must be room for what comes.
const MAX_REVISION: u64 = 1 << 62;

/// The shortest time between two writes.
const INTERVAL: Duration = Duration::from_secs(1);

/// Why a state file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file could not be read.
    #[error("read the state file {path}: {1}", path = .0.display())]
    Read(PathBuf, #[source] std::io::Error),
    /// The file is no state file, or broken.
    #[error("the state file {path} is broken at line {line}: {why}; it was left as it is, move it away to begin with an empty cluster", path = .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The file could not be written.
    #[error("write the state file {path}: {1}", path = .0.display())]
    Write(PathBuf, #[source] std::io::Error),
}

#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    revision: u64,
}

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    table: String,
    key: String,
    revision: u64,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Serialize, Deserialize)]
struct End {
    objects: usize,
}

/// The state file of a cluster. Changes are written by a thread of its own, which sleeps while there are none.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    dirty: Mutex<Dirty>,
    wake: Condvar,
    /// Held while the file is written.
    writing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Dirty {
    revision: u64,
    stopped: bool,
}

impl StateFile {
    pub(crate) fn new(path: PathBuf) -> StateFile {
        StateFile { path, dirty: Mutex::default(), wake: Condvar::new(), writing: Mutex::default() }
    }

    /// Reads the file and passes each object with its revision to `restore`.
    ///
    /// Returns the revision of the cluster; nothing if there is no file.
    pub(crate) fn load(
        &self,
        mut restore: impl FnMut(ObjectRef, &Value, u64),
    ) -> Result<Option<u64>, StateError> {
        let read_error = |source| StateError::Read(self.path.clone(), source);
        let opened = std::fs::metadata(&self.path).and_then(|found| {
            // The start would wait for ever for whoever writes into a pipe.
            let is_file = found.is_file();
            if is_file { File::open(&self.path) } else { Err(std::io::Error::other("it is no regular file")) }
        });
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(read_error(source)),
        };
        let broken = |line: usize, why: String| StateError::Broken { path: self.path.clone(), line, why };
        let mut lines = BufReader::new(file).lines().enumerate();
        let mut next = || -> Result<Option<(usize, String)>, StateError> {
            match lines.next() {
                Some((index, Ok(line))) => Ok(Some((index + 1, line))),
                Some((_, Err(source))) => Err(read_error(source)),
                None => Ok(None),
            }
        };
        let (_, first) = next()?.ok_or_else(|| broken(1, "the file is empty".to_owned()))?;
        let head: Head = serde_json::from_str(&first).map_err(|error| broken(1, error.to_string()))?;
        if head.format != FORMAT {
            return Err(broken(1, format!("the format is {:?}, expected {FORMAT:?}", head.format)));
        }
        if head.revision > MAX_REVISION {
            return Err(broken(
                1,
                format!("the revision is {}, expected at most {MAX_REVISION}", head.revision),
            ));
        }
        let mut objects = 0;
        let mut last = 1;
        while let Some((number, text)) = next()? {
            last = number;
            if let Ok(end) = serde_json::from_str::<End>(&text) {
                if end.objects != objects {
                    let why = format!("{objects} objects were read, {} expected", end.objects);
                    return Err(broken(number, why));
                }
                return Ok(Some(head.revision));
            }
            let line: Line<'_> =
                serde_json::from_str(&text).map_err(|error| broken(number, error.to_string()))?;
            let object = objects::decode::read(line.object.get().as_bytes())
                .map_err(|error| broken(number, error.to_string()))?;
            if !object.is_object() {
                return Err(broken(number, "an object is expected".to_owned()));
            }
            if line.revision > head.revision {
                let why =
                    format!("the revision is {}, that of the cluster only {}", line.revision, head.revision);
                return Err(broken(number, why));
            }
            let key = ObjectRef { table: line.table.into(), key: line.key.into() };
            restore(key, &object, line.revision);
            objects += 1;
        }
        Err(broken(last, "the end of the file is missing".to_owned()))
    }

    /// Writes the cluster into the file; returns the revision that was written.
    pub(crate) fn save(&self, storage: &Storage) -> Result<u64, StateError> {
        let _writing = lock(&self.writing);
        let fail = |source| StateError::Write(self.path.clone(), source);
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        let beside = PathBuf::from(name);
        let revision = write(storage, &beside).map_err(fail)?;
        std::fs::rename(&beside, &self.path).map_err(fail)?;
        Ok(revision)
    }

    /// Records that there is a new revision to write.
    pub(crate) fn mark(&self, revision: u64) {
        let mut dirty = lock(&self.dirty);
        dirty.revision = dirty.revision.max(revision);
        self.wake.notify_one();
    }

    /// Starts the thread that writes the changes.
    pub(crate) fn start(self: &Arc<StateFile>, storage: &Arc<Storage>) {
        let (file, storage) = (Arc::clone(self), Arc::downgrade(storage));
        std::thread::spawn(move || file.write_changes(&storage));
    }

    pub(crate) fn stop(&self) {
        lock(&self.dirty).stopped = true;
        self.wake.notify_one();
    }

    fn write_changes(&self, storage: &Weak<Storage>) {
        let mut done = 0;
        loop {
            let mut dirty = lock(&self.dirty);
            while dirty.revision <= done && !dirty.stopped {
                dirty = self.wake.wait(dirty).unwrap_or_else(PoisonError::into_inner);
            }
            if dirty.stopped {
                return;
            }
            drop(dirty);
            let Some(storage) = storage.upgrade() else {
                return;
            };
            match self.save(&storage) {
                Ok(revision) => done = revision,
                Err(error) => tracing::error!(%error, "the cluster could not be kept"),
            }
            drop(storage);
            std::thread::sleep(INTERVAL);
        }
    }
}

fn write(storage: &Storage, path: &Path) -> std::io::Result<u64> {
    use std::os::unix::fs::OpenOptionsExt;
    // Clusters hold secrets: only the owner reads the file.
    let file = File::options().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    let mut file = BufWriter::new(file);
    let store = storage.read();
    let revision = store.revision();
    // The objects are shared with the store, so that the lock is held for a short time only.
    let mut tables: Vec<_> = store.tables().map(|table| (table.clone(), store.all(table, None))).collect();
    drop(store);
    // Definitions come before their instances, so that the kind is known when these are read.
    tables.sort_by_key(|(table, _)| &**table != DEFINITIONS);
    serde_json::to_writer(&mut file, &Head { format: FORMAT.to_owned(), revision })?;
    let mut objects = 0;
    for (table, items) in tables {
        for item in items {
            let object: &RawValue = serde_json::from_slice(&item.body)?;
            let line =
                Line { table: table.to_string(), key: item.key.to_string(), revision: item.revision, object };
            file.write_all(b"\n")?;
            serde_json::to_writer(&mut file, &line)?;
            objects += 1;
        }
    }
    file.write_all(b"\n")?;
    serde_json::to_writer(&mut file, &End { objects })?;
    file.write_all(b"\n")?;
    file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
    Ok(revision)
}

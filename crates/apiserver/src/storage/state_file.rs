//! The state file: the whole cluster, one object a line, written at most once a second.
//!
//! A file is written beside the old one and takes its name when it is complete. The last line tells how many objects
//! there are, so that a file that was cut off is not mistaken for a small cluster.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cluster::{Cluster, lock};
use crate::store::{Encoded, Place, Range, Store};
use crate::work_queue::Chore;

/// What the first line of each state file says.
const FORMAT: &str = "addon-operator apiserver state 1";

/// The shortest time between two writes.
const INTERVAL: Duration = Duration::from_secs(1);

/// Why a state file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file could not be read.
    #[error("read the state file {path}: {source}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
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
    #[error("write the state file {path}: {source}", path = .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
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

/// Returns whether there was a state file; its objects are in the cluster then.
pub(crate) fn load(cluster: &Cluster, path: &Path) -> Result<bool, StateError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(StateError::Read { path: path.to_owned(), source }),
    };
    let broken = |line: usize, why: String| StateError::Broken { path: path.to_owned(), line, why };
    let mut lines = BufReader::new(file).lines().enumerate();
    let mut next = || -> Result<Option<(usize, String)>, StateError> {
        match lines.next() {
            Some((index, Ok(line))) => Ok(Some((index + 1, line))),
            Some((_, Err(source))) => Err(StateError::Read { path: path.to_owned(), source }),
            None => Ok(None),
        }
    };
    let (_, first) = next()?.ok_or_else(|| broken(1, "the file is empty".to_owned()))?;
    let head: Head = serde_json::from_str(&first).map_err(|error| broken(1, error.to_string()))?;
    if head.format != FORMAT {
        return Err(broken(1, format!("the format is {:?}, expected {FORMAT:?}", head.format)));
    }
    let now = cluster.now();
    let mut objects = 0;
    let mut last = 1;
    while let Some((number, text)) = next()? {
        last = number;
        if let Ok(end) = serde_json::from_str::<End>(&text) {
            if end.objects != objects {
                return Err(broken(number, format!("{objects} objects were read, {} expected", end.objects)));
            }
            cluster.restore(|store| store.resume_at(head.revision));
            return Ok(true);
        }
        let line: Line<'_> =
            serde_json::from_str(&text).map_err(|error| broken(number, error.to_string()))?;
        restore(cluster, &line, now).map_err(|why| broken(number, why))?;
        objects += 1;
    }
    Err(broken(last, "the end of the file is missing".to_owned()))
}

fn restore(cluster: &Cluster, line: &Line<'_>, now: Timestamp) -> Result<(), String> {
    let object: Value = serde_json::from_str(line.object.get()).map_err(|error| error.to_string())?;
    if !object.is_object() {
        return Err("an object is expected".to_owned());
    }
    // Definitions come before their instances, so that the kind is known here.
    let fields = cluster.resource_of(&line.table).map(|resource| resource.fields.clone()).unwrap_or_default();
    let place = Place { table: line.table.as_str().into(), key: line.key.as_str().into() };
    let encoded = Encoded::new(&object, &fields);
    cluster.restore(|store: &mut Store| store.restore(&place, encoded, line.revision, now));
    crate::definitions::restore(cluster, &place, &object);
    // What the end of the server cut off goes on with the first request.
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        cluster.chores.plan(Chore::Deleting(place));
    }
    Ok(())
}

/// Writes the cluster into the file; returns the revision that was written.
pub(crate) fn save(cluster: &Cluster, path: &Path) -> Result<u64, StateError> {
    let fail = |source| StateError::Write { path: path.to_owned(), source };
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let beside = PathBuf::from(name);
    let revision = write(cluster, &beside).map_err(fail)?;
    std::fs::rename(&beside, path).map_err(fail)?;
    Ok(revision)
}

fn write(cluster: &Cluster, path: &Path) -> std::io::Result<u64> {
    use std::os::unix::fs::OpenOptionsExt;
    // Clusters hold secrets: only the owner reads the file.
    let file = File::options().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    let mut file = BufWriter::new(file);
    let store = cluster.read();
    let revision = store.revision();
    // The objects are shared with the store: what is taken under the lock is small.
    let mut tables: Vec<_> = store
        .tables()
        .map(|table| {
            (table.clone(), store.list(table, &Range::default(), None, &|_| true).unwrap_or_default().items)
        })
        .collect();
    drop(store);
    tables.sort_by_key(|(table, _)| &**table != crate::work_queue::DEFINITIONS);
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

/// Writes the state file after changes, in a thread of its own that sleeps while there are none.
#[derive(Debug, Default)]
pub(crate) struct Saver {
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

impl Saver {
    /// Tells that there is a new revision.
    pub(crate) fn mark(&self, revision: u64) {
        let mut dirty = lock(&self.dirty);
        dirty.revision = dirty.revision.max(revision);
        self.wake.notify_one();
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        lock(&self.dirty).stopped = true;
        self.wake.notify_one();
    }

    /// Writes the file now.
    pub(crate) fn save(&self, cluster: &Cluster, path: &Path) -> Result<u64, StateError> {
        let _writing = lock(&self.writing);
        save(cluster, path)
    }
}

/// Starts the thread that writes the state file.
pub(crate) fn start(cluster: &Arc<Cluster>, path: PathBuf) {
    let saver = Arc::clone(&cluster.saver);
    let cluster = Arc::downgrade(cluster);
    std::thread::spawn(move || keep(&cluster, &saver, &path));
}

fn keep(cluster: &Weak<Cluster>, saver: &Saver, path: &Path) {
    let mut done = 0;
    loop {
        let mut dirty = lock(&saver.dirty);
        while dirty.revision <= done && !dirty.stopped {
            dirty = saver.wake.wait(dirty).unwrap_or_else(PoisonError::into_inner);
        }
        if dirty.stopped {
            return;
        }
        drop(dirty);
        let Some(cluster) = cluster.upgrade() else {
            return;
        };
        match saver.save(&cluster, path) {
            Ok(revision) => done = revision,
            Err(error) => tracing::error!(%error, "the cluster could not be kept"),
        }
        drop(cluster);
        std::thread::sleep(INTERVAL);
    }
}

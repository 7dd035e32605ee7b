//! The state file: a snapshot of the whole cluster, one object a line, written at most once a second. What came after it
//! is in the log beside it (`journal`).
//!
//! A snapshot is written beside the old one and takes its name when it is complete. The last line says how many objects
//! there are, so that a file that was cut off is not mistaken for a small cluster.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;

use super::error::StateError;
use super::journal::{self, Journal, Lock};
use super::recovery::{self, End, FORMAT, Head, Line, Recovery, Source};
use super::{Contents, Storage};
use crate::registry::DEFINITIONS;
use crate::regular_file;
use crate::store::ObjectRef;
use crate::sync::lock;

/// The shortest time between two writes.
const INTERVAL: Duration = Duration::from_secs(1);

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
    /// Whether a snapshot is wanted without a new revision.
    is_wanted: bool,
    stopped: bool,
}

impl StateFile {
    pub(crate) fn new(path: PathBuf) -> StateFile {
        StateFile { path, dirty: Mutex::default(), wake: Condvar::new(), writing: Mutex::default() }
    }

    /// Takes the state for this server alone, reads it, passes each object with its revision to `restore`, and begins
    /// to write changes down.
    ///
    /// Returns the revision of the cluster; nothing if there is no file.
    pub(crate) fn open(
        &self,
        storage: &Storage,
        restore: impl FnMut(ObjectRef, &Value, u64),
    ) -> Result<Option<u64>, StateError> {
        let lock = Lock::of(&self.path)?;
        let mut logs = Vec::new();
        for path in journal::logs(&self.path) {
            logs.extend(open(path)?);
        }
        let revision = match Recovery::read(open(self.path.clone())?, logs)? {
            Some(kept) => {
                let revision = kept.revision;
                kept.restore(restore)?;
                storage.resume_at(revision);
                Some(revision)
            }
            None => None,
        };
        // The log begins anew, behind a snapshot of what was read.
        self.save(storage)?;
        journal::remove_logs(&self.path)?;
        storage.begin_journal(Journal::begin(&self.path, lock)?);
        Ok(revision)
    }

    /// Writes the cluster into the file; returns the revision that was written, or nothing if others may have the file.
    fn save(&self, storage: &Storage) -> Result<Option<u64>, StateError> {
        let _writing = lock(&self.writing);
        if lock(&self.dirty).stopped { Ok(None) } else { self.write_snapshot(storage).map(Some) }
    }

    fn write_snapshot(&self, storage: &Storage) -> Result<u64, StateError> {
        let fail = |source| StateError::Write(self.path.clone(), source);
        let beside = recovery::beside(&self.path, ".new");
        let contents = storage.snapshot()?;
        let revision = contents.revision;
        write(contents, &beside).map_err(|source| StateError::Write(beside.clone(), source))?;
        std::fs::rename(&beside, &self.path).map_err(fail)?;
        storage.snapshot_is_kept()?;
        Ok(revision)
    }

    /// Writes the cluster for the last time. What comes later is refused, and others may have the file.
    pub(crate) fn end(&self, storage: &Storage) -> Result<(), StateError> {
        let _writing = lock(&self.writing);
        lock(&self.dirty).stopped = true;
        self.wake.notify_one();
        let Some(journal) = storage.end_journal() else {
            return Ok(());
        };
        self.write_snapshot(storage)?;
        journal::remove_logs(&self.path)?;
        // The lock is given up here.
        drop(journal);
        Ok(())
    }

    /// Records that there is a new revision to write.
    pub(crate) fn mark(&self, revision: u64) {
        let mut dirty = lock(&self.dirty);
        dirty.revision = dirty.revision.max(revision);
        self.wake.notify_one();
    }

    /// Records that a change could not be written down. A snapshot makes room.
    pub(crate) fn want_snapshot(&self) {
        lock(&self.dirty).is_wanted = true;
        self.wake.notify_one();
    }

    /// Starts the thread that writes the changes.
    pub(crate) fn start(self: &Arc<StateFile>, storage: &Arc<Storage>) {
        let (file, storage) = (Arc::clone(self), Arc::downgrade(storage));
        std::thread::spawn(move || file.write_changes(&storage));
    }

    fn write_changes(&self, storage: &Weak<Storage>) {
        let mut done = 0;
        loop {
            let mut dirty = lock(&self.dirty);
            while dirty.revision <= done && !dirty.is_wanted && !dirty.stopped {
                dirty = self.wake.wait(dirty).unwrap_or_else(PoisonError::into_inner);
            }
            if dirty.stopped {
                return;
            }
            dirty.is_wanted = false;
            drop(dirty);
            let Some(storage) = storage.upgrade() else {
                return;
            };
            match self.save(&storage) {
                Ok(Some(revision)) => done = revision,
                Ok(None) => return,
                Err(error) => tracing::error!(%error, "the cluster could not be kept"),
            }
            drop(storage);
            std::thread::sleep(INTERVAL);
        }
    }
}

/// Opens a file of the state, if it is there.
fn open(path: PathBuf) -> Result<Option<Source<BufReader<File>>>, StateError> {
    let opened = std::fs::metadata(&path).and_then(|found| {
        // The start would wait for ever for whoever writes into a pipe.
        let is_file = found.is_file();
        if is_file { File::open(&path) } else { Err(std::io::Error::other("it is no regular file")) }
    });
    match opened {
        Ok(file) => Ok(Some(Source { path, reader: BufReader::new(file) })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StateError::Read(path, source)),
    }
}

fn write(contents: Contents, path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    // Clusters hold secrets: only the owner reads the file.
    let mut options = File::options();
    options.create(true).truncate(true).write(true).mode(0o600);
    let file = regular_file::open(&mut options, path)?;
    let mut file = BufWriter::new(file);
    let Contents { revision, mut tables } = contents;
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
    file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::store::{Encoded, Limits, Refusal, Write};

    /// A store whose changes are kept in a directory of its own.
    struct World {
        directory: tempfile::TempDir,
        file: StateFile,
        storage: Storage,
    }

    impl World {
        fn new() -> World {
            let directory = tempfile::tempdir().unwrap();
            let file = StateFile::new(directory.path().join("state"));
            let storage = Storage::new(Limits::default());
            assert_eq!(file.open(&storage, |_, _, _| panic!("there is nothing")).unwrap(), None);
            World { directory, file, storage }
        }

        fn create(&self, name: &str) -> Result<u64, String> {
            let object = ObjectRef { table: "/maps".into(), key: name.into() };
            let body = json!({"metadata": {"name": name, "uid": name}, "data": "x".repeat(100)});
            let write = Write::Create(Encoded::new(&body, &[]));
            match self.storage.commit(&object, write, Timestamp::UNIX_EPOCH) {
                Ok(committed) => Ok(committed.object().revision),
                Err(Refusal::NotKept(why)) => Err(why),
                Err(refusal) => panic!("{refusal:?}"),
            }
        }

        fn delete(&self, name: &str) {
            let object = ObjectRef { table: "/maps".into(), key: name.into() };
            let expected = self.storage.get(&object).unwrap().revision;
            self.storage.commit(&object, Write::Delete { expected }, Timestamp::UNIX_EPOCH).unwrap();
        }

        /// Checks that a start would find what the store holds now.
        fn is_kept(&self, step: &str) {
            let sources = journal::logs(&self.file.path).map(|log| open(log).unwrap());
            let logs = sources.into_iter().flatten().collect();
            let kept = Recovery::read(open(self.file.path.clone()).unwrap(), logs).unwrap().unwrap();
            let (mut found, store) = (Vec::new(), self.storage.read());
            assert_eq!(kept.revision, store.revision(), "{step}");
            kept.restore(|object, value, revision| found.push((object.key, value.clone(), revision)))
                .unwrap();
            let expected: Vec<_> = store.all("/maps", None);
            let expected: Vec<_> =
                expected.iter().map(|item| (item.key.clone(), item.value(), item.revision)).collect();
            assert_eq!(found, expected, "{step}");
        }

        fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(self.directory.path()).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }

        fn with_journal<T>(&self, change: impl FnOnce(&mut Journal) -> T) -> T {
            let mut keeping = lock(&self.storage.keeping);
            let crate::storage::Keeping::Journal(journal) = &mut *keeping else { panic!("{keeping:?}") };
            change(journal)
        }
    }

    #[test]
    fn slip_38_an_end_between_any_two_steps_of_a_snapshot_loses_nothing() {
        let world = World::new();
        for round in 0..3 {
            for name in ["a", "b"] {
                world.create(&format!("{name}{round}")).unwrap();
                world.is_kept("a change");
            }
            let contents = world.storage.snapshot().unwrap();
            world.is_kept("the log was renamed and another one begun");
            world.delete(&format!("a{round}"));
            world.is_kept("a change meanwhile");
            let new = recovery::beside(&world.file.path, ".new");
            write(contents, &new).unwrap();
            world.is_kept("the snapshot was written");
            if round == 1 {
                // It can't be renamed: the next one comes while both logs are there.
                continue;
            }
            std::fs::rename(new, &world.file.path).unwrap();
            world.is_kept("the snapshot was renamed");
            world.create(&format!("c{round}")).unwrap();
            world.is_kept("another change");
            world.storage.snapshot_is_kept().unwrap();
            world.is_kept("the older log was removed");
        }
    }

    #[test]
    fn slip_38_an_end_between_renaming_the_log_and_beginning_another_loses_nothing() {
        let world = World::new();
        world.create("a").unwrap();
        let [older, log] = journal::logs(&world.file.path);
        std::fs::rename(&log, &older).unwrap();
        world.is_kept("the log was renamed");
    }

    #[test]
    fn a_start_goes_on_where_the_log_ends() {
        let world = World::new();
        world.create("a").unwrap();
        world.storage.snapshot().unwrap();
        let last = world.create("b").unwrap();
        // A write that the end of the process cut off.
        let [older, log] = journal::logs(&world.file.path);
        let mut text = std::fs::read_to_string(&log).unwrap();
        text.push_str("{\"table\":");
        std::fs::write(&log, text).unwrap();
        assert_eq!(world.names(), ["state", "state.lock", "state.log", "state.log.1"]);
        let World { directory, file, storage } = world;
        drop(storage);
        let world = World { directory, file, storage: Storage::new(Limits::default()) };
        let restore = |object: ObjectRef, value: &Value, revision| {
            world.storage.restore(&object, Encoded::new(value, &[]), revision, Timestamp::UNIX_EPOCH);
        };
        assert_eq!(world.file.open(&world.storage, restore).unwrap(), Some(last));
        world.is_kept("a start");
        assert_eq!((older.exists(), std::fs::metadata(&log).unwrap().len()), (false, 0));
        assert_eq!(world.create("c"), Ok(last + 1));
        world.is_kept("a change after it");
    }

    #[test]
    fn slip_38_a_change_that_cannot_be_written_down_is_refused_and_not_made() {
        let world = World::new();
        let first = world.create("a").unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        world.with_journal(|journal| journal.put_file(full));
        for _ in 0..2 {
            let why = world.create("b").unwrap_err();
            assert!(why.contains("write the state file") && why.contains("state.log"), "{why}");
        }
        world.is_kept("a change that was refused");
        // What was written of it may still be there. Nothing follows it, also when there is room again.
        let [_, log] = journal::logs(&world.file.path);
        let roomy = File::options().append(true).open(log).unwrap();
        world.with_journal(|journal| journal.put_file(roomy));
        assert!(world.create("b").unwrap_err().contains("an earlier change"));
        // A snapshot begins another log.
        world.file.save(&world.storage).unwrap();
        assert_eq!(world.create("b"), Ok(first + 1));
        world.is_kept("a change after it");
    }

    #[test]
    fn a_log_has_a_largest_size() {
        let world = World::new();
        world.with_journal(|journal| journal.set_limit(1_000));
        let refused = (0..100).find(|n| world.create(&format!("a{n}")).is_err());
        assert!(refused.is_some_and(|n| n > 2), "{refused:?}");
        assert!(std::fs::metadata(&journal::logs(&world.file.path)[1]).unwrap().len() <= 1_000);
        world.is_kept("a change that was refused");
        world.file.save(&world.storage).unwrap();
        world.create("b").unwrap();
        world.is_kept("a change after a snapshot");
    }

    #[test]
    fn only_the_owner_reads_what_is_kept() {
        let world = World::new();
        world.create("a").unwrap();
        world.storage.snapshot().unwrap();
        for name in world.names() {
            let found = std::fs::metadata(world.directory.path().join(&name)).unwrap();
            assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn two_servers_do_not_keep_their_clusters_in_one_file() {
        let world = World::new();
        let other = Storage::new(Limits::default());
        let open = || StateFile::new(world.file.path.clone()).open(&other, |_, _, _| {});
        assert!(matches!(open(), Err(StateError::InUse(_))));
        world.create("a").unwrap();
        world.is_kept("another server wanted the file");
        world.file.end(&world.storage).unwrap();
        assert_eq!(world.names(), ["state", "state.lock"]);
        assert_eq!(open().unwrap(), Some(2));
        // What has ended does not touch the file of the other one.
        assert!(world.create("b").unwrap_err().contains("has ended"));
        world.file.end(&world.storage).unwrap();
        assert_eq!(world.file.save(&world.storage).unwrap(), None);
        assert_eq!(world.names(), ["state", "state.lock", "state.log"]);
    }
}

//! What the files of a state say together: the snapshot, and the changes that the log holds after it.
//!
//! The log may hold changes that the snapshot holds as well. They are passed over: the snapshot has everything up to its
//! revision. From there on no revision may be missing.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::StateError;
use crate::registry::DEFINITIONS;
use crate::store::ObjectRef;

/// The format in the first line of each state file.
pub(super) const FORMAT: &str = "addon-operator apiserver state 1";

/// The largest revision that a file may have. Those of etcd have 63 bits, and there must be room for what comes.
const MAX_REVISION: u64 = 1 << 62;

/// The first line of a snapshot.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) format: String,
    pub(super) revision: u64,
}

/// An object of a snapshot, or a change of a log: there the object is null when it was deleted.
#[derive(Serialize, Deserialize)]
pub(super) struct Line<'a> {
    pub(super) table: String,
    pub(super) key: String,
    pub(super) revision: u64,
    #[serde(borrow)]
    pub(super) object: &'a RawValue,
}

/// The last line of a snapshot.
#[derive(Serialize, Deserialize)]
pub(super) struct End {
    pub(super) objects: usize,
}

/// A file and where it is.
pub(super) struct Source<R> {
    pub(super) path: PathBuf,
    pub(super) reader: R,
}

/// A cluster as its files tell it.
#[derive(Debug)]
pub(super) struct Recovery {
    pub(super) revision: u64,
    /// Definitions come before their instances, so that the kind is known when these are read.
    objects: BTreeMap<(bool, ObjectRef), Version>,
}

#[derive(Debug)]
struct Version {
    revision: u64,
    object: Box<RawValue>,
    /// Where it was read.
    place: Position,
}

#[derive(Clone, Debug)]
struct Position {
    path: PathBuf,
    line: usize,
    is_log: bool,
}

impl Position {
    fn broken(&self, why: &(impl ToString + ?Sized)) -> StateError {
        let (path, line, why) = (self.path.clone(), self.line, why.to_string());
        if self.is_log {
            StateError::BrokenLog { path, line, why }
        } else {
            StateError::Broken { path, line, why }
        }
    }
}

/// The lines of a file.
struct Lines<R> {
    reader: R,
    place: Position,
    text: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    fn new(source: Source<R>, is_log: bool) -> Lines<R> {
        let place = Position { path: source.path, line: 0, is_log };
        Lines { reader: source.reader, place, text: Vec::new() }
    }

    /// Reads the next line; returns whether there is one.
    fn next(&mut self) -> Result<bool, StateError> {
        self.text.clear();
        self.place.line += 1;
        let read = self.reader.read_until(b'\n', &mut self.text);
        let read = read.map_err(|source| StateError::Read(self.place.path.clone(), source))?;
        Ok(read > 0)
    }

    /// Returns whether the end of the line is there. It is the last thing that is written.
    fn is_whole(&self) -> bool {
        self.text.last() == Some(&b'\n')
    }

    fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, StateError> {
        serde_json::from_slice(&self.text).map_err(|error| self.place.broken(&error))
    }
}

impl Recovery {
    /// Reads a snapshot and the logs behind it, the older one first.
    ///
    /// Returns nothing if there is no snapshot.
    pub(super) fn read<R: BufRead>(
        snapshot: Option<Source<R>>,
        logs: Vec<Source<R>>,
    ) -> Result<Option<Recovery>, StateError> {
        let Some(snapshot) = snapshot else {
            for log in logs {
                let mut lines = Lines::new(log, true);
                if lines.next()? {
                    return Err(StateError::Lone(lines.place.path));
                }
            }
            return Ok(None);
        };
        let mut kept = Recovery::of_snapshot(Lines::new(snapshot, false))?;
        for log in logs {
            kept.add(Lines::new(log, true))?;
        }
        Ok(Some(kept))
    }

    fn of_snapshot<R: BufRead>(mut lines: Lines<R>) -> Result<Recovery, StateError> {
        if !lines.next()? {
            return Err(lines.place.broken("the file is empty"));
        }
        let head: Head = lines.read()?;
        if head.format != FORMAT {
            let why = format!("the format is {:?}, expected {FORMAT:?}", head.format);
            return Err(lines.place.broken(&why));
        }
        if head.revision > MAX_REVISION {
            let why = format!("the revision is {}, expected at most {MAX_REVISION}", head.revision);
            return Err(lines.place.broken(&why));
        }
        let mut kept = Recovery { revision: head.revision, objects: BTreeMap::new() };
        let mut objects = 0;
        while lines.next()? {
            if let Ok(end) = serde_json::from_slice::<End>(&lines.text) {
                if end.objects != objects {
                    let why = format!("{objects} objects were read, {} expected", end.objects);
                    return Err(lines.place.broken(&why));
                }
                return Ok(kept);
            }
            let line: Line<'_> = lines.read()?;
            if line.revision > head.revision {
                let why =
                    format!("the revision is {}, that of the cluster only {}", line.revision, head.revision);
                return Err(lines.place.broken(&why));
            }
            kept.put(&line, &lines.place);
            objects += 1;
        }
        lines.place.line -= 1;
        Err(lines.place.broken("the end of the file is missing"))
    }

    /// Adds the changes of a log. A last line without its end is that of a write that was never answered.
    fn add<R: BufRead>(&mut self, mut lines: Lines<R>) -> Result<(), StateError> {
        while lines.next()? && lines.is_whole() {
            let line: Line<'_> = lines.read()?;
            if line.revision <= self.revision {
                continue;
            }
            if line.revision != self.revision + 1 {
                let why = format!("the revision is {}, expected {}", line.revision, self.revision + 1);
                return Err(lines.place.broken(&why));
            }
            self.revision = line.revision;
            if line.object.get() == "null" {
                self.objects.remove(&order(&line));
            } else {
                self.put(&line, &lines.place);
            }
        }
        Ok(())
    }

    fn put(&mut self, line: &Line<'_>, place: &Position) {
        let version =
            Version { revision: line.revision, object: line.object.to_owned(), place: place.clone() };
        self.objects.insert(order(line), version);
    }

    /// Passes each object with its revision to `restore`.
    pub(super) fn restore(self, mut restore: impl FnMut(ObjectRef, &Value, u64)) -> Result<(), StateError> {
        for ((_, object_ref), Version { revision, object, place }) in self.objects {
            let object =
                objects::decode::read(object.get().as_bytes()).map_err(|error| place.broken(&error))?;
            if !object.is_object() {
                return Err(place.broken("an object is expected"));
            }
            restore(object_ref, &object, revision);
        }
        Ok(())
    }
}

fn order(line: &Line<'_>) -> (bool, ObjectRef) {
    let is_instance = line.table != DEFINITIONS;
    (is_instance, ObjectRef { table: line.table.as_str().into(), key: line.key.as_str().into() })
}

/// Returns where a file of a state lies that has this ending.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, text: &str) -> Source<std::io::Cursor<Vec<u8>>> {
        Source { path: name.into(), reader: std::io::Cursor::new(text.as_bytes().to_vec()) }
    }

    fn snapshot(revision: u64, objects: &[(&str, u64)]) -> String {
        let mut text = format!("{{\"format\":\"{FORMAT}\",\"revision\":{revision}}}\n");
        for (key, revision) in objects {
            text.push_str(&change(key, *revision));
        }
        text + &format!("{{\"objects\":{}}}\n", objects.len())
    }

    fn change(key: &str, revision: u64) -> String {
        format!("{{\"table\":\"/t\",\"key\":\"{key}\",\"revision\":{revision},\"object\":{{}}}}\n")
    }

    fn deletion(key: &str, revision: u64) -> String {
        change(key, revision).replace("{}", "null")
    }

    /// Reads the files of a state; returns its revision and the objects with theirs.
    fn read(snapshot: &str, older: &str, log: &str) -> Result<(u64, Vec<(String, u64)>), String> {
        let logs = vec![source("s.log.1", older), source("s.log", log)];
        let kept =
            Recovery::read(Some(source("s", snapshot)), logs).map_err(|error| error.to_string())?.unwrap();
        let revision = kept.revision;
        let mut found = Vec::new();
        kept.restore(|object, _, revision| found.push((object.key.to_string(), revision)))
            .map_err(|error| error.to_string())?;
        Ok((revision, found))
    }

    fn objects(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
        expected.iter().map(|(key, revision)| ((*key).to_owned(), *revision)).collect()
    }

    #[test]
    fn changes_of_both_logs_follow_the_snapshot() {
        let older = change("b", 5) + &change("a", 6);
        let log = deletion("b", 7) + &change("c", 8);
        let before = snapshot(4, &[("a", 2), ("x", 3)]);
        let expected = (8, objects(&[("a", 6), ("c", 8), ("x", 3)]));
        assert_eq!(read(&before, &older, &log), Ok(expected.clone()));
        // A crash before the older log is begun, and one before it is gone.
        assert_eq!(read(&before, "", &(older.clone() + &log)), Ok(expected.clone()));
        assert_eq!(read(&before, &(older.clone() + &log), ""), Ok(expected.clone()));
        let after = snapshot(6, &[("a", 6), ("b", 5), ("x", 3)]);
        assert_eq!(read(&after, &older, &log), Ok(expected.clone()));
        assert_eq!(read(&after, "", &log), Ok(expected));
    }

    #[test]
    fn what_the_snapshot_has_no_more_does_not_come_back() {
        let log = change("a", 5) + &deletion("a", 6) + &change("b", 7);
        assert_eq!(read(&snapshot(7, &[("b", 7)]), &log, ""), Ok((7, objects(&[("b", 7)]))));
        let log = deletion("b", 6) + &change("b", 7);
        assert_eq!(read(&snapshot(7, &[("b", 7)]), &log, ""), Ok((7, objects(&[("b", 7)]))));
    }

    #[test]
    fn a_last_line_that_was_cut_off_is_passed_over_wherever_it_was_cut() {
        let last = change("b", 6);
        for end in 0..last.len() {
            let log = change("a", 5) + &last[..end];
            assert_eq!(read(&snapshot(4, &[]), "", &log), Ok((5, objects(&[("a", 5)]))), "{end}");
            // The write was refused, and its revision was given to the next one.
            let next = change("c", 6);
            assert_eq!(read(&snapshot(4, &[]), &log, &next), Ok((6, objects(&[("a", 5), ("c", 6)]))));
        }
    }

    #[test]
    fn a_broken_line_of_a_log_is_told_with_its_file_and_number() {
        let good = change("a", 5);
        for (bad, why) in [
            ("\n", "EOF"),
            ("{\"table\":\"/t\"}\n", "missing field"),
            (&deletion("a", 6).replace(",\"object\":null", ""), "missing field"),
            ("\u{7}\n", "expected value"),
            (&change("a", 7), "the revision is 7, expected 6"),
            (&change("a", u64::MAX), "expected 6"),
            (&change("a", 6).replace("{}", "3"), "an object is expected"),
        ] {
            let error = read(&snapshot(4, &[]), "", &(good.clone() + bad)).unwrap_err();
            assert!(error.contains("state file s.log is broken at line 2"), "{error}");
            assert!(error.contains(why) && error.contains("left as it is"), "{error}");
            let error = read(&snapshot(4, &[]), &(good.clone() + bad), &change("a", 6)).unwrap_err();
            assert!(error.contains("s.log.1 is broken at line 2"), "{error}");
        }
    }

    #[test]
    fn a_log_of_another_state_is_refused() {
        let error = read(&snapshot(4, &[]), "", &change("a", 9)).unwrap_err();
        assert!(error.contains("s.log is broken at line 1: the revision is 9, expected 5"), "{error}");
        let alone = |log: &str| Recovery::read(None, vec![source("s.log", log)]);
        let error = alone(&change("a", 9)).unwrap_err().to_string();
        assert!(error.contains("s.log") && error.contains("is missing"), "{error}");
        assert!(alone("").unwrap().is_none());
    }
}

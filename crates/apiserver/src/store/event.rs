//! One change of one object, and the bytes that watchers get for it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;

use super::object::Stored;

/// What a change was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object is new.
    Added,
    /// The object has a new version.
    Modified,
    /// The object is gone.
    Deleted,
}

impl Change {
    /// Returns the word that watch events use.
    pub fn as_str(self) -> &'static str {
        match self {
            Change::Added => "ADDED",
            Change::Modified => "MODIFIED",
            Change::Deleted => "DELETED",
        }
    }
}

/// A change that was committed.
#[derive(Debug)]
pub struct Event {
    /// The revision that the change made.
    pub revision: u64,
    /// What the change was.
    pub change: Change,
    /// The object after the change; for a deletion its last version, with the deletion's revision.
    pub object: Arc<Stored>,
    /// The version before the change.
    pub previous: Option<Arc<Stored>>,
    /// When it was committed.
    pub at: Timestamp,
    frame: OnceLock<Bytes>,
    entered: OnceLock<Bytes>,
    left: OnceLock<Bytes>,
}

impl Event {
    pub(super) fn new(
        change: Change,
        object: Arc<Stored>,
        previous: Option<Arc<Stored>>,
        at: Timestamp,
    ) -> Event {
        Event {
            revision: object.revision,
            change,
            object,
            previous,
            at,
            frame: OnceLock::new(),
            entered: OnceLock::new(),
            left: OnceLock::new(),
        }
    }

    /// Returns how many bytes it keeps at most: both versions, and the line that watchers get.
    pub(super) fn weight(&self) -> usize {
        let previous = self.previous.as_ref().map_or(0, |previous| previous.body.len());
        2 * self.object.body.len() + previous
    }

    /// Returns what a watcher sees of the change: the change and the object, or nothing.
    ///
    /// An object that begins to be selected is added, one that is no longer selected is deleted.
    pub fn seen_by(&self, selects: impl Fn(&Stored) -> bool) -> Option<Change> {
        let before = self.previous.as_ref().is_some_and(|previous| selects(previous));
        let after = self.change != Change::Deleted && selects(&self.object);
        match (before, after) {
            (false, false) => None,
            (false, true) => Some(Change::Added),
            (true, true) => Some(Change::Modified),
            (true, false) => Some(Change::Deleted),
        }
    }

    /// Returns the body of the object that a watcher sees when the change is `seen` to it.
    pub fn body(&self, seen: Change) -> Bytes {
        match (seen, &self.previous) {
            (Change::Deleted, Some(previous)) if self.change != Change::Deleted => {
                previous.body_at(self.revision)
            }
            _ => self.object.body.clone(),
        }
    }

    /// Returns the line that watchers get. It is made once, whatever their number.
    pub fn frame(&self, seen: Change) -> Bytes {
        let cell = match seen {
            _ if seen == self.change => &self.frame,
            Change::Deleted => &self.left,
            Change::Added | Change::Modified => &self.entered,
        };
        cell.get_or_init(|| frame(seen.as_str(), &self.body(seen))).clone()
    }
}

/// Returns the line of a watch event.
pub fn frame(kind: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + kind.len() + 24);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(kind.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    Bytes::from(line)
}

//! The objects of one resource and the history of their changes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::event::{Change, Event};
use super::object::{Key, Stored};

/// How much history a table keeps.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// So many changes a resource.
    pub events: usize,
    /// So many bytes a resource, whatever the size of its objects. The newest change is kept.
    pub bytes: usize,
    /// So long.
    pub age: SignedDuration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { events: 1_000, bytes: 32 * 1024 * 1024, age: SignedDuration::from_mins(5) }
    }
}

/// A revision is older than the history reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The oldest revision that can still be asked for.
    pub oldest: u64,
}

/// Part of a list: the objects, and where the next part begins.
#[derive(Debug, Default)]
pub struct Page {
    /// The objects, in the order of their keys.
    pub items: Vec<Arc<Stored>>,
    /// The last key of this part if more objects follow.
    pub next: Option<Key>,
    /// How many objects of the range follow this part, selected or not.
    pub remaining: usize,
}

/// Which objects a list is about.
#[derive(Clone, Debug, Default)]
pub struct Range {
    /// Only objects of this namespace.
    pub namespace: Option<String>,
    /// Only objects after this key.
    pub after: Option<String>,
    /// At most so many objects; all when absent.
    pub limit: Option<usize>,
}

impl Range {
    fn bounds(&self) -> (Bound<Key>, Bound<Key>) {
        let (start, end) = match &self.namespace {
            // "0" is the character after "/".
            Some(namespace) => (
                Bound::Included(format!("{namespace}/").into_boxed_str()),
                Bound::Excluded(format!("{namespace}0").into_boxed_str()),
            ),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        let start = match (&self.after, start) {
            (Some(after), Bound::Included(first)) if after.as_str() < &*first => Bound::Included(first),
            (Some(after), _) => Bound::Excluded(after.clone().into_boxed_str()),
            (None, start) => start,
        };
        (start, end)
    }
}

/// The objects of one resource.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) objects: BTreeMap<Key, Arc<Stored>>,
    history: VecDeque<Arc<Event>>,
    /// How many bytes the history keeps at most.
    weight: usize,
    /// The revision of the newest change that was dropped: older states are not known.
    floor: u64,
}

impl Table {
    /// Returns an empty table whose history before `floor` is not known.
    pub(super) fn new(floor: u64) -> Table {
        Table { floor, ..Table::default() }
    }

    pub(super) fn record(&mut self, event: Arc<Event>, now: Timestamp, limits: Limits) {
        match event.change {
            Change::Added | Change::Modified => {
                self.objects.insert(event.object.key.clone(), Arc::clone(&event.object));
            }
            Change::Deleted => {
                self.objects.remove(&event.object.key);
            }
        }
        self.weight += event.weight();
        self.history.push_back(event);
        while let Some(oldest) = self.history.front() {
            let is_due = now.duration_since(oldest.at) > limits.age || self.weight > limits.bytes;
            if self.history.len() <= limits.events && !(is_due && self.history.len() > 1) {
                break;
            }
            self.floor = oldest.revision;
            self.weight -= oldest.weight();
            self.history.pop_front();
        }
    }

    /// Forgets the history up to `revision`.
    pub(super) fn forget(&mut self, revision: u64) {
        self.history.clear();
        self.weight = 0;
        self.floor = revision;
    }

    /// Returns at most `limit` changes after `revision`, oldest first.
    pub(super) fn since(&self, revision: u64, limit: usize) -> Result<Vec<Arc<Event>>, Expired> {
        if revision < self.floor {
            return Err(Expired { oldest: self.floor });
        }
        let start = self.history.partition_point(|event| event.revision <= revision);
        Ok(self.history.iter().skip(start).take(limit).cloned().collect())
    }

    /// Returns a part of the objects as they are now.
    pub(super) fn page(&self, range: &Range, selects: &dyn Fn(&Stored) -> bool) -> Page {
        collect(self.objects.range(range.bounds()).map(|(_, object)| object), range.limit, selects)
    }

    /// Returns a part of the objects as they were at `revision`: what happened since is undone.
    pub(super) fn page_at(
        &self,
        revision: u64,
        range: &Range,
        selects: &dyn Fn(&Stored) -> bool,
    ) -> Result<Page, Expired> {
        if revision < self.floor {
            return Err(Expired { oldest: self.floor });
        }
        if self.history.back().is_none_or(|newest| newest.revision <= revision) {
            return Ok(self.page(range, selects));
        }
        let bounds = range.bounds();
        let mut then: BTreeMap<&Key, &Arc<Stored>> = self.objects.range(bounds.clone()).collect();
        for event in self.history.iter().rev().take_while(|event| event.revision > revision) {
            let key = &event.object.key;
            if !contains(&bounds, key) {
                continue;
            }
            match &event.previous {
                Some(previous) => then.insert(key, previous),
                None => then.remove(key),
            };
        }
        Ok(collect(then.into_values(), range.limit, selects))
    }
}

fn contains((start, end): &(Bound<Key>, Bound<Key>), key: &Key) -> bool {
    let after_start = match start {
        Bound::Included(first) => key >= first,
        Bound::Excluded(first) => key > first,
        Bound::Unbounded => true,
    };
    let before_end = match end {
        Bound::Included(last) => key <= last,
        Bound::Excluded(last) => key < last,
        Bound::Unbounded => true,
    };
    after_start && before_end
}

fn collect<'a>(
    mut objects: impl Iterator<Item = &'a Arc<Stored>>,
    limit: Option<usize>,
    selects: &dyn Fn(&Stored) -> bool,
) -> Page {
    let mut page = Page::default();
    while let Some(object) = objects.next() {
        if !selects(object) {
            continue;
        }
        if limit.is_some_and(|limit| page.items.len() >= limit) {
            page.next = page.items.last().map(|last| last.key.clone());
            page.remaining = 1 + objects.count();
            break;
        }
        page.items.push(Arc::clone(object));
    }
    page
}

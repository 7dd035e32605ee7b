//! Objects become items: filtered on threads of their own, so that no filter can stop a watch.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use bytes::Bytes;
use engine::MonitorId;
use engine::hook::WatchEvent;
use engine::snapshot::{Item, Key};
use golang::json;
use serde_json::Value;
use values::Checksum;

use super::monitors::Users;
use super::timing::{Timing, Timings};
use crate::jq::{Filter, Input, JqError, Progress, Threads};

/// A filter as a monitor uses it.
#[derive(Clone, Debug)]
pub(super) struct Sieve {
    filter: Option<Arc<Filter>>,
    keep_object: bool,
    /// Whether the filter passed a limit.
    stuck: Arc<AtomicBool>,
    /// What other objects came to lately.
    recent: Arc<Mutex<Recent>>,
    /// Whose sieve it is, and who is told how long it works.
    timings: Option<(MonitorId, Timings)>,
}

/// How many results a sieve remembers.
const REMEMBERED: usize = 256;

/// The last results of a filter. Many objects come to the same, and then share it.
#[derive(Debug, Default)]
struct Recent(BTreeMap<Checksum, Weak<Item>>);

impl Recent {
    /// Returns an item like this one that somebody holds already, or the item itself.
    fn shared(&mut self, item: Item) -> Arc<Item> {
        let known = self.0.get(&item.checksum()).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| **known == item) {
            return known;
        }
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        let item = Arc::new(item);
        self.0.insert(item.checksum(), Arc::downgrade(&item));
        item
    }
}

/// An object as the API server sent it.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    /// Its JSON.
    pub(super) text: Bytes,
    /// Where it is.
    pub(super) key: Key,
    /// What happened to it.
    pub(super) change: WatchEvent,
}

/// The kind that objects of lists leave out.
#[derive(Clone, Debug)]
pub(super) struct Completion {
    pub(super) api_version: Arc<str>,
    pub(super) kind: Arc<str>,
}

/// What a monitor gets.
#[derive(Debug)]
pub(super) enum Sifted {
    /// An object, for its snapshot.
    Item {
        /// What happened to it.
        change: WatchEvent,
        /// Where it is.
        key: Key,
        /// What is kept of it.
        item: Arc<Item>,
    },
    /// The filter did not work on an object.
    Failed(String),
}

/// An object in the forms that the sieves need.
struct Object<'a> {
    raw: &'a Raw,
    value: Option<Value>,
    input: Option<Input>,
    json: Option<Arc<[u8]>>,
}

impl Sieve {
    /// Returns the sieve of a monitor, or why its filter can't be used.
    pub(super) fn new(filter: Option<&str>, keep_object: bool) -> Result<Self, String> {
        let filter = filter.map(Filter::compile).transpose().map_err(|error| error.to_string())?;
        Ok(Self {
            filter: filter.map(Arc::new),
            keep_object,
            stuck: Arc::default(),
            recent: Arc::default(),
            timings: None,
        })
    }

    /// Returns the sieve with whom it belongs to and who is told how long it works.
    pub(super) fn timed(self, monitor: MonitorId, timings: Timings) -> Self {
        Self { timings: Some((monitor, timings)), ..self }
    }

    pub(super) fn took(&self, timing: Timing) {
        if let Some((monitor, timings)) = &self.timings {
            timings.tell(*monitor, timing);
        }
    }

    /// Returns the item of an object.
    fn item(&self, object: &mut Object<'_>, completion: &Completion) -> Result<Arc<Item>, Problem> {
        let Some(filter) = &self.filter else {
            return Ok(Arc::new(Item::unfiltered(object.json(completion)?, self.keep_object)));
        };
        if self.stuck.load(Ordering::Relaxed) {
            return Err(Problem {
                text: "the filter passed a limit before; it is not tried again until its hook changes"
                    .to_owned(),
                is_limit: false,
            });
        }
        let result = filter.result(&object.input(completion)?).map_err(|error| {
            let is_limit = matches!(error, JqError::Limit(_));
            Problem { text: error.to_string(), is_limit }
        })?;
        let result = result.into();
        if self.keep_object {
            return Ok(Arc::new(Item::filtered(Some(object.json(completion)?), result)));
        }
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(recent.shared(Item::filtered(None, result)))
    }

    /// Returns the item of an object that is gone: its filter need not succeed.
    fn last_item(&self, object: &mut Object<'_>, completion: &Completion) -> Arc<Item> {
        if let Ok(item) = self.item(object, completion) {
            return item;
        }
        let kept = self.keep_object.then(|| object.json(completion).ok()).flatten();
        Arc::new(Item::filtered(kept, b"null".as_slice().into()))
    }
}

/// Why there is no item.
struct Problem {
    text: String,
    is_limit: bool,
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        Self { text: format!("it is no object: {error}"), is_limit: false }
    }
}

impl Object<'_> {
    fn value(&mut self, completion: &Completion) -> Result<&Value, serde_json::Error> {
        let value = if let Some(value) = self.value.take() {
            value
        } else {
            let mut value: Value = serde_json::from_slice(&self.raw.text)?;
            if let Value::Object(fields) = &mut value {
                fields.entry("apiVersion").or_insert_with(|| (*completion.api_version).into());
                fields.entry("kind").or_insert_with(|| (*completion.kind).into());
            }
            value
        };
        Ok(self.value.insert(value))
    }

    fn json(&mut self, completion: &Completion) -> Result<Arc<[u8]>, serde_json::Error> {
        if let Some(json) = &self.json {
            return Ok(Arc::clone(json));
        }
        let json: Arc<[u8]> = json::bytes(self.value(completion)?).into();
        self.json = Some(Arc::clone(&json));
        Ok(json)
    }

    fn input(&mut self, completion: &Completion) -> Result<Input, serde_json::Error> {
        if let Some(input) = &self.input {
            return Ok(input.clone());
        }
        let mut input = Input::parse(&self.raw.text)?;
        input.complete("apiVersion", &completion.api_version);
        input.complete("kind", &completion.kind);
        self.input = Some(input.clone());
        Ok(input)
    }
}

/// Returns what each monitor gets of these objects, in their order.
pub(super) async fn sift(
    threads: &Threads,
    users: &Users,
    completion: &Completion,
    objects: Vec<Raw>,
) -> Result<BTreeMap<MonitorId, Vec<Sifted>>, String> {
    if users.values().all(|sieve| sieve.filter.is_none()) {
        return Ok(sift_all(users, completion, &objects, &Progress::default()).0);
    }
    let (users, completion) = (users.clone(), completion.clone());
    threads.run(move |progress| sift_all(&users, &completion, &objects, progress)).await
}

/// The same on this thread. Returns also whether a filter has passed a limit.
fn sift_all(
    users: &Users,
    completion: &Completion,
    objects: &[Raw],
    progress: &Progress,
) -> (BTreeMap<MonitorId, Vec<Sifted>>, bool) {
    let mut all: BTreeMap<MonitorId, Vec<Sifted>> =
        users.keys().map(|monitor| (*monitor, Vec::with_capacity(objects.len()))).collect();
    let mut passed_limit = false;
    for raw in objects {
        let mut object = Object { raw, value: None, input: None, json: None };
        for (monitor, sieve) in users {
            let begun = Instant::now();
            let item = match raw.change {
                WatchEvent::Deleted => Ok(sieve.last_item(&mut object, completion)),
                WatchEvent::Added | WatchEvent::Modified => sieve.item(&mut object, completion),
            };
            if sieve.filter.is_some() {
                sieve.took(Timing::Filtered(begun.elapsed()));
            }
            let sifted = match item {
                Ok(item) => Sifted::Item { change: raw.change, key: raw.key.clone(), item },
                Err(problem) => {
                    if problem.is_limit {
                        passed_limit = true;
                        sieve.stuck.store(true, Ordering::Relaxed);
                    }
                    Sifted::Failed(format!("filter of object {}: {}", raw.key, problem.text))
                }
            };
            progress.step();
            if let Some(list) = all.get_mut(monitor) {
                list.push(sifted);
            }
        }
    }
    (all, passed_limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sifted(sieve: &Sieve, objects: &[&str]) -> Vec<Arc<Item>> {
        let completion = Completion { api_version: "v1".into(), kind: "Pod".into() };
        let raws: Vec<Raw> = objects
            .iter()
            .map(|text| Raw {
                text: Bytes::copy_from_slice(text.as_bytes()),
                key: Key::new("ns", "pod"),
                change: WatchEvent::Added,
            })
            .collect();
        let users = Users::from([(MonitorId::new(1), sieve.clone())]);
        let (all, _) = sift_all(&users, &completion, &raws, &Progress::default());
        let sifted = all.into_values().flatten();
        sifted
            .map(|sifted| match sifted {
                Sifted::Item { item, .. } => item,
                Sifted::Failed(error) => panic!("{error}"),
            })
            .collect()
    }

    #[test]
    fn objects_that_a_filter_makes_equal_share_one_item() {
        let sieve = Sieve::new(Some(".spec.node"), false).unwrap();
        let (a, b) = (r#"{"spec":{"node":"a"},"n":1}"#, r#"{"spec":{"node":"b"}}"#);
        let first = sifted(&sieve, &[a, b]);
        let later = sifted(&sieve, &[b, r#"{"spec":{"node":"a"},"n":2}"#]);
        assert!(Arc::ptr_eq(&first[0], &later[1]) && Arc::ptr_eq(&first[1], &later[0]));
        assert_eq!(first[0].filter_result(), Some(&b"\"a\""[..]));
        // What nobody holds any more is made anew.
        drop((first, later));
        assert_eq!(sifted(&sieve, &[a])[0].filter_result(), Some(&b"\"a\""[..]));
    }

    #[test]
    fn objects_that_are_kept_have_items_of_their_own() {
        let sieve = Sieve::new(Some(".spec.node"), true).unwrap();
        let items = sifted(&sieve, &[r#"{"n":1}"#, r#"{"n":2}"#]);
        assert_ne!(items[0].object(), items[1].object());
        assert_eq!(items[0].filter_result(), items[1].filter_result());
    }

    #[test]
    fn as_many_results_as_objects_are_not_remembered_for_ever() {
        let sieve = Sieve::new(Some(".n"), false).unwrap();
        let objects: Vec<String> = (0..3 * REMEMBERED).map(|n| format!("{{\"n\":{n}}}")).collect();
        let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
        let items = sifted(&sieve, &objects);
        assert_eq!(items[700].filter_result(), Some(&b"700"[..]));
        assert!(sieve.recent.lock().unwrap().0.len() <= REMEMBERED);
    }
}

//! Objects become items of snapshots: filtered on threads of their own, so that no filter can stop a watch.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use bytes::Bytes;
use engine::MonitorId;
use engine::hook::WatchEvent;
use engine::snapshot::{Item, Key};
use golang::json;
use jq::{Filter, Input, JqError, Progress, Threads};
use serde_json::Value;
use values::Checksum;

use super::timing::{WatchTiming, WatchTimings};

/// What a monitor keeps of an object: the result of a jq filter, the object, or both.
#[derive(Clone, Debug)]
pub(super) struct ObjectFilter {
    filter: Option<Arc<Filter>>,
    keep_object: bool,
    /// Whether the filter passed a limit.
    stuck: Arc<AtomicBool>,
    /// The last results for other objects.
    recent: Arc<Mutex<Recent>>,
    /// The monitor, and where it is reported how long the filter takes.
    timings: Option<(MonitorId, WatchTimings)>,
}

/// How many bytes objects have at most that are not worth another thread, where all filters only pick fields.
const SHORT: usize = 64 * 1024;

/// The filters of the monitors that an informer serves.
pub(super) type Subscribers = BTreeMap<MonitorId, ObjectFilter>;

/// How many results a filter remembers.
const REMEMBERED: usize = 256;

/// The last results of a filter. Many objects come to the same, and then share it.
#[derive(Debug, Default)]
struct Recent(BTreeMap<Checksum, Weak<Item>>);

impl Recent {
    /// Returns an equal item that a snapshot holds already, or the item itself.
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
pub(super) struct RawObject {
    /// Its JSON.
    pub(super) text: Bytes,
    /// Where it is.
    pub(super) key: Key,
    /// What happened to it.
    pub(super) change: WatchEvent,
}

/// The version and kind of objects, which the API server leaves out in lists.
#[derive(Clone, Debug)]
pub(super) struct TypeMeta {
    pub(super) api_version: Arc<str>,
    pub(super) kind: Arc<str>,
}

/// What became of an object for one monitor.
#[derive(Debug)]
pub(super) enum Filtered {
    /// An object, for its snapshot.
    Item {
        /// Where it is.
        key: Key,
        /// Whether it is gone.
        is_gone: bool,
        /// What is kept of it.
        item: Arc<Item>,
    },
    /// The filter did not work on an object, which counts as known all the same.
    Failed {
        /// Where it is.
        key: Key,
        /// What stands for it.
        item: Arc<Item>,
        /// Why.
        error: String,
    },
}

/// An object in the forms that filters need, each made once.
struct Object<'a> {
    raw: &'a RawObject,
    input: Option<Input>,
    json: Option<Arc<[u8]>>,
}

impl ObjectFilter {
    /// Returns a filter by a jq program, or why the program can't be used.
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

    /// Returns the filter of `monitor`, which reports to `timings` how long it takes.
    pub(super) fn timed(self, monitor: MonitorId, timings: WatchTimings) -> Self {
        Self { timings: Some((monitor, timings)), ..self }
    }

    pub(super) fn took(&self, timing: WatchTiming) {
        if let Some((monitor, timings)) = &self.timings {
            timings.report(*monitor, timing);
        }
    }

    /// Returns the item of an object.
    fn item(&self, object: &mut Object<'_>, type_meta: &TypeMeta) -> Result<Arc<Item>, Problem> {
        let Some(filter) = &self.filter else {
            return Ok(Arc::new(Item::unfiltered(object.json(type_meta)?, self.keep_object)));
        };
        if self.stuck.load(Ordering::Relaxed) {
            return Err(Problem {
                text: "the filter passed a limit before; it is not tried again until its hook changes"
                    .to_owned(),
                is_limit: false,
            });
        }
        let result = filter.result(&object.input(type_meta)?).map_err(|error| {
            let is_limit = matches!(error, JqError::Limit(_));
            Problem { text: error.to_string(), is_limit }
        })?;
        let result = result.into();
        if self.keep_object {
            return Ok(Arc::new(Item::filtered(Some(object.json(type_meta)?), result)));
        }
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(recent.shared(Item::filtered(None, result)))
    }

    /// Returns the item of an object that is gone: its filter need not succeed.
    fn last_item(&self, object: &mut Object<'_>, type_meta: &TypeMeta) -> Arc<Item> {
        if let Ok(item) = self.item(object, type_meta) {
            return item;
        }
        Arc::new(Item::filtered(self.kept(object, type_meta), b"null".as_slice().into()))
    }

    /// Returns what is kept of an object itself.
    fn kept(&self, object: &mut Object<'_>, type_meta: &TypeMeta) -> Option<Arc<[u8]>> {
        self.keep_object.then(|| object.json(type_meta).ok()).flatten()
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
    fn value(&self, type_meta: &TypeMeta) -> Result<Value, serde_json::Error> {
        let mut value: Value = serde_json::from_slice(&self.raw.text)?;
        if let Value::Object(fields) = &mut value {
            fields.entry("apiVersion").or_insert_with(|| (*type_meta.api_version).into());
            fields.entry("kind").or_insert_with(|| (*type_meta.kind).into());
        }
        Ok(value)
    }

    fn json(&mut self, type_meta: &TypeMeta) -> Result<Arc<[u8]>, serde_json::Error> {
        if let Some(json) = &self.json {
            return Ok(Arc::clone(json));
        }
        let text = &*self.raw.text;
        // What the API server sends of most kinds is just that.
        let json: Arc<[u8]> = if json::is_as_written(text, &["apiVersion", "kind"]) {
            text.into()
        } else {
            json::bytes(&self.value(type_meta)?).into()
        };
        self.json = Some(Arc::clone(&json));
        Ok(json)
    }

    fn input(&mut self, type_meta: &TypeMeta) -> Result<Input, serde_json::Error> {
        if let Some(input) = &self.input {
            return Ok(input.clone());
        }
        let mut input = Input::parse(&self.raw.text)?;
        input.complete("apiVersion", &type_meta.api_version);
        input.complete("kind", &type_meta.kind);
        self.input = Some(input.clone());
        Ok(input)
    }
}

/// Returns what became of these objects for each monitor, in their order.
pub(super) async fn filter_objects(
    threads: &Threads,
    subscribers: &Subscribers,
    type_meta: &TypeMeta,
    objects: Vec<RawObject>,
) -> Result<BTreeMap<MonitorId, Vec<Filtered>>, String> {
    let bytes: usize = objects.iter().map(|object| object.text.len()).sum();
    let is_short = |filter: &Filter| bytes <= SHORT && filter.only_picks();
    if subscribers.values().all(|filter| filter.filter.as_deref().is_none_or(is_short)) {
        return Ok(filter_here(subscribers, type_meta, &objects, &Progress::default()).0);
    }
    let (subscribers, type_meta) = (subscribers.clone(), type_meta.clone());
    threads.run(move |progress| filter_here(&subscribers, &type_meta, &objects, progress)).await
}

/// Does the same on this thread. Returns also whether a filter has passed a limit.
fn filter_here(
    subscribers: &Subscribers,
    type_meta: &TypeMeta,
    objects: &[RawObject],
    progress: &Progress,
) -> (BTreeMap<MonitorId, Vec<Filtered>>, bool) {
    let mut all: BTreeMap<MonitorId, Vec<Filtered>> =
        subscribers.keys().map(|monitor| (*monitor, Vec::with_capacity(objects.len()))).collect();
    let mut passed_limit = false;
    for raw in objects {
        let mut object = Object { raw, input: None, json: None };
        for (monitor, filter) in subscribers {
            let begun = Instant::now();
            let is_gone = raw.change == WatchEvent::Deleted;
            let item = if is_gone {
                Ok(filter.last_item(&mut object, type_meta))
            } else {
                filter.item(&mut object, type_meta)
            };
            if filter.filter.is_some() {
                filter.took(WatchTiming::Filtered(begun.elapsed()));
            }
            let filtered = match item {
                Ok(item) => Filtered::Item { key: raw.key.clone(), is_gone, item },
                Err(problem) => {
                    if problem.is_limit {
                        passed_limit = true;
                        filter.stuck.store(true, Ordering::Relaxed);
                    }
                    Filtered::Failed {
                        key: raw.key.clone(),
                        item: Arc::new(Item::failed(filter.kept(&mut object, type_meta))),
                        error: format!("filter of object {}: {}", raw.key, problem.text),
                    }
                }
            };
            progress.step();
            if let Some(list) = all.get_mut(monitor) {
                list.push(filtered);
            }
        }
    }
    (all, passed_limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(filter: &ObjectFilter, objects: &[&str]) -> Vec<Arc<Item>> {
        let type_meta = TypeMeta { api_version: "v1".into(), kind: "Pod".into() };
        let raws: Vec<RawObject> = objects
            .iter()
            .map(|text| RawObject {
                text: Bytes::copy_from_slice(text.as_bytes()),
                key: Key::new("ns", "pod"),
                change: WatchEvent::Added,
            })
            .collect();
        let subscribers = Subscribers::from([(MonitorId::new(1), filter.clone())]);
        let (all, _) = filter_here(&subscribers, &type_meta, &raws, &Progress::default());
        let filtered = all.into_values().flatten();
        filtered
            .map(|filtered| match filtered {
                Filtered::Item { item, .. } => item,
                Filtered::Failed { error, .. } => panic!("{error}"),
            })
            .collect()
    }

    #[test]
    fn objects_that_a_filter_makes_equal_share_one_item() {
        let filter = ObjectFilter::new(Some(".spec.node"), false).unwrap();
        let (a, b) = (r#"{"spec":{"node":"a"},"n":1}"#, r#"{"spec":{"node":"b"}}"#);
        let first = filtered(&filter, &[a, b]);
        let later = filtered(&filter, &[b, r#"{"spec":{"node":"a"},"n":2}"#]);
        assert!(Arc::ptr_eq(&first[0], &later[1]) && Arc::ptr_eq(&first[1], &later[0]));
        assert_eq!(first[0].filter_result(), Some(&b"\"a\""[..]));
        // An item that no snapshot holds any more is made again.
        drop((first, later));
        assert_eq!(filtered(&filter, &[a])[0].filter_result(), Some(&b"\"a\""[..]));
    }

    /// Returns whether an object of so many bytes is filtered on another thread.
    async fn needs_thread(text: &str, bytes: usize) -> bool {
        let here = std::thread::current().id();
        let is_elsewhere = Arc::new(AtomicBool::new(false));
        let (timings, seen) = (WatchTimings::default(), Arc::clone(&is_elsewhere));
        timings.listen(move |_, _| seen.store(std::thread::current().id() != here, Ordering::Relaxed));
        let monitor = MonitorId::new(1);
        let filter = ObjectFilter::new(Some(text), false).unwrap().timed(monitor, timings);
        let raw = RawObject {
            text: format!("{{\"data\":\"{}\"}}", "x".repeat(bytes)).into(),
            key: Key::new("ns", "pod"),
            change: WatchEvent::Added,
        };
        let type_meta = TypeMeta { api_version: "v1".into(), kind: "Pod".into() };
        let subscribers = Subscribers::from([(monitor, filter)]);
        let all = filter_objects(&Threads::default(), &subscribers, &type_meta, vec![raw]).await.unwrap();
        assert_eq!(all[&monitor].len(), 1);
        is_elsewhere.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn a_small_object_whose_fields_are_picked_needs_no_other_thread() {
        assert!(!needs_thread(".data", 1_000).await);
        assert!(!needs_thread("{name: .metadata.name}", 1_000).await);
        assert!(needs_thread(".data", 100_000).await, "a large one would delay other watches");
        assert!(needs_thread(".data | length", 1_000).await, "a call may take long");
    }

    #[test]
    fn objects_that_are_kept_have_items_of_their_own() {
        let filter = ObjectFilter::new(Some(".spec.node"), true).unwrap();
        let items = filtered(&filter, &[r#"{"n":1}"#, r#"{"n":2}"#]);
        assert_ne!(items[0].object(), items[1].object());
        assert_eq!(items[0].filter_result(), items[1].filter_result());
    }

    #[test]
    fn as_many_results_as_objects_are_not_remembered_for_ever() {
        let filter = ObjectFilter::new(Some(".n"), false).unwrap();
        let objects: Vec<String> = (0..3 * REMEMBERED).map(|n| format!("{{\"n\":{n}}}")).collect();
        let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
        let items = filtered(&filter, &objects);
        assert_eq!(items[700].filter_result(), Some(&b"700"[..]));
        assert!(filter.recent.lock().unwrap().0.len() <= REMEMBERED);
    }
}

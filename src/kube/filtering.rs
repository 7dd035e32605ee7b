//! Objects become items: filtered on threads of their own, so that no filter can stop a watch.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::hook::json;
use engine::snapshot::Item;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::jq::{Filter, use_stack};

/// How long one filter may work on one object.
const DEADLINE: Duration = Duration::from_secs(5);

/// The stack of a filter thread: deep objects and deep recursion need it.
const STACK: usize = 64 * 1024 * 1024;

/// A filter as a monitor uses it.
#[derive(Clone, Debug)]
pub(super) struct Sieve {
    filter: Option<Arc<Filter>>,
    keep_object: bool,
    stuck: Arc<Mutex<bool>>,
}

type Work = Box<dyn FnOnce() + Send>;

/// A thread that evaluates filters, one after the other.
#[derive(Debug)]
pub(super) struct FilterThread(std::sync::mpsc::Sender<Work>);

impl FilterThread {
    fn start() -> Option<Self> {
        let (sender, receiver) = std::sync::mpsc::channel::<Work>();
        let thread = std::thread::Builder::new().name("filter".to_owned()).stack_size(STACK);
        thread
            .spawn(move || {
                use_stack(STACK - STACK / 4);
                for work in &receiver {
                    work();
                }
            })
            .ok()?;
        Some(Self(sender))
    }
}

/// The threads that are at rest.
#[derive(Clone, Debug, Default)]
pub(super) struct FilterThreads(Arc<Mutex<Vec<FilterThread>>>);

impl FilterThreads {
    fn take(&self) -> Option<FilterThread> {
        let resting = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        resting.or_else(FilterThread::start)
    }

    fn put_back(&self, thread: FilterThread) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    /// Returns the results of `work`, done for each object, or why there are none.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let thread = self.take().ok_or("no thread can be started for filters")?;
        let (answer, result) = oneshot::channel();
        let work: Work = Box::new(move || drop(answer.send(work())));
        thread.0.send(work).map_err(|_| "a filter thread has died")?;
        match tokio::time::timeout(DEADLINE, result).await {
            Ok(Ok(result)) => {
                self.put_back(thread);
                Ok(result)
            }
            Ok(Err(_)) => Err("the filter ran into a defect".to_owned()),
            // The thread is lost to its filter; another takes its place.
            Err(_) => Err(format!("the filter took longer than {} s for one object", DEADLINE.as_secs())),
        }
    }
}

impl Sieve {
    /// Returns the sieve of a monitor, or why its filter can't be used.
    pub(super) fn new(filter: Option<&str>, keep_object: bool) -> Result<Self, String> {
        let filter = filter.map(Filter::compile).transpose().map_err(|error| error.to_string())?;
        Ok(Self { filter: filter.map(Arc::new), keep_object, stuck: Arc::default() })
    }

    /// Returns the item of an object. Without a filter no thread is needed.
    pub(super) async fn item(
        &self,
        threads: &FilterThreads,
        object: &Arc<Value>,
    ) -> Result<Arc<Item>, String> {
        let Some(filter) = &self.filter else {
            return Ok(Arc::new(Item::unfiltered(json::bytes(object).into(), self.keep_object)));
        };
        if *self.stuck.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(
                "the filter took too long before; it is not tried again until its hook changes".to_owned()
            );
        }
        let (filter, object, keep) = (Arc::clone(filter), Arc::clone(object), self.keep_object);
        let result = threads
            .run(move || {
                let result = filter.result(&object).map_err(|error| error.to_string())?;
                let kept = keep.then(|| json::bytes(&object).into());
                Ok::<_, String>(Arc::new(Item::filtered(kept, json::bytes(&result).into())))
            })
            .await;
        match result {
            Ok(result) => result,
            Err(error) => {
                if error.starts_with("the filter took") {
                    *self.stuck.lock().unwrap_or_else(PoisonError::into_inner) = true;
                }
                Err(error)
            }
        }
    }

    /// Returns the item of an object that is gone: its filter need not succeed.
    pub(super) async fn last_item(&self, threads: &FilterThreads, object: &Arc<Value>) -> Arc<Item> {
        if let Ok(item) = self.item(threads, object).await {
            return item;
        }
        let kept = self.keep_object.then(|| json::bytes(object).into());
        Arc::new(Item::filtered(kept, b"null".as_slice().into()))
    }
}

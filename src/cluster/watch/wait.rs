//! Waiting for the state of one object.

use std::time::Duration;

use engine::hook::WatchEvent;
use serde_json::Value;
use tokio::time::Instant;

use super::error::WatchError;
use super::list_watch::{ListWatch, Update};
use crate::cluster::list::Collection;
use crate::cluster::request::Requests;

/// Why an object is not known to be as wanted.
#[derive(Debug)]
pub(crate) enum Unfulfilled {
    /// The time is over. The error is the one that kept the object from being seen, if it was not seen last.
    Late(Option<WatchError>),
    /// The object can't be seen, and trying again would not help.
    Refused(WatchError),
}

/// Waits until `condition` holds for the object with this name in the collection at `path`, and returns the object.
/// `None` stands for an object that is not there.
///
/// An API server that can't be asked for a while is asked again, as for any other watch.
///
/// # Errors
///
/// When that takes longer than `patience`, or when the operator may not see such objects.
pub(crate) async fn wait_for(
    requests: &Requests,
    (path, name): (&str, &str),
    patience: Duration,
    condition: impl Fn(Option<&Value>) -> bool,
) -> Result<Option<Value>, Unfulfilled> {
    let end = Instant::now() + patience;
    let collection = Collection::new(path).with_fields(&format!("metadata.name={name}"));
    let mut list_watch = ListWatch::new(requests.clone(), collection, None);
    let mut failure = None;
    loop {
        let Ok(update) = tokio::time::timeout_at(end, list_watch.next()).await else {
            return Err(Unfulfilled::Late(failure));
        };
        let object = match update {
            Update::Listed(objects) => objects.into_iter().next(),
            Update::Changed(WatchEvent::Added | WatchEvent::Modified, object) => Some(object),
            Update::Changed(WatchEvent::Deleted, _) => None,
            Update::Failed(error @ (WatchError::Forbidden(_) | WatchError::KindMissing)) => {
                return Err(Unfulfilled::Refused(error));
            }
            Update::Failed(error) => {
                failure = Some(error);
                continue;
            }
            Update::Restored => continue,
        };
        failure = None;
        if condition(object.as_ref()) {
            return Ok(object);
        }
    }
}

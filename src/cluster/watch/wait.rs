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
    /// The object is gone, and none of its name came in its place.
    Gone,
}

/// How long a state is waited for.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// In all.
    pub(crate) whole: Duration,
    /// While no object of that name is there, if that is no reason to wait on.
    pub(crate) absent: Option<Duration>,
}

/// Waits until `condition` holds for the object with this name in the collection at `path`, and returns the object.
/// `None` stands for an object that is not there.
///
/// An API server that can't be asked for a while is asked again, as for any other watch.
///
/// # Errors
///
/// When `patience` ends, or when the operator may not see such objects.
pub(crate) async fn wait_for(
    requests: &Requests,
    (path, name): (&str, &str),
    patience: Patience,
    condition: impl Fn(Option<&Value>) -> bool,
) -> Result<Option<Value>, Unfulfilled> {
    let end = Instant::now() + patience.whole;
    // When an object that is not there is gone for good.
    let mut gone: Option<Instant> = None;
    let collection = Collection::new(path).with_fields(&format!("metadata.name={name}"));
    let mut list_watch = ListWatch::new(requests.clone(), collection, None);
    let mut failure = None;
    loop {
        let next = gone.map_or(end, |gone| gone.min(end));
        let Ok(update) = tokio::time::timeout_at(next, list_watch.next()).await else {
            return Err(if gone == Some(next) { Unfulfilled::Gone } else { Unfulfilled::Late(failure) });
        };
        let object = match update {
            Update::Listed(objects) => objects.into_iter().next(),
            Update::Changed(WatchEvent::Added | WatchEvent::Modified, object) => Some(object),
            Update::Changed(WatchEvent::Deleted, _) => None,
            Update::Failed(error @ (WatchError::Forbidden(_) | WatchError::KindMissing)) => {
                return Err(Unfulfilled::Refused(error));
            }
            Update::Failed(error) => {
                // Whether it is there is not known.
                gone = None;
                failure = Some(error);
                continue;
            }
            Update::Restored => continue,
        };
        failure = None;
        if condition(object.as_ref()) {
            return Ok(object);
        }
        gone = match object {
            Some(_) => None,
            None => gone.or_else(|| Some(Instant::now() + patience.absent?)),
        };
    }
}

//! Waiting for the state of one object.

use engine::hook::WatchEvent;
use serde_json::Value;

use super::error::WatchError;
use super::reflector::{Reflector, Update};
use crate::cluster::list::Collection;
use crate::cluster::request::Requests;

/// Waits until `condition` holds for the object with this name in the collection at `path`, and returns the object.
/// `None` stands for an object that is not there.
///
/// # Errors
///
/// The first failure of the list or the watch.
pub(crate) async fn wait_for(
    requests: &Requests,
    path: &str,
    name: &str,
    condition: impl Fn(Option<&Value>) -> bool,
) -> Result<Option<Value>, WatchError> {
    let collection = Collection::new(path).with_fields(&format!("metadata.name={name}"));
    let mut reflector = Reflector::new(requests.clone(), collection);
    loop {
        let object = match reflector.next().await {
            Update::Listed(objects) => objects.into_iter().next(),
            Update::Changed(WatchEvent::Added | WatchEvent::Modified, object) => Some(object),
            Update::Changed(WatchEvent::Deleted, _) => None,
            Update::Failed(error) => return Err(error),
        };
        if condition(object.as_ref()) {
            return Ok(object);
        }
    }
}

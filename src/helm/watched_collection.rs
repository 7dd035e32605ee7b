//! One watched collection of objects of releases, and what its watch has shown. No I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::Deserialize;
use tokio::task::AbortHandle;

use super::object::Key;
use super::writers::{ManagedFields, Writers};
use crate::cluster::Resource;

/// Namespace and name.
pub(super) type ObjectName = (String, String);

/// The watch of one collection: a kind with the labels of modules, in all namespaces or, where that is forbidden, in one;
/// or all objects of a kind in one namespace, for the sake of those that have lost a label.
pub(super) struct WatchedCollection {
    task: AbortHandle,
    pub(super) resource: Resource,
    /// The namespace, if it is about one.
    pub(super) namespace: Option<String>,
    /// Whether this may not be watched as a whole: there is a collection for each namespace.
    pub(super) is_split: bool,
    /// Whether its first list has come, or could not.
    pub(super) tried: bool,
    /// Whether a list has come.
    pub(super) listed: bool,
    /// Why it can't be watched.
    pub(super) broken: Option<String>,
    /// Who has written each object that is there, and when.
    pub(super) objects: BTreeMap<ObjectName, Writers>,
    /// The objects for whose sake a kind is watched without labels; `None` if it is watched with them.
    pub(super) strays: Option<BTreeSet<ObjectName>>,
}

/// As much of an object as is read.
#[derive(Deserialize)]
pub(super) struct Written {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    namespace: Option<String>,
    #[serde(default)]
    uid: String,
    #[serde(default, rename = "managedFields")]
    managed_fields: Vec<ManagedFields>,
}

impl Written {
    /// Returns its namespace and name.
    pub(super) fn name(&self) -> ObjectName {
        (self.metadata.namespace.clone().unwrap_or_default(), self.metadata.name.clone())
    }

    /// Returns who has written it.
    pub(super) fn writers(&self) -> Writers {
        Writers::of(&self.metadata.managed_fields)
    }

    /// Returns the mark of its `uid`.
    pub(super) fn uid(&self) -> u64 {
        uid_mark(&self.metadata.uid)
    }
}

impl WatchedCollection {
    /// Returns one whose list has not come yet.
    pub(super) fn new(task: AbortHandle, resource: Resource, namespace: Option<String>) -> Self {
        Self {
            task,
            resource,
            namespace,
            is_split: false,
            tried: false,
            listed: false,
            broken: None,
            objects: BTreeMap::new(),
            strays: None,
        }
    }

    /// Reports whether an object is one of this collection.
    pub(super) fn is_of(&self, key: &Key, resource: &Resource) -> bool {
        self.is_of_kind(resource)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
            && self.follows(&name_of(key))
    }

    /// Reports whether an object that it shows is followed here.
    pub(super) fn follows(&self, name: &ObjectName) -> bool {
        self.strays.as_ref().is_none_or(|strays| strays.contains(name))
    }

    /// Reports whether it has objects of this kind.
    pub(super) fn is_of_kind(&self, resource: &Resource) -> bool {
        (&self.resource.group, &self.resource.kind) == (&resource.group, &resource.kind)
    }

    /// Ends the watch.
    pub(super) fn end(&self) {
        self.task.abort();
    }
}

/// Has kinds no longer watched without labels for the sake of objects of which `is_over` says so.
pub(super) fn end_strays(
    watches: &mut BTreeMap<String, WatchedCollection>,
    is_over: impl Fn(&Resource, &ObjectName) -> bool,
) {
    watches.retain(|_, watched| {
        let Some(strays) = &mut watched.strays else { return true };
        strays.retain(|name| !is_over(&watched.resource, name));
        let is_used = !strays.is_empty();
        if !is_used {
            watched.end();
        }
        is_used
    });
}

/// Returns by what the watch of a kind without labels is known, in the namespace of an object.
pub(super) fn unlabelled_path(resource: &Resource, namespace: &str) -> String {
    format!("{} without labels", resource.path(Some(namespace)))
}

/// Returns the namespace and the name of an object.
pub(super) fn name_of(key: &Key) -> ObjectName {
    (key.namespace.clone(), key.name.clone())
}

/// Returns a number in the place of a `uid`.
pub(super) fn uid_mark(uid: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    hasher.finish()
}

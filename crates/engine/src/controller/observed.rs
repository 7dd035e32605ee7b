//! What the metadata of an object says, and when two states of it are the same to a controller.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use values::Checksum;

use super::index::Reference;
use crate::hook::reconcile::{FieldPath, MADE_BY, MAX_NAMED, OWNED_BY, ObjectKind, ParentReference};
use crate::hook::snapshot::{Item, Key};

/// The annotation that keeps the place of a child among those that were made with it.
pub(super) const ORDER: &str = "addon-operator.io/order";
/// The annotation that keeps the checksum of what was applied: what is not named any more has to go.
pub(super) const APPLIED: &str = "addon-operator.io/applied";

/// The metadata of an object, as far as controllers look at it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) uid: Arc<str>,
    pub(super) resource_version: String,
    pub(super) generation: i64,
    deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "or_nothing")]
    pub(super) finalizers: Vec<String>,
    #[serde(deserialize_with = "or_nothing")]
    owner_references: Vec<OwnerReference>,
    #[serde(deserialize_with = "or_nothing")]
    pub(super) annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_nothing")]
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct OwnerReference {
    uid: Arc<str>,
    controller: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Metadata,
}

/// Reads null as nothing.
fn or_nothing<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl Metadata {
    /// Returns the metadata of an object; nothing where it has none.
    pub(super) fn of(item: &Item) -> Self {
        serde_json::from_slice::<Object>(item.object().unwrap_or_default()).unwrap_or_default().metadata
    }

    /// Returns whether the object is being deleted.
    pub(super) fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Returns whether this finalizer is on it.
    pub(super) fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|name| name == finalizer)
    }

    /// Returns the identities of its owners.
    pub(super) fn owners(&self) -> impl Iterator<Item = &Arc<str>> {
        self.owner_references.iter().map(|owner| &owner.uid)
    }

    /// Returns whose child it is, if it is one of a parent of this kind.
    pub(super) fn parent(&self, kind: &ObjectKind) -> Vec<Reference> {
        if let Some(owner) = self.owner_references.iter().find(|owner| owner.controller) {
            return vec![Reference::Uid(Arc::clone(&owner.uid))];
        }
        let named = self.annotations.get(OWNED_BY).and_then(|text| text.strip_prefix(&format!("{kind}/")));
        let key =
            named.and_then(|text| text.split_once('/')).map(|(namespace, name)| Key::new(namespace, name));
        key.map(Reference::Named).into_iter().collect()
    }

    /// Returns whether it names nobody whose it is.
    pub(super) fn is_orphan(&self) -> bool {
        self.owner_references.is_empty() && !self.annotations.contains_key(OWNED_BY)
    }

    /// Returns which binding makes it, if it says so.
    pub(super) fn made_by(&self) -> Option<&str> {
        self.annotations.get(MADE_BY).map(String::as_str)
    }

    /// Returns the parents that an object at `key` is about.
    pub(super) fn related_to(&self, key: &Key, reference: &ParentReference) -> Vec<Reference> {
        let text = match reference {
            ParentReference::Annotation(name) => self.annotations.get(name),
            ParentReference::Label(name) => self.labels.get(name),
            ParentReference::Owner => return vec![Reference::Uid(Arc::clone(&self.uid))],
            ParentReference::Fields(_) => return vec![Reference::Own(key.clone())],
        };
        match text.map(|text| (text, text.split_once('/'))) {
            None => Vec::new(),
            Some((_, Some((namespace, name)))) => vec![Reference::Named(Key::new(namespace, name))],
            // The kind of the parent is in namespaces or not; only one of the two can be meant.
            Some((name, None)) if key.namespace.is_empty() => vec![Reference::Named(Key::new("", name))],
            Some((name, None)) => [&*key.namespace, ""]
                .into_iter()
                .map(|space| Reference::Named(Key::new(space, name)))
                .collect(),
        }
    }

    /// Returns the place of a child among those that were made with it.
    pub(super) fn order(&self) -> usize {
        self.annotations.get(ORDER).and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

/// Returns the related objects that the object at `key` names in these fields, [`MAX_NAMED`] at most. They are in its namespace,
/// or in none: who may write an object of a namespace is not shown what is in another one. An object of no namespace may name
/// `namespace/name`.
pub(super) fn named_by(object: &Value, key: &Key, fields: &[FieldPath]) -> Vec<Reference> {
    let mut all = Vec::new();
    for name in fields.iter().flat_map(|field| field.texts(object)).take(MAX_NAMED) {
        let own = |namespace: &str, name: &str| Reference::Own(Key::new(namespace, name));
        match name.split_once('/').filter(|_| key.namespace.is_empty()) {
            Some((namespace, name)) => all.push(own(namespace, name)),
            None if key.namespace.is_empty() => all.push(own("", name)),
            None => all.extend([own(&key.namespace, name), own("", name)]),
        }
    }
    all
}

/// Returns the object as JSON.
pub(super) fn value(item: &Item) -> Value {
    serde_json::from_slice(item.object().unwrap_or_default()).unwrap_or_default()
}

/// Returns the checksum of what people and controllers write into an object.
pub(super) fn checksum(object: &Value, with_status: bool) -> Checksum {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["resourceVersion", "managedFields", "generation"] {
            metadata.remove(field);
        }
    }
    if let Some(fields) = object.as_object_mut().filter(|_| !with_status) {
        fields.remove("status");
    }
    Checksum::of(&object)
}

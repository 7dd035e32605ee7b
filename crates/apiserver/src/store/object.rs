//! One version of one object: its serialised bytes and what it is selected by.

use std::sync::Arc;

use bytes::Bytes;
use objects::selector::{FieldPath, Selectable};
use serde_json::{Map, Value};

/// The key of an object in its table: `namespace/name`, or `name` for objects without a namespace.
///
/// Keys are compared byte by byte, which is the order of lists.
pub type Key = Box<str>;

/// Returns the key of an object.
pub fn key_of(namespace: Option<&str>, name: &str) -> Key {
    match namespace {
        Some(namespace) => format!("{namespace}/{name}").into_boxed_str(),
        None => name.into(),
    }
}

/// Returns namespace and name of a key; the namespace is empty when there is none.
pub fn split_key(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}

/// One version of an object, as it is stored.
#[derive(Debug)]
pub struct Stored {
    /// Where it is in its table.
    pub key: Key,
    /// The revision that made this version.
    pub revision: u64,
    /// The object as JSON.
    pub body: Bytes,
    /// Where in `body` the digits of the revision begin.
    hole: u32,
    /// Where in `body` the fields after kind and version begin.
    head: u32,
    /// The object's identity.
    pub uid: Box<str>,
    /// Labels, by name.
    pub labels: Box<[(Arc<str>, Arc<str>)]>,
    /// The values of the fields that its kind can be selected by, in the order of the kind's list.
    pub fields: Box<[Box<str>]>,
    /// The identities of its owners.
    pub owners: Box<[Box<str>]>,
    /// Whether it waits for its deletion.
    pub deleting: bool,
}

impl Stored {
    /// Returns the object decoded.
    pub fn value(&self) -> Value {
        objects::decode::read(&self.body).unwrap_or(Value::Null)
    }

    /// Returns the object's name.
    pub fn name(&self) -> &str {
        split_key(&self.key).1
    }

    /// Returns the object's namespace, empty if it has none.
    pub fn namespace(&self) -> &str {
        split_key(&self.key).0
    }

    /// Returns the bytes of the object with another revision written into them.
    pub fn body_at(&self, revision: u64) -> Bytes {
        let start = self.hole as usize;
        let end = start + self.revision.to_string().len();
        let (head, tail) = (self.body.get(..start), self.body.get(end..));
        splice(head.unwrap_or_default(), revision, tail.unwrap_or_default())
    }

    /// Returns what follows `{` when the object is written without kind and version, as items of lists are.
    pub fn without_type(&self) -> Bytes {
        self.body.slice((self.head as usize).min(self.body.len())..)
    }

    /// Returns this version as the one that `revision` made.
    pub(super) fn at(&self, revision: u64) -> Stored {
        Stored {
            key: self.key.clone(),
            revision,
            body: self.body_at(revision),
            hole: self.hole,
            head: self.head,
            uid: self.uid.clone(),
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            owners: self.owners.clone(),
            deleting: self.deleting,
        }
    }
}

impl Selectable for Stored {
    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(n, _)| &**n == name).map(|(_, value)| &**value)
    }

    fn field(&self, index: usize) -> &str {
        self.fields.get(index).map_or("", |value| value)
    }

    fn name(&self) -> &str {
        Stored::name(self)
    }

    fn namespace(&self) -> &str {
        Stored::namespace(self)
    }
}

fn splice(head: &[u8], revision: u64, tail: &[u8]) -> Bytes {
    let digits = revision.to_string();
    let mut body = Vec::with_capacity(head.len() + digits.len() + tail.len());
    body.extend_from_slice(head);
    body.extend_from_slice(digits.as_bytes());
    body.extend_from_slice(tail);
    Bytes::from(body)
}

/// An object that is ready to be stored: everything but the revision is written.
#[derive(Debug)]
pub struct Encoded {
    bytes: Vec<u8>,
    hole: usize,
    head: usize,
    uid: Box<str>,
    labels: Box<[(Arc<str>, Arc<str>)]>,
    fields: Box<[Box<str>]>,
    owners: Box<[Box<str>]>,
    deleting: bool,
}

impl Encoded {
    /// Serialises `object`; `fields` are the paths that objects of its kind can be selected by.
    pub fn new(object: &Value, fields: &[FieldPath]) -> Encoded {
        Encoded::owned(object, None, fields)
    }

    /// Serialises `object`, which has no managed fields, with these.
    pub fn owned(object: &Value, managed: Option<&[u8]>, fields: &[FieldPath]) -> Encoded {
        let metadata = object.get("metadata").and_then(Value::as_object);
        let (bytes, hole, head) = serialise(object, metadata, managed);
        Encoded {
            bytes,
            hole,
            head,
            uid: metadata.and_then(|m| m.get("uid")).and_then(Value::as_str).unwrap_or_default().into(),
            labels: labels_of(metadata),
            fields: fields.iter().map(|field| field.read(object).into_boxed_str()).collect(),
            owners: owners_of(metadata),
            deleting: metadata.is_some_and(|m| m.get("deletionTimestamp").is_some_and(|t| !t.is_null())),
        }
    }

    /// Returns how many bytes the object has without its revision.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there are no bytes; never true.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns whether the stored version has the same bytes but for the revision.
    pub(super) fn same_as(&self, stored: &Stored) -> bool {
        let end = stored.hole as usize + stored.revision.to_string().len();
        stored.hole as usize == self.hole
            && stored.body.get(..self.hole) == self.bytes.get(..self.hole)
            && stored.body.get(end..) == self.bytes.get(self.hole..)
    }

    pub(crate) fn into_stored(self, key: Key, revision: u64) -> Stored {
        let (head, tail) = self.bytes.split_at(self.hole.min(self.bytes.len()));
        Stored {
            key,
            revision,
            body: splice(head, revision, tail),
            hole: u32::try_from(self.hole).unwrap_or(0),
            head: u32::try_from(self.head).unwrap_or(0),
            uid: self.uid,
            labels: self.labels,
            fields: self.fields,
            owners: self.owners,
            deleting: self.deleting,
        }
    }
}

/// Writes the object with an empty `metadata.resourceVersion`: kind, version and metadata first.
///
/// Returns the bytes, where the digits belong, and where the metadata begins.
fn serialise(
    object: &Value,
    metadata: Option<&Map<String, Value>>,
    managed: Option<&[u8]>,
) -> (Vec<u8>, usize, usize) {
    let mut bytes = Vec::with_capacity(1_024 + managed.map_or(0, <[u8]>::len));
    bytes.push(b'{');
    for name in ["kind", "apiVersion"] {
        if let Some(value) = object.get(name) {
            write_field(&mut bytes, name, value);
        }
    }
    comma(&mut bytes);
    let head = bytes.len();
    let hole = write_metadata(&mut bytes, metadata, managed);
    for (name, value) in object.as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
            write_field(&mut bytes, name, value);
        }
    }
    bytes.push(b'}');
    (bytes, hole, head)
}

fn write_metadata(
    bytes: &mut Vec<u8>,
    metadata: Option<&Map<String, Value>>,
    mut managed: Option<&[u8]>,
) -> usize {
    bytes.extend_from_slice(b"\"metadata\":{");
    let mut hole = None;
    for (name, value) in metadata.into_iter().flatten() {
        if name.as_str() > "managedFields" {
            write_managed(bytes, managed.take());
        }
        if name.as_str() >= "resourceVersion" && hole.is_none() {
            hole = Some(write_hole(bytes));
        }
        if name != "resourceVersion" {
            write_field(bytes, name, value);
        }
    }
    write_managed(bytes, managed);
    let hole = hole.unwrap_or_else(|| write_hole(bytes));
    bytes.push(b'}');
    hole
}

fn write_managed(bytes: &mut Vec<u8>, managed: Option<&[u8]>) {
    if let Some(managed) = managed {
        comma(bytes);
        bytes.extend_from_slice(b"\"managedFields\":");
        bytes.extend_from_slice(managed);
    }
}

fn write_hole(bytes: &mut Vec<u8>) -> usize {
    comma(bytes);
    bytes.extend_from_slice(b"\"resourceVersion\":\"");
    let hole = bytes.len();
    bytes.push(b'"');
    hole
}

fn write_field(bytes: &mut Vec<u8>, name: &str, value: &Value) {
    comma(bytes);
    // Writing JSON values into memory cannot fail.
    let _ = serde_json::to_writer(&mut *bytes, name);
    bytes.push(b':');
    let _ = serde_json::to_writer(&mut *bytes, value);
}

fn comma(bytes: &mut Vec<u8>) {
    if bytes.last() != Some(&b'{') {
        bytes.push(b',');
    }
}

fn labels_of(metadata: Option<&Map<String, Value>>) -> Box<[(Arc<str>, Arc<str>)]> {
    let labels = metadata.and_then(|m| m.get("labels")).and_then(Value::as_object);
    labels
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((Arc::from(name.as_str()), Arc::from(value.as_str()?))))
        .collect()
}

fn owners_of(metadata: Option<&Map<String, Value>>) -> Box<[Box<str>]> {
    let owners = metadata.and_then(|m| m.get("ownerReferences")).and_then(Value::as_array);
    owners.into_iter().flatten().filter_map(|owner| owner.get("uid")?.as_str().map(Into::into)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_revision_is_written_into_the_serialised_object() {
        for object in [
            json!({"a": 1, "metadata": {"name": "x", "uid": "u"}, "spec": {}}),
            json!({"a": 1, "metadata": {"name": "x", "resourceVersion": "99"}}),
            json!({"metadata": {}}),
            json!({"zzz": true}),
            json!({}),
        ] {
            let stored = Encoded::new(&object, &[]).into_stored("x".into(), 17);
            let mut expected = object.clone();
            expected["metadata"]["resourceVersion"] = json!("17");
            assert_eq!(stored.value(), expected);
            expected["metadata"]["resourceVersion"] = json!("1234");
            assert_eq!(stored.at(1234).value(), expected);
            assert!(Encoded::new(&object, &[]).same_as(&stored));
        }
        let stored = Encoded::new(&json!({"kind": "A", "apiVersion": "b", "metadata": {}, "c": 1}), &[]);
        let bytes = stored.into_stored("x".into(), 3).without_type();
        assert_eq!(bytes, r#""metadata":{"resourceVersion":"3"},"c":1}"#);
    }

    #[test]
    fn selected_fields_are_read_as_text() {
        let object = json!({"spec": {"nodeName": "n1", "hostNetwork": true}});
        let fields =
            [FieldPath::new("spec.nodeName"), FieldPath::new("spec.hostNetwork"), FieldPath::new("a.b")];
        let stored = Encoded::new(&object, &fields).into_stored("x".into(), 1);
        assert_eq!(stored.fields.iter().map(|f| &**f).collect::<Vec<_>>(), ["n1", "true", ""]);
    }
}

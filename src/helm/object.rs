//! The objects of a manifest.

use std::collections::BTreeMap;

use chart::manifest::{self, Manifest, RESOURCE_POLICY};
use serde_json::{Map, Value};

use crate::cluster::Resource;

/// How deeply lists of objects may be packed into each other.
const MAX_LISTS: usize = 8;

/// One object that a release owns.
#[derive(Clone, Debug)]
pub(super) struct Object {
    /// The template it comes from.
    pub(super) path: String,
    /// `apiVersion`
    pub(super) api_version: String,
    /// `kind`
    pub(super) kind: String,
    /// `metadata.name`
    pub(super) name: String,
    /// The namespace that the chart writes.
    pub(super) namespace: Option<String>,
    /// The whole object, as it was rendered.
    pub(super) value: Value,
}

/// The identity of an object. The version of its group is no part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// What a chart rendered to is not an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// Something that every object has is missing.
    #[error("{path}: an object has no {field}{hint}")]
    Missing {
        /// The path of the template that the object was rendered from.
        path: String,
        /// What is missing.
        field: &'static str,
        /// Which object it is, as far as that is known.
        hint: String,
    },
    /// A name that can't stand in a path.
    #[error("{path}: {kind} has the name {name:?}, which no object can have")]
    Name {
        /// The path of the template that the object was rendered from.
        path: String,
        /// The kind of the object, such as `ConfigMap`.
        kind: String,
        /// The `metadata.name` that the template gives it.
        name: String,
    },
    /// The document is not a map, or not YAML.
    #[error("{path}: {problem}")]
    Document {
        /// The path of the template that the object was rendered from.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// One object twice.
    #[error("{kind} {name} is rendered twice, by {first} and by {second}")]
    Duplicate {
        /// The kind of the object, such as `ConfigMap`.
        kind: String,
        /// Namespace and name.
        name: String,
        /// The template of the first.
        first: String,
        /// The template of the second.
        second: String,
    },
}

impl Object {
    /// Returns the identity of the object; `namespace` is where objects without one go.
    pub(super) fn key(&self, namespace: &str) -> Key {
        Key {
            group: self.api_version.rsplit_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone().unwrap_or_else(|| namespace.to_owned()),
            name: self.name.clone(),
        }
    }

    /// Reports whether it stays when it is no longer part of the release.
    pub(super) fn is_kept(&self) -> bool {
        is_kept(&self.value)
    }

    fn read(path: &str, value: Value) -> Result<Self, ObjectError> {
        let text =
            |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let missing = |field: &'static str| {
            let hint = match (kind.as_str(), name.as_str()) {
                ("", "") => String::new(),
                (kind, "") => format!(" (kind {kind})"),
                (_, name) => format!(" (name {name})"),
            };
            ObjectError::Missing { path: path.to_owned(), field, hint }
        };
        if kind.is_empty() {
            return Err(missing("kind"));
        }
        if api_version.is_empty() {
            return Err(missing("apiVersion"));
        }
        if name.is_empty() {
            return Err(missing("metadata.name"));
        }
        if name.contains(['/', '%', '?', '#']) || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(ObjectError::Name { path: path.to_owned(), kind, name });
        }
        let namespace = Some(text("/metadata/namespace")).filter(|namespace| !namespace.is_empty());
        Ok(Self { path: path.to_owned(), api_version, kind, name, namespace, value })
    }
}

/// Returns the `uid` of an object that was read; an empty text if it has none.
pub(super) fn uid(object: &Value) -> &str {
    object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default()
}

/// Reports whether an annotation keeps `object`.
pub(super) fn is_kept(object: &Value) -> bool {
    object
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(RESOURCE_POLICY))
        .and_then(Value::as_str)
        .is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
}

/// Returns the objects of rendered documents, lists taken apart.
pub(super) fn of_manifests(manifests: &[Manifest]) -> Result<Vec<Object>, ObjectError> {
    let mut objects = Vec::new();
    for manifest in manifests {
        of_document(&manifest.path, &joined(&manifest.content), &mut objects)?;
    }
    Ok(objects)
}

/// Returns the objects of the manifest of a record. What can't be read is left out:
/// it was never applied.
pub(super) fn of_record(text: &str) -> Vec<Object> {
    let mut objects = Vec::new();
    for document in manifest::split_joined(text) {
        let path = document.lines().find_map(|line| line.strip_prefix("# Source: ")).unwrap_or_default();
        // An object that the cluster could not have taken is none that it has.
        let _ = of_document(path, &joined(document), &mut objects);
    }
    objects
}

/// Returns a document as it stands in the manifest of a release: with the end of its last line, which may belong to a text.
fn joined(document: &str) -> String {
    format!("{document}\n")
}

/// Returns the objects of the document of a hook: one, or those of a list. There is at least one. It is applied without the end of
/// its last line, as Helm does it.
pub(super) fn of_hook(path: &str, text: &str) -> Result<Vec<Object>, ObjectError> {
    let mut objects = Vec::new();
    of_document(path, text, &mut objects)?;
    if objects.is_empty() {
        return Err(ObjectError::Missing { path: path.to_owned(), field: "content", hint: String::new() });
    }
    Ok(objects)
}

fn of_document(path: &str, text: &str, objects: &mut Vec<Object>) -> Result<(), ObjectError> {
    let value = values::yaml::parse(text)
        .map_err(|error| ObjectError::Document { path: path.to_owned(), problem: error.to_string() })?;
    flatten(path, value, 0, objects)
}

fn flatten(path: &str, mut value: Value, depth: usize, objects: &mut Vec<Object>) -> Result<(), ObjectError> {
    let problem =
        |problem: &str| ObjectError::Document { path: path.to_owned(), problem: problem.to_owned() };
    if value.is_null() {
        return Ok(());
    }
    if !value.is_object() {
        return Err(problem("a document is not an object"));
    }
    let is_list = value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    if let (true, Some(Value::Array(items))) = (is_list, value.get_mut("items").map(Value::take)) {
        if depth >= MAX_LISTS {
            return Err(problem("lists are packed into each other too deeply"));
        }
        for item in items {
            flatten(path, item, depth + 1, objects)?;
        }
        return Ok(());
    }
    objects.push(Object::read(path, value)?);
    Ok(())
}

/// Checks that no object is there twice.
pub(super) fn check_duplicates(objects: &[Object], namespace: &str) -> Result<(), ObjectError> {
    let mut seen: BTreeMap<Key, &Object> = BTreeMap::new();
    for object in objects {
        if let Some(first) = seen.insert(object.key(namespace), object) {
            return Err(ObjectError::Duplicate {
                kind: object.kind.clone(),
                name: format!("{}/{}", object.namespace.as_deref().unwrap_or(namespace), object.name),
                first: first.path.clone(),
                second: object.path.clone(),
            });
        }
    }
    Ok(())
}

/// The annotation with the release that owns an object.
const OWNER: &str = "meta.helm.sh/release-name";

/// The annotation with the namespace of that release.
const OWNER_NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// The label that all objects of releases carry.
pub(super) const MANAGED: (&str, &str) = ("app.kubernetes.io/managed-by", "Helm");

/// Adds the marks by which Helm knows its objects.
pub(super) fn mark(value: &mut Value, release: &str, namespace: &str) {
    let (label, text) = MANAGED;
    set(value, "labels", label, text);
    set(value, "annotations", OWNER, release);
    set(value, "annotations", OWNER_NAMESPACE, namespace);
}

/// Reports whether the marks of `object` name another release. One without marks is of none.
pub(super) fn is_of_another(object: &Value, release: &str, namespace: &str) -> bool {
    other_owner(object, release, namespace).is_some()
}

/// Returns the release that the marks of `object` name, as `namespace/name`, if it is another.
pub(super) fn other_owner(object: &Value, release: &str, namespace: &str) -> Option<String> {
    let annotations = object.pointer("/metadata/annotations");
    let mark = |name: &str| annotations.and_then(|marks| marks.get(name)).and_then(Value::as_str);
    let (owner, owner_namespace) = (mark(OWNER), mark(OWNER_NAMESPACE));
    let is_other = owner.is_some_and(|owner| owner != release)
        || owner_namespace.is_some_and(|owner| owner != namespace);
    is_other.then(|| format!("{}/{}", owner_namespace.unwrap_or("?"), owner.unwrap_or("?")))
}

/// Reports whether annotations name a release as the one that an object belongs to.
pub(super) fn is_of(annotations: &BTreeMap<String, String>, release: &str, namespace: &str) -> bool {
    let is = |name: &str, text: &str| annotations.get(name).is_some_and(|mark| mark == text);
    is(OWNER, release) && is(OWNER_NAMESPACE, namespace)
}

/// Returns what is sent for an object of a release: with Helm's marks and its namespace.
pub(super) fn wanted(object: &Object, resource: &Resource, release: &str, namespace: &str) -> Value {
    let mut wanted = object.value.clone();
    mark(&mut wanted, release, namespace);
    if let Some(metadata) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
        if resource.namespaced {
            let namespace = object.namespace.as_deref().unwrap_or(namespace);
            metadata.insert("namespace".to_owned(), namespace.into());
        } else {
            metadata.remove("namespace");
        }
    }
    wanted
}

/// Returns an object with its fields where the API server keeps them: texts of a Secret are among its data. The values
/// are not as it keeps them.
pub(super) fn stored_form(wanted: &Value) -> Value {
    let mut stored = wanted.clone();
    if let (Some(Value::Object(texts)), Some(object)) = (wanted.get("stringData"), stored.as_object_mut())
        && let Some(data) = inner(object, "data")
    {
        data.extend(texts.clone());
    }
    stored
}

/// Adds labels to an object.
pub(super) fn label(value: &mut Value, labels: &BTreeMap<String, String>) {
    for (key, text) in labels {
        set(value, "labels", key, text);
    }
}

/// Sets one entry of a map below `metadata`; what stands in the way is replaced.
fn set(value: &mut Value, map: &str, key: &str, text: &str) {
    let entries = value.as_object_mut().and_then(|object| inner(object, "metadata"));
    if let Some(entries) = entries.and_then(|metadata| inner(metadata, map)) {
        entries.insert(key.to_owned(), text.into());
    }
}

fn inner<'o>(object: &'o mut Map<String, Value>, key: &str) -> Option<&'o mut Map<String, Value>> {
    let slot = object.entry(key).or_insert(Value::Null);
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut()
}

/// Labels the documents of a render, which rewrites them.
///
/// Documents that hold no object stay as they are.
pub(super) fn label_manifests(
    manifests: &mut [Manifest],
    labels: &BTreeMap<String, String>,
) -> Result<(), ObjectError> {
    if labels.is_empty() {
        return Ok(());
    }
    for manifest in manifests {
        let mut value = values::yaml::parse(&joined(&manifest.content)).map_err(|error| {
            ObjectError::Document { path: manifest.path.clone(), problem: error.to_string() }
        })?;
        if value.is_object() {
            label_all(&mut value, labels);
            let text = values::yaml::emit(&value);
            manifest.content = text.strip_suffix('\n').unwrap_or(&text).into();
        }
    }
    Ok(())
}

fn label_all(value: &mut Value, labels: &BTreeMap<String, String>) {
    let is_list = value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    match value.get_mut("items") {
        Some(Value::Array(items)) if is_list => {
            for item in items.iter_mut().filter(|item| item.is_object()) {
                label(item, labels);
            }
        }
        Some(_) | None => label(value, labels),
    }
}

/// Returns manifests with labels.
pub(super) fn labelled(
    mut manifests: Vec<Manifest>,
    labels: &BTreeMap<String, String>,
) -> Result<Vec<Manifest>, ObjectError> {
    label_manifests(&mut manifests, labels)?;
    Ok(manifests)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifest(path: &str, content: &str) -> Manifest {
        Manifest {
            path: path.to_owned(),
            content: content.into(),
            head: manifest::Head::read(content.as_bytes()).unwrap(),
        }
    }

    fn outcome(content: &str) -> String {
        let objects = of_manifests(&[manifest("t.yaml", content)]);
        match objects.and_then(|objects| check_duplicates(&objects, "ns").map(|()| objects)) {
            Ok(objects) => objects
                .iter()
                .map(|object| {
                    let key = object.key("ns");
                    format!("{}/{}/{}", key.namespace, key.kind, key.name)
                })
                .collect::<Vec<_>>()
                .join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn documents_become_objects_and_say_what_they_lack() {
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}";
        for (content, expected) in [
            ("# nothing", String::new()),
            (map, "ns/ConfigMap/a".to_owned()),
            ("kind: X\napiVersion: v1\nmetadata: {name: b, namespace: other}", "other/X/b".to_owned()),
            ("apiVersion: v1\nmetadata: {name: b}", "t.yaml: an object has no kind (name b)".to_owned()),
            ("kind: X\nmetadata: {name: b}", "t.yaml: an object has no apiVersion (name b)".to_owned()),
            ("kind: X\napiVersion: v1", "t.yaml: an object has no metadata.name (kind X)".to_owned()),
            (
                "kind: X\napiVersion: v1\nmetadata: {name: ../x}",
                "t.yaml: X has the name \"../x\", which no object can have".to_owned(),
            ),
            (
                "kind: List\napiVersion: v1\nitems: [{apiVersion: v1, kind: A, metadata: {name: x}}, {apiVersion: v1, kind: B, metadata: {name: z}}]",
                "ns/A/x ns/B/z".to_owned(),
            ),
            (
                "kind: List\napiVersion: v1\nitems: [{apiVersion: a/v1, kind: A, metadata: {name: x}}, {apiVersion: a/v2, kind: A, metadata: {name: x, namespace: ns}}]",
                "A ns/x is rendered twice, by t.yaml and by t.yaml".to_owned(),
            ),
        ] {
            assert_eq!(outcome(content), expected, "{content}");
        }
    }

    #[test]
    fn marks_and_labels_replace_what_is_in_their_way() {
        let mut value = json!({"metadata": {"labels": null, "annotations": {"a": "b"}}});
        mark(&mut value, "rel", "ns");
        label(&mut value, &[("heritage".to_owned(), "addon-operator".to_owned())].into());
        assert_eq!(
            value,
            json!({"metadata": {
                "labels": {"app.kubernetes.io/managed-by": "Helm", "heritage": "addon-operator"},
                "annotations": {"a": "b", "meta.helm.sh/release-name": "rel", "meta.helm.sh/release-namespace": "ns"},
            }})
        );
    }

    #[test]
    fn labelled_documents_are_written_again() {
        let mut manifests = [manifest("t", "kind: A\n# c\nmetadata: {name: x}"), manifest("u", "# only\n")];
        label_manifests(&mut manifests, &[("l".to_owned(), "v".to_owned())].into()).unwrap();
        assert_eq!(&*manifests[0].content, "kind: A\nmetadata:\n  labels:\n    l: v\n  name: x");
        assert_eq!(&*manifests[1].content, "# only\n");
    }

    #[test]
    fn a_text_at_the_end_of_a_document_keeps_the_end_of_its_last_line() {
        for (written, text) in
            [("|\n    x", "x\n"), (">\n    x\n    y", "x y\n"), ("|-\n    x", "x"), ("\"x\\n\\n\"", "x\n\n")]
        {
            let document =
                format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData:\n  k: {written}");
            let mut manifests = [manifest("t.yaml", &document)];
            let read = |objects: &[Object]| objects[0].value["stringData"]["k"].clone();
            assert_eq!(read(&of_manifests(&manifests).unwrap()), text, "{written}");
            label_manifests(&mut manifests, &[("l".to_owned(), "v".to_owned())].into()).unwrap();
            assert_eq!(read(&of_manifests(&manifests).unwrap()), text, "{written}");
            assert_eq!(read(&of_record(&manifest::join(&manifests))), text, "{written}");
        }
    }
}

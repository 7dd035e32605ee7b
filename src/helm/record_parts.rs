//! What the Secret that Helm reads says of a record that does not fit it. No I/O.

use chart::record::{MAX_PARTS, Parts, SplitRecord};
use serde_json::{Map, Value, json};

use super::object;

/// The label of a head: its revision, how many parts it has, and their digest. Helm carries labels on to revisions that it writes
/// later, for which it says nothing then.
pub(super) const PARTS: &str = "addon-operator.io/record-parts";

/// What the label says while a record that was whole gets parts: it still is.
pub(super) const COMING: &str = "coming";

/// A record as Secrets hold it.
pub(super) enum EncodedRecord {
    /// One holds it.
    Whole(String),
    /// One holds what Helm reads, others the rest.
    Split(SplitRecord),
}

impl EncodedRecord {
    /// Returns the data of the Secret that Helm reads.
    pub(super) fn data(&self) -> &str {
        match self {
            Self::Whole(data) => data,
            Self::Split(split) => &split.head,
        }
    }

    /// Returns which parts there are besides.
    pub(super) fn parts(&self) -> Option<Parts> {
        match self {
            Self::Whole(_) => None,
            Self::Split(split) => Some(split.reference()),
        }
    }
}

/// Returns which parts the labels of a record say that it has; `None` if it is whole.
///
/// # Errors
///
/// There are more than any record has.
pub(super) fn parts_of(labels: &Map<String, Value>, version: u32) -> Result<Option<Parts>, String> {
    let Some(label) = labels.get(PARTS).and_then(Value::as_str) else { return Ok(None) };
    let mut fields = label.splitn(3, '.');
    let (revision, count, digest) = (fields.next(), fields.next(), fields.next());
    if revision != Some(version.to_string().as_str()) {
        return Ok(None);
    }
    let count = count.and_then(|count| count.parse().ok()).filter(|count| (1..=MAX_PARTS).contains(count));
    let (Some(count), Some(digest)) = (count, digest) else {
        return Err(format!(
            "the label {PARTS} should be {version}.COUNT.DIGEST with a count from 1 to {MAX_PARTS}; put back what it said, \
             or a new revision takes its place"
        ));
    };
    Ok(Some(Parts { count, digest: digest.to_owned() }))
}

/// Returns the label that says which parts a revision has.
pub(super) fn label(version: u32, parts: &Parts) -> String {
    format!("{version}.{}.{}", parts.count, parts.digest)
}

/// Returns what stands for a manifest that is too large: the names of its objects.
pub(super) fn stubs(manifest: &str) -> String {
    let mut text = String::new();
    for object in object::of_record(manifest) {
        let mut metadata = Map::from_iter([("name".to_owned(), Value::from(object.name.as_str()))]);
        metadata.extend(object.namespace.iter().map(|name| ("namespace".to_owned(), name.as_str().into())));
        if object.is_kept() {
            metadata.insert("annotations".to_owned(), json!({ chart::manifest::RESOURCE_POLICY: "keep" }));
        }
        let stub = json!({"apiVersion": object.api_version, "kind": object.kind, "metadata": metadata});
        chart::manifest::push(&mut text, &object.path, values::yaml::emit(&stub).trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(parts: &str) -> Map<String, Value> {
        Map::from_iter([(PARTS.to_owned(), parts.into())])
    }

    #[test]
    fn a_label_says_which_parts_its_own_revision_has() {
        let parts = Parts { count: 2, digest: "ab".to_owned() };
        assert_eq!(parts_of(&labels(&label(3, &parts)), 3), Ok(Some(parts.clone())));
        assert_eq!(parts_of(&labels(&label(3, &parts)), 4), Ok(None), "helm carried it on");
        assert_eq!(parts_of(&Map::new(), 3), Ok(None));
        assert_eq!(parts_of(&labels(COMING), 3), Ok(None), "it is whole as yet");
        assert_eq!(parts_of(&labels("3.32.ab"), 3).unwrap().unwrap().count, MAX_PARTS);
        for wrong in ["3.33.ab", "3.0.ab", "3.x.ab", "3.2", "3"] {
            let error = parts_of(&labels(wrong), 3).unwrap_err();
            assert!(error.contains("should be 3.COUNT.DIGEST"), "{wrong}: {error}");
        }
    }

    #[test]
    fn names_of_objects_stand_for_a_manifest() {
        let manifest = "---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: {helm.sh/resource-policy: keep, x: y}\ndata: {k: v}\n---\n# Source: web/templates/b.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b, namespace: ns}\nspec: {}\n";
        let text = stubs(manifest);
        assert!(!text.contains("\ndata") && !text.contains("spec"), "{text}");
        let objects = object::of_record(&text);
        let keys: Vec<_> = objects.iter().map(|object| object.key("own")).collect();
        let expected: Vec<_> = object::of_record(manifest).iter().map(|object| object.key("own")).collect();
        assert_eq!(keys, expected);
        assert_eq!(objects.iter().map(object::Object::is_kept).collect::<Vec<_>>(), [true, false]);
        assert_eq!(objects.first().unwrap().path, "web/templates/a.yaml");
    }
}

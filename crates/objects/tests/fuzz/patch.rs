//! Applies arbitrary patches to arbitrary documents: a document and a patch, separated by a line break.

use objects::managed_fields::{Change, FieldSet, apply, create, update};
use objects::patch::{json, merge, strategic};
use objects::types::{Shape, name_of_kind};
use serde_json::Value;

/// Applies the second half to the first in all ways.
pub(crate) fn run(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let (document, patch) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let Ok(document) = serde_json::from_slice::<Value>(document) else {
        return;
    };
    if let Ok(operations) = json::parse(patch) {
        let _ = json::apply(document.clone(), &operations);
    }
    let Ok(patch) = serde_json::from_slice::<Value>(patch) else {
        return;
    };
    let merged = merge::apply(document.clone(), patch.clone());
    let _ = merge::diff(&document, &merged);
    let Some(name) = name_of_kind("apps", "v1", "Deployment") else {
        return;
    };
    let shape = Shape::Named(name);
    let _ = strategic::apply(document.clone(), patch.clone(), &shape);
    let _ = strategic::two_way(&document, &patch, &shape);
    let _ = strategic::three_way(&document, &patch, &merged, &shape);
    if let Some(restored) = strategic::with_keys(&[&document], &patch, &merged, &shape) {
        assert_ne!(restored, merged);
    }
    let ignored = FieldSet::of_fields(&["status"]);
    let now = "2026-01-01T00:00:00Z";
    let change = Change {
        shape: &shape,
        api_version: "apps/v1",
        subresource: "",
        manager: "fuzz",
        now,
        ignored: &ignored,
    };
    let _ = apply(Some(&document), &patch, &change, true);
    let mut new = merged;
    update(Some(&document), &mut new, &change);
    owners_agree(document, &change);
}

/// The short way to the owner of a new object leads where the long one does.
fn owners_agree(mut object: Value, change: &Change<'_>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    metadata.remove("managedFields");
    let short = create(&object, change).map(|bytes| serde_json::from_slice(&bytes).expect("owners are JSON"));
    update(None, &mut object, change);
    assert_eq!(short.as_ref(), object.pointer("/metadata/managedFields"), "{object}");
}

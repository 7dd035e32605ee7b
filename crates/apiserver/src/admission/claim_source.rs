//! What a claim for a volume begins with: an older and a newer field say the same.

use serde_json::{Map, Value, json};

use crate::fields::{has, text};

/// Drops sources that a claim cannot have, and fills in the field that is absent. Sources that were there before stay.
pub(super) fn settle(old: Option<&Value>, claim: &mut Value) {
    const OLDER: &str = "dataSource";
    const NEWER: &str = "dataSourceRef";
    let had = |field: &str| old.is_some_and(|old| has(old, &format!("spec.{field}")));
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else { return };
    spec.retain(|field, value| !(matches!(field.as_str(), OLDER | NEWER) && value.is_null()));
    // Sources in other namespaces are a feature that is off.
    if spec.get(NEWER).is_some_and(|source| !text(source, "namespace").is_empty()) && !had(NEWER) {
        spec.remove(NEWER);
    }
    if !had(OLDER) && !had(NEWER) && !spec.contains_key(NEWER) && !spec.get(OLDER).is_some_and(is_usual) {
        spec.remove(OLDER);
    }
    fill_in(spec, OLDER, NEWER);
    fill_in(spec, NEWER, OLDER);
}

/// Returns whether a source is one that the older field takes alone: another claim, or a snapshot.
fn is_usual(source: &Value) -> bool {
    matches!(
        (text(source, "apiGroup"), text(source, "kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}

fn fill_in(spec: &mut Map<String, Value>, from: &str, to: &str) {
    let Some(source) = spec.get(from).filter(|source| text(source, "namespace").is_empty()) else { return };
    if !spec.contains_key(to) {
        let group = source.get("apiGroup").cloned().unwrap_or_default();
        let copy = json!({"apiGroup": group, "kind": text(source, "kind"), "name": text(source, "name")});
        spec.insert(to.to_owned(), copy);
    }
}

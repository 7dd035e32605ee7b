//! Templates of pods, and the hashes that tell them apart.

use serde_json::Value;

/// Returns ten characters that change with a template.
pub(super) fn hash(template: &Value) -> String {
    hash_after(template, 0)
}

/// Returns others for each time that a name made with them was taken.
pub(super) fn hash_after(template: &Value, collisions: i64) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut template = template.clone();
    // These come and go as a template is copied from one object into another.
    if let Some(fields) = template.as_object_mut() {
        fields.remove("$patch");
    }
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("creationTimestamp");
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.remove("pod-template-hash");
        }
    }
    let mut text = template.to_string();
    if collisions > 0 {
        text.push_str(&collisions.to_string());
    }
    let mut bits = crate::fingerprint::fingerprint(text.as_bytes());
    let size = ALPHABET.len() as u64;
    let mut hash = String::new();
    while hash.len() < 10 {
        let index = usize::try_from(bits % size).unwrap_or(0);
        hash.extend(ALPHABET.get(index).map(|&byte| char::from(byte)));
        bits /= size;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn copies_of_a_template_have_one_hash() {
        let plain = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}});
        let copy = json!({
            "metadata": {"labels": {"a": "b", "pod-template-hash": "h"}, "creationTimestamp": null},
            "spec": {"x": 1}, "$patch": "replace",
        });
        assert_eq!(hash(&plain), hash(&copy));
        assert_ne!(hash(&plain), hash(&json!({"metadata": {"labels": {"a": "b"}}, "spec": {"x": 2}})));
    }
}

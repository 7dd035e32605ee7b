//! Secrets: the texts that are written into them, and the data that is read from them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Moves the texts of a Secret into its data. What is no text stays, so that it is refused.
pub fn fold_texts(secret: &mut Value) {
    let Some(fields) = secret.as_object_mut() else { return };
    let Some(Value::Object(texts)) = fields.get("stringData") else { return };
    if texts.values().any(|text| !text.is_string()) {
        return;
    }
    let texts = texts.clone();
    if !matches!(fields.get("data"), None | Some(Value::Null | Value::Object(_))) {
        return;
    }
    fields.remove("stringData");
    if texts.is_empty() {
        return;
    }
    let data = fields.entry("data").or_insert(Value::Null);
    if data.is_null() {
        *data = Map::new().into();
    }
    if let Some(data) = data.as_object_mut() {
        let encoded = |text: &Value| STANDARD.encode(text.as_str().unwrap_or_default()).into();
        data.extend(texts.iter().map(|(key, text)| (key.clone(), encoded(text))));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_of_a_secret_are_applied_as_its_data() {
        for (secret, expected) in [
            (
                json!({"stringData": {"a": "x"}, "data": {"a": "AA==", "b": "AA=="}}),
                json!({"data": {"a": "eA==", "b": "AA=="}}),
            ),
            (json!({"stringData": {"a": "x"}}), json!({"data": {"a": "eA=="}})),
            (json!({"stringData": {"a": "x"}, "data": null}), json!({"data": {"a": "eA=="}})),
            (json!({"stringData": {}}), json!({})),
            (json!({"stringData": {"a": 5}}), json!({"stringData": {"a": 5}})),
            (json!({"stringData": {"a": "x"}, "data": 5}), json!({"stringData": {"a": "x"}, "data": 5})),
            (json!({"data": {"a": "AA=="}}), json!({"data": {"a": "AA=="}})),
        ] {
            let mut folded = secret.clone();
            fold_texts(&mut folded);
            assert_eq!(folded, expected, "{secret}");
        }
    }
}

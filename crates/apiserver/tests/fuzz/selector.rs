//! Parses arbitrary selectors, paths, amounts and instants.

use apiserver::table::JsonPath;
use objects::quantity::Quantity;
use objects::selector::{FieldSelector, LabelSelector};
use objects::time;
use serde_json::json;

/// Reads the bytes as everything that is a short text.
pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(selector) = LabelSelector::parse(&text) {
        let _ = selector.is_empty();
    }
    let _ = FieldSelector::parse(&text, &[], false);
    if let Ok(quantity) = text.parse::<Quantity>() {
        let again: Quantity = quantity.to_string().parse().expect("what is printed can be read");
        assert!(again.compare(quantity).is_eq(), "{text}");
    }
    let _ = time::canonical(&text, true);
    let object = json!({"a": {"b": [{"c": 1}, {"c": "x"}]}});
    let _ = JsonPath::parse(&text).first(&object);
}

//! What must hold for every index.

use std::io::BufReader;

use serde_json::Value;
use source::index::{Index, MAX_INDEX_MEMORY};
use values::yaml;

/// Returns how many versions the tree of an index has; `None` if it is no index, or says something twice.
fn count(text: &str) -> Option<usize> {
    let tree = yaml::parse_strict(text).ok()?;
    match tree.get("entries")? {
        // A name without a list is one line, which says so.
        Value::Object(entries) => Some(
            entries.values().map(|list| list.as_array().map_or(usize::from(list.is_null()), Vec::len)).sum(),
        ),
        Value::Null => Some(0),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    }
}

/// Reads an index; it must say the same however it comes, be sorted and small, and have all that its tree has.
pub(crate) fn run(bytes: &[u8]) {
    let whole = Index::parse(bytes);
    let torn = Index::read(BufReader::with_capacity(1, bytes));
    assert_eq!(format!("{whole:?}"), format!("{torn:?}"));
    let Ok(index) = whole else { return };
    assert!(index.memory() <= MAX_INDEX_MEMORY + bytes.len());
    assert!(index.lines().is_sorted_by(|a, b| a.name <= b.name));
    for pair in index.lines().windows(2) {
        if let [a, b] = pair
            && a.name == b.name
            && let (Ok(one), Ok(other)) = (&a.outcome, &b.outcome)
        {
            assert!(one.version.to_string() != other.version.to_string(), "{} {} twice", a.name, a.version);
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Some(count) = count(text)
    {
        assert_eq!(index.lines().len(), count);
    }
}

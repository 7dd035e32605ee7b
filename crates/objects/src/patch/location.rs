//! The place in a document that a path of a JSON patch means.
//!
//! Patches are applied by `json-patch`, one operation at a time. The paths that API servers and the values of hooks know
//! are a little wider than the standard's (negative indexes count from the end), and what is wrong with one has to be
//! said in their words. So each path is resolved here first, against the document as it is before the operation.

use json_patch::jsonptr::PointerBuf;
use serde_json::Value;

/// Where an operation works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The path; indexes from the end are resolved.
    pub pointer: PointerBuf,
    /// Whether a value is there.
    pub exists: bool,
    /// Whether what holds the value is a list.
    pub in_list: bool,
}

/// Why a path leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationError {
    /// What should hold the value is not there, or holds nothing.
    MissingPath,
    /// The list has no such index.
    Index {
        /// How many items the list has.
        length: usize,
        /// Whether this is the list that should hold the value.
        is_last: bool,
    },
}

impl Location {
    /// Finds what the decoded `elements` of a path mean in `document`; the last one may name what is not there yet.
    ///
    /// With `inserts`, `-` and `-1` stand for the place behind the last item of a list.
    pub fn find(
        document: &Value,
        elements: impl Iterator<Item = String>,
        inserts: bool,
    ) -> Result<Self, LocationError> {
        let mut pointer = PointerBuf::new();
        let mut elements = elements.peekable();
        let (mut current, mut in_list) = (Some(document), false);
        while let Some(element) = elements.next() {
            let is_last = elements.peek().is_none();
            let (element, next) = match current {
                Some(Value::Object(map)) => {
                    in_list = false;
                    let next = map.get(&element);
                    (element, next)
                }
                Some(Value::Array(items)) => {
                    in_list = true;
                    let length = items.len();
                    let index = resolve_index(&element, length, inserts && is_last)
                        .ok_or(LocationError::Index { length, is_last })?;
                    (index.to_string(), items.get(index))
                }
                _ => return Err(LocationError::MissingPath),
            };
            if next.is_none() && !is_last {
                return Err(LocationError::MissingPath);
            }
            pointer.push_back(element);
            current = next;
        }
        Ok(Self { pointer, exists: current.is_some(), in_list })
    }

    /// Returns the value that is there.
    pub fn value<'d>(&self, document: &'d Value) -> Option<&'d Value> {
        self.exists.then(|| document.pointer(self.pointer.as_str())).flatten()
    }
}

/// Decodes one element of a JSON pointer: `~1` first, then `~0`.
pub fn decode_element(element: &str) -> String {
    if element.contains('~') { element.replace("~1", "/").replace("~0", "~") } else { element.to_owned() }
}

/// Returns the index that `element` means in a list of `length` items.
fn resolve_index(element: &str, length: usize, inserts: bool) -> Option<usize> {
    let places = if inserts { length + 1 } else { length };
    if element == "-" {
        return inserts.then_some(length);
    }
    let index: i64 = element.parse().ok()?;
    let index = if index < 0 {
        let from_end = usize::try_from(index.unsigned_abs()).ok()?;
        places.checked_sub(from_end)?
    } else {
        usize::try_from(index).ok()?
    };
    (index < places).then_some(index)
}

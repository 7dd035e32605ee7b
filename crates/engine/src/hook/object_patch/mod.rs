//! Reads what a hook writes into `KUBERNETES_PATCH_PATH`. See docs/hooks.md#objects.

mod document;
mod error;
mod limits;
mod operation;

use serde_json::Value;

pub(crate) use self::document::is_path_part;
pub use self::error::{ObjectPatchError, Problem};
pub use self::limits::{MAX_BYTES, MAX_OPERATIONS, MAX_VALUES, MAX_YAML_BYTES};
pub use self::operation::{Existing, ObjectPatch, Operation, Propagation, Purpose, Target};

/// Who we are to the API server when hooks and controllers change objects.
pub const FIELD_MANAGER: &str = "addon-operator";

/// Returns the operations of `text`: JSON objects one after the other, or YAML documents.
///
/// # Errors
///
/// If there is one, no operation may be carried out. The error names the first
/// document that is wrong and everything that is wrong with it.
pub fn parse(text: &[u8]) -> Result<Vec<ObjectPatch>, ObjectPatchError> {
    if text.len() > MAX_BYTES {
        return Err(ObjectPatchError::TooLong(text.len()));
    }
    let text = std::str::from_utf8(text).map_err(|error| ObjectPatchError::NotText(error.valid_up_to()))?;
    if count_values(text) > MAX_VALUES {
        return Err(ObjectPatchError::TooLarge);
    }
    let documents = match json_documents(text) {
        Ok(documents) => documents,
        Err(json) => yaml_documents(text, &json)?,
    };
    if documents.len() > MAX_OPERATIONS {
        return Err(ObjectPatchError::TooMany(documents.len()));
    }
    let read = |(index, document)| {
        document::read(document).map_err(|problem| ObjectPatchError::Invalid { index, problem })
    };
    documents.into_iter().enumerate().map(read).collect()
}

/// Returns the documents with the names of their properties as the readers know them.
fn json_documents(text: &str) -> Result<Vec<Value>, serde_json::Error> {
    let documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    documents.map(|document| document.map(document::with_known_keys)).collect()
}

/// Returns how many values JSON holds, or about as many: what begins or separates them is counted.
fn count_values(text: &str) -> usize {
    let (mut count, mut in_string, mut escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Returns the documents that have content.
fn yaml_documents(text: &str, json: &serde_json::Error) -> Result<Vec<Value>, ObjectPatchError> {
    let syntax = |yaml: String| ObjectPatchError::Syntax { json: json.to_string(), yaml };
    if text.len() > MAX_YAML_BYTES {
        return Err(syntax(format!("of which {MAX_YAML_BYTES} bytes are read, and it has {}", text.len())));
    }
    let documents =
        values::yaml::parse_all_v3(text, &document::TEXTS).map_err(|yaml| syntax(yaml.to_string()))?;
    let documents = documents.into_iter().filter(|document| !document.is_null());
    Ok(documents.map(document::with_known_types).collect())
}

#[cfg(test)]
mod tests;

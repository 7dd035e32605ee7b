//! Reads what a hook writes into `KUBERNETES_PATCH_PATH`. See docs/hooks.md#objects.

mod document;
mod error;

use std::fmt;

use serde_json::Value;

pub use self::error::{ObjectPatchError, Problem};

/// How long the file may be.
pub const MAX_BYTES: usize = 64 << 20;

/// How many values the documents of a file may hold. Each needs much more memory than its text.
pub const MAX_VALUES: usize = 4_000_000;

/// How long a file of YAML may be, which needs much more memory than JSON.
pub const MAX_YAML_BYTES: usize = 16 << 20;

/// How many operations the file may hold.
pub const MAX_OPERATIONS: usize = 100_000;

/// One change of an object in the cluster.
#[derive(Clone, PartialEq)]
pub struct ObjectPatch {
    /// Which object.
    pub target: Target,
    /// What happens to it.
    pub operation: Operation,
    /// Whether it is fine that there is no such object. Only patches ask this.
    pub ignore_missing_object: bool,
    /// Whether it is carried out although the hook failed, if it patches the status.
    pub ignore_hook_error: bool,
}

/// The address of an object.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Target {
    /// `v1`, `apps/v1`, or empty for the preferred version.
    pub api_version: String,
    /// The kind as written: a kind in any case, a plural or a short name.
    pub kind: String,
    /// The namespace, or empty.
    pub namespace: String,
    /// The name. Empty if the API server is asked to make one up.
    pub name: String,
    /// The subresource, without a slash: `status`.
    pub subresource: Option<String>,
}

/// What happens to an object.
#[derive(Clone, PartialEq)]
pub enum Operation {
    /// Server-side apply.
    Apply {
        /// What it shall be like.
        object: Value,
        /// Whether fields of other managers are taken over.
        force: bool,
    },
    /// The object is created.
    Create {
        /// The object.
        object: Value,
        /// What happens if there is one.
        existing: Existing,
    },
    /// The object is deleted. It is fine if there is none.
    Delete(Propagation),
    /// The object is what a jq program makes of it.
    Jq {
        /// The program. It must give exactly one object.
        filter: String,
    },
    /// A JSON Patch.
    JsonPatch {
        /// A list of operations.
        patch: Value,
    },
    /// A JSON Merge Patch.
    MergePatch {
        /// An object.
        patch: Value,
    },
}

/// What happens if the object to create exists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Existing {
    /// That is an error: `Create`.
    Fail,
    /// It stays as it is: `CreateIfNotExists`.
    Keep,
    /// It is changed into the new one, its status excepted: `CreateOrUpdate`.
    Update,
}

/// What happens to what an object owns when it is deleted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Propagation {
    /// It is deleted later; nobody waits: `DeleteInBackground`.
    Background,
    /// It is deleted first, and the operation waits until the object is gone: `Delete`.
    Foreground,
    /// It stays: `DeleteNonCascading`.
    Orphan,
}

impl ObjectPatch {
    /// Returns whether the operation is carried out although the hook failed.
    pub fn survives_hook_error(&self) -> bool {
        self.ignore_hook_error && self.target.subresource.as_deref() == Some("status")
    }
}

/// Writes what is done to which object, never what is written into it.
impl fmt::Display for ObjectPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.operation {
            Operation::Apply { .. } => "Apply",
            Operation::Create { .. } => "Create",
            Operation::Delete(_) => "Delete",
            Operation::Jq { .. } | Operation::JsonPatch { .. } | Operation::MergePatch { .. } => "Filter",
        };
        write!(f, "{verb} object {}", self.target)
    }
}

/// Shows no content: an object can be a secret.
impl fmt::Debug for ObjectPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectPatch({self})")
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.api_version, self.kind, self.namespace, self.name)
    }
}

/// Returns the operations of `text`: JSON objects one after the other, or YAML documents.
///
/// # Errors
///
/// If there is one, no operation may be carried out. The error names the first
/// document that is wrong and everything that is wrong with it.
pub fn parse(text: &[u8]) -> Result<Vec<ObjectPatch>, ObjectPatchError> {
    if text.len() > MAX_BYTES {
        return Err(ObjectPatchError::TooLong { length: text.len() });
    }
    let text = std::str::from_utf8(text)
        .map_err(|error| ObjectPatchError::NotText { offset: error.valid_up_to() })?;
    if count_values(text) > MAX_VALUES {
        return Err(ObjectPatchError::TooLarge);
    }
    let documents = match json_documents(text) {
        Ok(documents) => documents,
        Err(json) => yaml_documents(text, &json)?,
    };
    if documents.len() > MAX_OPERATIONS {
        return Err(ObjectPatchError::TooMany { count: documents.len() });
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

//! The answer to what is done and leaves no object to show.

use serde_json::{Value, json};

/// Returns the status of a success.
pub(super) fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

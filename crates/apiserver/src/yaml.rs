//! YAML bodies.

use objects::decode::Node;
use serde_json::Value;

use crate::status::{ApiError, Outcome};

pub(crate) fn read(body: &[u8]) -> Outcome<Node> {
    let refuse = |why: String| {
        ApiError::bad_request(format!("error decoding YAML: error converting YAML to JSON: {why}"))
    };
    let text = std::str::from_utf8(body).map_err(|error| refuse(error.to_string()))?;
    values::yaml::parse(text).map(Node::from).map_err(|error| refuse(error.go_text()))
}

pub(crate) fn write(value: &Value) -> String {
    values::yaml::emit(value)
}

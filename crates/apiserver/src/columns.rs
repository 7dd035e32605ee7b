//! The columns that people see of objects.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::registry::Resource;

/// Columns and rows of a table.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) columns: Value,
    pub(crate) rows: Vec<Map<String, Value>>,
}

/// Returns the table of `objects`.
pub(crate) fn print(_resource: &Resource, objects: &[Value], _now: Timestamp) -> Printed {
    let columns = json!([
        {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
        {"name": "Created At", "type": "date", "format": "", "description": "", "priority": 0},
    ]);
    let rows = objects.iter().map(|object| {
        let field = |name: &str| object.pointer(&format!("/metadata/{name}")).cloned().unwrap_or(Value::Null);
        Map::from_iter([("cells".to_owned(), json!([field("name"), field("creationTimestamp")]))])
    });
    Printed { columns, rows: rows.collect() }
}

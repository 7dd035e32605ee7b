//! Objects as rows of a table, as `kubectl get` shows them.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::registry::Resource;
use crate::table::{self, Column};

/// Columns and rows of a table.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) columns: Value,
    pub(crate) rows: Vec<Map<String, Value>>,
}

fn columns(resource: &Resource) -> Arc<[Column]> {
    match resource.version() {
        Some(version) => Arc::clone(&version.columns),
        None => table::columns(&resource.kind),
    }
}

pub(crate) fn print(resource: &Resource, objects: &[Value], now: Timestamp) -> Printed {
    let columns = columns(resource);
    let rows = objects.iter().map(|object| {
        let mut row = Map::from_iter([("cells".to_owned(), json!(table::cells(&columns, object, now)))]);
        if let Some(conditions) = table::conditions(&resource.kind, object) {
            row.insert("conditions".into(), conditions);
        }
        row
    });
    Printed { rows: rows.collect(), columns: table::definitions(&columns) }
}

//! Prints arbitrary objects as every kind.

use apiserver::{kind, table, validation};
use jiff::Timestamp;
use objects::schema;
use serde_json::Value;

/// Prints the bytes in the columns of every kind, and uses them as columns and as a schema.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(object) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    for kind in kind::builtin() {
        let _ = table::cells(&table::columns(kind), &object, Timestamp::UNIX_EPOCH);
        let _ = table::conditions(kind, &object);
    }
    let columns = table::custom_columns(&object);
    let _ = table::cells(&columns, &object, Timestamp::UNIX_EPOCH);
    let structural = schema::Structural::of(&object);
    let mut pruned = object.clone();
    structural.prune(&mut pruned);
    let _ = structural.complete(&mut pruned);
    let _ = validation::schema::validate(&structural, &pruned, "");
    let _ = structural.shape();
}

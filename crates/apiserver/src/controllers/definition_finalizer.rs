//! Custom resource definitions that are deleted: their instances first.

use std::sync::Arc;

use serde_json::Value;

use super::finalizer::remove_finalizer;
use crate::cluster::Cluster;
use crate::definitions::CLEAN_UP;
use crate::object_meta::finalizers;
use crate::store::{ObjectRef, table_name};
use crate::write::loopback::remove;

/// Deletes the instances of a definition, and removes its finalizer when there are none.
pub(super) fn clean_up(cluster: &Arc<Cluster>, object_ref: &ObjectRef, definition: &Value) {
    if !finalizers(definition).contains(&CLEAN_UP) {
        return;
    }
    let text = |path: &str| definition.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let table = table_name(text("/spec/group"), text("/spec/names/plural"));
    for instance in cluster.storage.all(&table, None) {
        remove(cluster, &ObjectRef { table: Arc::clone(&table), key: instance.key.clone() }, None);
    }
    if cluster.storage.all(&table, None).is_empty() {
        remove_finalizer(cluster, object_ref, CLEAN_UP);
    }
}

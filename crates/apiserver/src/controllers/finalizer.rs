//! Changes of objects in the name of the controllers, and the removal of finalizers.

use serde_json::Value;

use crate::cluster::{Cluster, Edit};
use crate::store::ObjectRef;
use crate::strategy::FieldOwner;

/// Who owns what the controllers change.
const CONTROLLER: FieldOwner<'_> = FieldOwner { manager: "kube-controller-manager", subresource: "" };

pub(super) fn remove_finalizer(cluster: &Cluster, object_ref: &ObjectRef, name: &str) {
    edit(cluster, object_ref, |object| {
        let list = object.pointer_mut("/metadata/finalizers").and_then(Value::as_array_mut);
        let Some(list) = list else {
            return Edit::Keep;
        };
        let before = list.len();
        list.retain(|finalizer| finalizer != name);
        let (changed, empty) = (list.len() != before, list.is_empty());
        if empty && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("finalizers");
        }
        if changed { Edit::Write } else { Edit::Keep }
    });
}

/// Changes an object in the name of the controllers. A failure is logged.
pub(super) fn edit(cluster: &Cluster, object_ref: &ObjectRef, change: impl FnMut(&mut Value) -> Edit) {
    if let Some(resource) = cluster.registry.of_table(&object_ref.table)
        && let Err(error) = cluster.modify(&resource, object_ref, CONTROLLER, change)
    {
        tracing::warn!(table = %object_ref.table, key = %object_ref.key, %error, "an object could not be changed");
    }
}

//! Namespaces that are deleted: their contents first.

use std::collections::BTreeMap;
use std::sync::Arc;

use objects::time::format_seconds;
use serde_json::{Value, json};

use super::finalizer::edit;
use crate::cluster::{Cluster, Edit};
use crate::object_meta::finalizers;
use crate::store::{ObjectRef, Stored};
use crate::write::Propagation;
use crate::write::loopback::remove_now;

/// Deletes what is in a namespace, and removes its finalizer when nothing is left.
pub(super) fn empty_namespace(cluster: &Arc<Cluster>, object_ref: &ObjectRef, namespace: &Stored) {
    for object in &contents(cluster, namespace.name()) {
        // Pods are not waited for: no node runs them.
        let is_pod = &*object.table == "/pods";
        if cluster.storage.get(object).is_some_and(|object| !object.deleting || is_pod) {
            remove_now(cluster, object, Some(Propagation::Background));
        }
    }
    let left = contents(cluster, namespace.name());
    if left.is_empty() {
        edit(cluster, object_ref, |object| {
            let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
                return Edit::Keep;
            };
            let Some(list) = spec.get_mut("finalizers").and_then(Value::as_array_mut) else {
                return Edit::Keep;
            };
            let before = list.len();
            // What others wait for is theirs to remove.
            list.retain(|name| name != "kubernetes");
            if list.len() == before {
                return Edit::Keep;
            }
            if list.is_empty() {
                spec.remove("finalizers");
            }
            Edit::Write
        });
        return;
    }
    let conditions = conditions(cluster, &left);
    let now = format_seconds(cluster.now());
    edit(cluster, object_ref, |object| {
        let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else {
            return Edit::Keep;
        };
        let kept = status.entry("conditions").or_insert_with(|| json!([]));
        let Some(kept) = kept.as_array_mut() else {
            return Edit::Keep;
        };
        let before = kept.clone();
        for wanted in &conditions {
            wanted.write(kept, &now);
        }
        if *kept == before { Edit::Keep } else { Edit::Write }
    });
}

/// What a condition of a namespace says.
struct Condition {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Condition {
    /// Puts this condition among those that are kept; the time changes with the status.
    fn write(&self, kept: &mut Vec<Value>, now: &str) {
        let old = kept.iter_mut().find(|old| old.get("type").and_then(Value::as_str) == Some(self.kind));
        let since = match &old {
            Some(old) if old.get("status").and_then(Value::as_str) == Some(self.status) => {
                old.get("lastTransitionTime").cloned().unwrap_or_default()
            }
            Some(_) | None => json!(now),
        };
        let new = json!({
            "type": self.kind,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": since,
        });
        match old {
            Some(old) => *old = new,
            None => kept.push(new),
        }
    }
}

/// Returns what is told of a namespace in which these objects are left.
fn conditions(cluster: &Cluster, left: &[ObjectRef]) -> [Condition; 5] {
    let mut resources: BTreeMap<String, usize> = BTreeMap::new();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for object_ref in left {
        let (group, plural) = object_ref.table.rsplit_once('/').unwrap_or_default();
        *resources.entry(format!("{plural}.{group}")).or_default() += 1;
        let Some(object) = cluster.storage.get(object_ref) else {
            continue;
        };
        for name in finalizers(&object.value()) {
            *names.entry(name.to_owned()).or_default() += 1;
        }
    }
    let listed = |counts: &BTreeMap<String, usize>, verb: &str| {
        let texts: Vec<String> =
            counts.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances")).collect();
        texts.join(", ")
    };
    let fine = |kind, reason, message: &str| Condition {
        kind,
        status: "False",
        reason,
        message: message.to_owned(),
    };
    [
        fine(
            "NamespaceDeletionDiscoveryFailure",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        fine(
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        fine(
            "NamespaceDeletionContentFailure",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        Condition {
            kind: "NamespaceContentRemaining",
            status: "True",
            reason: "SomeResourcesRemain",
            message: format!("Some resources are remaining: {}", listed(&resources, "has")),
        },
        if names.is_empty() {
            fine(
                "NamespaceFinalizersRemaining",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            )
        } else {
            Condition {
                kind: "NamespaceFinalizersRemaining",
                status: "True",
                reason: "SomeFinalizersRemain",
                message: format!(
                    "Some content in the namespace has finalizers remaining: {}",
                    listed(&names, "in")
                ),
            }
        },
    ]
}

fn contents(cluster: &Cluster, namespace: &str) -> Vec<ObjectRef> {
    let store = cluster.storage.read();
    let mut found = Vec::new();
    for table in store.tables() {
        let objects = store.all(table, Some(namespace));
        found.extend(
            objects.iter().map(|stored| ObjectRef { table: Arc::clone(table), key: stored.key.clone() }),
        );
    }
    found
}

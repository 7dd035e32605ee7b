//! What a create, an update or a patch changes, and who owns it afterwards.

use std::sync::LazyLock;

use serde_json::Value;

use super::Change;
use super::compare::compare;
use super::entry::{FieldOwner, ManagedFields, VersionedSet};
use super::field_set::FieldSet;
use super::type_ref::TypeRef;
use crate::decode;

/// The fields that get no owner.
pub(super) static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.selfLink",
        "metadata.uid",
        "metadata.clusterName",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
    ])
});

/// How many writers that update are kept apart.
const MAX_UPDATERS: usize = 10;
const OLD_UPDATERS: &str = "ancient-changes";

/// Records in `new` who owns what after it took the place of `live`.
///
/// Entries that a client sent in `new` are taken over, and an empty list forgets all owners.
pub fn update(live: Option<&Value>, new: &mut Value, change: &Change<'_>) {
    let sent = ManagedFields::of(new).filter(|owners| !owners.0.is_empty());
    let resets = change.subresource.is_empty() && is_reset(new);
    let owners = if resets {
        ManagedFields::default()
    } else {
        let known = || live.and_then(ManagedFields::of).unwrap_or_default();
        sent.filter(|_| change.subresource.is_empty()).unwrap_or_else(known)
    };
    clear(new);
    let stored = live.is_some_and(|live| live.pointer("/metadata/uid").is_some_and(|uid| uid != ""));
    if owners.0.is_empty() && stored {
        return;
    }
    let mut owners = recorded(live, new, owners, change, change.manager);
    cap(&mut owners);
    owners.put_into(new);
}

/// Removes the entries from an object.
pub fn clear(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

fn is_reset(object: &Value) -> bool {
    match object.pointer("/metadata/managedFields").and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => one.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    }
}

/// Returns the owners after `new` took the place of `live`.
pub(super) fn recorded(
    live: Option<&Value>,
    new: &Value,
    mut owners: ManagedFields,
    change: &Change<'_>,
    manager: &str,
) -> ManagedFields {
    let empty = decode::empty(change.shape);
    let found = compare(live.unwrap_or(&empty), new, TypeRef::new(change.shape)).ignore(change.ignored);
    let changed = found.modified.union(found.added);
    for versioned in owners.0.values_mut() {
        let fields = std::mem::take(&mut versioned.fields);
        versioned.fields = fields.difference(&changed).difference(&found.removed);
    }
    owners.0.retain(|_, versioned| !versioned.fields.is_empty());
    let won = changed.without(change.ignored).difference(&NEVER_OWNED);
    if won.is_empty() {
        return owners;
    }
    let owner = FieldOwner {
        name: if manager.is_empty() { "unknown" } else { manager }.to_owned(),
        applies: false,
        api_version: change.api_version.to_owned(),
        subresource: change.subresource.to_owned(),
    };
    let versioned = owners.0.entry(owner).or_insert_with(|| VersionedSet {
        fields: FieldSet::default(),
        api_version: change.api_version.to_owned(),
        time: None,
    });
    versioned.fields = std::mem::take(&mut versioned.fields).union(won);
    versioned.time = Some(change.now.to_owned());
    owners
}

/// Puts the oldest updaters together when there are too many.
fn cap(owners: &mut ManagedFields) {
    let mut updaters: Vec<(Option<String>, FieldOwner)> = owners
        .0
        .iter()
        .filter(|(owner, _)| !owner.applies)
        .map(|(owner, versioned)| (versioned.time.clone(), owner.clone()))
        .collect();
    if updaters.len() <= MAX_UPDATERS {
        return;
    }
    updaters.sort();
    let surplus = updaters.len() - MAX_UPDATERS + 1;
    for (time, owner) in updaters.into_iter().take(surplus) {
        let Some(versioned) = owners.0.remove(&owner) else {
            continue;
        };
        let bucket = FieldOwner { name: OLD_UPDATERS.to_owned(), subresource: String::new(), ..owner };
        let slot = owners.0.entry(bucket).or_insert_with(|| VersionedSet {
            fields: FieldSet::default(),
            api_version: versioned.api_version.clone(),
            time: None,
        });
        slot.fields = std::mem::take(&mut slot.fields).union(versioned.fields);
        slot.time = time;
    }
}

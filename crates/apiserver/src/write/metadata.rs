//! Metadata of written objects: the fields that clients may set and those that only the server sets.

use objects::time::format_seconds;
use serde_json::{Map, Value, json};

use crate::object_meta;
use crate::request::{RequestContext, WriteOptions};
use crate::status::{ApiError, Outcome};
use crate::strategy::{self, Strategy};

/// The longest name that a generated name's beginning may have.
const GENERATED_BASE: usize = 58;

/// Checks the namespace of the body against the request and sets it.
/// What is answered to an object that says it is in another namespace than the request.
pub(crate) const OTHER_NAMESPACE: &str =
    "the namespace of the provided object does not match the namespace sent on the request";

pub(crate) fn place_in_namespace(request: &RequestContext, object: &mut Value) -> Outcome<()> {
    let metadata = object_meta::of_mut(object)?;
    let given = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    match request.namespace.as_deref() {
        Some(namespace) if given.is_empty() => {
            metadata.insert("namespace".into(), json!(namespace));
        }
        Some(namespace) if given == namespace => {}
        None => {
            metadata.remove("namespace");
        }
        Some(_) => {
            return Err(ApiError::bad_request(OTHER_NAMESPACE));
        }
    }
    Ok(())
}

/// Drops owners that come twice, and warns of them. `patched` is what a patch made, where it is seen later.
pub(crate) fn drop_repeated_owners(object: &mut Value, patched: bool, warnings: &mut Vec<String>) {
    let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    let Some(owners) = owners.filter(|owners| owners.len() > 1) else {
        return;
    };
    let mut repeated = Vec::new();
    let mut single: Vec<Value> = Vec::with_capacity(owners.len());
    for owner in owners.drain(..) {
        if single.contains(&owner) {
            repeated.push(owner.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned());
        } else {
            single.push(owner);
        }
    }
    *owners = single;
    if !repeated.is_empty() {
        let when = if patched { " after mutating admission happens" } else { "" };
        let repeated = repeated.join(", ");
        let warning = format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {repeated}"
        );
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}

/// Refuses the revision of an object that is to be created.
///
/// It is the store that does: what is tried does not come there, and from what a change or an apply makes it is taken away before.
pub(crate) fn check_new_revision(object: &Value, options: &WriteOptions) -> Outcome<()> {
    let given = object_meta::revision(object_meta::text(object, "resourceVersion")).unwrap_or(0);
    if given == 0 || options.dry_run {
        return Ok(());
    }
    Err(ApiError::new(500, "", "resourceVersion should not be set on objects to be created"))
}

/// Gives a new object what only the server can give: name, identity, time.
pub(crate) fn prepare_new(
    request: &RequestContext,
    object: &mut Value,
    options: &WriteOptions,
) -> Outcome<()> {
    let (uid, suffix) = (request.cluster.random.uid(), request.cluster.random.suffix(5));
    let metadata = object_meta::of_mut(object)?;
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        metadata.remove(name);
    }
    if !options.dry_run {
        metadata.remove("resourceVersion");
    }
    metadata.retain(|_, value| !value.is_null());
    let named = metadata.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    let base = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default();
    if !named && !base.is_empty() {
        let end = base.char_indices().nth(GENERATED_BASE).map_or(base.len(), |(end, _)| end);
        let name = format!("{}{suffix}", base.get(..end).unwrap_or(base));
        metadata.insert("name".into(), json!(name));
    }
    metadata.insert("uid".into(), json!(uid));
    metadata.insert("creationTimestamp".into(), json!(format_seconds(request.now)));
    if Strategy::of(&request.resource).has_generation {
        metadata.insert("generation".into(), json!(1));
    }
    Ok(())
}

/// Checks name and identity of a new version against the stored one.
pub(crate) fn check_identity(request: &RequestContext, name: &str, old: &Value, new: &Value) -> Outcome<()> {
    check_name(name, new)?;
    check_uid(request, name, object_meta::text(old, "uid"), new)
}

/// Checks the identity that a client changes against the stored one; that of what is not there is empty.
pub(crate) fn check_uid(request: &RequestContext, name: &str, kept: &str, new: &Value) -> Outcome<()> {
    let given = object_meta::text(new, "uid");
    if given.is_empty() || given == kept {
        return Ok(());
    }
    let key = request.resource.database_key(request.namespace.as_deref(), name);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {given}, UID in object meta: {kept}"
    );
    Err(ApiError::conflict(&request.resource.kind, name, &why))
}

/// Checks the revision that a client changes against the stored one.
///
/// Returns whether the client named one.
pub(crate) fn check_revision(
    request: &RequestContext,
    name: &str,
    old: &Value,
    revision: &str,
) -> Outcome<bool> {
    let given = named_revision(revision)?;
    if given.is_some() && given != named_revision(object_meta::text(old, "resourceVersion"))? {
        return Err(ApiError::modified(&request.resource.kind, name));
    }
    Ok(given.is_some())
}

/// Reads the revision that an object has; 0 and nothing stand for none.
pub(crate) fn named_revision(revision: &str) -> Outcome<Option<u64>> {
    if revision.is_empty() {
        return Ok(None);
    }
    let read = object_meta::revision(revision).map_err(|why| ApiError::new(500, "", why))?;
    Ok(Some(read).filter(|revision| *revision > 0))
}

/// Checks the name of a new version against the one in the path.
pub(crate) fn check_name(name: &str, new: &Value) -> Outcome<()> {
    let given = object_meta::text(new, "name");
    let message = if given.is_empty() {
        format!("the name of the object ({name} based on URL) was undeterminable: name must be provided")
    } else if given != name {
        format!("the name of the object ({given}) does not match the name on the URL ({name})")
    } else {
        return Ok(());
    };
    Err(ApiError::bad_request(message))
}

/// Checks the revision that a patch gave a version; everything else is for validation to find.
pub(crate) fn prepare_patched(
    request: &RequestContext,
    name: &str,
    old: &Value,
    (new, revision): (&mut Value, &str),
) -> Outcome<()> {
    let conditional = check_revision(request, name, old, revision)?;
    strategy::check_conditional(&request.resource, name, conditional)?;
    let uid = object_meta::text(new, "uid").to_owned();
    let metadata = object_meta::of_mut(new)?;
    keep(old, metadata);
    if !uid.is_empty() {
        metadata.insert("uid".into(), json!(uid));
    }
    Ok(())
}

/// Puts back when the object is to be deleted. That nobody began a deletion is for validation to find.
pub(crate) fn keep_deletion(old: &Value, metadata: &mut Map<String, Value>) {
    let was = |name: &str| object_meta::of(old).and_then(|metadata| metadata.get(name)).cloned();
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        if metadata.get(name).is_some_and(Value::is_null) {
            metadata.remove(name);
        }
    }
    if let Some(value) = was("deletionTimestamp") {
        metadata.insert("deletionTimestamp".into(), value);
    }
    if let Some(value) = was("deletionGracePeriodSeconds") {
        metadata.entry("deletionGracePeriodSeconds").or_insert(value);
    }
}

/// Puts back the fields of the metadata that only the server changes.
pub(crate) fn keep(old: &Value, metadata: &mut Map<String, Value>) {
    const KEPT: [&str; 5] = ["uid", "creationTimestamp", "generation", "resourceVersion", "selfLink"];
    metadata.retain(|_, value| !value.is_null());
    for name in KEPT {
        match object_meta::of(old).and_then(|metadata| metadata.get(name)) {
            Some(value) => metadata.insert(name.into(), value.clone()),
            None => metadata.remove(name),
        };
    }
    keep_deletion(old, metadata);
}

/// Gives a limit range without a name one. That of its beginning is made later, as for all kinds.
pub(crate) fn name_limit_range(request: &RequestContext, object: &mut Value) -> Outcome<()> {
    if request.resource.is("", "limitranges") && object_meta::name_or_base(object).is_empty() {
        let name = request.cluster.random.uid();
        object_meta::of_mut(object)?.insert("name".into(), json!(name));
    }
    Ok(())
}

pub(crate) fn check_name_given(request: &RequestContext, object: &Value) -> Outcome<()> {
    if object_meta::text(object, "name").is_empty() && object_meta::text(object, "generateName").is_empty() {
        let cause = crate::status::Cause {
            reason: "FieldValueRequired".into(),
            message: "Required value: name or generateName is required".into(),
            field: "metadata.name".into(),
        };
        return Err(ApiError::invalid(&request.resource.kind, "", vec![cause]));
    }
    Ok(())
}

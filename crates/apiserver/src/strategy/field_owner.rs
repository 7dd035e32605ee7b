//! Who owns the fields of objects: managed fields, for all resources.

use jiff::Timestamp;
use objects::managed_fields::{self, ApplyError, Change, FieldSet};
use objects::time::format_seconds;
use serde_json::Value;

use crate::registry::Resource;
use crate::status::{ApiError, Cause, Outcome};

#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldOwner<'a> {
    pub(crate) manager: &'a str,
    /// The subresource that is written, empty for the object itself.
    pub(crate) subresource: &'a str,
}

impl<'a> FieldOwner<'a> {
    fn change(self, resource: &'a Resource, now: &'a str, ignored: &'a FieldSet) -> Change<'a>
    where
        Self: 'a,
    {
        Change {
            shape: &resource.shape,
            api_version: &resource.api_version,
            subresource: self.subresource,
            manager: self.manager,
            now,
            ignored,
        }
    }
}

/// Records in the managed fields what the owner changed.
pub(crate) fn own(
    resource: &Resource,
    old: Option<&Value>,
    object: &mut Value,
    owner: FieldOwner<'_>,
    now: Timestamp,
) {
    let (now, ignored) = (format_seconds(now), ignored(resource, owner.subresource));
    managed_fields::update(old, object, &owner.change(resource, &now, &ignored));
}

/// Returns the managed fields of a new object as JSON; nothing if the client sent some or no field has an owner.
pub(crate) fn first_owner(
    resource: &Resource,
    object: &Value,
    owner: FieldOwner<'_>,
    now: Timestamp,
) -> Option<Vec<u8>> {
    if object.pointer("/metadata/managedFields").is_some() {
        return None;
    }
    let (now, ignored) = (format_seconds(now), ignored(resource, owner.subresource));
    managed_fields::create(object, &owner.change(resource, &now, &ignored))
}

/// Returns the fields that a write through this subresource does not change.
fn ignored(resource: &Resource, subresource: &str) -> FieldSet {
    if resource.is("certificates.k8s.io", "certificatesigningrequests") {
        // What is asked for never changes, and nobody owns it.
        return FieldSet::of_fields(if subresource.is_empty() { &["spec", "status"] } else { &["spec"] });
    }
    match subresource {
        "" if resource.kind.has_status() => FieldSet::of_fields(&["status"]),
        "status" => FieldSet::of_fields(&["spec"]),
        _ => FieldSet::default(),
    }
}

/// Refuses what cannot be applied because it does not fit its type.
pub(crate) fn check_applied(resource: &Resource, wanted: &Value) -> Outcome<()> {
    managed_fields::check(wanted, &resource.shape, &resource.api_version).map_err(|error| match error {
        error @ ApplyError::BadRequest(_) => ApiError::bad_request(error.to_string()),
        error @ (ApplyError::Typed { .. } | ApplyError::Other(_) | ApplyError::Conflicts(_)) => {
            ApiError::new(500, "", error.to_string())
        }
    })
}

/// Returns the object after `owner` applied what it wants, with its managed fields.
pub(crate) fn applied(
    resource: &Resource,
    old: Option<&Value>,
    wanted: &Value,
    owner: FieldOwner<'_>,
    now: Timestamp,
    force: bool,
) -> Outcome<Value> {
    let (now, ignored) = (format_seconds(now), ignored(resource, owner.subresource));
    let change = owner.change(resource, &now, &ignored);
    match managed_fields::apply(old, wanted, &change, force) {
        Ok(applied) => Ok(applied.object),
        Err(ApplyError::Conflicts(conflicts)) => {
            let message = ApplyError::Conflicts(conflicts.clone()).to_string();
            let causes = conflicts.into_iter().map(|conflict| Cause {
                reason: "FieldManagerConflict".into(),
                message: format!("conflict with {}", conflict.owner),
                field: conflict.field,
            });
            Err(ApiError::new(409, "Conflict", message).with_causes(causes.collect()))
        }
        Err(error @ ApplyError::BadRequest(_)) => Err(ApiError::bad_request(error.to_string())),
        Err(error @ (ApplyError::Typed { .. } | ApplyError::Other(_))) => {
            Err(ApiError::new(500, "", error.to_string()))
        }
    }
}

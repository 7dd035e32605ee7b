//! The list `metadata.managedFields`: who owns which fields since when.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::field_set::FieldSet;
use crate::time;

/// Who writes: a name, how, with which version, and to which part of the object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FieldOwner {
    pub(super) name: String,
    /// Whether it applies; otherwise it updates.
    pub(super) applies: bool,
    /// Empty for those that apply: they are the same whatever the version.
    pub(super) api_version: String,
    pub(super) subresource: String,
}

/// What an owner owns, and in which version of the API it said so.
#[derive(Clone, Debug)]
pub(super) struct VersionedSet {
    pub(super) fields: FieldSet,
    pub(super) api_version: String,
    pub(super) time: Option<String>,
}

/// The owners of the fields of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct ManagedFields(pub(super) BTreeMap<FieldOwner, VersionedSet>);

impl ManagedFields {
    /// Reads the entries of an object; nothing if one of them is not understood.
    pub(super) fn of(object: &Value) -> Option<ManagedFields> {
        let mut owners = ManagedFields::default();
        let Some(entries) = object.pointer("/metadata/managedFields") else {
            return Some(owners);
        };
        for entry in entries.as_array()? {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let applies = match text("operation").as_str() {
                "Apply" => true,
                "Update" => false,
                _ => return None,
            };
            let api_version = text("apiVersion");
            if api_version.is_empty() || text("fieldsType") != "FieldsV1" {
                return None;
            }
            let fields = match entry.get("fieldsV1") {
                Some(fields) => FieldSet::from_fields_v1(fields)?,
                None => FieldSet::default(),
            };
            let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
            let owner = FieldOwner {
                name: text("manager"),
                applies,
                api_version: if applies { String::new() } else { api_version.clone() },
                subresource: text("subresource"),
            };
            owners.0.insert(owner, VersionedSet { fields, api_version, time });
        }
        Some(owners)
    }

    /// Puts the entries into an object, in the order of servers: by operation, time and name.
    pub(super) fn put_into(&self, object: &mut Value) {
        let mut sorted: Vec<(&FieldOwner, &VersionedSet)> = self.0.iter().collect();
        sorted.sort_by_key(|(owner, versioned)| {
            let seconds =
                versioned.time.as_deref().and_then(time::parse).map_or(0, jiff::Timestamp::as_second);
            (!owner.applies, seconds, &owner.name, &versioned.api_version, &owner.subresource)
        });
        let entries: Vec<Value> =
            sorted.into_iter().map(|(owner, versioned)| to_value(owner, versioned)).collect();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            if entries.is_empty() {
                metadata.remove("managedFields");
            } else {
                metadata.insert("managedFields".to_owned(), Value::Array(entries));
            }
        }
    }
}

fn to_value(owner: &FieldOwner, versioned: &VersionedSet) -> Value {
    let mut entry = Map::new();
    let mut put = |key: &str, value: &str| {
        if !value.is_empty() {
            entry.insert(key.to_owned(), Value::from(value));
        }
    };
    put("manager", &owner.name);
    put("operation", if owner.applies { "Apply" } else { "Update" });
    put("apiVersion", &versioned.api_version);
    put("time", versioned.time.as_deref().unwrap_or_default());
    put("fieldsType", "FieldsV1");
    put("subresource", &owner.subresource);
    entry.insert("fieldsV1".to_owned(), versioned.fields.to_fields_v1());
    Value::Object(entry)
}

/// The owner as conflicts name it.
impl fmt::Display for FieldOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        if !self.applies {
            write!(f, " using {}", self.api_version)?;
        }
        Ok(())
    }
}

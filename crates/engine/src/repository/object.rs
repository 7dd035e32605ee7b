//! An object of a chart repository as it was seen last.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::addon::Digest;
use crate::package::{RepositoryKey, RepositoryKind};

/// The annotation by which people have archives taken that were published again. They raise its number.
pub(super) const REPROCESS: &str = "addon-operator.io/reprocess";

/// The annotation of a Chart that was made because no Repository has the URL that a chart names: that URL, without secrets. Without
/// it the Chart stays when one comes that has it.
pub(super) const STANDS_IN_FOR: &str = "addon-operator.io/stands-in-for";

/// The label with the module for which a Chart is there.
pub(super) const MODULE: &str = "addon-operator.io/module";

/// The annotation of such a Chart with the namespace of the operator that made it.
pub(super) const OPERATOR: &str = "addon-operator.io/operator-namespace";

/// The labels of Repositories, Charts and what is kept of them.
pub(super) const CHART: &str = "yaho.soer3n.dev/chart";
pub(super) const REPO: &str = "yaho.soer3n.dev/repo";
pub(super) const GROUP: &str = "yaho.soer3n.dev/repoGroup";
pub(super) const UNMANAGED: &str = "yaho.soer3n.dev/unmanaged";

/// The type of our condition.
const SYNCED: &str = "synced";

/// How many letters a message has.
const MESSAGE: usize = 1_000;

/// An object whose spec is an `S`.
#[derive(Debug)]
pub(super) struct Object<S> {
    pub(super) uid: String,
    pub(super) version: String,
    pub(super) generation: i64,
    pub(super) is_deleting: bool,
    pub(super) finalizers: Vec<String>,
    pub(super) labels: BTreeMap<String, String>,
    /// The number that people raise; 0 if it is not there.
    pub(super) reprocess: u64,
    /// The URL for which it stands in, if it does.
    pub(super) stands_in_for: Option<String>,
    /// The namespace of the operator that made it for a module.
    pub(super) operator: Option<String>,
    /// The identities of the objects that own it.
    pub(super) owners: Vec<String>,
    /// What it asks for, or why that can't be read.
    pub(super) spec: Result<S, String>,
    pub(super) status: Value,
}

impl<S> Object<S> {
    /// Returns the object that JSON describes, with its spec as `read` reads it.
    pub(super) fn read(json: &[u8], read: impl FnOnce(&Value) -> Result<S, String>) -> Self {
        let object: Value = serde_json::from_slice(json).unwrap_or_default();
        let metadata = |name: &str| object.get("metadata").and_then(|metadata| metadata.get(name));
        let text = |name| metadata(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let list = |name| metadata(name).and_then(Value::as_array).into_iter().flatten();
        let labels = metadata("labels").and_then(Value::as_object).into_iter().flatten();
        let annotation = |name| metadata("annotations").and_then(|all| all.get(name)).and_then(Value::as_str);
        let owner = |owner: &Value| owner.get("uid").and_then(Value::as_str).map(str::to_owned);
        Self {
            uid: text("uid"),
            version: text("resourceVersion"),
            generation: metadata("generation").and_then(Value::as_i64).unwrap_or_default(),
            is_deleting: metadata("deletionTimestamp").is_some_and(|at| !at.is_null()),
            finalizers: list("finalizers").filter_map(Value::as_str).map(str::to_owned).collect(),
            labels: labels
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            reprocess: annotation(REPROCESS).and_then(|text| text.parse().ok()).unwrap_or_default(),
            stands_in_for: annotation(STANDS_IN_FOR).map(str::to_owned),
            operator: annotation(OPERATOR).map(str::to_owned),
            owners: list("ownerReferences").filter_map(owner).collect(),
            spec: read(object.get("spec").unwrap_or(&Value::Null)),
            status: object.get("status").cloned().unwrap_or(Value::Null),
        }
    }

    /// Returns whether the object has all these labels.
    pub(super) fn has_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        labels.iter().all(|(name, value)| self.labels.get(name) == Some(value))
    }

    /// Returns a number of the status; 0 if it is not there.
    pub(super) fn status_number(&self, field: &str) -> i64 {
        self.status.get(field).and_then(Value::as_i64).unwrap_or_default()
    }

    /// Returns the digest of the archive that was kept of a version, as the status says.
    pub(super) fn resolved_digest(&self, version: &str) -> Option<Digest> {
        let lines = self.status.get("resolved")?.as_array()?;
        let line = lines.iter().find(|line| line.get("version").and_then(Value::as_str) == Some(version))?;
        line.get("digest")?.as_str()?.parse().ok()
    }

    /// Returns a number of the status that counts something; 0 if it is not there.
    pub(super) fn status_count(&self, field: &str) -> usize {
        usize::try_from(self.status_number(field)).unwrap_or_default()
    }

    /// Returns a text of the status; an empty one if it is not there.
    pub(super) fn status_text(&self, field: &str) -> &str {
        self.status.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns whether the status says that the object is synced; `None` if it says nothing.
    pub(super) fn says_synced(&self) -> Option<bool> {
        self.status.get("conditions").is_some().then(|| self.synced().0)
    }

    /// Returns whether the status says that the object is synced, and what it says about that.
    pub(super) fn synced(&self) -> (bool, &str) {
        (self.condition_text("status") == "True", self.condition_text("message"))
    }

    /// Returns the reason for which the status says that the object is synced or not; an empty one if it says nothing.
    pub(super) fn reason(&self) -> &str {
        self.condition_text("reason")
    }

    /// Returns a text of our condition; an empty one if it is not there.
    fn condition_text(&self, field: &str) -> &str {
        let mut conditions = self.status.get("conditions").and_then(Value::as_array).into_iter().flatten();
        let ours = conditions.find(|condition| condition.get("type").and_then(Value::as_str) == Some(SYNCED));
        ours.and_then(|condition| condition.get(field)).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Returns the condition of an object: that it is synced, or why it is not.
pub(super) fn condition(is_synced: bool, reason: &str, message: &str) -> Value {
    let message: String = message.chars().take(MESSAGE).collect();
    let status = if is_synced { "True" } else { "False" };
    json!({"type": SYNCED, "status": status, "reason": reason, "message": message})
}

/// Returns the change that makes a status say `desired`; `None` if it says that, whatever the times are. `now` is the time of
/// day.
pub(super) fn status_change(current: &Value, desired: &Map<String, Value>, now: &str) -> Option<Value> {
    let mut fields = desired.clone();
    let conditions = desired.get("conditions").and_then(Value::as_array).into_iter().flatten();
    let dated: Vec<Value> = conditions.map(|condition| dated(current, condition, now)).collect();
    fields.insert("conditions".to_owned(), dated.into());
    let before = current.as_object().cloned().unwrap_or_default();
    if before == fields {
        return None;
    }
    for gone in before.keys().filter(|name| !desired.contains_key(*name)) {
        fields.insert(gone.clone(), Value::Null);
    }
    Some(Value::Object(fields))
}

/// Returns a condition with the time since which it is so.
fn dated(current: &Value, condition: &Value, now: &str) -> Value {
    let known = current.get("conditions").and_then(Value::as_array).into_iter().flatten();
    let same =
        |known: &&Value| ["type", "status"].iter().all(|field| known.get(*field) == condition.get(*field));
    let since = known.into_iter().find(same).and_then(|known| known.get("lastTransitionTime")).cloned();
    let mut dated = condition.clone();
    if let Some(fields) = dated.as_object_mut() {
        fields.insert("lastTransitionTime".to_owned(), since.unwrap_or_else(|| now.into()));
    }
    dated
}

/// Returns what a status says after a change of it.
pub(super) fn without_nulls(change: &Value) -> Value {
    let fields = change.as_object().into_iter().flatten();
    Value::Object(
        fields
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}

/// Returns the reference to an object that owns another one.
pub(super) fn owner(kind: RepositoryKind, name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": RepositoryKey::API_VERSION, "kind": kind.as_str(), "name": name, "uid": uid, "controller": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_status_is_written_when_it_differs_and_keeps_the_time_of_its_condition() {
        let desired = fields(&json!({"synced": false, "conditions": [condition(false, "r", "m")]}));
        let first = status_change(&Value::Null, &desired, "t1").unwrap();
        assert_eq!(first["conditions"][0]["lastTransitionTime"], "t1");
        assert_eq!(status_change(&first, &desired, "t2"), None);
        let other = fields(&json!({"conditions": [condition(false, "r", "other")]}));
        let second = status_change(&first, &other, "t2").unwrap();
        assert_eq!(second["synced"], Value::Null);
        assert_eq!(second["conditions"][0]["lastTransitionTime"], "t1");
        let third = fields(&json!({"conditions": [condition(true, "r", "")]}));
        assert_eq!(
            status_change(&second, &third, "t3").unwrap()["conditions"][0]["lastTransitionTime"],
            "t3"
        );
    }
}

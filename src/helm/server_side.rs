//! Objects that are written by server-side apply. See docs/modules.md#server-side-apply.
//!
//! The API server knows which fields a release applied last: what the chart renders no more goes, and what others have stays. An
//! object that was written by patches before has entries of ours for these in its managed fields; they become one of applies
//! first, or nothing that left the chart would ever go.

use engine::{ApplyMode, TakenFrom, TakenObject};
use objects::managed_fields::{FieldSet, path_text};
use objects::secret::fold_texts;
use serde_json::{Value, json};

use super::apply::{ATTEMPTS, Applier, Written, change_keys};
use super::error::ReleaseError;
use super::merge::Merge;
use super::object::{self, Object};
use super::object_diff;
use super::writers::ManagedFields;
use crate::cluster::Resource;
use crate::cluster::request::{MANAGER, PatchKind, RequestError, Requests};

/// What a record says of how its objects were written, as Helm 4 does.
pub(super) fn method(mode: ApplyMode) -> &'static str {
    match mode {
        ApplyMode::Client => "",
        ApplyMode::Server => chart::record::SERVER_SIDE,
    }
}

/// Returns how the objects of a record are written.
pub(super) fn mode_of(record: &chart::record::Record) -> ApplyMode {
    if record.apply_method == chart::record::SERVER_SIDE { ApplyMode::Server } else { ApplyMode::Client }
}

impl Applier<'_> {
    /// Applies one object and returns what it lacked. `earlier` are its states in revisions that may be in the cluster. One that exists already is adopted; fields of others become what was
    /// rendered, and that is told.
    pub(super) async fn write_by_server(
        &self,
        object: &Object,
        resource: &Resource,
        earlier: &[&Value],
    ) -> Result<Written, ReleaseError> {
        let (_, path) = self.paths(object, resource);
        let wanted = applied(object::wanted(object, resource, self.release, self.namespace), resource);
        let problem = |problem: String| {
            ReleaseError::Objects(vec![format!(
                "{}: {} {}: {problem}",
                object.path, object.kind, object.name
            )])
        };
        let shown = object_diff::shown(&object.key(self.namespace));
        for attempt in 1..=ATTEMPTS {
            let is_last = attempt == ATTEMPTS;
            let Some(before) = self.requests.get(&path).await.map_err(|error| problem(error.to_string()))?
            else {
                match self.requests.apply(&path, MANAGER, &wanted).await {
                    Ok(_) => return Ok(Written::Missing(format!("{shown} was missing"))),
                    Err(error) if error.code() == 409 && !is_last => continue,
                    Err(error) => return Err(problem(error.to_string())),
                }
            };
            // An object that others change all the time is changed all the same, in whatever version it is.
            let target = (&*path, resource);
            match apply_over(self.requests, target, (earlier, &wanted), &before, !is_last).await {
                Ok(after) => {
                    if let Some(owner) = object::other_owner(&before, self.release, self.namespace) {
                        self.tell_taken(&shown, owner);
                    }
                    self.tell_taken_field(&shown, &before, &after);
                    let places = object_diff::places(
                        &object_diff::without_bookkeeping(&before),
                        &object_diff::without_bookkeeping(&after),
                    );
                    return Ok(places.first().map_or(Written::Nothing, |place| {
                        Written::Different(format!("{shown} differed at {}", object_diff::pointer(place)))
                    }));
                }
                Err(error) if matches!(error.code(), 404 | 409) && !is_last => {}
                Err(error) => return Err(problem(error.to_string())),
            }
        }
        Err(problem("others delete it as fast as it is made".to_owned()))
    }

    /// Reports the first field that another writer has lost. What belongs to the life of an object is not told.
    fn tell_taken_field(&self, shown: &str, before: &Value, after: &Value) {
        let Some((manager, field)) = taken_field(before, after) else { return };
        tracing::warn!(
            release = self.release,
            manager,
            "field {field} of {shown} was taken over from {manager}: have one of the two write it only"
        );
        let from = TakenFrom::Writer { manager, field };
        self.taken_over.add(self.release, TakenObject { object: shown.to_owned(), from });
    }
}

/// Applies an object over the one that was read, and returns what became of it. What it lacks of keys of lists that others have
/// edited comes first: an apply takes such items for items of others.
///
/// A `precise` apply is for the version that was read: a request that is held up on its way may be carried out long after
/// it was given up, and must neither undo what a later upgrade wrote nor make the object anew.
pub(super) async fn apply_over(
    requests: &Requests,
    (path, resource): (&str, &Resource),
    (earlier, wanted): (&[&Value], &Value),
    read: &Value,
    precise: bool,
) -> Result<Value, RequestError> {
    let keys = Merge::of(resource).keys(earlier, wanted, read);
    let restored = match keys {
        Some(change) => Some(change_keys(requests, path, change, read, precise).await?),
        None => None,
    };
    let before = restored.as_ref().unwrap_or(read);
    let mut version = before.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
    if let Some(fields) = handed_over(before) {
        let change = json!({"metadata": {"managedFields": fields, "resourceVersion": version}});
        version = requests.edit(path, PatchKind::Merge, &change).await?.into();
    }
    let mut sent = wanted.clone();
    if precise {
        pin(&mut sent, before, version);
    }
    requests.apply(path, MANAGER, &sent).await
}

/// Makes an object that is applied one for this version of that which was read, and for no other object of its name.
fn pin(sent: &mut Value, read: &Value, version: Value) {
    let uid = read.pointer("/metadata/uid").cloned().unwrap_or_default();
    if let Some(metadata) = sent.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), version);
        metadata.insert("uid".to_owned(), uid);
    }
}

/// Returns what is applied of an object. Texts of a Secret are among its data: the API server keeps nobody as the owner of what it
/// makes of them, so that they would never go.
pub(super) fn applied(mut wanted: Value, resource: &Resource) -> Value {
    if let Some(metadata) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    if resource.kind == "Secret" && resource.group.is_empty() {
        fold_texts(&mut wanted);
    }
    wanted
}

/// Returns the managed fields of an object with what our patches have in the entry of our applies; `None` if no patch of ours has
/// anything.
///
/// Entries of other versions of the kind than that of the entry that stays are dropped: their fields may have other names.
fn handed_over(object: &Value) -> Option<Vec<Value>> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let text =
        |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_ours = |entry: &Value, operation: &str| {
        text(entry, "manager") == MANAGER
            && text(entry, "operation") == operation
            && text(entry, "subresource").is_empty()
    };
    let patched: Vec<&Value> = entries.iter().filter(|entry| is_ours(entry, "Update")).collect();
    let newest = patched.iter().max_by_key(|entry| text(entry, "time"))?;
    let kept = entries.iter().find(|entry| is_ours(entry, "Apply")).unwrap_or(newest);
    let version = text(kept, "apiVersion");
    let mut fields = FieldSet::from_fields_v1(kept.get("fieldsV1")?)?;
    for entry in patched.iter().filter(|entry| text(entry, "apiVersion") == version) {
        fields = fields.union(FieldSet::from_fields_v1(entry.get("fieldsV1")?)?);
    }
    let mut whole = (*kept).clone();
    let one = whole.as_object_mut()?;
    one.insert("operation".to_owned(), "Apply".into());
    one.insert("fieldsV1".to_owned(), fields.to_fields_v1());
    let others = entries.iter().filter(|entry| !is_ours(entry, "Update") && !is_ours(entry, "Apply"));
    Some(std::iter::once(whole).chain(others.cloned()).collect())
}

/// Returns another writer of an object that has lost a field, and the field.
fn taken_field(before: &Value, after: &Value) -> Option<(String, String)> {
    let after = ManagedFields::read(after);
    ManagedFields::read(before).iter().filter(|writer| !writer.is_of_system()).find_map(|writer| {
        let manager = writer.other()?.to_owned();
        let left = after.iter().find(|entry| entry.who() == writer.who());
        let left = left.map(ManagedFields::field_set).unwrap_or_default();
        let mut lost = None;
        writer.field_set().difference(&left).each(&mut |path| {
            lost.get_or_insert_with(|| path_text(path));
        });
        Some((manager, lost?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, version: &str, fields: &Value) -> Value {
        json!({
            "manager": manager, "operation": operation, "apiVersion": version, "time": "2026-01-02T03:04:05Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    }

    fn object(entries: &[Value]) -> Value {
        json!({"metadata": {"managedFields": entries}})
    }

    #[test]
    fn what_patches_have_is_handed_to_the_applies_and_nobody_else_loses_anything() {
        let (a, b) = (json!({"f:data": {"f:a": {}}}), json!({"f:data": {"f:b": {}}}));
        let both = json!({"f:data": {"f:a": {}, "f:b": {}}});
        let other = entry("kubectl", "Update", "v1", &a);
        let mut status = entry(MANAGER, "Update", "v1", &a);
        status["subresource"] = "status".into();
        for (before, expected) in [
            (vec![], None),
            (vec![other.clone(), status.clone()], None),
            (vec![entry(MANAGER, "Apply", "v1", &a), other.clone()], None),
            (
                vec![other.clone(), entry(MANAGER, "Update", "v1", &a), status.clone()],
                Some(vec![entry(MANAGER, "Apply", "v1", &a), other.clone(), status]),
            ),
            (
                vec![entry(MANAGER, "Apply", "v1", &a), entry(MANAGER, "Update", "v1", &b), other.clone()],
                Some(vec![entry(MANAGER, "Apply", "v1", &both), other]),
            ),
            // The fields of another version may have other names.
            (
                vec![entry(MANAGER, "Apply", "x/v2", &a), entry(MANAGER, "Update", "x/v1", &b)],
                Some(vec![entry(MANAGER, "Apply", "x/v2", &a)]),
            ),
        ] {
            assert_eq!(handed_over(&object(&before)), expected, "{before:?}");
        }
        let unread = entry(MANAGER, "Update", "v1", &json!({"?": {}}));
        assert_eq!(handed_over(&object(&[unread])), None, "what can't be read stays");
    }

    #[test]
    fn a_field_that_another_writer_has_lost_is_named_with_the_writer() {
        let fields = json!({"f:spec": {"f:replicas": {}, "f:paused": {}}});
        let less = json!({"f:spec": {"f:paused": {}}});
        let before = object(&[
            entry("kube-controller-manager", "Update", "v1", &fields),
            entry("argocd", "Apply", "v1", &fields),
        ]);
        assert_eq!(taken_field(&before, &before), None);
        let after = object(&[entry("argocd", "Apply", "v1", &less)]);
        let taken = Some(("argocd".to_owned(), ".spec.replicas".to_owned()));
        assert_eq!(taken_field(&before, &after), taken, "controllers of the cluster are not told");
        assert_eq!(taken_field(&object(&[entry(MANAGER, "Update", "v1", &fields)]), &after), None);
    }
}

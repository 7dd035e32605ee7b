//! Which children there should be, and what has to be done about those that there are.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use values::Checksum;

use super::identity::ChildKey;
use super::index::Reference;
use super::key_state::{Attempt, KeyState};
use super::observed::{APPLIED, Metadata, ORDER, checksum, value};
use super::patches;
use super::turns::ChildChange;
use super::watch::Watch;
use crate::failure::{Failure, FailureKind};
use crate::hook::object_patch::{ObjectPatch, is_path_part};
use crate::hook::reconcile::{
    ANOTHER_NAME, CHILD_LABEL, MADE_BY, OWNED_BY, ObjectKind, ReconcileBinding, Update,
};
use crate::hook::snapshot::Key;

/// What the API server writes into the metadata of objects. Who copies an object need not remove it.
const OF_THE_SERVER: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The object that children belong to.
#[derive(Debug)]
pub(super) struct Parent<'p> {
    pub(super) kind: &'p ObjectKind,
    pub(super) key: &'p Key,
    pub(super) metadata: &'p Metadata,
}

/// A child that there should be.
#[derive(Debug)]
pub(super) struct Desired {
    pub(super) child: ChildKey,
    object: Value,
    checksum: Checksum,
}

/// What is to be done about children.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The changes, in order.
    pub(super) patches: Vec<ObjectPatch>,
    /// What they try.
    pub(super) attempts: BTreeMap<ChildKey, Attempt>,
    /// What becomes of which child.
    pub(super) changes: Vec<ChildChange>,
    /// The children that were made before, and of which no watch tells.
    pub(super) unseen: Vec<ChildKey>,
    /// The first child that has to be gone before it can be made again.
    pub(super) leaving: Option<ChildKey>,
}

impl Plan {
    /// Takes an orphan back, unless that was tried before.
    fn take_back(&mut self, child: ChildKey, attempt: Attempt, patch: ObjectPatch, state: &KeyState) {
        if state.attempts.get(&child) != Some(&attempt) {
            self.patches.push(patch);
            self.changes.push(ChildChange::Changed(child.clone(), None));
            self.attempts.insert(child, attempt);
        }
    }
}

impl Parent<'_> {
    /// Returns how children may refer to it.
    pub(super) fn references(&self) -> [Reference; 2] {
        [Reference::Uid(self.metadata.uid.clone()), Reference::Named(self.key.clone())]
    }

    /// Returns whether it can own an object in this namespace.
    fn may_own(&self, namespace: &str) -> bool {
        self.key.namespace.is_empty() || *self.key.namespace == *namespace
    }
}

/// Returns the children that a hook asked for, as they are to be applied.
///
/// # Errors
///
/// If one of them can't be a child of this parent, nothing is done.
pub(super) fn desired(
    binding: &ReconcileBinding,
    parent: &Parent<'_>,
    watches: &[Watch],
    children: &[Value],
) -> Result<Vec<Desired>, Failure> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::with_capacity(children.len());
    for (place, object) in children.iter().enumerate() {
        let one = desired_one(binding, parent, watches, (place, object))?;
        if !seen.insert(one.child.clone()) {
            return Err(refused(place, &format!("{} is there twice", shown(binding, &one.child))));
        }
        all.push(one);
    }
    Ok(all)
}

fn desired_one(
    binding: &ReconcileBinding,
    parent: &Parent<'_>,
    watches: &[Watch],
    (place, object): (usize, &Value),
) -> Result<Desired, Failure> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = ObjectKind { api_version: text("/apiVersion").to_owned(), kind: text("/kind").to_owned() };
    let Some(index) = binding.children.iter().position(|child| child.kind == kind) else {
        let known: Vec<String> = binding
            .children
            .iter()
            .map(|child| format!("{} {}", child.kind.api_version, child.kind.kind))
            .collect();
        let message = format!(
            "kind {} {} is not in children of the binding, which has [{}]",
            kind.api_version,
            kind.kind,
            known.join(", ")
        );
        return Err(refused(place, &message));
    };
    let key = key_in(watches.get(index), object);
    for (field, text) in [("namespace", &key.namespace), ("name", &key.name)] {
        if !is_path_part(text) {
            let message = format!("metadata.{field} {text:?} can't be '.' or '..', nor have '/' or '%'");
            return Err(refused(place, &message));
        }
    }
    let (mut object, mut is_owned) = (object.clone(), false);
    // It is that of whoever looks after the child.
    object.as_object_mut().map(|fields| fields.remove("status"));
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in OF_THE_SERVER {
            metadata.remove(field);
        }
        if key.namespace.is_empty() {
            metadata.remove("namespace");
        }
        set(metadata, "labels", CHILD_LABEL, "true".to_owned());
        set(metadata, "annotations", ORDER, place.to_string());
        if parent.may_own(&key.namespace) {
            let owner = json!({
                "apiVersion": parent.kind.api_version, "kind": parent.kind.kind, "name": &*parent.key.name,
                "uid": &*parent.metadata.uid, "controller": true,
            });
            is_owned = true;
            metadata.insert("ownerReferences".to_owned(), json!([owner]));
        } else {
            metadata.remove("ownerReferences");
            set(metadata, "annotations", OWNED_BY, format!("{}/{}", parent.kind, parent.key));
        }
    }
    let checksum = Checksum::of(&object);
    // A deletion in the foreground waits for it. It is not in the checksum: children that were made without it are as declared.
    let owner = object.pointer_mut("/metadata/ownerReferences/0").and_then(Value::as_object_mut);
    if let Some(owner) = owner.filter(|_| is_owned) {
        owner.insert("blockOwnerDeletion".to_owned(), true.into());
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        set(metadata, "annotations", APPLIED, checksum.to_string());
    }
    Ok(Desired { child: (index, key), object, checksum })
}

/// Returns where a child is. What says a namespace of a kind that is in none is there all the same: an owner in a namespace would
/// have the garbage collector remove it.
fn key_in(watch: Option<&Watch>, object: &Value) -> Key {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let is_cluster_wide = watch.is_some_and(|watch| watch.is_cluster_wide);
    Key::new(if is_cluster_wide { "" } else { text("/metadata/namespace") }, text("/metadata/name"))
}

/// Returns which children there should be. They were checked before.
pub(super) fn named(
    binding: &ReconcileBinding,
    watches: &[Watch],
    children: &[Value],
) -> impl Iterator<Item = ChildKey> {
    children.iter().filter_map(|object| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let is_kind =
            |kind: &ObjectKind| kind.api_version == text("/apiVersion") && kind.kind == text("/kind");
        let index = binding.children.iter().position(|child| is_kind(&child.kind))?;
        Some((index, key_in(watches.get(index), object)))
    })
}

/// Returns an object that says which binding makes it. Nothing else is compared with: children that were made before do not say it.
fn marked(mut object: Value, mark: &str) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        set(metadata, "annotations", MADE_BY, mark.to_owned());
    }
    object
}

/// Sets a text in a mapping of the metadata. A mapping that is null counts as empty.
fn set(metadata: &mut Map<String, Value>, field: &str, key: &str, text: String) {
    let fields = metadata.entry(field).or_insert(Value::Null);
    if let Value::Object(fields) = fields {
        fields.insert(key.to_owned(), text.into());
    } else {
        *fields = json!({key: text});
    }
}

/// Returns what has to be done so that all children are as they should be. What was tried before is not tried again, and what
/// went since the hook ran is not made: the next run says whether it should be there.
///
/// # Errors
///
/// If another parent has one of them, nothing is done.
pub(super) fn plan(
    binding: &ReconcileBinding,
    parent: &Parent<'_>,
    watches: &[Watch],
    desired: Vec<Desired>,
    state: &KeyState,
) -> Result<Plan, Failure> {
    let references = parent.references();
    let mut plan = Plan::default();
    for (place, one) in desired.into_iter().enumerate() {
        let Desired { child, object, checksum: wanted } = one;
        let (Some(of), Some(watch)) = (binding.children.get(child.0), watches.get(child.0)) else { continue };
        let Some(claim) = watch.claim() else { continue };
        let Some(living) = watch.snapshot.get(&child.1) else {
            let attempt = (wanted, None);
            if state.gone.contains(&child) {
                continue;
            }
            let before = state.attempts.get(&child);
            if before.is_some_and(|(_, living)| living.is_none()) {
                plan.unseen.push(child.clone());
            }
            if before != Some(&attempt) {
                // What is there without our label is not ours, unless it says so.
                plan.patches.push(patches::make(&of.kind, &child.1, marked(object, claim.own())));
                plan.changes.push(ChildChange::Made(child.clone()));
                plan.attempts.insert(child, attempt);
            }
            continue;
        };
        let metadata = Metadata::of(living);
        let is_orphan = metadata.is_orphan() && metadata.made_by() == Some(claim.own());
        if is_orphan && parent.may_own(&child.1.namespace) {
            // Somebody deleted its owner, or deletes it, and asked that it stays (`--cascade=orphan`).
            if !parent.metadata.is_deleting() && !metadata.is_deleting() {
                let attempt = (wanted, Some(checksum(&value(living), false)));
                let patch = patches::apply(&of.kind, &child.1, marked(object, claim.own()));
                plan.take_back(child, attempt, patch, state);
            }
            continue;
        }
        if !metadata.parent(parent.kind).iter().any(|reference| references.contains(reference)) {
            let message = format!("{} is there already, and is not a child of it", shown(binding, &child));
            return Err(taken(place, &message));
        }
        if let Some(rival) = claim.rival(&metadata) {
            let shown = shown(binding, &child);
            let message = format!("{shown} is there already: binding {rival} of the same kind makes it");
            return Err(taken(place, &message));
        }
        if metadata.is_deleting() {
            // It is made again when it is gone.
            plan.leaving.get_or_insert(child);
            continue;
        }
        if !claim.includes(&metadata) {
            // It says nothing of whose it is, or names a binding that is not there any more. What it becomes, it becomes as ours.
            plan.patches.push(patches::mark(&of.kind, &child.1, claim.own()));
            continue;
        }
        let living = value(living);
        let is_other = metadata.annotations.get(APPLIED) != Some(&wanted.to_string());
        if !is_other && includes(&living, &readable(&object)) {
            continue;
        }
        let attempt = (wanted, Some(checksum(&living, false)));
        if of.update == Update::OnDelete || state.attempts.get(&child) == Some(&attempt) {
            continue;
        }
        let place = state.turns.place(&child, &living, &object);
        plan.changes.push(ChildChange::Changed(child.clone(), place));
        plan.patches.push(match of.update {
            Update::Recreate if is_other => patches::delete(&of.kind, &child.1),
            Update::InPlace | Update::OnDelete | Update::Recreate => {
                patches::apply(&of.kind, &child.1, marked(object, claim.own()))
            }
        });
        plan.attempts.insert(child, attempt);
    }
    Ok(plan)
}

/// Returns the children that are to go, in reverse order of how they were made.
pub(super) fn doomed(
    parent: &Parent<'_>,
    watches: &[Watch],
    kept: &BTreeSet<ChildKey>,
) -> Vec<(ChildKey, bool)> {
    let mut all: Vec<(usize, ChildKey, bool)> = Vec::new();
    for (index, watch) in watches.iter().enumerate() {
        for (key, item) in watch.objects(&parent.references()) {
            let child = (index, key);
            if !kept.contains(&child) {
                let metadata = Metadata::of(&item);
                all.push((metadata.order(), child, metadata.is_deleting()));
            }
        }
    }
    all.sort_by(|one, other| other.cmp(one));
    all.into_iter().map(|(_, child, is_deleting)| (child, is_deleting)).collect()
}

/// Returns a child in words: `Deployment.apps shop/web`.
pub(super) fn shown(binding: &ReconcileBinding, child: &ChildKey) -> String {
    let kind = binding.children.get(child.0).map(|child| child.kind.to_string()).unwrap_or_default();
    format!("{kind} {}", child.1)
}

fn refused(place: usize, message: &str) -> Failure {
    let failure = Failure::new(FailureKind::HookOutput, format!("children[{place}]: {message}"));
    failure.advise(
        "nothing of what the hook wrote took effect; correct the hook, the object is tried again by itself",
    )
}

/// Returns why nothing is done about children while the place of one is taken. The other files of the hook were carried out.
fn taken(place: usize, message: &str) -> Failure {
    Failure::new(FailureKind::HookOutput, format!("children[{place}]: {message}")).advise(ANOTHER_NAME)
}

/// Returns the fields of an object that can be read again: the API server turns `stringData` of a Secret into `data`.
fn readable(object: &Value) -> Value {
    let mut object = object.clone();
    object.as_object_mut().map(|fields| fields.remove("stringData"));
    object
}

/// Returns whether a living object has everything that it should have. What it has besides is of others.
fn includes(living: &Value, wanted: &Value) -> bool {
    match (living, wanted) {
        (Value::Object(living), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| match living.get(key) {
                Some(living) => includes(living, wanted),
                None => is_nothing(wanted),
            })
        }
        (Value::Array(living), Value::Array(wanted)) => {
            let id = |item: &Value| {
                ["name", "uid"].iter().find_map(|key| item.get(key)?.as_str().map(str::to_owned))
            };
            let ids: Option<Vec<String>> = wanted.iter().map(id).collect();
            match ids.filter(|ids| !ids.is_empty()) {
                Some(ids) => wanted.iter().zip(ids).all(|(wanted, name)| {
                    living.iter().any(|living| id(living).as_ref() == Some(&name) && includes(living, wanted))
                }),
                None => {
                    living.len() == wanted.len()
                        && living.iter().zip(wanted).all(|(living, wanted)| includes(living, wanted))
                }
            }
        }
        (living, wanted) => living == wanted,
    }
}

/// Returns whether a field that is left out says the same.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

//! Which children there should be, and what has to be done about those that there are.

use std::collections::{BTreeMap, BTreeSet};

use objects::secret::fold_texts;
use serde_json::{Map, Value, json};
use values::Checksum;

use super::comparison::{includes, surplus};
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
pub(super) struct Desired<'c> {
    pub(super) child: ChildKey,
    /// As its hook wrote it.
    written: &'c Value,
    /// What is compared with the one that lives.
    object: Value,
    /// The checksum of what is declared: neither of its place nor of what says who made it.
    checksum: Checksum,
    /// Its place among those that are made with it.
    place: usize,
}

impl Desired<'_> {
    /// Returns the object as it is applied by the binding that is named so.
    fn applied(&self, by: &str) -> Value {
        let mut object = self.object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            set(metadata, "annotations", MADE_BY, by.to_owned());
            set(metadata, "annotations", ORDER, self.place.to_string());
            set(metadata, "annotations", APPLIED, self.checksum.to_string());
        }
        object
    }

    /// Returns what it is to try this with the one that lives, if there is one.
    fn attempt(&self, living: Option<&Value>) -> Attempt {
        let (declared, place) = (self.checksum, self.place);
        Attempt { declared, place, living: living.map(|living| checksum(living, false)) }
    }

    /// Returns what the living child needs. What somebody took our note from is made again only if it differs: nobody knows what
    /// was declared.
    fn needs(&self, update: Update, parent: &Parent<'_>, metadata: &Metadata, living: &Value) -> Needs {
        let noted = metadata.annotations.get(APPLIED);
        let is_as_said = includes(living, &self.object);
        let is_noted = noted.is_some_and(|noted| *noted == self.checksum.to_string());
        let is_declared = || if noted.is_some() { self.is_declared_by(parent, metadata) } else { is_as_said };
        let is_placed = metadata.order() == self.place;
        match update {
            Update::OnDelete if is_placed => Needs::Nothing,
            Update::OnDelete => Needs::Place,
            Update::InPlace | Update::Recreate if is_noted && is_as_said && is_placed => Needs::Nothing,
            Update::InPlace | Update::Recreate if is_noted && is_as_said => Needs::Place,
            Update::Recreate if !is_declared() => Needs::Another,
            Update::InPlace | Update::Recreate => Needs::Apply,
        }
    }

    /// Returns whether a living child says that this is what was declared of it when it was made.
    fn is_declared_by(&self, parent: &Parent<'_>, living: &Metadata) -> bool {
        let Some(noted) = living.annotations.get(APPLIED) else { return false };
        let is_noted = |checksum: Checksum| *noted == checksum.to_string();
        is_noted(self.checksum) || is_noted(self.earlier_checksum(parent, living.order()))
    }

    /// Returns the checksum as earlier versions noted it: the place was in it, and texts of a Secret were no data. What they made
    /// is not to be made again because of that.
    fn earlier_checksum(&self, parent: &Parent<'_>, place: usize) -> Checksum {
        let mut object = declared(parent, &self.child.1.namespace, self.written);
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            set(metadata, "annotations", ORDER, place.to_string());
        }
        Checksum::of(&object)
    }
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
    /// Whether a child is on its way out, or went: none behind it is deleted to be made again before it is there.
    is_held: bool,
}

/// What a child that lives needs to be as it should be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Needs {
    Nothing,
    /// It is as declared, and has another place among those that are made with it.
    Place,
    /// It is changed where it is.
    Apply,
    /// It is deleted and made again.
    Another,
}

/// How it is told that a child has another place each time.
const ITS_PLACE: &str = "its place in children";

impl Plan {
    /// Makes a child that is not there, unless it went since the hook ran or was made before. What is there without our label is
    /// not ours, unless it says so.
    fn make(&mut self, kind: &ObjectKind, one: &Desired<'_>, by: &str, state: &KeyState) {
        let (child, attempt) = (&one.child, one.attempt(None));
        if state.gone.contains(child) {
            self.is_held = true;
            return;
        }
        let before = state.attempts.get(child);
        if before.is_some_and(|before| before.living.is_none()) {
            self.unseen.push(child.clone());
        }
        if before != Some(&attempt) {
            self.patches.push(patches::make(kind, &child.1, one.applied(by)));
            self.changes.push(ChildChange::Made(child.clone()));
            self.attempts.insert(child.clone(), attempt);
        }
    }

    /// Makes a child that lives without an owner a child again.
    fn take_back(
        &mut self,
        kind: &ObjectKind,
        one: &Desired<'_>,
        living: &Value,
        by: &str,
        state: &KeyState,
    ) {
        let (child, attempt) = (&one.child, one.attempt(Some(living)));
        if state.attempts.get(child) != Some(&attempt) {
            let patch = patches::apply(kind, &child.1, one.applied(by));
            self.change(child, None, attempt, vec![patch]);
        }
    }

    /// Changes a child, in this place if that is known.
    fn change(
        &mut self,
        child: &ChildKey,
        place: Option<String>,
        attempt: Attempt,
        patches: Vec<ObjectPatch>,
    ) {
        self.patches.extend(patches);
        self.changes.push(ChildChange::Changed(child.clone(), place));
        self.attempts.insert(child.clone(), attempt);
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
pub(super) fn desired<'c>(
    binding: &ReconcileBinding,
    parent: &Parent<'_>,
    watches: &[Watch],
    children: &'c [Value],
) -> Result<Vec<Desired<'c>>, Failure> {
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

fn desired_one<'c>(
    binding: &ReconcileBinding,
    parent: &Parent<'_>,
    watches: &[Watch],
    (place, written): (usize, &'c Value),
) -> Result<Desired<'c>, Failure> {
    let text = |pointer: &str| written.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
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
    let key = key_in(watches.get(index), written);
    for (field, text) in [("namespace", &key.namespace), ("name", &key.name)] {
        if !is_path_part(text) {
            let message = format!("metadata.{field} {text:?} can't be '.' or '..', nor have '/' or '%'");
            return Err(refused(place, &message));
        }
    }
    let mut object = declared(parent, &key.namespace, written);
    if (kind.api_version.as_str(), kind.kind.as_str()) == ("v1", "Secret") {
        // They can be read again only there.
        fold_texts(&mut object);
    }
    let checksum = Checksum::of(&object);
    // A deletion in the foreground waits for it. It is not in the checksum: children that were made without it are as declared.
    let owner = object.pointer_mut("/metadata/ownerReferences/0").and_then(Value::as_object_mut);
    if let Some(owner) = owner {
        owner.insert("blockOwnerDeletion".to_owned(), true.into());
    }
    Ok(Desired { child: (index, key), written, object, checksum, place })
}

/// Returns what a hook declares of a child in this namespace, with what says whose it is.
fn declared(parent: &Parent<'_>, namespace: &str, written: &Value) -> Value {
    let mut object = written.clone();
    // It is that of whoever looks after the child.
    object.as_object_mut().map(|fields| fields.remove("status"));
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in OF_THE_SERVER {
            metadata.remove(field);
        }
        if namespace.is_empty() {
            metadata.remove("namespace");
        }
        set(metadata, "labels", CHILD_LABEL, "true".to_owned());
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            // Who copies a child says nothing of the copy with them.
            annotations.retain(|name, _| ![ORDER, APPLIED, MADE_BY].contains(&name.as_str()));
        }
        if parent.may_own(namespace) {
            let owner = json!({
                "apiVersion": parent.kind.api_version, "kind": parent.kind.kind, "name": &*parent.key.name,
                "uid": &*parent.metadata.uid, "controller": true,
            });
            metadata.insert("ownerReferences".to_owned(), json!([owner]));
        } else {
            metadata.remove("ownerReferences");
            set(metadata, "annotations", OWNED_BY, format!("{}/{}", parent.kind, parent.key));
        }
    }
    object
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
/// went since the hook ran is not made: the next run says whether it should be there. One that is made again goes when those before
/// it are there.
///
/// # Errors
///
/// If another parent has one of them, nothing is done.
pub(super) fn plan(
    binding: &ReconcileBinding,
    parent: &Parent<'_>,
    watches: &[Watch],
    desired: Vec<Desired<'_>>,
    state: &KeyState,
) -> Result<Plan, Failure> {
    let references = parent.references();
    let mut plan = Plan::default();
    for one in desired {
        let child = &one.child;
        let (Some(of), Some(watch)) = (binding.children.get(child.0), watches.get(child.0)) else { continue };
        let Some(claim) = watch.claim() else { continue };
        let Some(living) = watch.snapshot.get(&child.1) else {
            plan.make(&of.kind, &one, claim.own(), state);
            continue;
        };
        let metadata = Metadata::of(living);
        let is_orphan = metadata.is_orphan() && metadata.made_by() == Some(claim.own());
        if is_orphan && parent.may_own(&child.1.namespace) {
            // Somebody deleted its owner, or deletes it, and asked that it stays (`--cascade=orphan`).
            if !parent.metadata.is_deleting() && !metadata.is_deleting() {
                plan.take_back(&of.kind, &one, &value(living), claim.own(), state);
            }
            continue;
        }
        if !metadata.parent(parent.kind).iter().any(|reference| references.contains(reference)) {
            let message = format!("{} is there already, and is not a child of it", shown(binding, child));
            return Err(taken(one.place, &message));
        }
        if let Some(rival) = claim.rival(&metadata) {
            let shown = shown(binding, child);
            let message = format!("{shown} is there already: binding {rival} of the same kind makes it");
            return Err(taken(one.place, &message));
        }
        if metadata.is_deleting() {
            // It is made again when it is gone.
            plan.is_held = true;
            plan.leaving.get_or_insert_with(|| child.clone());
            continue;
        }
        if !claim.includes(&metadata) {
            // It says nothing of whose it is, or names a binding that is not there any more. What it becomes, it becomes as ours.
            plan.patches.push(patches::mark(&of.kind, &child.1, claim.own()));
            continue;
        }
        let living = value(living);
        let needs = one.needs(of.update, parent, &metadata, &living);
        let is_changed = needs != Needs::Another && of.update != Update::OnDelete;
        let surplus = if is_changed { surplus(&living, &one.object, &of.exact) } else { Vec::new() };
        if needs == Needs::Nothing && surplus.is_empty() {
            continue;
        }
        let is_behind = plan.is_held && needs == Needs::Another;
        plan.is_held |= needs == Needs::Another;
        let attempt = one.attempt(Some(&living));
        if is_behind || state.attempts.get(child) == Some(&attempt) {
            continue;
        }
        let (kind, key) = (&of.kind, &child.1);
        let mut place = state.turns.place(child, &living, &one.object);
        let mut patches = match needs {
            Needs::Nothing => Vec::new(),
            Needs::Place => {
                place = Some(ITS_PLACE.to_owned());
                vec![patches::place(kind, key, one.place)]
            }
            Needs::Apply => vec![patches::apply(kind, key, one.applied(claim.own()))],
            Needs::Another => {
                vec![patches::try_make(kind, key, one.applied(claim.own())), patches::delete(kind, key)]
            }
        };
        for (field, change) in surplus {
            place.get_or_insert_with(|| field.to_string());
            patches.push(patches::take(kind, key, change));
        }
        plan.change(child, place, attempt, patches);
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

//! One controller: its watches, its keys, and which keys a change concerns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::claim::Claim;
use super::finalizer_record::Peers;
use super::identity::ControllerId;
use super::index::{Index, Reference};
use super::key_state::{End, KeyState};
use super::observed::{Metadata, checksum, named_by, value};
use super::plan::Parent;
use super::remark::OVERDUE;
use super::strays::Straying;
use super::watch::{About, Concern, Watch};
use crate::catalog::Hook;
use crate::context::Context;
use crate::effect::{Effect, ValuesInput};
use crate::hook::reconcile::{
    CHILD_LABEL, ObjectKind, ParentReference, Reconciliation, RelatedKind, ShownKind,
};
use crate::hook::selection::LabelSelector;
use crate::hook::snapshot::{Item, Key, Objects};
use crate::hook::{MonitorSpec, ReconcileBinding, Selection};
use crate::name::{MonitorId, QueueName};
use crate::queue::Reason;
use crate::time::Time;

/// Which watch of a controller is meant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Role {
    /// That of the objects themselves.
    Parents,
    /// That of a kind of children.
    Children(usize),
    /// That of a related kind.
    Related(usize),
    /// That of objects that left the selection.
    Strays,
}

/// A key that a change concerns.
#[derive(Debug)]
pub(super) struct Wake {
    pub(super) key: Key,
    /// Whose watch told of it.
    pub(super) role: Role,
    /// Whether all that happened is that a child is gone.
    pub(super) is_end_of_child: bool,
    /// Whether all that happened is what we wrote ourselves.
    pub(super) is_own: bool,
}

/// How bindings are named on children, by the kind of the objects and of the children that they make.
pub(super) type Makers = BTreeMap<(String, String), BTreeSet<Arc<str>>>;

/// One reconcile binding that is on.
#[derive(Debug)]
pub(super) struct Controller {
    pub(super) id: Arc<ControllerId>,
    pub(super) hook: Arc<Hook>,
    pub(super) binding: ReconcileBinding,
    /// The kind of its objects.
    pub(super) kind: ObjectKind,
    pub(super) queue: QueueName,
    /// The watch of the objects.
    pub(super) parents: Watch,
    pub(super) children: Vec<Watch>,
    pub(super) related: Vec<Watch>,
    pub(super) metadata: BTreeMap<Key, Metadata>,
    by_uid: BTreeMap<Arc<str>, Key>,
    by_owner: BTreeMap<Arc<str>, BTreeSet<Key>>,
    /// Which objects of each related kind its objects name, where they do so.
    named: Vec<Index>,
    pub(super) keys: BTreeMap<Key, KeyState>,
    /// What is known of the ends of objects that it has not seen yet.
    pub(super) ends: BTreeMap<Arc<str>, End>,
    /// When it is told of which deleted object that it is not finalized.
    pub(super) overdue: BTreeSet<(Time, Key)>,
    /// Since when a kind is missing that it names, or may not be listed.
    pub(super) obstructed_since: Option<Time>,
    /// When its keys look once more whether that has lasted too long.
    pub(super) look_at: Option<Time>,
    /// What the hook read when it ran last.
    pub(super) read: Option<ValuesInput>,
    /// How many keys were told of last.
    pub(super) reported: Option<usize>,
    /// The bindings of the same kind, with this one.
    pub(super) peers: Arc<Peers>,
    pub(super) straying: Straying,
    /// Whether its binding is not on: it tells of objects that stay by its finalizer, and runs nothing.
    pub(super) is_retired: bool,
}

impl Controller {
    /// Starts the watches of a binding. Returns it with what each watch is.
    pub(super) fn start(
        cx: &mut Context,
        (hook, binding): (&Arc<Hook>, &ReconcileBinding),
        mut monitor: impl FnMut() -> MonitorId,
    ) -> (Self, Vec<(MonitorId, Role)>) {
        let mut roles = Vec::new();
        let mut open = |cx: &mut Context, role: Role, selection: Selection, jq_filter: Option<String>| {
            let id = monitor();
            let spec = Arc::new(MonitorSpec { selection, jq_filter, keep_objects: true });
            cx.push(Effect::StartMonitor { monitor: id, spec });
            roles.push((id, role));
            id
        };
        let kind = binding.kind();
        let parents = open(cx, Role::Parents, binding.parent.clone(), None);
        let parents = Watch::new(parents, kind.kind.as_str().into(), About::Nobody);
        let id = ControllerId::new(hook, binding);
        let mark: Arc<str> = id.mark().into();
        let mut children = Vec::with_capacity(binding.children.len());
        for (index, child) in binding.children.iter().enumerate() {
            let label = (CHILD_LABEL.to_owned(), "true".to_owned());
            let selection = Selection {
                api_version: child.kind.api_version.clone(),
                kind: child.kind.kind.clone(),
                labels: LabelSelector { match_labels: [label].into(), ..LabelSelector::default() },
                ..Selection::default()
            };
            let monitor = open(cx, Role::Children(index), selection, child.jq_filter.clone());
            let about = About::Children(kind.clone(), Claim::of(Arc::clone(&mark)));
            children.push(Watch::new(monitor, child.kind.to_string().into(), about));
        }
        let mut related = Vec::with_capacity(binding.related.len());
        for (index, RelatedKind { name, selection, parent, jq_filter }) in binding.related.iter().enumerate()
        {
            let monitor = open(cx, Role::Related(index), selection.clone(), jq_filter.clone());
            related.push(Watch::new(monitor, name.as_str().into(), About::Related(parent.clone())));
        }
        let own_queue = || format!("{}/{}", hook.id, binding.name).into();
        let controller = Self {
            id,
            hook: Arc::clone(hook),
            queue: binding.queue.clone().unwrap_or_else(own_queue),
            binding: binding.clone(),
            kind,
            parents,
            children,
            related,
            metadata: BTreeMap::new(),
            by_uid: BTreeMap::new(),
            by_owner: BTreeMap::new(),
            named: binding.related.iter().map(|_| Index::default()).collect(),
            keys: BTreeMap::new(),
            ends: BTreeMap::new(),
            overdue: BTreeSet::new(),
            obstructed_since: None,
            look_at: None,
            read: None,
            reported: None,
            peers: Arc::default(),
            straying: Straying::of(binding),
            is_retired: false,
        };
        (controller, roles)
    }

    /// Starts to look for what a binding left that is not on.
    pub(super) fn retire(
        cx: &mut Context,
        (hook, binding): (&Arc<Hook>, &ReconcileBinding),
        monitor: impl FnMut() -> MonitorId,
    ) -> (Self, Vec<(MonitorId, Role)>) {
        let (children, related) = (Vec::new(), Vec::new());
        let parent = Selection { only_metadata: true, ..binding.parent.ever() };
        let binding = ReconcileBinding { parent, children, related, ..binding.clone() };
        let (controller, roles) = Self::start(cx, (hook, &binding), monitor);
        (Self { is_retired: true, ..controller }, roles)
    }

    /// Returns whether it looks after an object: who is retired does so if the object has its finalizer, and so it is with those
    /// that left the selection.
    fn is_wanted(&self, role: Role, item: &Item) -> bool {
        let is_left = role == Role::Strays || self.is_retired && role == Role::Parents;
        !is_left || self.finalizers(&Metadata::of(item)).are_held()
    }

    /// Returns whether it is known which objects it has.
    pub(super) fn is_listed(&self) -> bool {
        self.parents.is_known()
    }

    /// Returns whether an object is selected.
    pub(super) fn selects(&self, key: &Key) -> bool {
        self.parents.snapshot.get(key).is_some()
    }

    /// Iterates over all its watches.
    pub(super) fn monitors(&self) -> impl Iterator<Item = MonitorId> + '_ {
        let strays = self.straying.strays.iter().map(|strays| &strays.watch);
        let others = self.children.iter().chain(&self.related).chain(strays);
        std::iter::once(&self.parents).chain(others).map(|watch| watch.monitor)
    }

    /// Returns a watch.
    pub(super) fn watch(&self, role: Role) -> Option<&Watch> {
        match role {
            Role::Parents => Some(&self.parents),
            Role::Children(index) => self.children.get(index),
            Role::Related(index) => self.related.get(index),
            Role::Strays => self.straying.strays.as_ref().map(|strays| &strays.watch),
        }
    }

    /// Returns a watch for changes.
    pub(super) fn watch_mut(&mut self, role: Role) -> Option<&mut Watch> {
        match role {
            Role::Parents => Some(&mut self.parents),
            Role::Children(index) => self.children.get_mut(index),
            Role::Related(index) => self.related.get_mut(index),
            Role::Strays => self.straying.strays.as_mut().map(|strays| &mut strays.watch),
        }
    }

    /// Handles a list of all objects of a watch.
    pub(super) fn listed(&mut self, role: Role, objects: Objects) -> Vec<Wake> {
        let objects = objects.into_iter().filter(|(_, item)| self.is_wanted(role, item)).collect();
        let Some(watch) = self.watch_mut(role) else { return Vec::new() };
        let concerns = watch.list(objects);
        let mut wakes = self.concerned(role, concerns);
        if let Role::Children(index) = role {
            wakes.extend(self.retried(index));
        }
        wakes
    }

    /// Handles a list of the objects of a namespace.
    pub(super) fn namespace_listed(&mut self, role: Role, namespace: &str, objects: Objects) -> Vec<Wake> {
        let objects = objects.into_iter().filter(|(_, item)| self.is_wanted(role, item)).collect();
        let Some(watch) = self.watch_mut(role) else { return Vec::new() };
        let concerns = watch.list_namespace(namespace, objects);
        self.concerned(role, concerns)
    }

    /// Handles a change of an object.
    pub(super) fn changed(&mut self, role: Role, key: &Key, is_gone: bool, item: Arc<Item>) -> Vec<Wake> {
        let is_gone = is_gone || !self.is_wanted(role, &item);
        let Some(watch) = self.watch_mut(role) else { return Vec::new() };
        let concerns = watch.change(key, is_gone, item);
        self.concerned(role, concerns)
    }

    /// Handles that a kind does not exist.
    pub(super) fn vanished(&mut self, role: Role, kind: String, now: Time) -> Vec<Wake> {
        let Some(watch) = self.watch_mut(role) else { return Vec::new() };
        let concerns = watch.vanish(kind, now);
        self.concerned(role, concerns)
    }

    /// Returns the kinds that it makes, each with the kind of its objects.
    pub(super) fn makes(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let parent = self.kind.to_string();
        self.binding.children.iter().map(move |child| (parent.clone(), child.kind.to_string()))
    }

    /// Records which bindings make which kinds. Returns the keys whose children may be those of others now, or no longer are.
    pub(super) fn share(&mut self, makers: &Makers) -> Vec<Wake> {
        let (own, kinds): (String, Vec<_>) = (self.id.mark(), self.makes().collect());
        let mut wakes = Vec::new();
        for (index, kind) in kinds.iter().enumerate() {
            let others = makers.get(kind).into_iter().flatten().filter(|mark| ***mark != *own);
            let others = others.cloned().collect();
            let concerns = self.children.get_mut(index).map(|watch| watch.share(others)).unwrap_or_default();
            wakes.extend(self.concerned(Role::Children(index), concerns));
        }
        wakes
    }

    /// Records which bindings of its kind there are. Returns the keys that stayed by what may not be left any more, or is told by
    /// another one.
    pub(super) fn meet(&mut self, peers: &Arc<Peers>) -> Vec<Wake> {
        if self.peers == *peers {
            return Vec::new();
        }
        self.peers = Arc::clone(peers);
        let stayed = self.keys.iter_mut().filter_map(|(key, state)| state.left.take().map(|_| key));
        let wake =
            |key: &Key| Wake { key: key.clone(), role: Role::Parents, is_end_of_child: false, is_own: false };
        stayed.map(wake).collect()
    }

    fn concerned(&mut self, role: Role, concerns: Vec<Concern>) -> Vec<Wake> {
        let mut wakes = Vec::new();
        if matches!(role, Role::Parents | Role::Strays) {
            self.straying.look();
        }
        for concern in concerns {
            if role == Role::Parents || role == Role::Strays && !self.selects(&concern.object) {
                wakes.extend(self.parent_changed(&concern.object));
            }
            if matches!(role, Role::Parents | Role::Strays) {
                continue;
            }
            let is_child = matches!(role, Role::Children(_));
            if let Role::Children(index) = role {
                self.forget_attempts(index, &concern);
            }
            let keys: BTreeSet<Key> =
                concern.references.iter().flat_map(|one| self.meant(one, role)).collect();
            if self.is_news(role) {
                // Who follows what others change goes round in no circle.
                for key in &keys {
                    self.keys.get_mut(key).into_iter().for_each(|state| state.turns.clear());
                }
            }
            let is_end_of_child = is_child && concern.is_gone;
            let wake = |key| Wake { key, role, is_end_of_child, is_own: false };
            wakes.extend(keys.into_iter().map(wake));
        }
        wakes
    }

    /// Returns whether a change that this watch shows is none that the hook itself led to: it makes no such kind.
    fn is_news(&self, role: Role) -> bool {
        let Role::Related(index) = role else { return false };
        let Some(related) = self.binding.related.get(index) else { return false };
        let (version, kind) = (&related.selection.api_version, &related.selection.kind);
        !self
            .binding
            .children
            .iter()
            .any(|child| child.kind.api_version == *version && child.kind.kind == *kind)
    }

    /// Forgets what was tried with a child that is another one than then: the same may have to be done again. Remembers one that
    /// went while its hook runs.
    fn forget_attempts(&mut self, index: usize, concern: &Concern) {
        let child = (index, concern.object.clone());
        let role = Role::Children(index);
        let keys: Vec<Key> = concern.references.iter().flat_map(|one| self.meant(one, role)).collect();
        let living = self.children.get(index).and_then(|watch| watch.snapshot.get(&concern.object)).cloned();
        for key in keys {
            let Some(state) = self.keys.get_mut(&key) else { continue };
            if concern.is_gone && !state.is_idle() {
                state.gone.insert(child.clone());
            }
            let Some(tried) = state.attempts.get(&child) else { continue };
            if tried.living != living.as_ref().map(|item| checksum(&value(item), false)) || concern.is_gone {
                state.attempts.remove(&child);
            }
        }
    }

    /// Forgets all that was tried with children of a kind, and returns whose they are. A list does not show what was made and
    /// deleted before it.
    fn retried(&mut self, index: usize) -> Vec<Wake> {
        let mut wakes = Vec::new();
        for (key, state) in &mut self.keys {
            let before = state.attempts.len();
            state.attempts.retain(|(kind, _), _| *kind != index);
            if state.attempts.len() != before {
                let role = Role::Children(index);
                wakes.push(Wake { key: key.clone(), role, is_end_of_child: false, is_own: false });
            }
        }
        wakes
    }

    /// Returns the keys that a reference means: a child names its owner, an owner those that it owns. What objects name means them.
    fn meant(&self, reference: &Reference, role: Role) -> Vec<Key> {
        let is_child = matches!(role, Role::Children(_));
        match reference {
            Reference::Own(_) => {
                let Role::Related(index) = role else { return Vec::new() };
                let by = self.named.get(index).map(|named| named.get(std::slice::from_ref(reference)));
                by.into_iter().flatten().cloned().collect()
            }
            Reference::Named(key) => self.keys.contains_key(key).then(|| key.clone()).into_iter().collect(),
            Reference::Uid(uid) if is_child => self.by_uid.get(uid).cloned().into_iter().collect(),
            Reference::Uid(uid) => self.by_owner.get(uid).into_iter().flatten().cloned().collect(),
        }
    }

    /// Handles a change of one of its objects. Returns the key if there may be work.
    fn parent_changed(&mut self, key: &Key) -> Option<Wake> {
        self.note_names(key);
        // One that left the selection is left alone until it is deleted.
        let is_stray = !self.selects(key);
        let item = self.item(key).cloned();
        let item = item.filter(|item| !is_stray || Metadata::of(item).is_deleting());
        if let Some(old) = self.metadata.remove(key) {
            let (is_released, is_added) = self
                .keys
                .get(key)
                .map_or((false, false), |state| (state.is_released(), state.finalizer_added_to.is_some()));
            if item.is_none() && !is_released && (is_added || self.finalizers(&old).are_held()) {
                self.straying.lose();
            }
            if self.by_uid.get(&old.uid) == Some(key) {
                self.by_uid.remove(&old.uid);
            }
            for owner in old.owners() {
                if let Some(owned) = self.by_owner.get_mut(owner) {
                    owned.remove(key);
                    if owned.is_empty() {
                        self.by_owner.remove(owner);
                    }
                }
            }
            if item.as_ref().is_some_and(|item| Metadata::of(item).uid != old.uid) {
                // Another object has its name: nothing that is known is known about that one.
                self.forget(key);
            }
        }
        let wake = |is_own| Wake { key: key.clone(), role: Role::Parents, is_end_of_child: false, is_own };
        let Some(item) = item else {
            return self.forget(key).map(|_| wake(false));
        };
        let metadata = Metadata::of(&item);
        self.by_uid.insert(Arc::clone(&metadata.uid), key.clone());
        for owner in metadata.owners() {
            self.by_owner.entry(Arc::clone(owner)).or_default().insert(key.clone());
        }
        let is_quiet = self.is_retired && !metadata.is_deleting();
        let end = self.ends.remove(&metadata.uid).unwrap_or_default();
        self.metadata.insert(key.clone(), metadata);
        let new = || KeyState { end, ..KeyState::default() };
        let state = self.keys.entry(key.clone()).or_insert_with(new);
        // Our write is told of next after what it was made of, or it was refused: it is waited for once.
        let is_own = state.expected.take().is_some_and(|expected| checksum(&value(&item), true) == expected);
        (!is_quiet).then(|| wake(is_own))
    }

    /// Notes which related objects an object names; none if it is gone.
    fn note_names(&mut self, key: &Key) {
        let object = self.item(key).cloned();
        for (kind, named) in self.binding.related.iter().zip(&mut self.named) {
            if let ParentReference::Fields(fields) = &kind.parent {
                let names = object.as_ref().map(|object| named_by(&value(object), key, fields));
                named.set(key, names.unwrap_or_default());
            }
        }
    }

    /// Forgets all that is known about an object.
    fn forget(&mut self, key: &Key) -> Option<KeyState> {
        let state = self.keys.remove(key)?;
        for since in [state.unfinished_since, state.stays_since].into_iter().flatten() {
            self.overdue.remove(&(since + OVERDUE, key.clone()));
        }
        Some(state)
    }

    /// Returns an object as it was seen last.
    pub(super) fn item(&self, key: &Key) -> Option<&Arc<Item>> {
        self.parents.snapshot.get(key).or_else(|| self.straying.item(key))
    }

    /// Returns the metadata of an object.
    pub(super) fn metadata_of(&self, key: &Key) -> Option<&Metadata> {
        self.metadata.get(key)
    }

    /// Returns an object, for its children.
    pub(super) fn parent<'c>(&'c self, key: &'c Key) -> Option<Parent<'c>> {
        Some(Parent { kind: &self.kind, key, metadata: self.metadata.get(key)? })
    }

    /// Returns what keeps its keys from being worked on: a list that is not there. What is missing altogether has no objects,
    /// so an object that is to go need not wait for it.
    pub(super) fn obstacle(&self, is_finalize: bool) -> Option<Reason> {
        let watches = std::iter::once(&self.parents).chain(&self.children).chain(&self.related);
        watches.filter(|watch| !(is_finalize && watch.is_missing())).find_map(Watch::obstacle)
    }

    /// Returns what the hook is shown of an object.
    pub(super) fn shown(&self, key: &Key, is_finalize: bool) -> Option<Reconciliation> {
        let (parent, object) = (self.parent(key)?, Arc::clone(self.item(key)?));
        let references = parent.references();
        let owners: Vec<Reference> =
            parent.metadata.owners().map(|uid| Reference::Uid(Arc::clone(uid))).collect();
        let kind = |watch: &Watch, references: &[Reference]| ShownKind {
            name: Arc::clone(&watch.name),
            objects: watch.objects(references),
        };
        let named = [Reference::Named(key.clone())];
        let specs = self.binding.related.iter().zip(&self.named);
        let related = self.related.iter().zip(specs).map(|(watch, (spec, by))| match spec.parent {
            ParentReference::Owner => kind(watch, &owners),
            ParentReference::Annotation(_) | ParentReference::Label(_) => kind(watch, &named),
            ParentReference::Fields(_) => kind(watch, by.of(key)),
        });
        Some(Reconciliation {
            key: key.clone(),
            is_finalize,
            object,
            children: self.children.iter().map(|watch| kind(watch, &references)).collect(),
            related: related.collect(),
        })
    }
}

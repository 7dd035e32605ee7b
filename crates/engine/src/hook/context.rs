//! Binding contexts: why a hook runs, and the file that tells it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use super::json;
use super::spec::{ConfigVersion, HookSpec, KubernetesBinding, Lifecycle, ScheduleBinding, WatchEvent};
use crate::snapshot::{Change, Item, Key, Snapshot};

/// Why a hook runs. A run can have several reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct BindingContext {
    /// The name of the binding.
    pub binding: Arc<str>,
    /// The group of the binding.
    pub group: Option<Arc<str>>,
    /// What happened.
    pub trigger: Trigger,
    /// The snapshots that the hook is shown beside.
    pub snapshots: Included,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// An object was added, modified or deleted.
    Event {
        /// The index of the binding in the hook's configuration.
        binding: usize,
        /// What happened to the object.
        event: WatchEvent,
        /// The object.
        key: Key,
        /// The object's state at the time of the event. It is not refreshed until the run.
        item: Arc<Item>,
        /// Whether the hook is shown the object itself.
        with_object: bool,
    },
    /// A point of a lifecycle was reached.
    Lifecycle(Lifecycle),
    /// A crontab line was due.
    Schedule,
    /// All objects were listed for the first time.
    Synchronization {
        /// The index of the binding in the hook's configuration.
        binding: usize,
    },
}

/// The snapshots that a context carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Included {
    /// Those of all kubernetes bindings of the hook. The key is there even if it has none.
    All,
    /// Those with these names; without any name the key is left out.
    Named(Arc<[String]>),
}

impl BindingContext {
    /// Returns the context of a lifecycle point.
    pub fn lifecycle(point: Lifecycle) -> Self {
        let snapshots = match point {
            Lifecycle::OnStartup => Included::Named(Arc::default()),
            Lifecycle::BeforeAll
            | Lifecycle::AfterAll
            | Lifecycle::BeforeHelm
            | Lifecycle::AfterHelm
            | Lifecycle::BeforeDeleteHelm
            | Lifecycle::AfterDeleteHelm => Included::All,
        };
        Self { binding: point.as_str().into(), group: None, trigger: Trigger::Lifecycle(point), snapshots }
    }

    /// Returns the context of a due schedule.
    pub fn schedule(binding: &ScheduleBinding) -> Self {
        Self {
            binding: binding.name.as_str().into(),
            group: binding.group.as_deref().map(Arc::from),
            trigger: Trigger::Schedule,
            snapshots: Included::Named(binding.include_snapshots_from.as_slice().into()),
        }
    }

    /// Returns the context of the first list of the kubernetes binding with this index.
    pub fn synchronization(binding: &KubernetesBinding, index: usize) -> Self {
        Self::kubernetes(binding, Trigger::Synchronization { binding: index })
    }

    /// Returns the context of a change that the kubernetes binding with this index saw.
    pub fn event(binding: &KubernetesBinding, index: usize, change: Change) -> Self {
        let Change { event, key, item } = change;
        let with_object = binding.keep_full_objects;
        Self::kubernetes(binding, Trigger::Event { binding: index, event, key, item, with_object })
    }

    fn kubernetes(binding: &KubernetesBinding, trigger: Trigger) -> Self {
        Self {
            binding: binding.name.as_str().into(),
            group: binding.group.as_deref().map(Arc::from),
            trigger,
            snapshots: Included::Named(binding.include_snapshots_from.as_slice().into()),
        }
    }

    /// Returns whether this is the first list of an ungrouped binding, whose objects the context shows.
    pub fn is_synchronization(&self) -> bool {
        match self.trigger {
            Trigger::Synchronization { .. } => true,
            Trigger::Event { .. } | Trigger::Lifecycle(_) | Trigger::Schedule => false,
        }
    }
}

/// Returns the indices of the kubernetes bindings whose snapshots a run with these contexts is shown.
///
/// A run waits until all of them are synchronised.
pub fn required_bindings(spec: &HookSpec, contexts: &[BindingContext]) -> BTreeSet<usize> {
    let mut required = BTreeSet::new();
    for context in contexts {
        match &context.snapshots {
            Included::All => required.extend(0..spec.kubernetes.len()),
            Included::Named(names) => {
                required.extend(names.iter().filter_map(|name| spec.kubernetes_index(name)));
            }
        }
        match context.trigger {
            Trigger::Synchronization { binding } => {
                required.insert(binding);
            }
            Trigger::Event { .. } | Trigger::Lifecycle(_) | Trigger::Schedule => {}
        }
    }
    required
}

/// All that the binding context file of one run is made of. A clone is cheap.
#[derive(Clone, Debug, PartialEq)]
pub struct RunContexts {
    version: ConfigVersion,
    contexts: Arc<[BindingContext]>,
    snapshots: BTreeMap<usize, Shown>,
    named: BTreeMap<String, usize>,
}

/// A snapshot as one binding shows it.
#[derive(Clone, Debug, PartialEq)]
struct Shown {
    snapshot: Snapshot,
    with_objects: bool,
}

impl RunContexts {
    /// Returns the contexts of a run together with the snapshots that they show.
    ///
    /// `snapshot` returns the snapshot of the kubernetes binding with an index. It is asked once for each
    /// binding that is shown, so that all contexts of the run agree.
    pub fn new(
        spec: &HookSpec,
        contexts: Vec<BindingContext>,
        mut snapshot: impl FnMut(usize) -> Snapshot,
    ) -> Self {
        let required = required_bindings(spec, &contexts);
        let shown = |(index, binding): (usize, &KubernetesBinding)| {
            required.contains(&index).then(|| {
                (index, Shown { snapshot: snapshot(index), with_objects: binding.keep_full_objects })
            })
        };
        let snapshots = spec.kubernetes.iter().enumerate().filter_map(shown).collect();
        // The first binding of a name is the one that is meant, so it is written last.
        let last_first = spec.kubernetes.iter().enumerate().rev();
        let named = last_first.map(|(index, binding)| (binding.name.clone(), index)).collect();
        Self { version: spec.config_version, contexts: contexts.into(), snapshots, named }
    }

    /// Returns the contexts, in the order in which the hook sees them.
    pub fn contexts(&self) -> &[BindingContext] {
        &self.contexts
    }

    /// Writes the file: one JSON array and a line end.
    ///
    /// Objects are written from the bytes that the snapshots share; nothing of them is copied.
    ///
    /// # Errors
    ///
    /// An error is one of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"[")?;
        for (place, context) in self.contexts.iter().enumerate() {
            separate(out, place)?;
            match self.version {
                ConfigVersion::V0 => write_v0(out, context)?,
                ConfigVersion::V1 => self.write_v1(out, context)?,
            }
        }
        out.write_all(b"]\n")
    }

    fn write_v1(&self, out: &mut impl Write, context: &BindingContext) -> io::Result<()> {
        out.write_all(b"{\"binding\":")?;
        json::write(out, &*context.binding)?;
        match (&context.trigger, &context.group) {
            (Trigger::Lifecycle(_), _) => {
                self.write_snapshots(out, &context.snapshots)?;
            }
            (Trigger::Event { .. } | Trigger::Schedule | Trigger::Synchronization { .. }, Some(group)) => {
                out.write_all(b",\"groupName\":")?;
                json::write(out, &**group)?;
                self.write_snapshots(out, &context.snapshots)?;
                out.write_all(b",\"type\":\"Group\"")?;
            }
            (Trigger::Schedule, None) => {
                self.write_snapshots(out, &context.snapshots)?;
                out.write_all(b",\"type\":\"Schedule\"")?;
            }
            (Trigger::Synchronization { binding }, None) => {
                out.write_all(b",\"objects\":")?;
                self.write_items(out, *binding)?;
                self.write_snapshots(out, &context.snapshots)?;
                out.write_all(b",\"type\":\"Synchronization\"")?;
            }
            (Trigger::Event { event, item, with_object, .. }, None) => {
                write_fields(out, item, *with_object, true)?;
                self.write_snapshots(out, &context.snapshots)?;
                write!(out, ",\"type\":\"Event\",\"watchEvent\":\"{event}\"")?;
            }
        }
        out.write_all(b"}")
    }

    fn write_snapshots(&self, out: &mut impl Write, included: &Included) -> io::Result<()> {
        let names: BTreeSet<&str> = match included {
            Included::All => self.named.keys().map(String::as_str).collect(),
            Included::Named(names) if names.is_empty() => return Ok(()),
            Included::Named(names) => names.iter().map(String::as_str).collect(),
        };
        out.write_all(b",\"snapshots\":{")?;
        for (place, name) in names.into_iter().enumerate() {
            separate(out, place)?;
            json::write(out, name)?;
            out.write_all(b":")?;
            match self.named.get(name) {
                Some(index) => self.write_items(out, *index)?,
                None => out.write_all(b"[]")?,
            }
        }
        out.write_all(b"}")
    }

    fn write_items(&self, out: &mut impl Write, binding: usize) -> io::Result<()> {
        out.write_all(b"[")?;
        if let Some(shown) = self.snapshots.get(&binding) {
            for (place, (_, item)) in shown.snapshot.iter().enumerate() {
                separate(out, place)?;
                out.write_all(b"{")?;
                write_fields(out, item, shown.with_objects, false)?;
                out.write_all(b"}")?;
            }
        }
        out.write_all(b"]")
    }
}

fn separate(out: &mut impl Write, place: usize) -> io::Result<()> {
    if place == 0 { Ok(()) } else { out.write_all(b",") }
}

/// Writes `filterResult` and `object`, as far as the item has them and the binding shows them.
fn write_fields(out: &mut impl Write, item: &Item, with_object: bool, follows: bool) -> io::Result<()> {
    let mut place = usize::from(follows);
    let fields = [("filterResult", item.filter_result()), ("object", item.object().filter(|_| with_object))];
    for (name, bytes) in fields {
        let Some(bytes) = bytes else { continue };
        separate(out, place)?;
        write!(out, "\"{name}\":")?;
        out.write_all(bytes)?;
        place += 1;
    }
    Ok(())
}

fn write_v0(out: &mut impl Write, context: &BindingContext) -> io::Result<()> {
    out.write_all(b"{\"binding\":")?;
    json::write(out, &*context.binding)?;
    match &context.trigger {
        Trigger::Event { event, key, item, .. } => {
            write!(out, ",\"resourceEvent\":\"{}\",\"resourceKind\":", event.as_v0_str())?;
            json::write(out, &kind_of(item))?;
            out.write_all(b",\"resourceName\":")?;
            json::write(out, &*key.name)?;
            out.write_all(b",\"resourceNamespace\":")?;
            json::write(out, &*key.namespace)?;
        }
        Trigger::Lifecycle(_) | Trigger::Schedule | Trigger::Synchronization { .. } => {}
    }
    out.write_all(b"}")
}

/// Returns the kind that the object itself says, or nothing if the object is not kept.
fn kind_of(item: &Item) -> String {
    #[derive(serde::Deserialize)]
    struct Kind {
        kind: String,
    }
    let object = item.object().and_then(|json| serde_json::from_slice::<Kind>(json).ok());
    object.map(|object| object.kind).unwrap_or_default()
}

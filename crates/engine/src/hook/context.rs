//! Binding contexts: why a hook runs. See docs/hooks.md#binding-contexts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use golang::json;
use serde_json::Value;

use super::reconcile::{ReconcileBinding, Reconciliation};
use super::spec::{
    AdmissionBinding, AdmissionKind, ConfigVersion, ConversionBinding, HookSpec, KubernetesBinding,
    Lifecycle, ScheduleBinding, WatchEvent,
};
use crate::hook::snapshot::{Change, Item, Key, Snapshot};

/// About how many bytes an object has whose length is not known.
const USUAL_OBJECT: usize = 2_048;

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
    /// The API server asks for objects in another version.
    Conversion {
        /// The version that they are in, as the hook's configuration writes it.
        from: Arc<str>,
        /// The version that the hook has to return them in, as its configuration writes it.
        to: Arc<str>,
        /// The review.
        review: Arc<Value>,
    },
    /// A point of a lifecycle was reached.
    Lifecycle(Lifecycle),
    /// The API server asks whether an object may be written, or how it is to be changed before.
    Review {
        /// Which of both.
        kind: AdmissionKind,
        /// The review.
        review: Arc<Value>,
    },
    /// An object is to be brought about, or is being deleted.
    Reconcile(Arc<Reconciliation>),
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
        let snapshots = if point.has_snapshots() { Included::All } else { Included::Named(Arc::default()) };
        Self { binding: point.as_str().into(), group: None, trigger: Trigger::Lifecycle(point), snapshots }
    }

    /// Returns the context of one object of a reconcile binding.
    pub fn reconcile(binding: &ReconcileBinding, reconciliation: Reconciliation) -> Self {
        Self {
            binding: binding.name.as_str().into(),
            group: None,
            trigger: Trigger::Reconcile(Arc::new(reconciliation)),
            snapshots: Included::Named(Arc::default()),
        }
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

    /// Returns the context of a review for this binding. The group counts for the snapshots only.
    pub fn review(binding: &AdmissionBinding, kind: AdmissionKind, review: Arc<Value>) -> Self {
        Self {
            binding: binding.name.as_str().into(),
            group: None,
            trigger: Trigger::Review { kind, review },
            snapshots: Included::Named(binding.include_snapshots_from.as_slice().into()),
        }
    }

    /// Returns the context of one step of a conversion for this binding.
    pub fn conversion(binding: &ConversionBinding, (from, to): (&str, &str), review: Arc<Value>) -> Self {
        Self {
            binding: binding.name.as_str().into(),
            group: None,
            trigger: Trigger::Conversion { from: from.into(), to: to.into(), review },
            snapshots: Included::Named(binding.include_snapshots_from.as_slice().into()),
        }
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
        matches!(self.trigger, Trigger::Synchronization { .. })
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
        if let Trigger::Synchronization { binding } = context.trigger {
            required.insert(binding);
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

    /// Returns whether the hook is to say what should be.
    pub fn is_reconciliation(&self) -> bool {
        self.contexts.iter().any(|context| matches!(context.trigger, Trigger::Reconcile(_)))
    }

    /// Returns about how many bytes the file has: those of the objects that it shows.
    pub fn len_bytes(&self) -> usize {
        let len = |(index, shown): (&usize, &Shown)| {
            (*index, shown.snapshot.iter().map(|(_, item)| item.len_bytes()).sum::<usize>())
        };
        let all: BTreeMap<usize, usize> = self.snapshots.iter().map(len).collect();
        let of = |binding: &usize| all.get(binding).copied().unwrap_or_default();
        let of_context = |context: &BindingContext| {
            let own = match &context.trigger {
                Trigger::Event { item, .. } => item.len_bytes(),
                Trigger::Reconcile(reconciliation) => reconciliation.len_bytes(),
                Trigger::Synchronization { binding } => of(binding),
                Trigger::Conversion { review, .. } => {
                    let objects = review.pointer("/request/objects").and_then(Value::as_array);
                    objects.map_or(0, Vec::len).saturating_mul(USUAL_OBJECT)
                }
                Trigger::Lifecycle(_) | Trigger::Review { .. } | Trigger::Schedule => 0,
            };
            let beside: usize = match &context.snapshots {
                Included::All => all.values().sum(),
                Included::Named(names) => names.iter().filter_map(|name| self.named.get(name)).map(of).sum(),
            };
            own.saturating_add(beside)
        };
        self.contexts.iter().map(of_context).fold(0, usize::saturating_add)
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
            (Trigger::Conversion { from, to, review }, _) => {
                out.write_all(b",\"fromVersion\":")?;
                json::write(out, &**from)?;
                write_review(out, review)?;
                self.write_snapshots(out, &context.snapshots)?;
                out.write_all(b",\"toVersion\":")?;
                json::write(out, &**to)?;
                out.write_all(b",\"type\":\"Conversion\"")?;
            }
            (Trigger::Lifecycle(_), _) => {
                self.write_snapshots(out, &context.snapshots)?;
            }
            (Trigger::Review { kind, review }, _) => {
                write_review(out, review)?;
                self.write_snapshots(out, &context.snapshots)?;
                write!(out, ",\"type\":\"{kind}\"")?;
            }
            (Trigger::Reconcile(reconciliation), _) => reconciliation.write(out)?,
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

fn write_review(out: &mut impl Write, review: &Value) -> io::Result<()> {
    out.write_all(b",\"review\":")?;
    json::write(out, review)
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
    if let Trigger::Event { event, key, item, .. } = &context.trigger {
        write!(out, ",\"resourceEvent\":\"{}\",\"resourceKind\":", event.as_v0_str())?;
        json::write(out, &kind_of(item))?;
        out.write_all(b",\"resourceName\":")?;
        json::write(out, &*key.name)?;
        out.write_all(b",\"resourceNamespace\":")?;
        json::write(out, &*key.namespace)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::spec::HookKind;

    /// Two objects for the binding `pods`, one filtered item for `names`.
    fn snapshots(index: usize) -> Snapshot {
        let item = |name: &str, item: Item| (Key::new("ns", name), Arc::new(item));
        match index {
            0 => [
                item("b", Item::unfiltered(br#"{"metadata":{"name":"b"}}"#[..].into(), true)),
                item("a", Item::unfiltered(br#"{"metadata":{"name":"a"}}"#[..].into(), true)),
            ]
            .into_iter()
            .collect(),
            1 => {
                [item("a", Item::filtered(Some(b"{}"[..].into()), b"\"a\""[..].into()))].into_iter().collect()
            }
            _ => Snapshot::default(),
        }
    }

    fn spec(text: &str) -> HookSpec {
        crate::hook::config::parse("hooks/test.sh".into(), HookKind::Module, text).unwrap()
    }

    fn written(spec: &HookSpec, contexts: Vec<BindingContext>) -> String {
        let mut out = Vec::new();
        RunContexts::new(spec, contexts, snapshots).write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn change(event: WatchEvent, item: Item) -> Change {
        Change { event, key: Key::new("ns", "a"), item: Arc::new(item) }
    }

    const MIXED: &str = r#"
configVersion: v1
beforeHelm: 1
schedule:
- {name: "each <minute>", crontab: "* * * * *", includeSnapshotsFrom: [names, pods, names]}
- {name: grouped, crontab: "* * * * *", group: pair}
- {crontab: "* * * * *"}
kubernetes:
- {name: pods, kind: Pod}
- {name: names, kind: Pod, jqFilter: .metadata.name, keepFullObjectsInMemory: false, includeSnapshotsFrom: [pods]}
- {name: one, kind: Pod, group: pair}
- {name: two, kind: Node, group: pair}
"#;

    #[test]
    fn every_shape_of_v1_is_written_as_the_reference_operator_writes_it() {
        let spec = spec(MIXED);
        let [pods, names, one, _] = &spec.kubernetes[..] else { panic!("four bindings") };
        let pod = || Item::unfiltered(br#"{"kind":"Pod"}"#[..].into(), true);
        let cases = [
            (BindingContext::lifecycle(Lifecycle::OnStartup), r#"{"binding":"onStartup"}"#),
            (
                BindingContext::lifecycle(Lifecycle::BeforeHelm),
                r#"{"binding":"beforeHelm","snapshots":{"names":[{"filterResult":"a"}],"one":[],"pods":[{"object":{"metadata":{"name":"a"}}},{"object":{"metadata":{"name":"b"}}}],"two":[]}}"#,
            ),
            (
                BindingContext::schedule(&spec.schedules[0]),
                r#"{"binding":"each \u003cminute\u003e","snapshots":{"names":[{"filterResult":"a"}],"pods":[{"object":{"metadata":{"name":"a"}}},{"object":{"metadata":{"name":"b"}}}]},"type":"Schedule"}"#,
            ),
            (
                BindingContext::schedule(&spec.schedules[1]),
                r#"{"binding":"grouped","groupName":"pair","snapshots":{"one":[],"two":[]},"type":"Group"}"#,
            ),
            (BindingContext::schedule(&spec.schedules[2]), r#"{"binding":"schedule","type":"Schedule"}"#),
            (
                BindingContext::synchronization(pods, 0),
                r#"{"binding":"pods","objects":[{"object":{"metadata":{"name":"a"}}},{"object":{"metadata":{"name":"b"}}}],"type":"Synchronization"}"#,
            ),
            (
                BindingContext::synchronization(names, 1),
                r#"{"binding":"names","objects":[{"filterResult":"a"}],"snapshots":{"pods":[{"object":{"metadata":{"name":"a"}}},{"object":{"metadata":{"name":"b"}}}]},"type":"Synchronization"}"#,
            ),
            (
                BindingContext::synchronization(one, 2),
                r#"{"binding":"one","groupName":"pair","snapshots":{"one":[],"two":[]},"type":"Group"}"#,
            ),
            (
                BindingContext::event(pods, 0, change(WatchEvent::Added, pod())),
                r#"{"binding":"pods","object":{"kind":"Pod"},"type":"Event","watchEvent":"Added"}"#,
            ),
            (
                BindingContext::event(
                    names,
                    1,
                    change(WatchEvent::Deleted, Item::filtered(Some(b"{}"[..].into()), b"null"[..].into())),
                ),
                r#"{"binding":"names","filterResult":null,"snapshots":{"pods":[{"object":{"metadata":{"name":"a"}}},{"object":{"metadata":{"name":"b"}}}]},"type":"Event","watchEvent":"Deleted"}"#,
            ),
            (
                BindingContext::event(one, 2, change(WatchEvent::Modified, pod())),
                r#"{"binding":"one","groupName":"pair","snapshots":{"one":[],"two":[]},"type":"Group"}"#,
            ),
        ];
        for (context, expected) in &cases {
            assert_eq!(written(&spec, vec![context.clone()]), format!("[{expected}]\n"));
        }
        let (contexts, texts): (Vec<BindingContext>, Vec<&str>) = cases.into_iter().unzip();
        assert_eq!(written(&spec, contexts), format!("[{}]\n", texts.join(",")));
    }

    #[test]
    fn a_filtered_item_that_is_kept_shows_both() {
        let spec = spec("configVersion: v1\nkubernetes: [{kind: Pod, jqFilter: .}]");
        let item = Item::filtered(Some(b"{\"a\":1}"[..].into()), b"[1]"[..].into());
        let context = BindingContext::event(&spec.kubernetes[0], 0, change(WatchEvent::Added, item));
        let expected = r#"[{"binding":"kubernetes","filterResult":[1],"object":{"a":1},"type":"Event","watchEvent":"Added"}]"#;
        assert_eq!(written(&spec, vec![context]).trim_end(), expected);
    }

    #[test]
    fn without_kubernetes_bindings_the_snapshots_of_a_lifecycle_point_are_empty() {
        let spec = spec("{configVersion: v1, beforeHelm: 1}");
        let contexts = vec![BindingContext::lifecycle(Lifecycle::BeforeHelm)];
        assert_eq!(written(&spec, contexts), "[{\"binding\":\"beforeHelm\",\"snapshots\":{}}]\n");
    }

    #[test]
    fn every_shape_of_v0_is_written_as_the_reference_operator_writes_it() {
        let spec = spec(
            r#"{"beforeHelm": 1, "schedule": [{"crontab": "* * * * *"}], "onKubernetesEvent": [{"kind": "pod"}]}"#,
        );
        let pod = Item::unfiltered(br#"{"kind":"Pod"}"#[..].into(), true);
        let contexts = vec![
            BindingContext::lifecycle(Lifecycle::BeforeHelm),
            BindingContext::schedule(&spec.schedules[0]),
            BindingContext::event(&spec.kubernetes[0], 0, change(WatchEvent::Modified, pod)),
        ];
        let expected = concat!(
            r#"[{"binding":"beforeHelm"},{"binding":"schedule"},{"binding":"onKubernetesEvent","#,
            r#""resourceEvent":"update","resourceKind":"Pod","resourceName":"a","resourceNamespace":"ns"}]"#,
            "\n"
        );
        assert_eq!(written(&spec, contexts), expected);
    }

    #[test]
    fn a_run_requires_the_bindings_that_it_shows() {
        let spec = spec(MIXED);
        let required = |context| required_bindings(&spec, &[context]).into_iter().collect::<Vec<_>>();
        assert_eq!(required(BindingContext::lifecycle(Lifecycle::BeforeHelm)), [0, 1, 2, 3]);
        assert_eq!(required(BindingContext::schedule(&spec.schedules[0])), [0, 1]);
        assert!(required(BindingContext::schedule(&spec.schedules[2])).is_empty());
        assert_eq!(required(BindingContext::synchronization(&spec.kubernetes[1], 1)), [0, 1]);
        let pod = Item::unfiltered(b"{}"[..].into(), true);
        let event = change(WatchEvent::Added, pod);
        assert!(required(BindingContext::event(&spec.kubernetes[0], 0, event)).is_empty());
    }

    #[test]
    fn bindings_of_one_name_show_their_own_objects_and_include_the_first() {
        let mut spec = spec(
            "configVersion: v1\nkubernetes: [{kind: Pod}, {kind: Pod, jqFilter: .metadata.name, keepFullObjectsInMemory: false}]",
        );
        spec.kubernetes[1].include_snapshots_from = vec!["kubernetes".into()];
        let context = BindingContext::synchronization(&spec.kubernetes[1], 1);
        let text = written(&spec, vec![context]);
        assert!(text.contains(r#""objects":[{"filterResult":"a"}]"#), "{text}");
        assert!(text.contains(r#""snapshots":{"kubernetes":[{"object":"#), "{text}");
    }

    #[test]
    fn a_file_is_about_as_long_as_the_objects_that_it_shows() {
        let spec = spec(
            "configVersion: v1\nbeforeHelm: 1\nschedule: [{crontab: '* * * * *', includeSnapshotsFrom: [big]}]\n\
             kubernetes: [{name: big, kind: Pod}, {name: small, kind: Node, jqFilter: .a}]",
        );
        let big: Arc<[u8]> = format!("\"{}\"", "x".repeat(9_998)).into_bytes().into();
        let pods = |count: usize| -> Snapshot {
            let item =
                |n: usize| (Key::new("", &n.to_string()), Item::unfiltered(Arc::clone(&big), true).into());
            (0..count).map(item).collect()
        };
        let contexts = vec![
            BindingContext::lifecycle(Lifecycle::BeforeHelm),
            BindingContext::schedule(&spec.schedules[0]),
            BindingContext::synchronization(&spec.kubernetes[0], 0),
            BindingContext::event(
                &spec.kubernetes[1],
                1,
                change(WatchEvent::Added, Item::unfiltered(big.clone(), true)),
            ),
        ];
        for (count, expected) in [(0, 10_000), (7, 3 * 70_000 + 10_000)] {
            let run = RunContexts::new(&spec, contexts.clone(), |index| {
                if index == 0 { pods(count) } else { Snapshot::default() }
            });
            let mut out = Vec::new();
            run.write(&mut out).unwrap();
            assert_eq!(run.len_bytes(), expected);
            assert!(out.len() > expected && out.len() < expected + 1_000, "{}", out.len());
        }
    }

    #[test]
    fn an_error_of_the_writer_ends_the_writing() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let spec = spec(MIXED);
        let run =
            RunContexts::new(&spec, vec![BindingContext::synchronization(&spec.kubernetes[0], 0)], snapshots);
        let mut whole = Vec::new();
        run.write(&mut whole).unwrap();
        for room in 0..whole.len() {
            assert!(run.write(&mut Full(room)).is_err(), "{room} bytes");
        }
        assert!(run.write(&mut Full(whole.len())).is_ok());
    }
}

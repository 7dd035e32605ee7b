//! The parsed section `reconcile` of a hook's configuration.

use std::fmt;

use serde_json::Value;

use crate::hook::selection::Selection;
use crate::name::QueueName;

/// How many keys of one binding may be worked on at a time.
pub const MAX_CONCURRENCY: i64 = 100;

/// How many kinds of children, and how many related kinds, a binding may have.
pub const MAX_KINDS: usize = 50;

/// How many fields of a parent may name objects of a related kind, and in how many a child may have nothing else.
pub const MAX_FIELDS: usize = 20;

/// How many parts the path of such a field may have.
pub const MAX_PATH_PARTS: usize = 20;

/// How many objects of a related kind an object may name. Those behind are not looked at.
pub const MAX_NAMED: usize = 200;

/// A `reconcile` binding: its hook is the controller of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct ReconcileBinding {
    /// The name as binding contexts show it. It is unique in its hook.
    pub name: String,
    /// The objects that it brings about. Each is a key of its own.
    pub parent: Selection,
    /// What keeps a deleted object until the hook says that it is finalized.
    pub finalizer: Option<String>,
    /// The queue of its keys; `None` for one of its own.
    pub queue: Option<QueueName>,
    /// How many keys are worked on at a time. At least 1.
    pub concurrency: usize,
    /// The kinds that it makes.
    pub children: Vec<ChildKind>,
    /// What else it looks at.
    pub related: Vec<RelatedKind>,
}

impl ReconcileBinding {
    /// Returns whether two bindings would remove each other's finalizer.
    pub(crate) fn shares_finalizer_with(&self, other: &Self) -> bool {
        let (own, others) = (self.kind(), other.kind());
        let same_kind = (own.group(), &own.kind) == (others.group(), &others.kind);
        same_kind && self.finalizer.is_some() && self.finalizer == other.finalizer
    }

    /// Returns the kind of the parents.
    pub fn kind(&self) -> ObjectKind {
        ObjectKind { api_version: self.parent.api_version.clone(), kind: self.parent.kind.clone() }
    }
}

/// The groups of Kubernetes itself that have a domain. Others of `k8s.io` are defined by CRDs.
const OF_KUBERNETES: [&str; 17] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// A kind of objects, as objects name it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ObjectKind {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
}

impl ObjectKind {
    /// Returns the group; empty for core kinds.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Returns whether it is one of Kubernetes itself: its status is that of a controller there.
    pub(crate) fn is_of_kubernetes(&self) -> bool {
        !self.group().contains('.') || OF_KUBERNETES.contains(&self.group())
    }
}

/// Writes the kind with its group, `Deployment.apps`; core kinds have none.
impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group() {
            "" => f.write_str(&self.kind),
            group => write!(f, "{}.{group}", self.kind),
        }
    }
}

/// A kind that a controller makes.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildKind {
    /// The kind.
    pub kind: ObjectKind,
    /// How a child of it changes.
    pub update: Update,
    /// The fields in which it has nothing that its hook does not say.
    pub exact: Vec<FieldPath>,
    /// The filter whose result has to change for a child to wake its parent; `None` if any change does.
    pub jq_filter: Option<String>,
}

/// How a child changes that differs from what it should be.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, strum::EnumString)]
pub enum Update {
    /// It is changed where it is, by server-side apply.
    #[default]
    InPlace,
    /// It is left as it is. When somebody deletes it, it is made as it should be.
    OnDelete,
    /// It is deleted, and made again when it is gone.
    Recreate,
}

/// A kind that a controller looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct RelatedKind {
    /// The name under which its objects are shown. It is unique in its binding.
    pub name: String,
    /// The objects.
    pub selection: Selection,
    /// How it is known which parents an object is about.
    pub parent: ParentReference,
    /// The filter whose result has to change for an object to wake its parents; `None` if any change does.
    pub jq_filter: Option<String>,
}

/// How it is known which parents a related object is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ParentReference {
    /// An annotation of it with this key holds `name` or `namespace/name`.
    Annotation(String),
    /// A label of it with this key holds `name`.
    Label(String),
    /// It is an owner of the parent.
    Owner,
    /// The parent names it in these fields. At least one.
    Fields(Vec<FieldPath>),
}

/// Where a field is in an object: `spec.pullSecret.name`. A list on the way stands for each of its items.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FieldPath(Vec<String>);

impl FieldPath {
    /// Reads a path; `None` if it has no parts, an empty one, or more than [`MAX_PATH_PARTS`].
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let parts: Vec<String> = text.split('.').map(str::to_owned).collect();
        let is_good = parts.len() <= MAX_PATH_PARTS && parts.iter().all(|part| !part.is_empty());
        is_good.then_some(Self(parts))
    }

    /// Returns the names of the fields on the way.
    pub(crate) fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns what an object has there. Lists have no fields.
    pub(crate) fn value<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.parts().try_fold(object, |value, part| value.get(part))
    }

    /// Returns the texts that an object has there; empty ones are none.
    pub(crate) fn texts<'v>(&self, object: &'v Value) -> Vec<&'v str> {
        let mut all = vec![object];
        for part in &self.0 {
            all = all.into_iter().flat_map(items).filter_map(|value| value.get(part)).collect();
        }
        all.into_iter().flat_map(items).filter_map(Value::as_str).filter(|text| !text.is_empty()).collect()
    }
}

/// Writes it as a configuration does.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// Returns the items of a list, or the value itself.
fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}

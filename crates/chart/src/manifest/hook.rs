//! Objects that a release makes at certain moments of its life.

use serde::{Deserialize, Serialize};

use super::{Head, Manifest};

const EVENTS: &str = "helm.sh/hook";
const WEIGHT: &str = "helm.sh/hook-weight";
const DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
const LOG_POLICY: &str = "helm.sh/hook-output-log-policy";

/// A hook of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The name of the object.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// The template it comes from.
    pub path: String,
    /// The document.
    pub manifest: String,
    /// When it runs.
    pub events: Vec<HookEvent>,
    /// Hooks of one moment run from the lowest weight on.
    pub weight: i64,
    /// When it is deleted; as written, in lower case.
    pub delete_policies: Vec<DeletePolicy>,
    /// When the output of its containers is shown; as written, in lower case.
    pub log_policies: Vec<LogPolicy>,
}

/// A moment in the life of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookEvent {
    /// Before the objects of a first revision are made.
    PreInstall,
    /// After the objects of a first revision were made.
    PostInstall,
    /// Before the objects of a release are deleted.
    PreDelete,
    /// After the objects of a release were deleted.
    PostDelete,
    /// Before the objects of a later revision are made.
    PreUpgrade,
    /// After the objects of a later revision were made.
    PostUpgrade,
    /// Before an old revision is restored.
    PreRollback,
    /// After an old revision was restored.
    PostRollback,
    /// When somebody asks for tests.
    Test,
}

/// When a hook's object is deleted: `before-hook-creation`, `hook-succeeded`, `hook-failed`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeletePolicy(pub String);

/// When the output of a hook is shown: `hook-succeeded`, `hook-failed`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogPolicy(pub String);

impl DeletePolicy {
    /// Before a new object of the hook is made; the default.
    pub const BEFORE_CREATION: &str = "before-hook-creation";
    /// When the hook is done.
    pub const SUCCEEDED: &str = "hook-succeeded";
    /// When the hook failed.
    pub const FAILED: &str = "hook-failed";
}

impl HookEvent {
    /// Returns the moment of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "pre-install" => Self::PreInstall,
            "post-install" => Self::PostInstall,
            "pre-delete" => Self::PreDelete,
            "post-delete" => Self::PostDelete,
            "pre-upgrade" => Self::PreUpgrade,
            "post-upgrade" => Self::PostUpgrade,
            "pre-rollback" => Self::PreRollback,
            "post-rollback" => Self::PostRollback,
            "test" | "test-success" => Self::Test,
            _ => return None,
        })
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreInstall => "pre-install",
            Self::PostInstall => "post-install",
            Self::PreDelete => "pre-delete",
            Self::PostDelete => "post-delete",
            Self::PreUpgrade => "pre-upgrade",
            Self::PostUpgrade => "post-upgrade",
            Self::PreRollback => "pre-rollback",
            Self::PostRollback => "post-rollback",
            Self::Test => "test",
        }
    }
}

impl Hook {
    /// Reports whether the object is deleted at the moment of `policy`; without any
    /// policy that is before a new one is made.
    pub fn is_deleted(&self, policy: &str) -> bool {
        if self.delete_policies.is_empty() {
            return policy == DeletePolicy::BEFORE_CREATION;
        }
        self.delete_policies.iter().any(|own| own.0 == policy)
    }

    /// Returns the hooks that run at `event`, in the order in which they run.
    pub fn at(hooks: &[Self], event: HookEvent) -> Vec<&Self> {
        let mut due: Vec<&Self> = hooks.iter().filter(|hook| hook.events.contains(&event)).collect();
        due.sort_by(|a, b| a.weight.cmp(&b.weight).then_with(|| a.name.cmp(&b.name)));
        due
    }
}

/// What a document turned out to be.
pub(super) enum Sorted {
    Manifest(Manifest),
    Hook(Hook),
    /// A hook of a moment that does not exist.
    Unknown(String),
}

pub(super) fn of(manifest: Manifest) -> Sorted {
    let Manifest { path, content, head } = manifest;
    let Some(named) = head.annotations.get(EVENTS) else {
        return Sorted::Manifest(Manifest { path, content, head });
    };
    let mut events = Vec::new();
    for name in named.split(',') {
        match HookEvent::from_name(&name.trim().to_lowercase()) {
            Some(event) => events.push(event),
            None => return Sorted::Unknown(named.clone()),
        }
    }
    Sorted::Hook(Hook {
        weight: head.annotations.get(WEIGHT).and_then(|weight| weight.parse().ok()).unwrap_or(0),
        delete_policies: list(&head, DELETE_POLICY).map(DeletePolicy).collect(),
        log_policies: list(&head, LOG_POLICY).map(LogPolicy).collect(),
        name: head.name,
        kind: head.kind,
        path,
        manifest: content.as_ref().to_owned(),
        events,
    })
}

fn list<'h>(head: &'h Head, annotation: &str) -> impl Iterator<Item = String> + use<'h> {
    head.annotations
        .get(annotation)
        .into_iter()
        .flat_map(|list| list.split(',').map(|item| item.trim().to_lowercase()))
}

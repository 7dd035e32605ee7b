//! Which controller is meant, and which object of it.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::catalog::Hook;
use crate::cause::Cause;
use crate::hook::ReconcileBinding;
use crate::hook::snapshot::{Key, compare_shared};
use crate::name::{HookId, QueueName, TaskId};
use crate::notice::{TaskInfo, TaskType};
use crate::reconcile::Subject;

/// A reconcile binding of a hook.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct ControllerId {
    /// The hook.
    pub(crate) hook: HookId,
    /// The name of the binding, which is unique in its hook.
    pub(crate) binding: Arc<str>,
    /// The kind of its objects.
    pub(crate) kind: Arc<str>,
}

impl ControllerId {
    pub(super) fn new(hook: &Hook, binding: &ReconcileBinding) -> Arc<Self> {
        let (name, kind) = (binding.name.as_str().into(), binding.parent.kind.as_str().into());
        Arc::new(Self { hook: hook.id.clone(), binding: name, kind })
    }

    /// Returns whether it is what a binding of its hook is.
    pub(super) fn is_of(&self, binding: &ReconcileBinding) -> bool {
        (&*self.binding, &*self.kind) == (binding.name.as_str(), binding.parent.kind.as_str())
    }

    /// Returns whether it may look after the objects of another one in its place: that has another name now, or other files.
    pub(super) fn is_kin(&self, other: &Self) -> bool {
        (&self.hook.scope, &self.kind) == (&other.hook.scope, &other.kind)
    }

    /// Returns how children name it: `web/hooks/site.sh/site`.
    pub(super) fn mark(&self) -> String {
        format!("{}/{}", self.hook, self.binding)
    }
}

/// Writes `hook web/hooks/site.sh, binding site`.
impl fmt::Display for ControllerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hook {}, binding {}", self.hook, self.binding)
    }
}

/// A child: the place of its kind in the binding, and where it is.
pub(super) type ChildKey = (usize, Key);

/// An object of a controller.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ReconcileKey {
    pub(super) controller: Arc<ControllerId>,
    pub(super) object: Key,
}

impl Ord for ReconcileKey {
    fn cmp(&self, other: &Self) -> Ordering {
        // Most keys of a queue have the same controller.
        compare_shared(&self.controller, &other.controller).then_with(|| self.object.cmp(&other.object))
    }
}

impl PartialOrd for ReconcileKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ReconcileKey {
    /// Returns whether another key may stand for the same work.
    pub(super) fn is_in_place_of(&self, other: &Self) -> bool {
        self.object == other.object && self.controller.is_kin(&other.controller)
    }
}

/// Writes `Website shop/cart`.
impl fmt::Display for ReconcileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.controller.kind, self.object)
    }
}

impl Subject for ReconcileKey {
    fn info(&self, id: TaskId, queue: &QueueName, cause: &Cause) -> TaskInfo {
        TaskInfo {
            id,
            queue: queue.clone(),
            kind: TaskType::ReconcileRun,
            scope: self.controller.hook.scope.clone(),
            hook: Some(self.controller.hook.clone()),
            binding: Some(Arc::clone(&self.controller.binding)),
            cause: cause.clone(),
        }
    }
}

//! The run of one hook.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::hook::context::Trigger;
use crate::hook::{BindingContext, Lifecycle, combine};
use crate::name::{BindingKey, HookId};

/// A run of one hook. Queued runs of one hook are merged.
#[derive(Clone, Debug)]
pub(crate) struct HookRun {
    pub(crate) hook: HookId,
    /// The type of binding of its first context.
    pub(crate) binding_type: BindingType,
    /// Why it runs.
    pub(crate) contexts: Vec<BindingContext>,
    /// Whether its failure counts as success.
    pub(crate) allow_failure: bool,
    /// The bindings that go live when it succeeds.
    pub(crate) synchronizes: Vec<BindingKey>,
    /// Whether the start of its hook waits for one of them: what `main` waits for counts as `main`.
    pub(crate) is_awaited: bool,
}

/// What kind of binding makes a hook run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BindingType {
    /// Conversions of custom resources.
    Conversion,
    /// Objects.
    Kubernetes,
    /// A point of a lifecycle.
    Lifecycle(Lifecycle),
    /// Objects before they are written.
    Mutating,
    /// A crontab line.
    Schedule,
    /// Objects that may be written or not.
    Validating,
}

impl BindingType {
    /// Returns its name as hooks write it in their configuration.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Conversion => "kubernetesCustomResourceConversion",
            Self::Kubernetes => "kubernetes",
            Self::Lifecycle(point) => point.as_str(),
            Self::Mutating => "kubernetesMutating",
            Self::Schedule => "schedule",
            Self::Validating => "kubernetesValidating",
        }
    }
}

impl BindingType {
    /// Returns the point of a lifecycle, if it is one.
    pub(crate) fn lifecycle(self) -> Option<Lifecycle> {
        match self {
            Self::Lifecycle(point) => Some(point),
            Self::Conversion | Self::Kubernetes | Self::Mutating | Self::Schedule | Self::Validating => None,
        }
    }
}

impl HookRun {
    /// Returns the run of a hook at a point of a lifecycle.
    pub(crate) fn lifecycle(hook: HookId, point: Lifecycle) -> Self {
        Self {
            hook,
            binding_type: BindingType::Lifecycle(point),
            contexts: vec![BindingContext::lifecycle(point)],
            allow_failure: false,
            synchronizes: Vec::new(),
            is_awaited: false,
        }
    }

    /// Returns whether bindings go live with its success.
    pub(crate) fn is_synchronization(&self) -> bool {
        !self.synchronizes.is_empty()
    }

    /// Returns whether it runs at a point of a lifecycle. Such a run stands for itself.
    ///
    /// It can be dropped with its converge, and events that were merged into it must not be.
    pub(crate) fn is_of_lifecycle(&self) -> bool {
        self.contexts.iter().any(|context| matches!(context.trigger, Trigger::Lifecycle(_)))
    }

    /// Returns whether it runs `hook` because of events or schedules only, so that others like it can be merged into it.
    pub(crate) fn is_of_events(&self, hook: &HookId) -> bool {
        self.hook == *hook && !self.is_synchronization() && !self.is_of_lifecycle()
    }

    /// Returns whether the run that follows directly can be part of this one.
    ///
    /// Synchronizations can be dropped with their converge, events can't: they are not merged with each other.
    pub(crate) fn can_include(&self, next: &Self) -> bool {
        next.hook == self.hook
            && next.is_synchronization() == self.is_synchronization()
            && !next.is_of_lifecycle()
    }

    /// Moves the contexts of a later run to this one.
    pub(crate) fn append(&mut self, later: &mut Self) {
        self.synchronizes.append(&mut later.synchronizes);
        self.is_awaited |= later.is_awaited;
        combine::append(&mut self.contexts, std::mem::take(&mut later.contexts));
    }

    /// Returns the binding names, sorted and without repetitions.
    pub(crate) fn binding_names(&self) -> BTreeSet<&str> {
        self.contexts.iter().map(|context| &*context.binding).collect()
    }

    /// Returns the name of the first binding.
    pub(crate) fn first_binding(&self) -> Arc<str> {
        let first = self.contexts.first();
        first.map_or_else(|| self.binding_type.as_str().into(), |context| Arc::clone(&context.binding))
    }
}

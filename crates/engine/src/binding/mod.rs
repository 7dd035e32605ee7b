//! What the bindings of hooks are doing.

pub(crate) mod rate;
pub(crate) mod schedule;
mod tally;
pub(crate) mod watch_events;
pub(crate) mod watches;

pub use tally::Tally;

use crate::name::{HookId, ModuleName, Scope};

/// A binding of a hook. Sorted as events are handed out: global hooks first, then modules in order.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct BindingKey {
    /// The place of its scope: `None` for global hooks.
    order: Option<(u32, ModuleName)>,
    /// The hook.
    pub(crate) hook: HookId,
    /// The index of the binding in the hook's configuration.
    pub(crate) index: usize,
}

impl BindingKey {
    /// Returns the key of a binding of `hook`, whose module has the number `order`.
    pub(crate) fn new(hook: &HookId, order: u32, index: usize) -> Self {
        let order = match &hook.scope {
            Scope::Global => None,
            Scope::Module(name) => Some((order, name.clone())),
        };
        Self { order, hook: hook.clone(), index }
    }
}

//! The queues in which tasks of modules wait.

use crate::configuration::Configuration;
use crate::name::QueueName;
use crate::task::{ModulePurge, TaskKind};

/// Returns the queue in which a task of a module waits, but for runs of its hooks, which say it themselves: what is done as an account
/// of a namespace holds up nobody in others.
pub(crate) fn queue_of(configuration: &Configuration, kind: &TaskKind) -> QueueName {
    let guest = if let TaskKind::ModulePurge(ModulePurge { target, .. }) = kind {
        target.account.as_ref().map(|_| QueueName::of_namespace(&target.namespace))
    } else {
        kind.module().and_then(|module| configuration.guest_queue(module))
    };
    guest.unwrap_or_else(QueueName::main)
}

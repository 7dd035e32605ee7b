//! The queues in which tasks of modules wait.

use crate::configuration::Configuration;
use crate::name::QueueName;
use crate::task::{ModuleDelete, ModulePurge, ModuleRun, TaskKind};

/// Returns the queue in which a task of a module waits: what is done as an account of a namespace holds up nobody in others.
pub(crate) fn queue_of(configuration: &Configuration, kind: &TaskKind) -> QueueName {
    let guest = match kind {
        TaskKind::ModulePurge(ModulePurge { target, .. }) => {
            target.account.as_ref().map(|_| QueueName::of_namespace(&target.namespace))
        }
        TaskKind::ModuleDelete(ModuleDelete { module, .. })
        | TaskKind::ModuleEnsureCrds(module)
        | TaskKind::ModuleRun(ModuleRun { module, .. }) => configuration.guest_queue(module),
        TaskKind::AddonsCommit
        | TaskKind::ConvergeModules(_)
        | TaskKind::DiscoverHelmReleases
        | TaskKind::GlobalHookEnableKubernetesBindings(_)
        | TaskKind::GlobalHookWaitKubernetesSynchronization
        | TaskKind::HookRun(_)
        | TaskKind::ParallelModuleRun(_) => None,
    };
    guest.unwrap_or_else(QueueName::main)
}

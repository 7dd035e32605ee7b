//! What put a task in its queue.

use std::fmt;

/// What put a task in its queue, in the words that queue listings use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Trigger {
    /// Objects of a release are gone.
    AbsentResources,
    /// `afterAll` hooks changed global values.
    AfterAllChangedValues,
    /// `afterHelm` hooks of a module changed its values.
    AfterHelmChangedValues,
    /// The command `converge`.
    CommandConverge,
    /// The command `module purge`.
    CommandPurge,
    /// The command `module resume`.
    CommandResume,
    /// The command `module run`.
    CommandRun,
    /// The ConfigMap changed what concerns all modules.
    ConfigMapChanged,
    /// The ConfigMap changed what concerns some modules.
    ConfigMapChangedModules,
    /// Files changed that concern all modules.
    FilesChanged,
    /// Files of some modules changed.
    FilesChangedModules,
    /// Global values changed: what the module runs of such a converge say.
    GlobalValuesChanged,
    /// A global hook changed which modules are on.
    HookChangedFlags,
    /// An object changed.
    Kubernetes,
    /// A hook that ran because of an object changed global values.
    KubernetesChangedGlobalValues,
    /// A hook that ran because of an object changed the values of its module.
    KubernetesChangedModuleValues,
    /// The first converge ended.
    PostConvergeCleanup,
    /// Something changed that concerns all modules: what the module runs of such a converge say.
    ReloadAllModules,
    /// Objects of a release were changed.
    ReleaseDrifted,
    /// The records of a release are not as they were left.
    ReleaseStatus,
    /// A crontab line was due.
    Schedule,
    /// A hook that ran because of a schedule changed global values.
    ScheduleChangedGlobalValues,
    /// A hook that ran because of a schedule changed the values of its module.
    ScheduleChangedModuleValues,
    /// The operator started.
    Startup,
    /// The operator started: what the module runs of the first converge say.
    StartupOfModules,
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AbsentResources => "AbsentHelmResourcesDetected",
            Self::AfterAllChangedValues => "AfterAll-Hooks-Change-GlobalValues",
            Self::AfterHelmChangedValues => "AfterHelm-Hooks-Change-Values",
            Self::CommandConverge => "Command-Converge",
            Self::CommandPurge => "Command-Module-Purge",
            Self::CommandResume => "Command-Module-Resume",
            Self::CommandRun => "Command-Module-Run",
            Self::ConfigMapChanged => "ReloadAll-After-KubeConfigChange",
            Self::ConfigMapChangedModules => "KubeConfig-Changed-Modules",
            Self::FilesChanged => "ReloadAll-After-FilesChange",
            Self::FilesChangedModules => "Files-Changed-Modules",
            Self::GlobalValuesChanged => "GlobalValuesChanged",
            Self::HookChangedFlags => "ReloadAll-After-GlobalHookDynamicUpdate",
            Self::Kubernetes => "Kubernetes",
            Self::KubernetesChangedGlobalValues => "Kubernetes-Change-GlobalValues",
            Self::KubernetesChangedModuleValues => "Kubernetes-Change-ModuleValues",
            Self::PostConvergeCleanup => "Operator-PostConvergeCleanup",
            Self::ReloadAllModules => "ReloadAllModules",
            Self::ReleaseDrifted => "HelmReleaseDriftDetected",
            Self::ReleaseStatus => "HelmReleaseUnexpectedStatus",
            Self::Schedule => "Schedule",
            Self::ScheduleChangedGlobalValues => "Schedule-Change-GlobalValues",
            Self::ScheduleChangedModuleValues => "Schedule-Change-ModuleValues",
            Self::Startup => "Operator-Startup",
            Self::StartupOfModules => "OperatorStartup",
        })
    }
}

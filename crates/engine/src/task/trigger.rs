//! What put a task in its queue.

use std::fmt;

/// What put a task in its queue, in the words that queue listings use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Trigger {
    AbsentResources,
    AfterAllChangedValues,
    AfterHelmChangedValues,
    CommandConverge,
    CommandPurge,
    CommandResume,
    CommandRun,
    ConfigMapChanged,
    ConfigMapChangedModules,
    FilesChanged,
    FilesChangedModules,
    /// Global values changed: what the module runs of such a converge say.
    GlobalValuesChanged,
    HookChangedFlags,
    Kubernetes,
    KubernetesChangedGlobalValues,
    KubernetesChangedModuleValues,
    PostConvergeCleanup,
    /// Something changed that concerns all modules: what the module runs of such a converge say.
    ReloadAllModules,
    ReleaseDrifted,
    ReleaseStatus,
    Schedule,
    ScheduleChangedGlobalValues,
    ScheduleChangedModuleValues,
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

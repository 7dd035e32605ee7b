//! What put a task in its queue.

/// What put a task in its queue, in the words that queue listings use.
#[derive(Clone, Copy, Debug, strum::Display, Eq, PartialEq)]
pub(crate) enum Trigger {
    #[strum(to_string = "AbsentHelmResourcesDetected")]
    AbsentResources,
    #[strum(to_string = "AfterAll-Hooks-Change-GlobalValues")]
    AfterAllChangedValues,
    #[strum(to_string = "AfterHelm-Hooks-Change-Values")]
    AfterHelmChangedValues,
    #[strum(to_string = "Command-Converge")]
    CommandConverge,
    #[strum(to_string = "Command-Module-Purge")]
    CommandPurge,
    #[strum(to_string = "Command-Module-Resume")]
    CommandResume,
    #[strum(to_string = "Command-Module-Run")]
    CommandRun,
    #[strum(to_string = "ReloadAll-After-KubeConfigChange")]
    ConfigMapChanged,
    #[strum(to_string = "KubeConfig-Changed-Modules")]
    ConfigMapChangedModules,
    #[strum(to_string = "ReloadAll-After-FilesChange")]
    FilesChanged,
    #[strum(to_string = "Files-Changed-Modules")]
    FilesChangedModules,
    /// Global values changed: what the module runs of such a converge say.
    GlobalValuesChanged,
    #[strum(to_string = "ReloadAll-After-GlobalHookDynamicUpdate")]
    HookChangedFlags,
    Kubernetes,
    #[strum(to_string = "Kubernetes-Change-GlobalValues")]
    KubernetesChangedGlobalValues,
    #[strum(to_string = "Kubernetes-Change-ModuleValues")]
    KubernetesChangedModuleValues,
    #[strum(to_string = "Operator-PostConvergeCleanup")]
    PostConvergeCleanup,
    /// Something changed that concerns all modules: what the module runs of such a converge say.
    ReloadAllModules,
    #[strum(to_string = "HelmReleaseDriftDetected")]
    ReleaseDrifted,
    #[strum(to_string = "HelmReleaseUnexpectedStatus")]
    ReleaseStatus,
    Schedule,
    #[strum(to_string = "Schedule-Change-GlobalValues")]
    ScheduleChangedGlobalValues,
    #[strum(to_string = "Schedule-Change-ModuleValues")]
    ScheduleChangedModuleValues,
    #[strum(to_string = "Operator-Startup")]
    Startup,
    /// The operator started: what the module runs of the first converge say.
    #[strum(to_string = "OperatorStartup")]
    StartupOfModules,
}

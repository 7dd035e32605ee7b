//! What put a task in its queue.

use crate::hook::BindingContext;
use crate::hook::context::Trigger as Happening;
use crate::name::Scope;

/// What put a task in its queue, in the words that queue listings use.
#[derive(Clone, Copy, Debug, strum::Display, Eq, PartialEq)]
pub(crate) enum Trigger {
    #[strum(to_string = "AbsentHelmResourcesDetected")]
    AbsentResources,
    #[strum(to_string = "Addons-Changed")]
    AddonsChanged,
    #[strum(to_string = "AfterAll-Hooks-Change-GlobalValues")]
    AfterAllChangedValues,
    #[strum(to_string = "AfterHelm-Hooks-Change-Values")]
    AfterHelmChangedValues,
    #[strum(to_string = "Chart-Resolved")]
    ChartResolved,
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
    #[strum(to_string = "Maintenance-Ended")]
    MaintenanceEnded,
    #[strum(to_string = "Operator-PostConvergeCleanup")]
    PostConvergeCleanup,
    /// Something changed that concerns all modules: what the module runs of such a converge say.
    ReloadAllModules,
    #[strum(to_string = "HelmReleaseUnexpectedStatus")]
    ReleaseStatus,
    #[strum(to_string = "Requirements-Met")]
    RequirementsMet,
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

impl Trigger {
    /// Returns whether somebody changed what is wanted: that may end what fails, and does not wait for it.
    pub(crate) fn is_of_people(self) -> bool {
        match self {
            Self::AddonsChanged
            | Self::ChartResolved
            | Self::CommandConverge
            | Self::ConfigMapChanged
            | Self::ConfigMapChangedModules
            | Self::FilesChanged
            | Self::FilesChangedModules => true,
            Self::AbsentResources
            | Self::AfterAllChangedValues
            | Self::AfterHelmChangedValues
            | Self::CommandPurge
            | Self::CommandResume
            | Self::CommandRun
            | Self::GlobalValuesChanged
            | Self::HookChangedFlags
            | Self::Kubernetes
            | Self::KubernetesChangedGlobalValues
            | Self::KubernetesChangedModuleValues
            | Self::MaintenanceEnded
            | Self::PostConvergeCleanup
            | Self::ReleaseStatus
            | Self::ReloadAllModules
            | Self::RequirementsMet
            | Self::Schedule
            | Self::ScheduleChangedGlobalValues
            | Self::ScheduleChangedModuleValues
            | Self::Startup
            | Self::StartupOfModules => false,
        }
    }

    /// Returns what a converge of all modules is called that does also what a look at some of them would do.
    pub(crate) fn of_all(self) -> Self {
        if self == Self::ConfigMapChangedModules {
            Self::ConfigMapChanged
        } else if self == Self::FilesChangedModules {
            Self::FilesChanged
        } else {
            self
        }
    }

    /// Returns what a change of values is called that objects led to.
    pub(crate) fn of_objects(scope: &Scope) -> Self {
        match scope {
            Scope::Global => Self::KubernetesChangedGlobalValues,
            Scope::Module(_) => Self::KubernetesChangedModuleValues,
        }
    }

    /// Returns what a change of values by a run with this context is called, if it leads to anything.
    pub(crate) fn reaction(context: &BindingContext, scope: &Scope) -> Option<Self> {
        match (&context.trigger, scope) {
            (
                Happening::Event { .. } | Happening::Review { .. } | Happening::Conversion { .. },
                Scope::Global,
            ) => Some(Self::KubernetesChangedGlobalValues),
            (
                Happening::Event { .. } | Happening::Review { .. } | Happening::Conversion { .. },
                Scope::Module(_),
            ) => Some(Self::KubernetesChangedModuleValues),
            (Happening::Schedule, Scope::Global) => Some(Self::ScheduleChangedGlobalValues),
            (Happening::Schedule, Scope::Module(_)) => Some(Self::ScheduleChangedModuleValues),
            (Happening::Lifecycle(_) | Happening::Reconcile(_) | Happening::Synchronization { .. }, _) => {
                None
            }
        }
    }
}

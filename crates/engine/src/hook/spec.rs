//! The parsed configuration of a hook.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use strum::{Display, IntoStaticStr, VariantArray};

use super::domain::{is_webhook_name, webhook_id};
use super::limits::HookLimits;
use super::reconcile::ReconcileBinding;
use super::selection::{LabelSelector, MonitorSpec, Selection};
use crate::name::{CronLine, HookName, QueueName, Scope};
use crate::retry::RetryPolicy;

/// The queue of a binding that does not ask for one.
pub const MAIN_QUEUE: &str = "main";

/// Everything a hook asked for in its answer to `--config`.
#[derive(Clone, Debug, PartialEq)]
pub struct HookSpec {
    /// The name of the hook inside its scope.
    pub name: HookName,
    /// The dialect of the configuration, which is also the dialect of the hook's binding contexts.
    pub config_version: ConfigVersion,
    /// The points of a lifecycle at which the hook runs, with its place among the other hooks there.
    pub lifecycle: BTreeMap<Lifecycle, Order>,
    /// Schedule bindings in the order of the configuration.
    pub schedules: Vec<ScheduleBinding>,
    /// Kubernetes bindings in the order of the configuration.
    ///
    /// A [`super::context::Trigger`] names one by its index here, since names need not be unique.
    pub kubernetes: Vec<KubernetesBinding>,
    /// Reconcile bindings in the order of the configuration. Their names are unique.
    pub reconciles: Vec<ReconcileBinding>,
    /// Validating webhooks. They are checked like all other sections.
    pub validating: Vec<AdmissionBinding>,
    /// Mutating webhooks.
    pub mutating: Vec<AdmissionBinding>,
    /// Conversions of custom resources.
    pub conversions: Vec<ConversionBinding>,
    /// How often and how long the hook may run.
    pub settings: Settings,
}

impl HookSpec {
    /// Returns a configuration without any binding.
    pub fn empty(name: HookName, config_version: ConfigVersion) -> Self {
        Self {
            name,
            config_version,
            lifecycle: BTreeMap::new(),
            schedules: Vec::new(),
            kubernetes: Vec::new(),
            reconciles: Vec::new(),
            validating: Vec::new(),
            mutating: Vec::new(),
            conversions: Vec::new(),
            settings: Settings::default(),
        }
    }

    /// Returns the hook's place among the hooks that run at `point`, or `None` if it does not run there.
    pub fn order(&self, point: Lifecycle) -> Option<Order> {
        self.lifecycle.get(&point).copied()
    }

    /// Returns whether the hook has bindings that watch objects.
    pub fn watches(&self) -> bool {
        !self.kubernetes.is_empty() || !self.reconciles.is_empty()
    }

    /// Returns whether the hook runs in every converge.
    pub fn is_of_converge(&self) -> bool {
        self.lifecycle.keys().any(|point| point.is_of_converge())
    }

    /// Returns the index of the first kubernetes binding with this name.
    ///
    /// Snapshots are included by name, and the first binding of a name is the one that is meant.
    pub fn kubernetes_index(&self, name: &str) -> Option<usize> {
        self.kubernetes.iter().position(|binding| binding.name == name)
    }

    /// Returns the webhooks of this kind, in the order of the configuration.
    pub fn admissions(&self, kind: AdmissionKind) -> &[AdmissionBinding] {
        match kind {
            AdmissionKind::Mutating => &self.mutating,
            AdmissionKind::Validating => &self.validating,
        }
    }

    /// Returns whether the API server may ask the hook.
    pub fn has_webhooks(&self) -> bool {
        !self.validating.is_empty() || !self.mutating.is_empty() || !self.conversions.is_empty()
    }

    /// Returns whether the hook keeps objects until it has seen their end.
    pub fn has_finalizers(&self) -> bool {
        self.reconciles.iter().any(|binding| binding.finalizer.is_some())
    }

    /// Returns the names of the queues that the hook's bindings ask for, without `main`.
    pub fn queues(&self) -> BTreeSet<&QueueName> {
        let schedules = self.schedules.iter().map(|binding| &binding.queue);
        let kubernetes = self.kubernetes.iter().map(|binding| &binding.queue);
        schedules.chain(kubernetes).filter(|queue| queue.as_str() != MAIN_QUEUE).collect()
    }
}

/// A dialect of hook configurations and binding contexts.
#[derive(Clone, Copy, Debug, Display, Eq, Ord, PartialEq, PartialOrd)]
#[strum(serialize_all = "lowercase")]
pub enum ConfigVersion {
    /// JSON or YAML without `configVersion`.
    V0,
    /// `configVersion: v1`.
    V1,
}

/// Whose hook it is. It decides which lifecycle properties a configuration may have.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum HookKind {
    /// A hook in the global hooks directory: `beforeAll`, `afterAll`.
    Global,
    /// A hook of a module: `beforeHelm`, `afterHelm`, `beforeDeleteHelm`, `afterDeleteHelm`.
    Module,
}

/// A point of a lifecycle at which hooks run.
#[derive(Clone, Copy, Debug, Display, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd, VariantArray)]
#[strum(serialize_all = "camelCase")]
pub enum Lifecycle {
    /// Once, before everything else of the operator or of the module.
    OnStartup,
    /// Before the modules of a converge.
    BeforeAll,
    /// After the modules of a converge.
    AfterAll,
    /// Before the module's release is installed or upgraded.
    BeforeHelm,
    /// After the module's release was installed or upgraded.
    AfterHelm,
    /// Before the module's release is uninstalled.
    BeforeDeleteHelm,
    /// After the module's release was uninstalled.
    AfterDeleteHelm,
}

impl Lifecycle {
    /// Returns the word that configurations and binding contexts use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns whether contexts of this point carry all snapshots of the hook. At the start there are none yet.
    pub fn has_snapshots(self) -> bool {
        self != Self::OnStartup
    }

    /// Returns whether each converge reaches this point, so that a new hook of it makes a converge necessary.
    pub fn is_of_converge(self) -> bool {
        self != Self::OnStartup && self.is_open_to(HookKind::Global)
    }

    /// Returns whether a hook of this kind may ask for this point.
    pub fn is_open_to(self, kind: HookKind) -> bool {
        match self {
            Self::OnStartup => true,
            Self::BeforeAll | Self::AfterAll => kind == HookKind::Global,
            Self::BeforeHelm | Self::AfterHelm | Self::BeforeDeleteHelm | Self::AfterDeleteHelm => {
                kind == HookKind::Module
            }
        }
    }
}

/// A hook's place among the hooks of one lifecycle point: smaller is earlier, equal ones go by name.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Order(pub i64);

/// How often and how long a hook may run.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// One run becomes possible every this long. Zero means that there is no limit.
    pub execution_min_interval: Duration,
    /// How many runs can be saved up. At least 1.
    pub execution_burst: u32,
    /// The deadline of one run. `None` leaves it to the operator's default.
    pub timeout: Option<Duration>,
    /// How its runs are tried again that are no part of a run of its module.
    pub retry: RetryPolicy,
    /// What one run may use at most. What it does not say is as the options of the operator say.
    pub limits: HookLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            execution_min_interval: Duration::ZERO,
            execution_burst: 1,
            timeout: None,
            retry: RetryPolicy::default(),
            limits: HookLimits::default(),
        }
    }
}

/// What happened to a watched object.
#[derive(Clone, Copy, Debug, Display, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd)]
pub enum WatchEvent {
    /// The object appeared, or started to match the selectors.
    Added,
    /// The object, or what the filter makes of it, changed.
    Modified,
    /// The object went, or stopped to match the selectors.
    Deleted,
}

impl WatchEvent {
    /// Every event.
    pub const ALL: [Self; 3] = [Self::Added, Self::Modified, Self::Deleted];

    /// Returns the word of v1 configurations and contexts.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the word of v0 configurations and contexts.
    pub fn as_v0_str(self) -> &'static str {
        match self {
            Self::Added => "add",
            Self::Modified => "update",
            Self::Deleted => "delete",
        }
    }
}

/// A `schedule` binding.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleBinding {
    /// The name as binding contexts show it. Names need not be unique.
    pub name: String,
    /// The crontab line, as written.
    pub crontab: CronLine,
    /// The queue that gets the tasks of this binding.
    pub queue: QueueName,
    /// The group whose adjacent contexts become one.
    pub group: Option<String>,
    /// Whether a failed run counts as done.
    pub allow_failure: bool,
    /// The kubernetes bindings whose snapshots a context carries, the members of the group included.
    pub include_snapshots_from: Vec<String>,
}

/// A `kubernetes` binding.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "these are the independent switches of the configuration")]
pub struct KubernetesBinding {
    /// The name as binding contexts show it. Names need not be unique.
    pub name: String,
    /// What is watched. Bindings with equal selections share one watch.
    pub selection: Selection,
    /// The jq program whose result is compared and shown, as written.
    pub jq_filter: Option<String>,
    /// Whether contexts show whole objects, not only filter results.
    pub keep_full_objects: bool,
    /// The events that run the hook. The snapshot is kept up to date by all of them.
    pub execute_on_events: BTreeSet<WatchEvent>,
    /// Whether the hook runs with all listed objects at first.
    pub execute_on_synchronization: bool,
    /// Whether the start waits for the Synchronization of this binding. Always true in `main`.
    pub wait_for_synchronization: bool,
    /// The kubernetes bindings whose snapshots a context carries, the members of the group included.
    pub include_snapshots_from: Vec<String>,
    /// The group whose adjacent contexts become one.
    pub group: Option<String>,
    /// The queue that gets the tasks of this binding.
    pub queue: QueueName,
    /// Whether a failed run counts as done.
    pub allow_failure: bool,
}

impl KubernetesBinding {
    /// Returns whether the start waits for the Synchronization of this binding.
    pub(crate) fn is_waited(&self) -> bool {
        self.queue.is_main() || self.wait_for_synchronization
    }

    /// Returns the monitor that this binding needs.
    pub fn monitor(&self) -> MonitorSpec {
        MonitorSpec {
            selection: self.selection.clone(),
            jq_filter: self.jq_filter.clone(),
            keep_objects: self.keep_full_objects,
        }
    }
}

/// A `kubernetesValidating` or `kubernetesMutating` binding.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionBinding {
    /// The name: of the binding and of the webhook.
    pub name: String,
    /// What the webhook is asked about.
    pub rules: Vec<AdmissionRule>,
    /// Which objects it is asked about.
    pub object_selector: Option<LabelSelector>,
    /// In which namespaces it is asked.
    pub namespace_selector: Option<LabelSelector>,
    /// What the API server does when the webhook does not answer; `None` leaves it to the operator's default.
    pub failure_policy: Option<FailurePolicy>,
    /// Whether dry runs are the only requests without effects of their own.
    pub side_effects: SideEffects,
    /// How long the API server waits, in seconds.
    pub timeout_seconds: i64,
    /// Whether it is asked about the system's namespaces and the operator's own, too.
    pub include_system_namespaces: bool,
    /// Whether a mutating webhook is asked once more when a later one changed the object.
    pub reinvoked: bool,
    /// Conditions in CEL that must hold before the webhook is asked: name and expression.
    pub match_conditions: Vec<(String, String)>,
    /// The kubernetes bindings whose snapshots a context carries, the members of the group included.
    pub include_snapshots_from: Vec<String>,
    /// The group whose members' snapshots are included.
    pub group: Option<String>,
}

impl AdmissionBinding {
    /// Returns the name of the webhook of a hook of `scope`: a domain with at least three segments.
    pub fn webhook_name(&self, scope: &Scope) -> String {
        if is_webhook_name(&self.name) {
            return self.name.clone();
        }
        format!("{}.{scope}.addon-operator.io", webhook_id(&self.name))
    }
}

/// One rule of an admission webhook.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdmissionRule {
    /// API groups; `*` means all.
    pub api_groups: Vec<String>,
    /// Versions; `*` means all.
    pub api_versions: Vec<String>,
    /// Resources, as `pods`, `pods/log`, `*/*` ….
    pub resources: Vec<String>,
    /// `CREATE`, `UPDATE`, `DELETE`, `CONNECT` or `*`.
    pub operations: Vec<String>,
    /// `Cluster`, `Namespaced` or `*`.
    pub scope: Option<String>,
}

/// What a webhook for admission is asked.
#[derive(Clone, Copy, Debug, Display, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd)]
pub enum AdmissionKind {
    /// How an object is to be changed before it is written.
    Mutating,
    /// Whether an object may be written.
    Validating,
}

/// What the API server does when a webhook does not answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FailurePolicy {
    /// The request is refused.
    Fail,
    /// The request goes on.
    Ignore,
}

/// Which effects a webhook has beside its answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SideEffects {
    /// None at all.
    None,
    /// None when the request is a dry run.
    NoneOnDryRun,
}

/// A `kubernetesCustomResourceConversion` binding.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversionBinding {
    /// The name as binding contexts show it.
    pub name: String,
    /// The CRD whose objects are converted.
    pub crd_name: String,
    /// The conversions that the hook knows, from version to version.
    pub conversions: Vec<(String, String)>,
    /// The kubernetes bindings whose snapshots a context carries, the members of the group included.
    pub include_snapshots_from: Vec<String>,
    /// The group whose members' snapshots are included.
    pub group: Option<String>,
}

//! Every decision the operator takes, without doing anything itself.
//!
//! ```text
//!            Event                       Effect
//! adapters ─────────▶ Engine::handle ─────────▶ adapters
//!                        │    ▲
//!                        ▼    │ time is an argument
//!  configuration, queues, bindings, modules, controllers, converges, sources, repositories, webhooks, the broker, election
//! ```
//!
//! `engine` holds twelve machines and routes between them. Each is a folder with one main type, which alone changes its
//! state. Folders and files know only those to their left:
//!
//! ```text
//! name, retry, module_settings, enabled, time, cause, shared_list, config_object, lease … ◀ hook ◀ addon ◀ package ◀ catalog, config ◀ event, notice, effect, chart_values ◀ context, view ◀ module_file
//!   ◀ configuration ◀ task ◀ queue ◀ reconcile ◀ binding ◀ inspection ◀ module ◀ controller ◀ converge
//!   ◀ source ◀ repository ◀ webhook ◀ broker ◀ election ◀ command ◀ engine
//! ```
//!
//! A step of a machine gets the `Context`, the machines below it, and returns plain values: what a
//! task does next, or what happened that concerns a machine above it. A task is plain data that machines move on.

mod addon;
mod binding;
mod broker;
mod catalog;
mod cause;
mod chart_test;
mod chart_values;
mod command;
mod config;
mod config_object;
mod configuration;
mod context;
mod controller;
mod converge;
pub mod cron;
mod drift_settings;
pub mod duration;
mod effect;
mod election;
mod enabled;
mod engine;
mod event;
mod extenders;
mod failure;
pub mod hook;
mod inspection;
mod lease;
mod memory;
mod module;
mod module_file;
mod module_settings;
mod name;
mod notice;
mod package;
mod queue;
mod reconcile;
mod release_target;
mod repository;
mod retry;
mod shared_list;
mod source;
mod task;
mod time;
pub mod view;
mod webhook;

pub use addon::{
    AddonProblem, AddonReason, Approval, Approvals, Bundle, BundleKind, DeletionPolicy, Digest,
    FailurePolicy, Fetched, FetchedAddon, FetchedRepository, GivenUpBundle, HoldReason, Include,
    MAX_INCLUDES, MAX_REPOSITORIES, MAX_URL, ModuleLink, NotADigest, PlannedChange, PlannedModule,
    RegisteredAddon, RegisteredAddons, Registry, RegistryError, RepositoryProblem, RepositoryReason,
    RepositorySpec, SecretName, SourceKey, SourceKind, SourcePlan, SourceReference, SourceSpec, SpecError,
    UpdateWindow, Verification, WithheldVersion,
};
pub use binding::{Tally, WatchedObjects};
pub use catalog::{
    BrokenPart, Catalog, EnabledFlag, Global, Hook, Launch, Module, Offer, OfferedPlan, Origin, Plans,
    Script, ValuesLayout,
};
pub use cause::Cause;
pub use chart_test::{PodLog, TestReport, TestRequest, TestRun};
pub use config::{Config, ElectionConfig, ElectionMode, OnModuleFailure, WebhookClient, WebhookConfig};
pub use config_object::{ConfigObject, ConfigText};
pub use drift_settings::{DriftMode, DriftSettings, IgnoreRule, MAX_IGNORE_RULES, MAX_IGNORED_PATHS};
pub use effect::{
    Abort, Announcement, Basis, BrokerAnswer, BrokerBody, BrokerRegistration, Effect, ModuleValues,
    Narrowing, ObjectReference, PatchAuthor, RefusalReason, ReviewRefusal, RunLabels, ValuesInput,
    WebhookRegistration,
};
pub use enabled::EnabledModules;
pub use engine::Engine;
pub use event::{
    BrokerRequest, Command, ConfigData, Drift, Event, HookOutput, OwnedRelease, OwnedReleases, ReleaseAction,
    ReleaseOutcome, Restored, StoreError, TakenFrom, TakenObject, UnwatchedKind, Usage, Verdict,
    WebhookCertificate, WebhookRefusal, WrittenVersions,
};
pub use extenders::{Extender, Extenders};
pub use failure::{Failure, FailureKind};
pub use hook::{metric, object_patch, snapshot};
pub use inspection::{Inspection, ScopeInspection};
pub use lease::LeaseRecord;
pub use memory::ShortMemory;
pub use module_file::ModuleFile;
pub use module_settings::{
    ApplyMode, MAX_REQUIREMENTS, ModuleSettings, ReadinessPolicy, ReadinessWait, Requirement, VersionRange,
};
pub use name::{
    BrokerCallId, CommandId, CronLine, HookId, HookName, ModuleName, MonitorId, QueueName, ReleaseName,
    ReviewId, RunId, Scope, TaskId,
};
pub use notice::{HookEnd, InstanceStage, Notice, ObservedBinding, ReviewEnd, TaskInfo, TaskType};
pub use package::{
    ChartConfigMap, ChartDependencies, ChartDependency, ChartReference, ChartRepositorySpec, ChartSpec,
    FetchedIndex, GivenUp, IndexRequest, IndexValidator, ListedChart, MAX_CHARTS, MAX_VERSIONS, Package,
    PackageDependency, Pin, Pins, RepoGroupSpec, RepositoryAccess, RepositoryKey, RepositoryKind,
    ResolveRequest, ResolvedChart, ResolvedVersion, StoreRequest, StoredPackage, Unresolved, VersionStep,
    WantedVersion,
};
pub use release_target::ReleaseTarget;
pub use retry::{LastResort, RetryPolicy};
pub use time::Time;
pub use view::{Footprint, TaskEnd, View};

//! Every decision the operator takes, without doing anything itself.
//!
//! ```text
//!            Event                       Effect
//! adapters ─────────▶ Engine::handle ─────────▶ adapters
//!                        │    ▲
//!                        ▼    │ time is an argument
//!                  queues, modules, bindings
//! ```

mod binding;
mod catalog;
mod cause;
mod commands;
mod config;
mod configuration;
mod converge;
pub mod cron;
pub mod duration;
mod effect;
mod engine;
mod event;
mod failure;
pub mod hook;
mod module;
mod name;
mod notice;
mod queue;
mod task;
mod time;
pub mod view;

pub use binding::Tally;
pub use catalog::{BrokenPart, Catalog, EnabledFlag, Global, Hook, Module, Script};
pub use cause::Cause;
pub use config::{Config, OnModuleFailure};
pub use effect::{ConfigText, Effect, ModuleValues, RunLabels, ValuesInput};
pub use engine::Engine;
pub use event::{
    Command, ConfigData, Drift, Event, HookOutput, ReleaseAction, ReleaseOutcome, Usage, Verdict,
};
pub use failure::{Failure, FailureKind};
pub use hook::{metric, object_patch, snapshot};
pub use module::events::Announcement;
pub use name::{
    CommandId, CronLine, HookId, HookName, ModuleName, MonitorId, QueueName, ReleaseName, ReviewId, RunId,
    Scope, TaskId,
};
pub use notice::{FedBinding, HookEnd, Notice, TaskInfo};
pub use queue::journal::TaskEnd;
pub use time::Time;
pub use view::View;
pub use view::footprint::Held;
pub use view::inspection::{Inspection, ScopeInspection, WatchedObjects};

//! Every decision the operator takes, without doing anything itself.
//!
//! ```text
//!            Event                       Effect
//! adapters ─────────▶ Engine::handle ─────────▶ adapters
//!                        │    ▲
//!                        ▼    │ time is an argument
//!                  queues, modules, bindings
//! ```

mod announce;
mod binding;
mod bootstrap;
mod broken_files;
mod catalog;
mod cause;
mod combine;
mod commands;
mod config;
mod converge;
pub mod cron;
mod discovery;
mod discreet;
pub mod duration;
mod effect;
mod engine;
mod event;
mod failure;
mod held;
pub mod hook;
mod hook_output;
mod hook_run;
mod inspect;
mod journal;
pub mod metric;
mod module;
mod name;
mod next;
mod notice;
pub mod object_patch;
mod outside_events;
mod queue;
mod queues;
mod reload;
mod sections;
pub mod snapshot;
mod step;
mod task;
mod time;
mod user_config;
pub mod view;
mod wave;
mod work;

pub use announce::Announcement;
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
pub use held::Held;
pub use inspect::{Inspection, ScopeInspection, WatchedObjects};
pub use journal::TaskEnd;
pub use name::{
    CommandId, CronLine, HookId, HookName, ModuleName, MonitorId, QueueName, ReleaseName, ReviewId, RunId,
    Scope, TaskId,
};
pub use notice::{FedBinding, HookEnd, Notice, TaskInfo};
pub use time::Time;
pub use view::View;

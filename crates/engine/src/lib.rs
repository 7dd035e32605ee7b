//! Every decision the operator takes, without doing anything itself.
//!
//! ```text
//!            Event                       Effect
//! adapters ─────────▶ Engine::handle ─────────▶ adapters
//!                        │    ▲
//!                        ▼    │ time is an argument
//!                  queues, modules, bindings
//! ```

mod cause;
pub mod combine;
pub mod cron;
pub mod duration;
mod failure;
pub mod hook;
pub mod metric;
mod name;
pub mod object_patch;
pub mod snapshot;
mod time;

pub use cause::Cause;
pub use failure::{Failure, FailureKind};
pub use name::{
    CommandId, CronLine, HookId, HookName, ModuleName, MonitorId, QueueName, ReleaseName, ReviewId, RunId,
    Scope, TaskId,
};
pub use time::Time;

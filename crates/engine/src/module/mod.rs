//! Modules and global hooks: their files in force, what is known about each, their runs, removals and releases.

mod broken_files;
mod bundle_runs;
mod chart_package;
mod delete;
mod events;
mod hook_run;
mod hooks;
mod lower;
mod mends;
mod modules;
mod object_readiness;
mod ownerless;
mod readiness;
mod release;
mod release_drift;
mod release_places;
mod release_target;
mod reload;
mod requirements;
mod retries;
mod run;
mod state;
mod view;
mod waits;
mod watch_events;
mod watch_health;

pub(crate) use bundle_runs::BundleRuns;
pub(crate) use chart_package::PlannedInput;
pub(crate) use hook_run::{report_review, report_run};
pub(crate) use lower::Lower;
pub(crate) use modules::Modules;
pub(crate) use reload::Reloaded;
pub(crate) use run::after_helm;
pub(crate) use state::{ModuleState, Phase};
pub(crate) use watch_events::kind_appeared;

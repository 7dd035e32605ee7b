//! Modules and global hooks: their files in force, what is known about each, their runs, removals and releases.

mod broken_files;
mod chart_dependencies;
mod chart_package;
mod delete;
mod events;
mod hook_run;
mod hooks;
mod lower;
mod modules;
mod ownerless;
mod provision;
mod release;
mod release_drift;
mod release_places;
mod release_target;
mod reload;
mod run;
mod state;
mod view;
mod watch_events;
mod watch_health;

pub(crate) use hook_run::{report_review, report_run};
pub(crate) use lower::Lower;
pub(crate) use modules::Modules;
pub(crate) use provision::Provision;
pub(crate) use reload::Reloaded;
pub(crate) use run::after_helm;
pub(crate) use state::{ModuleState, Phase};
pub(crate) use watch_events::kind_appeared;

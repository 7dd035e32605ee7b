//! The values: of files, of the ConfigMap, of the Secret over it and of hooks, and which modules they switch on.

mod config_map;
mod decision;
mod earlier_secrets;
mod flags;
mod hook_output;
mod maintenance;
mod reading;
mod redaction;
mod rereading;
mod sections;
mod sourced;
mod texts;
mod undecided;

pub(crate) use decision::{Decision, Opinion};
pub(crate) use hook_output::{Carried, Prepared, mismatch};
pub(crate) use sections::Configuration;
pub(crate) use sourced::SourcedChange;

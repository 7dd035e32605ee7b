//! Requests that change objects. Every write passes the same pipeline; its steps are listed at the top of the crate.

pub(crate) mod body;
pub(crate) mod create;
mod delete;
pub(crate) mod loopback;
pub(crate) mod metadata;
pub(crate) mod patch;
pub(crate) mod pipeline;
pub(crate) mod update;

pub(crate) use body::{check_kind, object, report_dropped};
pub(crate) use create::create;
pub(crate) use delete::{
    DeleteOptions, Propagation, check_preconditions, delete, delete_collection, delete_object,
};
pub(crate) use metadata::OTHER_NAMESPACE;
pub(crate) use patch::{check_apply, patch, patch_kind};
pub(crate) use update::update;

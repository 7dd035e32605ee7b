//! Who owns which fields of an object: `metadata.managedFields`, updates and server-side apply.
//!
//! [`update`] records what a write has changed, [`create`] what a new object has. [`apply`] lays an applied object over the live one, finds conflicts with
//! other owners, and takes away what the applier owned and no longer mentions.

mod apply;
mod compare;
mod create;
mod entry;
mod field_set;
mod merge;
mod path_element;
mod type_ref;
mod typed;
mod update;

pub use apply::{Applied, ApplyError, Conflict, apply, check};
pub use create::create;
pub use field_set::{FieldSet, path_text};
pub use path_element::PathElement;
pub use update::{clear, update};

use crate::types::Shape;

/// A write, as far as ownership is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// What the object is.
    pub shape: &'a Shape,
    /// The version of the request, for example `apps/v1`.
    pub api_version: &'a str,
    /// The part that is written, for example `status`; empty for the object.
    pub subresource: &'a str,
    /// Who writes; empty means unknown.
    pub manager: &'a str,
    /// The current time, for example `2026-01-02T03:04:05Z`.
    pub now: &'a str,
    /// Fields that the write does not change and that get no owner, for example `status`.
    pub ignored: &'a FieldSet,
}

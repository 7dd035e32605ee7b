//! Who owns which fields of an object: `metadata.managedFields`, updates and server-side apply.
//!
//! [`update`] records what a write has changed, [`first`] what a new object says. [`apply`] lays an applied object over the live one, finds conflicts with
//! other owners, and takes away what the applier owned and no longer mentions.

mod apply;
mod collect;
mod compare;
mod element;
mod entry;
mod first;
mod merge;
mod place;
mod set;
mod update;

pub use apply::{Applied, ApplyError, Conflict, apply, check};
pub use element::Element;
pub use first::first;
pub use place::go_type;
pub use set::{FieldSet, path_text};
pub use update::{clear, update};

use crate::types::Shape;

/// A write, as far as ownership is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// What the object is.
    pub shape: &'a Shape,
    /// The version that the request speaks, for example `apps/v1`.
    pub api_version: &'a str,
    /// The part that is written, for example `status`; empty for the object.
    pub subresource: &'a str,
    /// Who writes; empty means unknown.
    pub manager: &'a str,
    /// The current time, for example `2026-01-02T03:04:05Z`.
    pub now: &'a str,
    /// Fields that the write does not change and nobody comes to own, for example `status`.
    pub ignored: &'a FieldSet,
}

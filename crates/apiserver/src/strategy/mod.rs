//! The strategies of kinds: what reading and writing an object means where kinds differ.

pub(crate) mod conversion;
mod deletion;
mod field_owner;
mod kinds;
mod patching;
mod typing;
mod update;

pub(crate) use deletion::{grace, holds_back, orphans_by_default, terminate, waits_for_others};
pub(crate) use field_owner::{FieldOwner, applied, check_applied, first_owner, own};
pub(crate) use kinds::{Strategy, first_status};
pub(crate) use patching::{
    PatchKind, has_header, patched, strict_error, strict_error_of, type_error, type_error_of,
};
pub(crate) use typing::{
    cause, check_embedded, complete, complete_applied, conform, conform_mutated, internal, settle_stored,
    validate_changed, validate_new,
};
pub(crate) use update::{check_conditional, count_generation, is_same, keep_implied, separate_status};

//! What hooks write into their patch files. See docs/hooks.md#values.
//!
//! A patch file is a stream of JSON documents, each an operation or a list of
//! operations. It is read and judged as a whole by [`Patch::read`]; one bad
//! operation refuses all of it.

mod apply;
mod compact;
mod operation;
mod read;

pub use apply::{ApplyPatchError, Dropped, apply, replay};
pub use compact::compact;
pub use operation::{Operation, Patch, Path, Root, Target};
pub use read::{OperationProblem, ReadPatchError, ShapeProblem};

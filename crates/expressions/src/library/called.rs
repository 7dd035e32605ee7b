//! What a part of the library returns.

use crate::failure::Failure;
use crate::value::Value;

/// What a part of the library returns; `None` if it does not have the function for these values.
pub(super) type Called = Option<Result<Value, Failure>>;

//! A write as webhooks see it.

use serde_json::Value;

use crate::request::RequestContext;

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Delete,
    Update,
}

impl Operation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Delete => "DELETE",
            Operation::Update => "UPDATE",
        }
    }
}

/// A write as webhooks see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) request: &'a RequestContext,
    pub(crate) operation: Operation,
    /// The object as it is; none for a creation.
    pub(crate) old: Option<&'a Value>,
    pub(crate) is_dry_run: bool,
}

//! A write as webhooks see it.

use serde_json::Value;

use crate::object_meta;
use crate::request::RequestContext;

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Delete,
    Update,
}

impl Operation {
    pub(crate) fn as_str(self) -> &'static str {
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
    /// The object as it is to be; none for a deletion.
    pub(crate) object: Option<&'a Value>,
    /// The object as it is; none for a creation.
    pub(crate) old: Option<&'a Value>,
    pub(crate) is_dry_run: bool,
    /// What the client said of how it is done.
    pub(crate) options: &'a Value,
}

impl<'a> Asked<'a> {
    /// Returns the name of the object; `None` if it has none yet.
    pub(crate) fn name(&self) -> Option<&'a str> {
        let objects = [self.object, self.old].into_iter().flatten();
        objects.map(|object| object_meta::text(object, "name")).find(|name| !name.is_empty())
    }
}

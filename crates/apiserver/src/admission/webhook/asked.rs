//! A write as webhooks see it.

use serde_json::Value;

use crate::object_meta;
use crate::request::RequestContext;

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Connect,
    Create,
    Delete,
    Update,
}

impl Operation {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Operation::Connect => "CONNECT",
            Operation::Create => "CREATE",
            Operation::Delete => "DELETE",
            Operation::Update => "UPDATE",
        }
    }
}

/// By what name webhooks are told of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named<'a> {
    /// By its own.
    Itself,
    /// By the one in the path.
    Path(&'a str),
    /// By none: many are meant.
    Many,
}

/// A write as webhooks see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) request: &'a RequestContext,
    pub(crate) operation: Operation,
    pub(crate) named: Named<'a>,
    /// The object as it is to be, or what is asked for; none for a deletion.
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
        match self.named {
            Named::Itself => {}
            Named::Path(name) => return Some(name),
            Named::Many => return None,
        }
        let objects = [self.object, self.old].into_iter().flatten();
        objects.map(|object| object_meta::text(object, "name")).find(|name| !name.is_empty())
    }

    /// Returns the name of the part of an object that is written, empty for the object itself.
    pub(crate) fn part(&self) -> &'a str {
        let part = self.request.subresource.as_deref().unwrap_or_default();
        part.split('/').next().unwrap_or_default()
    }
}

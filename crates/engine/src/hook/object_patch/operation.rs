//! Changes of objects as plain data.

use std::fmt;

use serde_json::Value;

/// One change of an object in the cluster.
#[derive(Clone, PartialEq)]
pub struct ObjectPatch {
    /// Which object.
    pub target: Target,
    /// What happens to it.
    pub operation: Operation,
    /// Whether it is fine that there is no such object. Only patches ask this.
    pub ignore_missing_object: bool,
    /// Whether it is carried out although the hook failed, if it patches the status.
    pub ignore_hook_error: bool,
    /// What it is for.
    pub purpose: Purpose,
}

/// What a change of an object is for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Purpose {
    /// Somebody asked for this operation.
    #[default]
    Asked,
    /// A child of a controller is to be as its hook says. Children come in order, so what is behind one that fails is left.
    Child,
    /// A controller's finalizer comes or goes.
    Finalizer,
    /// A controller says how an object is.
    Status,
}

/// The address of an object.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Target {
    /// `v1`, `apps/v1`, or empty for the preferred version.
    pub api_version: String,
    /// The kind as written: a kind in any case, a plural or a short name.
    pub kind: String,
    /// The namespace, or empty.
    pub namespace: String,
    /// The name. Empty if the API server is asked to make one up.
    pub name: String,
    /// The subresource, without a slash: `status`.
    pub subresource: Option<String>,
}

/// What happens to an object.
#[derive(Clone, PartialEq)]
pub enum Operation {
    /// Server-side apply.
    Apply {
        /// What it shall be like.
        object: Value,
        /// Whether fields of other managers are taken over.
        force: bool,
    },
    /// Server-side apply of a child, if there is nothing in its place or that names the same parent.
    ApplyChild {
        /// What it shall be like.
        object: Value,
    },
    /// The API server is asked whether it would make this child in the place of the one that lives. Nothing is written.
    TryCreate {
        /// What it shall be like.
        object: Value,
    },
    /// The object is created.
    Create {
        /// The object.
        object: Value,
        /// What happens if there is one.
        existing: Existing,
    },
    /// The object is deleted. It is fine if there is none.
    Delete(Propagation),
    /// The object is what a jq program makes of it.
    Jq {
        /// The program. It must give exactly one object.
        filter: String,
    },
    /// A JSON Patch.
    JsonPatch {
        /// A list of operations.
        patch: Value,
    },
    /// A JSON Merge Patch.
    MergePatch {
        /// An object.
        patch: Value,
    },
}

/// What happens if the object to create exists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Existing {
    /// That is an error: `Create`.
    Fail,
    /// It stays as it is: `CreateIfNotExists`.
    Keep,
    /// It is changed into the new one, its status excepted: `CreateOrUpdate`.
    Update,
}

/// What happens to what an object owns when it is deleted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Propagation {
    /// It is deleted later; the operation does not wait: `DeleteInBackground`.
    Background,
    /// It is deleted first, and the operation waits until the object is gone: `Delete`.
    Foreground,
    /// It stays: `DeleteNonCascading`.
    Orphan,
}

impl ObjectPatch {
    /// Returns whether the operation is carried out although the hook failed.
    pub fn survives_hook_error(&self) -> bool {
        self.ignore_hook_error && self.target.subresource.as_deref() == Some("status")
    }
}

/// Writes what is done to which object, never what is written into it.
impl fmt::Display for ObjectPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match (self.purpose, &self.operation) {
            (Purpose::Child, Operation::Delete(_)) => "deletion of child",
            (Purpose::Child, _) => "child",
            (Purpose::Finalizer, _) => "finalizers of",
            (Purpose::Status, _) => "status of",
            (_, Operation::Apply { .. } | Operation::ApplyChild { .. }) => "Apply object",
            (_, Operation::Create { .. } | Operation::TryCreate { .. }) => "Create object",
            (_, Operation::Delete(_)) => "Delete object",
            (_, Operation::Jq { .. } | Operation::JsonPatch { .. } | Operation::MergePatch { .. }) => {
                "Filter object"
            }
        };
        write!(f, "{what} {}", self.target)
    }
}

/// Shows no content: an object can be a secret.
impl fmt::Debug for ObjectPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectPatch({self})")
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api_version, kind, namespace, name, .. } = self;
        let slash = if namespace.is_empty() { "" } else { "/" };
        write!(f, "{api_version}/{kind}/{namespace}{slash}{name}")
    }
}

//! Patches of values, and the operations that they are made of.

use std::collections::BTreeMap;
use std::fmt;

use objects::patch::location::decode_element;
use serde_json::Value;

use crate::name::GLOBAL;

/// Whose values a patch may change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    /// The global section, and the flags that turn modules on and off.
    Global,
    /// The section of one module, named by its key in camelCase.
    Module(String),
}

impl Root {
    /// Returns the key of the section.
    pub fn key(&self) -> &str {
        match self {
            Self::Global => GLOBAL,
            Self::Module(key) => key,
        }
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// Which of a hook's two patch files a patch comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The file that changes the ConfigMap.
    ConfigValues,
    /// The file that changes values in memory.
    Values,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ConfigValues => "config values",
            Self::Values => "values",
        })
    }
}

/// A JSON pointer that begins with the key of a section.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub(super) String);

impl Path {
    /// Returns the path as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the decoded elements of the path, the section's key first.
    pub fn elements(&self) -> impl Iterator<Item = String> {
        self.0.split('/').skip(1).map(decode_element)
    }

    /// Returns whether `other` is a path strictly below this one.
    pub(super) fn is_above(&self, other: &Self) -> bool {
        other.0.strip_prefix(&self.0).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One operation on the values of a section.
#[derive(Clone, PartialEq)]
pub enum Operation {
    /// Sets a key, or inserts into a list.
    Add {
        /// Where; everything but the last element must exist.
        path: Path,
        /// What.
        value: Value,
    },
    /// Removes a key, or an item of a list.
    Remove {
        /// Where.
        path: Path,
    },
    /// Fails the patch unless the value is there; leaves nothing behind.
    Test {
        /// Where.
        path: Path,
        /// The value expected there.
        value: Value,
    },
}

impl Operation {
    /// Returns where the operation works.
    pub fn path(&self) -> &Path {
        match self {
            Self::Add { path, .. } | Self::Remove { path } | Self::Test { path, .. } => path,
        }
    }

    /// Returns the value that the operation sets or expects.
    pub fn value(&self) -> Option<&Value> {
        match self {
            Self::Add { value, .. } | Self::Test { value, .. } => Some(value),
            Self::Remove { .. } => None,
        }
    }

    /// Returns the operation's name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Add { .. } => "add",
            Self::Remove { .. } => "remove",
            Self::Test { .. } => "test",
        }
    }
}

/// Values may be secrets: only the operation's name and path are printed.
impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.path())
    }
}

/// A patch file, read and judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    pub(super) operations: Vec<Operation>,
    pub(super) enabled: BTreeMap<String, Option<bool>>,
}

impl Patch {
    /// Returns the operations on the section's values, in order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Returns what a global hook says about modules, by the module's key: on,
    /// off, or nothing any more.
    pub fn enabled(&self) -> &BTreeMap<String, Option<bool>> {
        &self.enabled
    }

    /// Returns whether the patch says nothing at all.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.enabled.is_empty()
    }
}

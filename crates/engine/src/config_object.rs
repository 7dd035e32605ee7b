//! The two objects that users write values into.

use std::fmt;

use crate::failure::{Failure, FailureKind};

/// An object that users write values into. See docs/modules.md#secret-values.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ConfigObject {
    /// The ConfigMap.
    ConfigMap,
    /// The Secret that lies over it.
    Secret,
}

impl ConfigObject {
    /// Both, the lower one first.
    pub(crate) const ALL: [Self; 2] = [Self::ConfigMap, Self::Secret];

    /// Returns its kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// Returns the other one.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::ConfigMap => Self::Secret,
            Self::Secret => Self::ConfigMap,
        }
    }

    /// Returns the failure of a key of it that can't be used.
    pub(crate) fn bad_key(self, key: &str, what: &str) -> Failure {
        Failure::new(FailureKind::Values, format!("{self} key {key}: {what}"))
    }
}

impl fmt::Display for ConfigObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

/// A text of users, or one that holds what they gave.
#[derive(Clone, Eq, PartialEq)]
pub struct ConfigText(pub String);

impl fmt::Debug for ConfigText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfigText({} bytes)", self.0.len())
    }
}

//! Versions and version constraints as charts write them.
//!
//! The rules are those of the library that charts were written against: looser
//! than semver.org for versions (`v1.2`, `1`), and with its own meaning of
//! `^`, `~`, wildcards, hyphen ranges and pre-releases for constraints.

mod constraint;
mod version;

pub use constraint::{Constraint, ConstraintError};
pub use version::{Version, VersionError};

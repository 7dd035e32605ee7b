//! What a module says about itself: the other modules that it waits for, how it is tried again, how its objects are written, and
//! what becomes of drift.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chart::semver::{Constraint, Version};

use crate::drift_settings::DriftSettings;
use crate::name::ModuleName;
use crate::retry::RetryPolicy;

/// How many modules one may require.
pub const MAX_REQUIREMENTS: usize = 32;

/// What a module says about itself beside its chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModuleSettings {
    /// The modules that it waits for, at most [`MAX_REQUIREMENTS`].
    pub requires: Vec<Requirement>,
    /// What is done about objects of its release that others change.
    pub drift: DriftSettings,
    /// Whether those that require it wait until its objects are ready.
    pub readiness: ReadinessPolicy,
    /// How runs of it that fail are tried again.
    pub retry: RetryPolicy,
    /// How the objects of its release are written.
    pub apply: ApplyMode,
}

/// How the objects of a release are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ApplyMode {
    /// By patches that are made of what was rendered before, what is rendered now, and what is there.
    #[default]
    Client,
    /// By server-side apply: the API server knows who has which field.
    Server,
}

/// Whether those that require a module wait until its objects are ready.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReadinessPolicy {
    /// For what they wait.
    pub wait: ReadinessWait,
    /// After this time it is told that the objects are late.
    pub timeout: Duration,
}

/// For what others wait that require a module, after its run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ReadinessWait {
    /// Nothing.
    #[default]
    None,
    /// The objects of its release are ready.
    Objects,
}

impl Default for ReadinessPolicy {
    fn default() -> Self {
        Self { wait: ReadinessWait::None, timeout: Duration::from_mins(5) }
    }
}

/// A module that another one waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// Its name. For a module of an `AddonsConfiguration` it is that of a neighbour without the namespace, if there is one.
    pub module: ModuleName,
    /// The versions that do.
    pub version: Option<VersionRange>,
}

/// A constraint on versions, as charts write them.
#[derive(Clone, Debug)]
pub struct VersionRange {
    text: Arc<str>,
    constraint: Constraint,
}

impl VersionRange {
    /// Reads a constraint such as `>=1.2 <2`.
    ///
    /// # Errors
    ///
    /// Why it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let constraint = Constraint::parse(text).map_err(|error| error.to_string())?;
        Ok(Self { text: text.into(), constraint })
    }

    /// Returns whether a version does. A text that is no version does not.
    pub fn accepts(&self, version: &str) -> bool {
        Version::parse(version).is_ok_and(|version| self.constraint.matches(&version))
    }
}

impl PartialEq for VersionRange {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_accepts_what_charts_would_and_no_other_text() {
        let range = VersionRange::parse(">=1.2 <2").unwrap();
        assert!(range.accepts("1.2.0") && range.accepts("v1.9"));
        assert!(!range.accepts("2.0.0") && !range.accepts("1.1.9") && !range.accepts("latest"));
        assert!(!range.accepts("1.5.0-rc1"), "a pre-release does only where one is named");
        assert_eq!(range.to_string(), ">=1.2 <2");
        assert_ne!(range, VersionRange::parse(">=1.2").unwrap());
        assert!(VersionRange::parse("one or two").is_err());
    }
}

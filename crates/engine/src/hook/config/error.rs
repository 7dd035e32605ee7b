//! Why the configuration of a hook was refused, and what checks of its meaning are.

use values::yaml::YamlError;

use super::report::{Report, Violations};
use crate::hook::spec::HookSpec;

/// How long a configuration may be. Real ones have a few kilobytes.
pub const MAX_BYTES: usize = 4 << 20;

/// Tries to compile a jq program, and returns what is wrong with it.
pub type Compile<'a> = &'a dyn Fn(&str) -> Result<(), String>;

/// Checks the meaning of a section.
pub(super) type Check<'a> = &'a dyn Fn(&HookSpec, &Report);

/// Why the configuration of a hook was refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// What a file with several hooks printed is none.
    #[error("{0}")]
    Batch(String),
    /// One of several hooks of a file is wrong.
    #[error("hook {index}: {error}")]
    OfBatch {
        /// Its index.
        index: usize,
        /// What is wrong.
        error: Box<Self>,
    },
    /// Properties have the wrong shape or meaning.
    #[error("{0}")]
    Invalid(Violations),
    /// The whole is not a mapping but of this type.
    #[error("config unmarshal: the configuration must be a mapping, found \"{0}\"")]
    NotMapping(&'static str),
    /// The text has this many bytes, more than [`MAX_BYTES`].
    #[error(
        "config unmarshal: the configuration has {0} bytes, more than {MAX_BYTES}; print less for --config"
    )]
    TooLong(usize),
    /// The text is not YAML, or a key occurs twice.
    #[error("config unmarshal: {0}")]
    Unmarshal(YamlError),
    /// The version of the dialect can't be found out.
    #[error("config version: {0}")]
    Version(String),
}

/// Returns what was found, if anything was.
pub(super) fn passed(report: Report, text: &str) -> Result<(), ConfigError> {
    report.finish(text).map_or(Ok(()), |violations| Err(ConfigError::Invalid(violations)))
}

/// Checks the meaning, section by section; the first wrong section ends it.
pub(super) fn checked(spec: &HookSpec, text: &str, sections: &[Check<'_>]) -> Result<(), ConfigError> {
    sections.iter().try_for_each(|check| {
        let report = Report::default();
        check(spec, &report);
        passed(report, text)
    })
}

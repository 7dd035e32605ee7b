//! Why a crontab line was refused.

use crate::duration::DurationError;

/// Why a crontab line was refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CronError {
    /// The length behind `@every` can't be read.
    #[error("Failed to parse duration {text}: {error}")]
    Duration {
        /// The descriptor.
        text: String,
        /// Why.
        error: DurationError,
    },
    /// There is no line, or nothing behind its time zone.
    #[error("Empty spec string; write five fields, as '*/5 * * * *'")]
    Empty,
    /// This field names no moment at all.
    #[error("Empty field: {0}")]
    EmptyField(String),
    /// The line has too few or too many fields.
    #[error("Expected 5 or 6 fields, found {found}: {line}")]
    FieldCount {
        /// How many it has.
        found: usize,
        /// The line.
        line: String,
    },
    /// The first number of a range is greater than the last.
    #[error("Beginning of range ({start}) beyond end of range ({end}): {text}")]
    Inverted {
        /// The first number.
        start: u8,
        /// The last number.
        end: u8,
        /// The range.
        text: String,
    },
    /// This number or name can't be read.
    #[error(
        "Failed to parse int from {0}: write a number or, for months and weekdays, the first three letters of a name"
    )]
    NotNumber(String),
    /// A number is greater than the field allows.
    #[error("End of range ({end}) above maximum ({maximum}): {text}")]
    TooHigh {
        /// The number.
        end: u64,
        /// The greatest that is allowed.
        maximum: u8,
        /// The range.
        text: String,
    },
    /// A number is less than the field allows.
    #[error("Beginning of range ({start}) below minimum ({minimum}): {text}")]
    TooLow {
        /// The number.
        start: u64,
        /// The least that is allowed.
        minimum: u8,
        /// The range.
        text: String,
    },
    /// This range has more than two ends.
    #[error("Too many hyphens: {0}")]
    TooManyHyphens(String),
    /// This range has more than one step.
    #[error("Too many slashes: {0}")]
    TooManySlashes(String),
    /// There is no descriptor of this name.
    #[error("Unrecognized descriptor: {0}")]
    UnknownDescriptor(String),
    /// There is no time zone of this name.
    #[error("Provided bad location {0}: write a name of the IANA database, as Europe/Berlin")]
    UnknownZone(String),
    /// This range has a step of zero, which leads nowhere.
    #[error("Step of range should be a positive number: {0}")]
    ZeroStep(String),
}

//! Durations as Go writes them: `1h30m`, `250ms`, `-1.5s`.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DurationError {
    /// This text is not a sequence of numbers with units.
    #[error("invalid duration \"{0}\": write a number and a unit, as 30s, 5m or 1h30m")]
    Invalid(String),
    /// In this text, a number stands without a unit.
    #[error("missing unit in duration \"{0}\": write ns, us, ms, s, m or h behind each number")]
    MissingUnit(String),
    /// This duration does not fit into 64 bits of nanoseconds.
    #[error("duration \"{0}\" is too long: the longest is about 290 years")]
    TooLong(String),
    /// There is no such unit.
    #[error("unknown unit \"{unit}\" in duration \"{text}\": units are ns, us, ms, s, m and h")]
    UnknownUnit {
        /// The unit as written.
        unit: String,
        /// The text.
        text: String,
    },
}

/// Returns the length of `text` in nanoseconds; a leading `-` makes it negative.
pub fn parse_nanos(text: &str) -> Result<i64, DurationError> {
    use golang::time::DurationError as Go;
    let parsed = golang::time::Duration::parse(text.as_bytes());
    let text = || text.to_owned();
    parsed.map(|duration| duration.0).map_err(|error| match error {
        Go::Invalid(_) => DurationError::Invalid(text()),
        Go::TooLong(_) => DurationError::TooLong(text()),
        Go::NoUnit(_) => DurationError::MissingUnit(text()),
        Go::UnknownUnit { unit, .. } => {
            let unit = String::from_utf8_lossy(&unit).into_owned();
            DurationError::UnknownUnit { unit, text: text() }
        }
    })
}

/// Returns the length of `text`; negative ones count as zero.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    Ok(Duration::from_nanos(u64::try_from(parse_nanos(text)?).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let cases = [
            ("0", 0),
            ("-0", 0),
            ("5s", 5_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5s", 1_500_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("-250ms", -250_000_000),
            ("+3us", 3_000),
            ("3µs", 3_000),
            ("1m0.000000001s", 60_000_000_001),
            ("0.9999999999ns", 0),
            ("9223372036854775807ns", i64::MAX),
        ];
        for (text, nanos) in cases {
            assert_eq!(parse_nanos(text), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused_with_a_reason() {
        let cases = [
            ("", "invalid duration"),
            ("-", "invalid duration"),
            (".", "invalid duration"),
            ("s", "invalid duration"),
            ("1.2.3s", "missing unit"),
            ("30", "missing unit"),
            ("5s3", "missing unit"),
            ("30ks", "unknown unit \"ks\""),
            ("1 s", "unknown unit \" s\""),
            ("1d", "unknown unit \"d\""),
            ("9223372036854775808ns", "too long"),
            ("99999999999999999999h", "too long"),
            ("2562048h", "too long"),
        ];
        for (text, reason) in cases {
            let message = parse_nanos(text).unwrap_err().to_string();
            assert!(message.contains(reason), "{text}: {message}");
        }
    }

    #[test]
    fn a_negative_duration_counts_as_none() {
        assert_eq!(parse("-5s"), Ok(Duration::ZERO));
        assert_eq!(parse("5s"), Ok(Duration::from_secs(5)));
    }
}

//! Durations as Go writes them: `1h30m`, `250ms`, `-1.5s`.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DurationError {
    /// The text is not a sequence of numbers with units.
    #[error("invalid duration \"{text}\": write a number and a unit, as 30s, 5m or 1h30m")]
    Invalid {
        /// The text.
        text: String,
    },
    /// A number stands without a unit.
    #[error("missing unit in duration \"{text}\": write ns, us, ms, s, m or h behind each number")]
    MissingUnit {
        /// The text.
        text: String,
    },
    /// The duration does not fit into 64 bits of nanoseconds.
    #[error("duration \"{text}\" is too long: the longest is about 290 years")]
    TooLong {
        /// The text.
        text: String,
    },
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
    let invalid = || DurationError::Invalid { text: text.to_owned() };
    let too_long = || DurationError::TooLong { text: text.to_owned() };
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(end).ok_or_else(invalid)?;
        if unit.is_empty() {
            return Err(DurationError::MissingUnit { text: text.to_owned() });
        }
        let unit = nanos_of(unit)
            .ok_or_else(|| DurationError::UnknownUnit { unit: unit.to_owned(), text: text.to_owned() })?;
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_long())? };
        total += i128::from(whole) * unit + part_of(fraction, unit);
        if total > i128::from(i64::MAX) {
            return Err(too_long());
        }
        rest = after;
    }
    let nanos = i64::try_from(total).map_err(|_| too_long())?;
    Ok(if negative { -nanos } else { nanos })
}

/// Returns the length of `text`; negative ones count as zero.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    Ok(Duration::from_nanos(u64::try_from(parse_nanos(text)?).unwrap_or(0)))
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn nanos_of(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        _ => return None,
    })
}

/// Returns the nanoseconds of the digits behind a point; those that are too small to count are cut.
fn part_of(digits: &str, unit: i128) -> i128 {
    let mut part = 0;
    let mut scale = 1;
    for digit in digits.bytes().take(18) {
        part = part * 10 + i128::from(digit - b'0');
        scale *= 10;
    }
    part * unit / scale
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

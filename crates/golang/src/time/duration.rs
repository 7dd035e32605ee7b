//! Durations and how they are written: `1h2m3.5s`.

use super::quoted;

/// A duration in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub i64);

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// It does not have the shape of a duration.
    #[error("time: invalid duration {}", quoted(.0))]
    Invalid(Vec<u8>),
    /// It does not fit into 64 bits of nanoseconds, for which Go has the same words.
    #[error("time: invalid duration {}", quoted(.0))]
    TooLong(Vec<u8>),
    /// A number has no unit behind it.
    #[error("time: missing unit in duration {}", quoted(.0))]
    NoUnit(Vec<u8>),
    /// There is no such unit.
    #[error("time: unknown unit {} in duration {}", quoted(unit), quoted(text))]
    UnknownUnit {
        /// The unit.
        unit: Vec<u8>,
        /// The whole text.
        text: Vec<u8>,
    },
}

const SECOND: u64 = 1_000_000_000;

/// The greatest magnitude, which only a negative duration can have.
const LIMIT: u64 = 1 << 63;

impl Duration {
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);

    /// Reads a duration: a sign, then decimal numbers each with a unit.
    pub fn parse(text: &[u8]) -> Result<Self, DurationError> {
        let invalid = || DurationError::Invalid(text.to_owned());
        let too_long = || DurationError::TooLong(text.to_owned());
        let (negative, mut rest) = match text.split_first() {
            Some((b'-', rest)) => (true, rest),
            Some((b'+', rest)) => (false, rest),
            _ => (false, text),
        };
        if rest == b"0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (part, after) = parse_part(rest, text)?;
            total = total.checked_add(part).filter(|t| *t <= LIMIT).ok_or_else(too_long)?;
            rest = after;
        }
        match (negative, i64::try_from(total)) {
            (true, _) => Ok(Self(total.wrapping_neg().cast_signed())),
            (false, Ok(nanos)) => Ok(Self(nanos)),
            (false, Err(_)) => Err(too_long()),
        }
    }

    /// Returns the duration rounded to a multiple of `unit`, halves away from zero.
    #[must_use]
    pub fn rounded(self, unit: Self) -> Self {
        if unit.0 <= 0 {
            return self;
        }
        let rest = self.0 % unit.0;
        let down = self.0 - rest;
        if rest.unsigned_abs() < unit.0.unsigned_abs() - rest.unsigned_abs() {
            return Self(down);
        }
        let away = if self.0 < 0 { down.checked_sub(unit.0) } else { down.checked_add(unit.0) };
        Self(away.unwrap_or(if self.0 < 0 { i64::MIN } else { i64::MAX }))
    }

    /// Returns the duration cut to a multiple of `unit`.
    #[must_use]
    pub fn truncated(self, unit: Self) -> Self {
        if unit.0 <= 0 { self } else { Self(self.0 - self.0 % unit.0) }
    }

    /// Returns the duration in units of `nanos` nanoseconds, with a fraction.
    #[expect(clippy::cast_precision_loss, reason = "Go loses the same digits")]
    pub fn in_units(self, nanos: i64) -> f64 {
        let nanos = nanos.max(1);
        (self.0 / nanos) as f64 + (self.0 % nanos) as f64 / nanos as f64
    }
}

/// Reads one number with its unit; returns nanoseconds and what follows.
fn parse_part<'a>(rest: &'a [u8], text: &[u8]) -> Result<(u64, &'a [u8]), DurationError> {
    let too_long = || DurationError::TooLong(text.to_owned());
    let (whole, after) = digits(rest);
    let (fraction, after) = match after.strip_prefix(b".") {
        Some(after) => digits(after),
        None => (&[][..], after),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::Invalid(text.to_owned()));
    }
    let end = after.iter().position(|b| *b == b'.' || b.is_ascii_digit()).unwrap_or(after.len());
    let (unit, after) = after.split_at_checked(end).unwrap_or((after, &[]));
    // A number that is too great is reported before its unit is looked at.
    let number = number(whole).ok_or_else(too_long)?;
    if unit.is_empty() {
        return Err(DurationError::NoUnit(text.to_owned()));
    }
    let nanos = unit_nanos(unit)
        .ok_or_else(|| DurationError::UnknownUnit { unit: unit.to_owned(), text: text.to_owned() })?;
    let part = number.checked_mul(nanos).filter(|p| *p <= LIMIT).ok_or_else(too_long)?;
    let part = part.checked_add(fraction_of(fraction, nanos)).filter(|p| *p <= LIMIT).ok_or_else(too_long)?;
    Ok((part, after))
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, &[]))
}

fn number(digits: &[u8]) -> Option<u64> {
    digits
        .iter()
        .try_fold(0_u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .filter(|number| *number <= LIMIT)
}

/// Returns that fraction of `nanos`; digits that don't fit into 63 bits don't count.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the fraction is computed in floating point, as Go does; it is less than one unit"
)]
fn fraction_of(digits: &[u8], nanos: u64) -> u64 {
    let (mut number, mut scale) = (0_u64, 1.0_f64);
    for digit in digits {
        let Some(next) = number
            .checked_mul(10)
            .and_then(|n| n.checked_add(u64::from(digit - b'0')))
            .filter(|n| *n <= LIMIT)
        else {
            break;
        };
        number = next;
        scale *= 10.0;
    }
    (number as f64 * (nanos as f64 / scale)) as u64
}

fn unit_nanos(unit: &[u8]) -> Option<u64> {
    Some(match std::str::from_utf8(unit).ok()? {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3_600 * SECOND,
        _ => return None,
    })
}

impl std::fmt::Display for Duration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nanos = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write!(f, "{}\u{b5}s", decimal(nanos, 3)),
            1_000_000..SECOND => write!(f, "{}ms", decimal(nanos, 6)),
            _ => {
                let (seconds, rest) = (nanos / SECOND, nanos % SECOND);
                let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if seconds >= 60 {
                    write!(f, "{minutes}m")?;
                }
                write!(f, "{}s", decimal(seconds % 60 * SECOND + rest, 9))
            }
        }
    }
}

/// Writes a number that has `places` decimal places, without trailing zeros.
fn decimal(number: u64, places: u32) -> String {
    let unit = 10_u64.pow(places);
    let width = places as usize;
    let text = format!("{}.{:0width$}", number / unit, number % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, shown) in [
            ("0", "0s"),
            ("1h", "1h0m0s"),
            ("-1.5h", "-1h30m0s"),
            ("1h2m3.5s", "1h2m3.5s"),
            ("1.5ms", "1.5ms"),
            ("15us", "15\u{b5}s"),
            ("7ns", "7ns"),
            ("+90m", "1h30m0s"),
            (".5s", "500ms"),
            ("2540400h10m10.000000000s", "2540400h10m10s"),
            ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(Duration::parse(text.as_bytes()).unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_says_why() {
        for (text, error) in [
            ("", "time: invalid duration \"\""),
            ("3", "time: missing unit in duration \"3\""),
            (".s", "time: invalid duration \".s\""),
            ("1 day", "time: unknown unit \" day\" in duration \"1 day\""),
            ("9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""),
            ("\"", "time: invalid duration \"\\\"\""),
        ] {
            assert_eq!(Duration::parse(text.as_bytes()).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (nanos, rounded) in [(1_500_000_000, 2), (1_499_999_999, 1), (-1_500_000_000, -2)] {
            assert_eq!(Duration(nanos).rounded(Duration::SECOND).0, rounded * 1_000_000_000);
        }
    }
}

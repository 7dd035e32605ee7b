//! Points in time and lengths of time as expressions read and show them.

use golang::time::{Duration, Time, Zone};

use crate::failure::Failure;

const SECOND: i128 = 1_000_000_000;

/// The first and the last second that a timestamp may have: of the years 1 and 9999.
const SECONDS: std::ops::RangeInclusive<i128> = -62_135_596_800..=253_402_300_799;

/// Returns a point in time within the years that timestamps have.
pub(crate) fn checked_timestamp(nanos: i128) -> Result<i128, Failure> {
    if SECONDS.contains(&nanos.div_euclid(SECOND)) {
        return Ok(nanos);
    }
    Err(Failure::other("timestamp overflow"))
}

/// Reads a point in time in the form of RFC 3339.
pub(crate) fn parse_timestamp(text: &str) -> Option<i128> {
    let time = Time::parse(b"2006-01-02T15:04:05Z07:00", text.as_bytes(), &Zone::Utc).ok()?;
    let nanos = i128::from(time.unix()) * SECOND + i128::from(time.nanos());
    checked_timestamp(nanos).ok()
}

/// Reads a day.
pub(crate) fn parse_date(text: &str) -> Option<i128> {
    let time = Time::parse(b"2006-01-02", text.as_bytes(), &Zone::Utc).ok()?;
    checked_timestamp(i128::from(time.unix()) * SECOND).ok()
}

/// Reads a length of time as Go writes it.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    Duration::parse(text.as_bytes()).ok().map(|duration| duration.0)
}

/// Returns a point in time as its zone shows it.
pub(crate) fn in_zone(nanos: i128, zone: Zone) -> Time {
    let seconds = i64::try_from(nanos.div_euclid(SECOND)).unwrap_or_default();
    let rest = u32::try_from(nanos.rem_euclid(SECOND)).unwrap_or_default();
    Time::from_unix(seconds, rest, zone)
}

/// Returns a zone by its name, or by its distance from Greenwich: `02:00`.
pub(crate) fn zone(name: &str) -> Option<Zone> {
    if name.is_empty() || name == "UTC" {
        return Some(Zone::Utc);
    }
    let (sign, digits) = match name.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, name.strip_prefix('+').unwrap_or(name)),
    };
    if let Some((hours, minutes)) = digits.split_once(':') {
        let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
        let offset = sign * (hours * 3600 + minutes * 60);
        return Some(fixed(offset));
    }
    Zone::named(name)
}

fn fixed(offset: i64) -> Zone {
    Zone::Fixed { offset, name: String::new() }
}

/// Returns a point in time in the form of RFC 3339.
pub(crate) fn format_timestamp(nanos: i128) -> String {
    let time = in_zone(nanos, Zone::Utc);
    String::from_utf8_lossy(&time.format(b"2006-01-02T15:04:05.999999999Z07:00")).into_owned()
}

/// Returns a length of time in seconds: `90s`, `0.5s`.
pub(crate) fn format_duration(nanos: i64) -> String {
    let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    if rest == 0 {
        return format!("{sign}{seconds}s");
    }
    let fraction = format!("{rest:09}");
    format!("{sign}{seconds}.{}s", fraction.trim_end_matches('0'))
}

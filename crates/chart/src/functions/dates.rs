//! Dates and durations.

use golang::time::{Duration, Time, Zone};

use super::args::{ANY, Answer, STRING, TIME, any, bytes, string};
use super::time_object::{TimeObject, time};
use crate::value::{Context, Function, IntType, Text, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("ago", &[ANY], STRING, |context, args| {
        let then = instant(context, any(args, 0));
        let age = now(context).since(&then).rounded(Duration::SECOND);
        Ok(age.to_string().into())
    }),
    Function::new("date", &[STRING, ANY], STRING, |context, args| {
        Ok(formatted(context, bytes(args, 0), any(args, 1), "Local"))
    }),
    Function::new("dateInZone", &[STRING, ANY, STRING], STRING, |context, args| {
        Ok(date_in_zone(context, args))
    }),
    Function::new("date_in_zone", &[STRING, ANY, STRING], STRING, |context, args| {
        Ok(date_in_zone(context, args))
    }),
    Function::new("dateModify", &[STRING, TIME], TIME, |_, args| {
        Ok(must_modify(args).unwrap_or_else(|_| any(args, 1).clone()))
    }),
    Function::new("date_modify", &[STRING, TIME], TIME, |_, args| {
        Ok(must_modify(args).unwrap_or_else(|_| any(args, 1).clone()))
    }),
    Function::new("duration", &[ANY], STRING, |_, args| {
        let seconds = if let Value::Int64(seconds) = any(args, 0) {
            *seconds
        } else {
            any(args, 0).as_text().and_then(Text::as_str).map_or(0, seconds)
        };
        Ok(Duration(seconds.wrapping_mul(Duration::SECOND.0)).to_string().into())
    }),
    Function::new("durationRound", &[ANY], STRING, |context, args| {
        let given = any(args, 0);
        let duration = if let Value::Int64(nanos) = given {
            Duration(*nanos)
        } else if let Some(text) = given.as_text() {
            Duration::parse(text).unwrap_or_default()
        } else {
            time(given).map_or(Duration(0), |then| now(context).since(then))
        };
        Ok(rounded(duration).into())
    }),
    Function::new("htmlDate", &[ANY], STRING, |context, args| {
        Ok(formatted(context, b"2006-01-02", any(args, 0), "Local"))
    }),
    Function::new("htmlDateInZone", &[ANY, STRING], STRING, |context, args| {
        Ok(formatted(context, b"2006-01-02", any(args, 0), &string(args, 1)))
    }),
    Function::new("mustDateModify", &[STRING, TIME], TIME, |_, args| must_modify(args)),
    Function::new("must_date_modify", &[STRING, TIME], TIME, |_, args| must_modify(args)),
    Function::new("mustToDate", &[STRING, STRING], TIME, |context, args| {
        let parsed = Time::parse(bytes(args, 0), bytes(args, 1), &local(context));
        parsed.map(TimeObject::value).map_err(|error| error.to_string().into())
    }),
    Function::new("now", &[], TIME, |context, _| Ok(TimeObject::value(now(context)))),
    Function::new("toDate", &[STRING, STRING], TIME, |context, args| {
        let parsed = Time::parse(bytes(args, 0), bytes(args, 1), &local(context));
        Ok(TimeObject::value(parsed.unwrap_or_else(|_| TimeObject::zero())))
    }),
    Function::new("unixEpoch", &[TIME], STRING, |_, args| {
        Ok(time(any(args, 0)).map(|time| time.unix().to_string()).unwrap_or_default().into())
    }),
];

fn now(context: &mut dyn Context) -> Time {
    Time::from_zoned(&context.environment().now())
}

fn local(context: &mut dyn Context) -> Zone {
    now(context).zone().clone()
}

/// Returns the time that a value stands for: a time, or seconds since 1970; now for all else.
fn instant(context: &mut dyn Context, value: &Value) -> Time {
    let now = now(context);
    if let Value::Int(seconds) | Value::Int64(seconds) = value {
        return Time::from_unix(*seconds, 0, now.zone().clone());
    }
    time(value).cloned().unwrap_or(now)
}

/// Writes a date in a zone; an unknown zone is UTC.
fn formatted(context: &mut dyn Context, layout: &[u8], date: &Value, zone: &str) -> Value {
    // Formatting knows one more kind of seconds than the age does.
    let time = if let Value::Small(IntType::Int32, seconds) = date {
        Time::from_unix(*seconds, 0, Zone::Utc)
    } else {
        instant(context, date)
    };
    let zone = match zone {
        "Local" => local(context),
        name => Zone::named(name).unwrap_or(Zone::Utc),
    };
    Value::text(time.within(zone).format(layout))
}

fn date_in_zone(context: &mut dyn Context, args: &[Value]) -> Value {
    formatted(context, bytes(args, 0), any(args, 1), &string(args, 2))
}

fn must_modify(args: &[Value]) -> Answer {
    let duration = Duration::parse(bytes(args, 0)).map_err(|error| error.to_string())?;
    let time = time(any(args, 1)).cloned().unwrap_or_else(TimeObject::zero);
    Ok(TimeObject::value(time.plus(duration)))
}

/// Reads seconds; what is too great counts as the greatest number.
fn seconds(text: &str) -> i64 {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    match text.parse::<i64>() {
        Ok(seconds) => seconds,
        Err(error) if *error.kind() == PosOverflow => i64::MAX,
        Err(error) if *error.kind() == NegOverflow => i64::MIN,
        Err(_) => 0,
    }
}

/// Writes the greatest unit of which there is more than one whole.
fn rounded(duration: Duration) -> String {
    const SECOND: u64 = 1_000_000_000;
    const DAY: u64 = 86_400 * SECOND;
    let nanos = duration.0.unsigned_abs();
    for (unit, name) in [
        (365 * DAY, "y"),
        (30 * DAY, "mo"),
        (DAY, "d"),
        (3_600 * SECOND, "h"),
        (60 * SECOND, "m"),
        (SECOND, "s"),
    ] {
        if nanos > unit {
            return format!("{}{name}", nanos / unit);
        }
    }
    "0s".to_owned()
}

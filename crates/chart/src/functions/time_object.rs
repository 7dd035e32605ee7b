//! Times and durations as values of templates.

use golang::time::{Duration, Month, Time, Weekday, Zone};

use super::args::{Answer, BOOL, FLOAT, INT, INT64, STRING, TIME, any, bytes, int, nil_dereference};
use crate::value::{CallError, Kind, Method, Object, Type, Value};

const DURATION: Type = Type::Named("time.Duration");
const MONTH: Type = Type::Named("time.Month");
const WEEKDAY: Type = Type::Named("time.Weekday");

/// A `time.Time`.
pub(super) struct TimeObject(Time);

/// A number whose type has a name and a text of its own: a duration, a month, a day of the week.
struct NamedNumber {
    type_name: &'static str,
    number: Value,
    text: String,
    methods: &'static [Method],
}

impl TimeObject {
    pub(super) fn value(time: Time) -> Value {
        Value::object(Self(time))
    }

    /// Returns the time that Go gives where there is none.
    pub(super) fn zero() -> Time {
        Time::from_unix(-62_135_596_800, 0, Zone::Utc)
    }
}

/// Returns the time that `value` is.
pub(super) fn time(value: &Value) -> Option<&Time> {
    let object: Option<&TimeObject> = value.as_object();
    object.map(|object| &object.0)
}

impl Object for TimeObject {
    fn type_name(&self) -> &'static str {
        "time.Time"
    }

    fn methods(&self) -> &'static [Method] {
        TIME_METHODS
    }

    fn display(&self) -> Option<String> {
        Some(self.0.to_string())
    }

    fn json(&self) -> Option<serde_json::Value> {
        let text = self.0.format(b"2006-01-02T15:04:05.999999999Z07:00");
        Some(String::from_utf8_lossy(&text).into_owned().into())
    }
}

impl Object for NamedNumber {
    fn type_name(&self) -> &'static str {
        self.type_name
    }

    fn kind(&self) -> Kind {
        self.number.kind()
    }

    fn methods(&self) -> &'static [Method] {
        self.methods
    }

    fn underlying(&self) -> Option<Value> {
        Some(self.number.clone())
    }

    fn display(&self) -> Option<String> {
        Some(self.text.clone())
    }
}

const NAME_METHODS: &[Method] = &[Method::new("String", &[], STRING, |_, this, _| string(this))];

const TIME_METHODS: &[Method] = &[
    Method::new("Add", &[DURATION], TIME, |_, this, args| {
        Ok(TimeObject::value(receiver(this)?.plus(duration(any(args, 0))?)))
    }),
    Method::new("AddDate", &[INT, INT, INT], TIME, |_, this, args| {
        let (years, months, days) = (int(args, 0), int(args, 1), int(args, 2));
        Ok(TimeObject::value(receiver(this)?.plus_date(years, months, days)))
    }),
    Method::new("After", &[TIME], BOOL, |_, this, args| {
        Ok(receiver(this)?.order(receiver(any(args, 0))?).is_gt().into())
    }),
    Method::new("Before", &[TIME], BOOL, |_, this, args| {
        Ok(receiver(this)?.order(receiver(any(args, 0))?).is_lt().into())
    }),
    Method::new("Compare", &[TIME], INT, |_, this, args| {
        let order = receiver(this)?.order(receiver(any(args, 0))?);
        Ok(Value::Int(i64::from(order as i8)))
    }),
    Method::new("Day", &[], INT, |_, this, _| Ok(Value::Int(receiver(this)?.day()))),
    Method::new("Equal", &[TIME], BOOL, |_, this, args| {
        Ok(receiver(this)?.order(receiver(any(args, 0))?).is_eq().into())
    }),
    Method::new("Format", &[STRING], STRING, |_, this, args| {
        Ok(Value::text(receiver(this)?.format(bytes(args, 0))))
    }),
    Method::new("Hour", &[], INT, |_, this, _| Ok(Value::Int(receiver(this)?.hour_minute_second().0))),
    Method::new("IsZero", &[], BOOL, |_, this, _| Ok(receiver(this)?.is_zero().into())),
    Method::new("Local", &[], TIME, |context, this, _| {
        let zone = Time::from_zoned(&context.environment().now()).zone().clone();
        Ok(TimeObject::value(receiver(this)?.within(zone)))
    }),
    Method::new("Minute", &[], INT, |_, this, _| Ok(Value::Int(receiver(this)?.hour_minute_second().1))),
    Method::new("Month", &[], MONTH, |_, this, _| Ok(month(receiver(this)?.month()))),
    Method::new("Nanosecond", &[], INT, |_, this, _| Ok(Value::Int(receiver(this)?.nanos().into()))),
    Method::new("Round", &[DURATION], TIME, |_, this, args| {
        let (time, unit) = (receiver(this)?, duration(any(args, 0))?);
        let rest = if unit.0 > 0 { time.rest(unit) } else { Duration(0) };
        let up = rest.0.unsigned_abs().saturating_mul(2) >= unit.0.unsigned_abs() && rest.0 > 0;
        let step = if up { unit.0 - rest.0 } else { -rest.0 };
        Ok(TimeObject::value(time.plus(Duration(step))))
    }),
    Method::new("Second", &[], INT, |_, this, _| Ok(Value::Int(receiver(this)?.hour_minute_second().2))),
    Method::new("String", &[], STRING, |_, this, _| string(this)),
    Method::new("Sub", &[TIME], DURATION, |_, this, args| {
        Ok(duration_value(receiver(this)?.since(receiver(any(args, 0))?)))
    }),
    Method::new("Truncate", &[DURATION], TIME, |_, this, args| {
        let (time, unit) = (receiver(this)?, duration(any(args, 0))?);
        let rest = if unit.0 > 0 { time.rest(unit) } else { Duration(0) };
        Ok(TimeObject::value(time.plus(Duration(-rest.0))))
    }),
    Method::new("UTC", &[], TIME, |_, this, _| Ok(TimeObject::value(receiver(this)?.within(Zone::Utc)))),
    Method::new("Unix", &[], INT64, |_, this, _| Ok(Value::Int64(receiver(this)?.unix()))),
    Method::new("UnixMicro", &[], INT64, |_, this, _| Ok(Value::Int64(receiver(this)?.unix_in(1_000)))),
    Method::new("UnixMilli", &[], INT64, |_, this, _| Ok(Value::Int64(receiver(this)?.unix_in(1_000_000)))),
    Method::new("UnixNano", &[], INT64, |_, this, _| Ok(Value::Int64(receiver(this)?.unix_in(1)))),
    Method::new("Weekday", &[], WEEKDAY, |_, this, _| Ok(weekday(receiver(this)?.weekday()))),
    Method::new("Year", &[], INT, |_, this, _| Ok(Value::Int(receiver(this)?.year()))),
    Method::new("YearDay", &[], INT, |_, this, _| Ok(Value::Int(receiver(this)?.year_day()))),
];

const DURATION_METHODS: &[Method] = &[
    Method::new("Hours", &[], FLOAT, |_, this, _| Ok(duration(this)?.in_units(3_600_000_000_000).into())),
    Method::new("Microseconds", &[], INT64, |_, this, _| Ok(Value::Int64(duration(this)?.0 / 1_000))),
    Method::new("Milliseconds", &[], INT64, |_, this, _| Ok(Value::Int64(duration(this)?.0 / 1_000_000))),
    Method::new("Minutes", &[], FLOAT, |_, this, _| Ok(duration(this)?.in_units(60_000_000_000).into())),
    Method::new("Nanoseconds", &[], INT64, |_, this, _| Ok(Value::Int64(duration(this)?.0))),
    Method::new("Round", &[DURATION], DURATION, |_, this, args| {
        Ok(duration_value(duration(this)?.rounded(duration(any(args, 0))?)))
    }),
    Method::new("Seconds", &[], FLOAT, |_, this, _| Ok(duration(this)?.in_units(1_000_000_000).into())),
    Method::new("String", &[], STRING, |_, this, _| string(this)),
    Method::new("Truncate", &[DURATION], DURATION, |_, this, args| {
        Ok(duration_value(duration(this)?.truncated(duration(any(args, 0))?)))
    }),
];

fn duration_value(duration: Duration) -> Value {
    let number = Value::Int64(duration.0);
    let text = duration.to_string();
    Value::object(NamedNumber { type_name: "time.Duration", number, text, methods: DURATION_METHODS })
}

fn month(month: Month) -> Value {
    let (number, text) = (Value::Int(month.0), month.to_string());
    Value::object(NamedNumber { type_name: "time.Month", number, text, methods: NAME_METHODS })
}

fn weekday(day: Weekday) -> Value {
    let (number, text) = (Value::Int(day.0), day.to_string());
    Value::object(NamedNumber { type_name: "time.Weekday", number, text, methods: NAME_METHODS })
}

fn receiver(value: &Value) -> Result<&Time, CallError> {
    time(value).ok_or_else(nil_dereference)
}

/// Returns the duration that `value` is, or stands for as a number.
fn duration(value: &Value) -> Result<Duration, CallError> {
    value.as_i64().map(Duration).ok_or_else(nil_dereference)
}

/// Answers the method `String` of any of these objects.
fn string(this: &Value) -> Answer {
    let Value::Object(object) = this else {
        return Err(nil_dereference());
    };
    Ok(object.display().unwrap_or_default().into())
}

//! Parts of points in time and of lengths of time.

use golang::time::Zone;

use super::called::Called;
use crate::failure::Failure;
use crate::times;
use crate::value::Value;

pub(super) fn call(function: &str, values: &[Value]) -> Called {
    let part = function.strip_prefix("get")?;
    match values {
        [Value::Duration(nanos)] => of_duration(part, *nanos).map(|number| Ok(Value::Int(number))),
        [Value::Timestamp(nanos)] => {
            of_timestamp(part, *nanos, Zone::Utc).map(|number| Ok(Value::Int(number)))
        }
        [Value::Timestamp(nanos), Value::String(name)] => match times::zone(name) {
            Some(zone) => of_timestamp(part, *nanos, zone).map(|number| Ok(Value::Int(number))),
            None => Some(Err(Failure::other(format!("unknown time zone {name}")))),
        },
        _ => None,
    }
}

fn of_duration(part: &str, nanos: i64) -> Option<i64> {
    Some(match part {
        "Hours" => nanos / 3_600_000_000_000,
        "Minutes" => nanos / 60_000_000_000,
        "Seconds" => nanos / 1_000_000_000,
        "Milliseconds" => nanos / 1_000_000,
        _ => return None,
    })
}

fn of_timestamp(part: &str, nanos: i128, zone: Zone) -> Option<i64> {
    let time = times::in_zone(nanos, zone);
    let (hour, minute, second) = time.hour_minute_second();
    Some(match part {
        "FullYear" => time.year(),
        "Month" => time.month().0 - 1,
        "DayOfYear" => time.year_day() - 1,
        "DayOfMonth" => time.day() - 1,
        "Date" => time.day(),
        "DayOfWeek" => time.weekday().0,
        "Hours" => hour,
        "Minutes" => minute,
        "Seconds" => second,
        "Milliseconds" => i64::from(time.nanos() / 1_000_000),
        _ => return None,
    })
}

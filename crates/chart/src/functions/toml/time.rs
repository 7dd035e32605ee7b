//! Dates and times of TOML.

use golang::time::{Time, Zone};

use crate::functions::time_object::{self, TimeObject};
use crate::value::Value;

/// Reads a date, a time of the day, or both, with an offset or without.
pub(super) fn read(text: &str) -> Value {
    let whole = Time::parse(WHOLE, text.as_bytes(), &Zone::Utc).ok();
    let parsed = whole.or_else(|| {
        LOCAL.iter().find_map(|(layout, name)| {
            let zone = Zone::Fixed { name: (*name).to_owned(), offset: 0 };
            Time::parse(layout, text.as_bytes(), &zone).ok()
        })
    });
    TimeObject::value(parsed.unwrap_or_else(TimeObject::zero))
}

/// A time with its offset.
const WHOLE: &[u8] = b"2006-01-02T15:04:05.999999999Z07:00";

/// Times without one, and the names of the zones that stand for that.
const LOCAL: [(&[u8], &str); 3] = [
    (b"2006-01-02T15:04:05.999999999", "datetime-local"),
    (b"2006-01-02", "date-local"),
    (b"15:04:05.999999999", "time-local"),
];

/// Returns how TOML writes a time.
pub(super) fn written(value: &Value) -> Option<String> {
    let time = time_object::time(value)?;
    let local =
        LOCAL.iter().find(|(_, zone)| matches!(time.zone(), Zone::Fixed { name, .. } if name == zone));
    let text = time.format(local.map_or(WHOLE, |(layout, _)| layout));
    Some(String::from_utf8_lossy(&text).into_owned())
}

//! Writing a time by a layout.

use super::Time;
use super::calendar::{MONTHS, WEEKDAYS, name};
use super::instant::Clock;
use super::layout::{Fields, Item, Pad, next_item};

impl Time {
    /// Returns the time as the layout writes it.
    pub fn format(&self, layout: &[u8]) -> Vec<u8> {
        let clock = self.clock();
        let mut text = Vec::with_capacity(layout.len());
        let mut rest = layout;
        while let Some(found) = next_item(rest) {
            text.extend_from_slice(found.before);
            text.extend_from_slice(written(found.item, &clock).as_bytes());
            rest = found.after;
        }
        text.extend_from_slice(rest);
        text
    }
}

fn written(item: Item, clock: &Clock) -> String {
    match item {
        Item::Day(pad) => padded(clock.date.day, 2, pad),
        Item::DayOfYear(pad) => padded(clock.date.day_of_year(), 3, pad),
        Item::Fraction { digits, zeros, comma } => fraction(clock.nanos, digits, zeros, comma),
        Item::Hour => padded(clock.hour, 2, Pad::Zero),
        Item::Hour12(pad) => padded((clock.hour + 11) % 12 + 1, 2, pad),
        Item::HalfDay { upper } => half_day(clock.hour, upper).to_owned(),
        Item::Minute(pad) => padded(clock.minute, 2, pad),
        Item::Month(pad) => padded(clock.date.month, 2, pad),
        Item::MonthName { long } => name(&MONTHS, clock.date.month - 1, long),
        Item::Second(pad) => padded(clock.second, 2, pad),
        Item::Weekday { long } => name(&WEEKDAYS, clock.weekday, long),
        Item::Year => padded(clock.date.year, 4, Pad::Zero),
        Item::YearOfCentury => padded(clock.date.year.abs() % 100, 2, Pad::Zero),
        Item::ZoneName if clock.abbreviation.is_empty() => unnamed_zone(clock.offset),
        Item::ZoneName => clock.abbreviation.clone(),
        Item::Offset { z: true, .. } if clock.offset == 0 => "Z".to_owned(),
        Item::Offset { colon, fields, .. } => offset(clock.offset, colon, fields),
    }
}

fn padded(number: i64, width: usize, pad: Pad) -> String {
    match pad {
        Pad::Nothing => number.to_string(),
        Pad::Space => format!("{number:>width$}"),
        Pad::Zero if number < 0 => format!("-{:0>width$}", number.unsigned_abs()),
        Pad::Zero => format!("{number:0>width$}"),
    }
}

fn half_day(hour: i64, upper: bool) -> &'static str {
    match (hour >= 12, upper) {
        (true, true) => "PM",
        (true, false) => "pm",
        (false, true) => "AM",
        (false, false) => "am",
    }
}

fn fraction(nanos: u32, digits: usize, zeros: bool, comma: bool) -> String {
    let all = format!("{nanos:09}");
    let mut shown: String = all.chars().chain(std::iter::repeat('0')).take(digits.min(9)).collect();
    if !zeros {
        shown.truncate(shown.trim_end_matches('0').len());
        if shown.is_empty() {
            return shown;
        }
    }
    format!("{}{shown}", if comma { ',' } else { '.' })
}

/// Zones without an abbreviation show their offset.
fn unnamed_zone(offset: i64) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let minutes = offset.abs() / 60;
    format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
}

fn offset(offset: i64, colon: bool, fields: Fields) -> String {
    let sign = if offset / 60 < 0 { '-' } else { '+' };
    let seconds = offset.abs();
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let colon = if colon { ":" } else { "" };
    match fields {
        Fields::Hours => format!("{sign}{hour:02}"),
        Fields::Minutes => format!("{sign}{hour:02}{colon}{minute:02}"),
        Fields::Seconds => format!("{sign}{hour:02}{colon}{minute:02}{colon}{second:02}"),
    }
}

/// Writes the time as Go prints it.
impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.format(b"2006-01-02 15:04:05.999999999 -0700 MST");
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

//! Reading a time by a layout.

use super::calendar::{MONTHS, WEEKDAYS};
use super::civil::{Date, days_in, is_leap};
use super::layout::{Fields, Item, Pad, next_item};
use super::{Time, Zone, quoted};

/// Why a text is not a time of the layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseTimeError {
    /// A part of the text does not look like the part of the layout.
    #[error("parsing time {text} as {layout}: cannot parse {part} as {item}")]
    Mismatch {
        /// The whole text, quoted.
        text: String,
        /// The whole layout, quoted.
        layout: String,
        /// What stood there, quoted.
        part: String,
        /// What was asked for, quoted.
        item: String,
    },
    /// A part is out of its range, or too much.
    #[error("parsing time {text}: {why}")]
    Value {
        /// The whole text, quoted.
        text: String,
        /// What is wrong.
        why: String,
    },
}

/// What went wrong at one item.
enum Wrong {
    Shape,
    Range(&'static str),
}

type Step<'a> = Result<&'a [u8], Wrong>;

/// What has been read so far.
#[derive(Default)]
struct Read {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: u32,
    /// `Some(true)` after PM.
    afternoon: Option<bool>,
    utc: bool,
    offset: Option<i64>,
    zone_name: String,
}

impl Time {
    /// Reads a time; without a zone in the text it is one of `local`.
    pub fn parse(layout: &[u8], text: &[u8], local: &Zone) -> Result<Self, ParseTimeError> {
        let mismatch = |item: &[u8], part: &[u8]| ParseTimeError::Mismatch {
            text: quoted(text),
            layout: quoted(layout),
            part: quoted(part),
            item: quoted(item),
        };
        let value = |why: String| ParseTimeError::Value { text: quoted(text), why };
        let mut read = Read::default();
        let (mut layout_rest, mut rest) = (layout, text);
        while let Some(found) = next_item(layout_rest) {
            rest = skip(rest, found.before).map_err(|rest| mismatch(found.before, rest))?;
            rest = read.item(found.item, found.after, rest).map_err(|wrong| match wrong {
                Wrong::Shape => mismatch(found.written, rest),
                Wrong::Range(what) => value(format!("{what} out of range")),
            })?;
            layout_rest = found.after;
        }
        rest = skip(rest, layout_rest).map_err(|rest| mismatch(layout_rest, rest))?;
        if !rest.is_empty() {
            return Err(value(format!("extra text: {}", quoted(rest))));
        }
        read.finish(local).map_err(|why| value(why.to_owned()))
    }
}

impl Read {
    /// Reads one item from the front of `rest` and returns what follows it.
    fn item<'a>(&mut self, item: Item, after: &[u8], rest: &'a [u8]) -> Step<'a> {
        let (number, rest) = match item {
            Item::Fraction { digits, zeros, .. } => return self.fraction(digits, zeros, rest),
            Item::HalfDay { upper } => return self.half_day(upper, rest),
            Item::MonthName { long } => {
                let (index, rest) = lookup(&MONTHS, long, rest)?;
                self.month = Some(index + 1);
                return Ok(rest);
            }
            Item::Weekday { long } => return lookup(&WEEKDAYS, long, rest).map(|(_, rest)| rest),
            Item::ZoneName => return self.zone_name(rest),
            Item::Offset { z, colon, fields } => return self.offset(z, colon, fields, rest),
            Item::Year => four_digits(rest)?,
            Item::YearOfCentury => year_of_century(rest)?,
            Item::Day(Pad::Space) => pair(rest.strip_prefix(b" ").unwrap_or(rest), false)?,
            Item::DayOfYear(pad) => triple(rest, pad)?,
            Item::Hour => pair(rest, false)?,
            Item::Day(pad) | Item::Hour12(pad) | Item::Minute(pad) | Item::Month(pad) | Item::Second(pad) => {
                pair(rest, pad == Pad::Zero)?
            }
        };
        self.number(item, number)?;
        if matches!(item, Item::Second(_)) {
            return self.fraction_after_second(after, rest);
        }
        Ok(rest)
    }

    /// Keeps a number that was read, if it is in range.
    fn number(&mut self, item: Item, number: i64) -> Result<(), Wrong> {
        let checked = |max: i64, what| if number <= max { Ok(number) } else { Err(Wrong::Range(what)) };
        match item {
            Item::Year => self.year = number,
            Item::YearOfCentury => self.year = number + if number >= 69 { 1900 } else { 2000 },
            Item::Month(_) if number == 0 => return Err(Wrong::Range("month")),
            Item::Month(_) => self.month = Some(checked(12, "month")?),
            // The range depends on the month, which may come later.
            Item::Day(_) => self.day = Some(number),
            Item::DayOfYear(_) => self.day_of_year = Some(number),
            Item::Hour => self.hour = checked(23, "hour")?,
            Item::Hour12(_) => self.hour = checked(12, "hour")?,
            Item::Minute(_) => self.minute = checked(59, "minute")?,
            Item::Second(_) => self.second = checked(59, "second")?,
            Item::Fraction { .. }
            | Item::HalfDay { .. }
            | Item::MonthName { .. }
            | Item::Offset { .. }
            | Item::Weekday { .. }
            | Item::ZoneName => {}
        }
        Ok(())
    }

    fn half_day<'a>(&mut self, upper: bool, rest: &'a [u8]) -> Step<'a> {
        let (half, rest) = rest.split_at_checked(2).ok_or(Wrong::Shape)?;
        self.afternoon = Some(match (half, upper) {
            (b"PM", true) | (b"pm", false) => true,
            (b"AM", true) | (b"am", false) => false,
            _ => return Err(Wrong::Shape),
        });
        Ok(rest)
    }

    fn fraction<'a>(&mut self, digits: usize, zeros: bool, rest: &'a [u8]) -> Step<'a> {
        let len = if zeros {
            digits
        } else {
            match rest.split_first() {
                Some((b'.' | b',', after)) => after.iter().take_while(|b| b.is_ascii_digit()).count(),
                _ => 0,
            }
        };
        if len == 0 {
            return Ok(rest);
        }
        let (written, after) = rest.split_at_checked(len + 1).ok_or(Wrong::Shape)?;
        self.nanos = nanos(written)?;
        Ok(after)
    }

    /// A fraction may follow the seconds without the layout saying so.
    fn fraction_after_second<'a>(&mut self, after: &[u8], rest: &'a [u8]) -> Step<'a> {
        let stands_there = matches!(rest, [b'.' | b',', b'0'..=b'9', ..]);
        let asked_for = next_item(after).is_some_and(|f| matches!(f.item, Item::Fraction { .. }));
        if stands_there && !asked_for { self.fraction(9, false, rest) } else { Ok(rest) }
    }

    fn zone_name<'a>(&mut self, rest: &'a [u8]) -> Step<'a> {
        if let Some(rest) = rest.strip_prefix(b"UTC") {
            self.utc = true;
            return Ok(rest);
        }
        let len = zone_name_len(rest).ok_or(Wrong::Shape)?;
        let (name, rest) = rest.split_at_checked(len).ok_or(Wrong::Shape)?;
        self.zone_name = String::from_utf8_lossy(name).into_owned();
        Ok(rest)
    }

    fn offset<'a>(&mut self, z: bool, colon: bool, fields: Fields, rest: &'a [u8]) -> Step<'a> {
        if z && let Some(rest) = rest.strip_prefix(b"Z") {
            self.utc = true;
            return Ok(rest);
        }
        let width = match (fields, colon) {
            (Fields::Hours, _) => 3,
            (Fields::Minutes, false) => 5,
            (Fields::Minutes, true) => 6,
            (Fields::Seconds, false) => 7,
            (Fields::Seconds, true) => 9,
        };
        let (written, rest) = rest.split_at_checked(width).ok_or(Wrong::Shape)?;
        let (sign, digits) = written.split_first().ok_or(Wrong::Shape)?;
        let mut parts = digits.chunks(if colon { 3 } else { 2 });
        let mut numbers = [0; 3];
        let mut complete = true;
        for (number, part) in numbers.iter_mut().zip(&mut parts) {
            if !matches!(part, [_, _] | [_, _, b':']) {
                return Err(Wrong::Shape);
            }
            // What stands behind a part that is no number is not looked at.
            match pair(part, true) {
                Ok((read, _)) if complete => *number = read,
                Ok(_) => {}
                Err(_) => complete = false,
            }
        }
        let [hours, minutes, seconds] = numbers;
        // One more than there can be is let through, for offsets such as +24:00. A wrong
        // range is reported before a wrong sign.
        for (number, max, what) in [
            (seconds, 60, "time zone offset second"),
            (minutes, 60, "time zone offset minute"),
            (hours, 24, "time zone offset hour"),
        ] {
            if number > max {
                return Err(Wrong::Range(what));
            }
        }
        let offset = (hours * 60 + minutes) * 60 + seconds;
        self.offset = Some(match sign {
            b'+' if complete => offset,
            b'-' if complete => -offset,
            _ => return Err(Wrong::Shape),
        });
        Ok(rest)
    }

    fn finish(mut self, local: &Zone) -> Result<Time, &'static str> {
        match self.afternoon {
            Some(true) if self.hour < 12 => self.hour += 12,
            Some(false) if self.hour == 12 => self.hour = 0,
            Some(_) | None => {}
        }
        let (month, day) = match self.day_of_year {
            Some(day_of_year) => self.date_of_year_day(day_of_year)?,
            None => (self.month.unwrap_or(1), self.day.unwrap_or(1)),
        };
        if day < 1 || day > days_in(month, self.year) {
            return Err("day out of range");
        }
        let days = Date { year: self.year, month, day }.to_days();
        let clock = days * 86_400 + self.hour * 3_600 + self.minute * 60 + self.second;
        Ok(self.in_zone(clock, local))
    }

    fn date_of_year_day(&self, day_of_year: i64) -> Result<(i64, i64), &'static str> {
        if day_of_year < 1 || day_of_year > 365 + i64::from(is_leap(self.year)) {
            return Err("day-of-year out of range");
        }
        let first = Date { year: self.year, month: 1, day: 1 }.to_days();
        let date = Date::from_days(first + day_of_year - 1);
        if self.month.is_some_and(|month| month != date.month) {
            return Err("day-of-year does not match month");
        }
        if self.day.is_some_and(|day| day != date.day) {
            return Err("day-of-year does not match day");
        }
        Ok((date.month, date.day))
    }

    fn in_zone(self, clock: i64, local: &Zone) -> Time {
        if self.utc {
            return Time::from_unix(clock, self.nanos, Zone::Utc);
        }
        let name = self.zone_name;
        if let Some(offset) = self.offset {
            let (local_offset, local_name) = local.at(clock - offset);
            let is_local = local_offset == offset && (name.is_empty() || name == local_name);
            let zone = if is_local { local.clone() } else { Zone::Fixed { name, offset } };
            return Time::from_unix(clock - offset, self.nanos, zone);
        }
        if name.is_empty() {
            return Time::from_clock(clock, self.nanos, local.clone());
        }
        if let Some(offset) = local.offset_of_name(&name, clock) {
            return Time::from_unix(clock - offset, self.nanos, local.clone());
        }
        let hours = name.strip_prefix("GMT").and_then(|hours| hours.parse::<i64>().ok());
        let offset = hours.unwrap_or_default() * 3_600;
        // The clock is taken for UTC's, as Go does with a name that it can only guess.
        Time::from_unix(clock, self.nanos, Zone::Fixed { name, offset })
    }
}

/// Skips what the layout has literally; a space there stands for any number of spaces.
fn skip<'a>(mut rest: &'a [u8], mut literal: &[u8]) -> Result<&'a [u8], &'a [u8]> {
    while let Some((first, after)) = literal.split_first() {
        if *first == b' ' {
            if rest.first().is_some_and(|b| *b != b' ') {
                return Err(rest);
            }
            literal = cut_spaces(literal);
            rest = cut_spaces(rest);
            continue;
        }
        rest = rest.split_first().filter(|(b, _)| *b == first).ok_or(rest)?.1;
        literal = after;
    }
    Ok(rest)
}

fn cut_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|b| **b == b' ').count();
    text.get(spaces..).unwrap_or_default()
}

fn digit(text: &[u8]) -> Option<(i64, &[u8])> {
    let (first, rest) = text.split_first().filter(|(b, _)| b.is_ascii_digit())?;
    Some((i64::from(first - b'0'), rest))
}

/// Reads one or two digits, two if `fixed`.
fn pair(text: &[u8], fixed: bool) -> Result<(i64, &[u8]), Wrong> {
    let (first, rest) = digit(text).ok_or(Wrong::Shape)?;
    match digit(rest) {
        Some((second, rest)) => Ok((first * 10 + second, rest)),
        None if fixed => Err(Wrong::Shape),
        None => Ok((first, rest)),
    }
}

fn triple(text: &[u8], pad: Pad) -> Result<(i64, &[u8]), Wrong> {
    let mut rest = text;
    if pad == Pad::Space {
        rest = rest.strip_prefix(b" ").unwrap_or(rest);
        rest = rest.strip_prefix(b" ").unwrap_or(rest);
    }
    let (mut number, mut count) = (0, 0);
    while count < 3
        && let Some((next, after)) = digit(rest)
    {
        number = number * 10 + next;
        rest = after;
        count += 1;
    }
    if count == 0 || (pad == Pad::Zero && count != 3) { Err(Wrong::Shape) } else { Ok((number, rest)) }
}

fn four_digits(text: &[u8]) -> Result<(i64, &[u8]), Wrong> {
    let (high, rest) = pair(text, true)?;
    let (low, rest) = pair(rest, true)?;
    Ok((high * 100 + low, rest))
}

/// Reads two characters; a sign with a digit counts as a number here.
fn year_of_century(text: &[u8]) -> Result<(i64, &[u8]), Wrong> {
    match text {
        [b'+', digit @ b'0'..=b'9', rest @ ..] => Ok((i64::from(digit - b'0'), rest)),
        [b'-', digit @ b'0'..=b'9', rest @ ..] => Ok((-i64::from(digit - b'0'), rest)),
        _ => pair(text, true),
    }
}

/// Reads a name, in any case of letters.
fn lookup<'a>(names: &[&str], long: bool, text: &'a [u8]) -> Result<(i64, &'a [u8]), Wrong> {
    for (index, name) in (0..).zip(names) {
        let len = if long { name.len() } else { 3 };
        let name = name.as_bytes().get(..len).unwrap_or_default();
        if let Some((start, rest)) = text.split_at_checked(len)
            && start.eq_ignore_ascii_case(name)
        {
            return Ok((index, rest));
        }
    }
    Err(Wrong::Shape)
}

/// Returns the nanoseconds of a separator with digits; more than nine digits don't count.
fn nanos(written: &[u8]) -> Result<u32, Wrong> {
    let Some((b'.' | b',', digits)) = written.split_first() else {
        return Err(Wrong::Shape);
    };
    let digits = digits.get(..9).unwrap_or(digits);
    let mut nanos = 0;
    for place in 0..9 {
        let digit = match digits.get(place) {
            Some(digit) if digit.is_ascii_digit() => u32::from(digit - b'0'),
            Some(_) => return Err(Wrong::Shape),
            None => 0,
        };
        nanos = nanos * 10 + digit;
    }
    Ok(nanos)
}

/// Returns the length of the abbreviation of a zone at the front of the text.
fn zone_name_len(text: &[u8]) -> Option<usize> {
    if text.len() < 3 {
        return None;
    }
    if text.starts_with(b"ChST") || text.starts_with(b"MeST") {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix(b"GMT") {
        return Some(3 + signed_offset_len(rest));
    }
    if matches!(text.first(), Some(b'+' | b'-')) {
        return Some(signed_offset_len(text)).filter(|len| *len > 0);
    }
    let upper = text.iter().take(6).take_while(|b| b.is_ascii_uppercase()).count();
    match upper {
        3 => Some(3),
        4 if text.get(3) == Some(&b'T') || text.starts_with(b"WITA") => Some(4),
        5 if text.get(4) == Some(&b'T') => Some(5),
        _ => None,
    }
}

/// Returns the length of a sign with a number up to 23 behind it.
fn signed_offset_len(text: &[u8]) -> usize {
    let Some((b'+' | b'-', rest)) = text.split_first() else {
        return 0;
    };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let number = rest
        .iter()
        .take(digits)
        .try_fold(0_u32, |number, digit| number.checked_mul(10)?.checked_add(u32::from(digit - b'0')));
    if digits > 0 && number.is_some_and(|number| number <= 23) { digits + 1 } else { 0 }
}

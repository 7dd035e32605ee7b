//! Dates, times and durations.

use golang::time::{Time, Zone};

use super::text::{digits, failed, quoted};

pub(super) fn duration(text: &str) -> Result<(), String> {
    let Some(text) = text.strip_prefix('P') else { return failed("must start with P") };
    if text.is_empty() {
        return failed("nothing after P");
    }
    if let Some(weeks) = text.strip_suffix('W') {
        if weeks.is_empty() {
            return failed("no number in week");
        }
        return if digits(weeks) == weeks.len() { Ok(()) } else { failed("invalid week") };
    }
    let mut all_units = ["YMD", "HMS"].into_iter();
    for (index, part) in text.split('T').enumerate() {
        if index > 0 && part.is_empty() {
            return failed("no time elements");
        }
        let Some(units) = all_units.next() else { return failed("more than one T") };
        duration_part(part, units)?;
    }
    Ok(())
}

/// Checks numbers with units, which have an order.
fn duration_part(mut text: &str, all: &str) -> Result<(), String> {
    let mut units = all;
    while !text.is_empty() {
        let length = digits(text);
        if length == 0 {
            return failed("missing number");
        }
        text = text.get(length..).unwrap_or_default();
        let Some(unit) = text.bytes().next().map(char::from) else { return failed("missing unit") };
        let Some((_, after)) = units.split_once(unit) else {
            let unit_shown = quoted(unit);
            return Err(if all.contains(unit) {
                format!("unit {unit_shown} out of order")
            } else {
                format!("invalid unit {unit_shown}")
            });
        };
        units = after;
        text = text.get(1..).unwrap_or_default();
    }
    Ok(())
}

pub(super) fn period(text: &str) -> Result<(), String> {
    let Some((start, end)) = text.split_once('/') else { return failed("missing slash") };
    let of_duration = |what: &'static str| move |why: String| format!("invalid {what} duration: {why}");
    let of_time = |what: &'static str| move |why: String| format!("invalid {what} date-time: {why}");
    if start.starts_with('P') {
        duration(start).map_err(of_duration("start"))?;
        return date_time(end).map_err(of_time("end"));
    }
    date_time(start).map_err(of_time("start"))?;
    if end.starts_with('P') {
        duration(end).map_err(of_duration("end"))
    } else {
        date_time(end).map_err(of_time("end"))
    }
}

pub(super) fn date(text: &str) -> Result<(), String> {
    date_of_bytes(text.as_bytes())
}

fn date_of_bytes(text: &[u8]) -> Result<(), String> {
    Time::parse(b"2006-01-02", text, &Zone::Utc).map(|_| ()).map_err(|error| error.to_string())
}

pub(super) fn date_time(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    if bytes.len() < 20 {
        return failed("less than 20 characters long");
    }
    if !matches!(bytes.get(10), Some(b't' | b'T')) {
        return failed("11th character must be t or T");
    }
    date_of_bytes(bytes.get(..10).unwrap_or_default())
        .map_err(|why| format!("invalid date element: {why}"))?;
    let rest = bytes.get(11..).unwrap_or_default();
    time(&String::from_utf8_lossy(rest)).map_err(|why| format!("invalid time element: {why}"))
}

pub(super) fn time(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    if bytes.len() < 9 {
        return failed("less than 9 characters long");
    }
    if bytes.get(2) != Some(&b':') || bytes.get(5) != Some(&b':') {
        return failed("missing colon in correct place");
    }
    let (clock, rest) = text.split_at_checked(8).ok_or("invalid hour/min/sec")?;
    let mut parts = clock.splitn(3, ':').map(|part| match golang::strconv::atoi(part) {
        Ok(number) if number < 0 => failed("non-positive hour/min/sec"),
        Ok(number) => Ok(number),
        Err(_) => failed("invalid hour/min/sec"),
    });
    let mut next = || parts.next().unwrap_or_else(|| failed("missing hour/min/sec"));
    let (hour, minute, second) = (next()?, next()?, next()?);
    if hour > 23 || minute > 59 || second > 60 {
        return failed("hour/min/sec out of range");
    }
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => match digits(fraction) {
            0 => return failed("no digits in second fraction"),
            length => fraction.get(length..).unwrap_or_default(),
        },
        None => rest,
    };
    let mut minutes = hour * 60 + minute;
    if !matches!(zone, "z" | "Z") {
        minutes -= offset(zone)?;
        if minutes < 0 {
            minutes += 24 * 60;
        }
    }
    if second >= 60 && minutes != 23 * 60 + 59 {
        return failed("invalid leap second");
    }
    Ok(())
}

/// Reads how many minutes a zone is ahead.
fn offset(text: &str) -> Result<i64, String> {
    if text.len() != 6 {
        return failed("offset must be 6 characters long");
    }
    let sign = match text.bytes().next() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(_) | None => return failed("offset must begin with plus/minus"),
    };
    let text = text.get(1..).unwrap_or_default();
    if text.as_bytes().get(2) != Some(&b':') {
        return failed("missing colon in offset in correct place");
    }
    let mut parts = text.splitn(2, ':').map(|part| match golang::strconv::atoi(part) {
        Ok(number) if number < 0 => failed("non-positive hour/min in offset"),
        Ok(number) => Ok(number),
        Err(_) => failed("invalid hour/min in offset"),
    });
    let mut next = || parts.next().unwrap_or(Ok(0));
    let (hour, minute) = (next()?, next()?);
    if hour > 23 || minute > 59 {
        return failed("hour/min in offset out of range");
    }
    Ok(sign * (hour * 60 + minute))
}

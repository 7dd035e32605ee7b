//! The formats of strings that go-openapi checks, in its dialect: the one table of them, for values and custom resources.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns whether `text` has the format `name`; an unknown format fits all.
pub(super) fn fits(name: &str, text: &str) -> bool {
    match name {
        "bsonobjectid" => text.len() == 24 && is_hex(text),
        "byte" => is_base64(text),
        "cidr" => is_cidr(text),
        "date" => is_date(text),
        "date-time" | "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "email" => is_email(text),
        "hexcolor" => is_hex_color(text),
        "hostname" => is_hostname(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "mac" => is_mac(text),
        "uri" => is_uri(text),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => is_uuid(text),
        _ => true,
    }
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - digits.len() <= 2
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let most = if address.parse::<Ipv4Addr>().is_ok() {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    length.parse::<u8>().is_ok_and(|length| length <= most)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// Returns whether `text` is a date and a time of day with an offset, as RFC 3339 writes them.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else {
        return false;
    };
    let two_digits = |at: usize| {
        let digits = time.get(at..at + 2)?;
        digits.parse::<u8>().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_colon = |at: usize| time.as_bytes().get(at) == Some(&b':');
    let is_clock = is_colon(2)
        && is_colon(5)
        && two_digits(0).is_some_and(|hours| hours <= 23)
        && two_digits(3).is_some_and(|minutes| minutes <= 59)
        && two_digits(6).is_some_and(|seconds| seconds <= 59);
    let rest = time.get(8..).unwrap_or_default();
    let offset = match rest.strip_prefix('.') {
        Some(fraction) => {
            let offset = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if offset.len() == fraction.len() { "" } else { offset }
        }
        None => rest,
    };
    is_date(date) && is_clock && (matches!(offset, "Z" | "z") || is_offset(offset))
}

/// Returns whether `text` is an offset such as `+02:00`.
fn is_offset(text: &str) -> bool {
    matches!(text.as_bytes(), [b'+' | b'-', hours @ .., b':', tens, ones]
        if hours.len() == 2 && hours.iter().chain([tens, ones]).all(u8::is_ascii_digit))
}

/// Returns whether `text` is a duration such as `1h30m` or `5 days`.
fn is_duration(text: &str) -> bool {
    const UNITS: &str = "ns us µs μs ms s m h d w nano nanos nanosecond nanoseconds micro micros microsecond microseconds milli millis millisecond milliseconds sec secs second seconds min mins minute minutes hour hours day days hr week weeks";
    let mut rest = text.trim().trim_start_matches(['+', '-']);
    if rest == "0" {
        return true;
    }
    let mut parts = 0;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (digits, after) = rest.split_at_checked(number).unwrap_or((rest, ""));
        let after = after.trim_start();
        let unit_length = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(unit_length).unwrap_or((after, ""));
        let unit = unit.to_lowercase();
        if digits.parse::<f64>().is_err() || !UNITS.split(' ').any(|known| known == unit) {
            return false;
        }
        parts += 1;
        rest = after.trim_start();
    }
    parts > 0
}

/// Returns whether `text` is an address, or one in angle brackets behind a name.
fn is_email(text: &str) -> bool {
    let bracketed = text.strip_suffix('>').and_then(|text| text.split_once('<'));
    let address = bracketed.map_or(text, |(_, address)| address);
    address.rsplit_once('@').is_some_and(|(local, domain)| {
        !local.is_empty()
            && !local.contains(|c: char| c.is_whitespace() || matches!(c, '@' | '<' | '>' | ','))
            && !domain.is_empty()
            && !domain.contains(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | ','))
    })
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && is_hex(digits)
}

fn is_hostname(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    !text.is_empty()
        && text.len() <= 255
        && text.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        })
}

fn is_mac(text: &str) -> bool {
    [':', '-'].iter().any(|separator| {
        let groups: Vec<&str> = text.split(*separator).collect();
        matches!(groups.len(), 6 | 8 | 20) && groups.iter().all(|group| group.len() == 2 && is_hex(group))
    })
}

/// Returns whether `text` is an absolute URI, or a path from the root.
fn is_uri(text: &str) -> bool {
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    text.split_once(':').is_some_and(|(scheme, rest)| {
        !rest.is_empty()
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    })
}

fn is_uuid(text: &str) -> bool {
    let digits = text.replace('-', "");
    digits.len() == 32
        && is_hex(&digits)
        && (text.len() == 32 || text.split('-').map(str::len).eq([8, 4, 4, 4, 12]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_tell_good_from_bad() {
        for (name, good, bad) in [
            ("byte", "aGk=", "!"),
            ("bsonobjectid", "507f1f77bcf86cd799439011", "507f1f77"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("cidr", "fd00::/8", "10.0.0.0"),
            ("date", "2020-12-01", "2020-13-01"),
            ("date-time", "2020-12-01T10:00:00Z", "2020-12-01"),
            ("date-time", "2020-12-01T10:00:00.5+02:00", "x"),
            ("date-time", "2020-12-01t10:00:00.123z", "2020-12-01T10:00:00"),
            ("date-time", "2020-12-01T10:00:00-01:30", "2020-12-01T10:00:60Z"),
            ("date-time", "2020-12-01T10:00:00.1+00:00", "2020-12-01T1:2:3Z"),
            ("date-time", "2020-12-01T23:59:59Z", "2020-12-01T10:00:00+02"),
            ("duration", "1h30m", "x"),
            ("duration", "5 days", "5 parsecs"),
            ("email", "a@b.c", "a"),
            ("email", "A B <a@b.c>", "A B a@b.c"),
            ("hexcolor", "#FFF", "#GGG"),
            ("hostname", "a.example.com", "-x-"),
            ("ipv4", "1.2.3.4", "1.2.3"),
            ("ipv6", "::1", "1.2.3.4"),
            ("mac", "01:02:03:04:05:06", "x"),
            ("uri", "https://example.com/a", "x"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
        ] {
            assert!(fits(name, good), "{name} {good}");
            assert!(!fits(name, bad), "{name} {bad}");
        }
        assert!(fits("password", "x") && fits("nonsense", "x"));
    }
}

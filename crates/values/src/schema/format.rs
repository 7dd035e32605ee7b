//! Formats of strings.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::yaml;

/// Returns whether `text` has the format `name`; an unknown format fits all.
pub(super) fn fits(name: &str, text: &str) -> bool {
    match name {
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

fn is_date(text: &str) -> bool {
    text.len() == 10 && yaml::is_timestamp(text)
}

fn is_date_time(text: &str) -> bool {
    text.get(..10).is_some_and(is_date)
        && text.get(10..11).is_some_and(|mark| matches!(mark, "T" | "t"))
        && yaml::is_timestamp(text)
}

/// Returns whether `text` is a duration such as `1h30m` or `5 days`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 34] = [
        "ns",
        "us",
        "µs",
        "μs",
        "ms",
        "s",
        "m",
        "h",
        "d",
        "w",
        "nano",
        "nanos",
        "nanosecond",
        "nanoseconds",
        "micro",
        "micros",
        "microsecond",
        "microseconds",
        "milli",
        "millis",
        "millisecond",
        "milliseconds",
        "sec",
        "secs",
        "second",
        "seconds",
        "min",
        "mins",
        "minute",
        "minutes",
        "hour",
        "hours",
        "day",
        "days",
    ];
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
        let is_week = unit == "week" || unit == "weeks";
        if digits.parse::<f64>().is_err() || !(is_week || UNITS.contains(&unit.as_str())) {
            return false;
        }
        parts += 1;
        rest = after.trim_start();
    }
    parts > 0
}

fn is_email(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(local, domain)| {
        !local.is_empty()
            && !local.contains(|c: char| c.is_whitespace() || matches!(c, '@' | '<' | '>' | ','))
            && !domain.is_empty()
            && !domain.contains(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | ','))
    })
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
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
        matches!(groups.len(), 6 | 8 | 20)
            && groups
                .iter()
                .all(|group| group.len() == 2 && group.bytes().all(|byte| byte.is_ascii_hexdigit()))
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
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && (text.len() == 32 || text.split('-').map(str::len).eq([8, 4, 4, 4, 12]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_tell_good_from_bad() {
        for (name, good, bad) in [
            ("byte", "aGk=", "!"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("cidr", "fd00::/8", "10.0.0.0"),
            ("date", "2020-12-01", "2020-13-01"),
            ("date-time", "2020-12-01T10:00:00Z", "2020-12-01"),
            ("date-time", "2020-12-01T10:00:00.5+02:00", "x"),
            ("duration", "1h30m", "x"),
            ("duration", "5 days", "5 parsecs"),
            ("email", "a@b.c", "a"),
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

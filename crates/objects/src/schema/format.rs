//! Formats of strings.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Tells whether `text` has the format; unknown formats are not looked at.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => crate::time::parse(text).is_some(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "byte" => STANDARD.decode(text).is_ok(),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "cidr" => is_network(text),
        "duration" => is_duration(text),
        "email" => is_email(text),
        "hostname" => !text.is_empty() && text.len() <= 255 && text.split('.').all(is_host_part),
        "uri" => is_uri(text),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => is_uuid(text),
        "mac" => {
            text.split([':', '-']).count() == 6 && text.split([':', '-']).all(|p| p.len() == 2 && is_hex(p))
        }
        "bsonobjectid" => text.len() == 24 && is_hex(text),
        "hexcolor" => {
            matches!(text.trim_start_matches('#').len(), 3 | 6) && is_hex(text.trim_start_matches('#'))
        }
        _ => true,
    }
}

/// Tells whether servers check the format at all.
pub(super) fn is_known(format: &str) -> bool {
    matches!(
        format,
        "date-time"
            | "datetime"
            | "date"
            | "byte"
            | "ipv4"
            | "ipv6"
            | "cidr"
            | "duration"
            | "email"
            | "hostname"
            | "uri"
            | "uuid"
            | "uuid3"
            | "uuid4"
            | "uuid5"
            | "mac"
            | "bsonobjectid"
            | "hexcolor"
    )
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    match (address.parse::<std::net::IpAddr>(), length.parse::<u8>()) {
        (Ok(address), Ok(length)) => length <= if address.is_ipv4() { 32 } else { 128 },
        (_, _) => false,
    }
}

/// Spans as Go writes them: `1h30m`, or in words: `2 days`.
fn is_duration(text: &str) -> bool {
    let unsigned = text.trim_start_matches(['+', '-']);
    if unsigned == "0" {
        return true;
    }
    let units = [
        "ns", "us", "µs", "ms", "s", "m", "h", "d", "w", "hr", "min", "sec", "day", "days", "week", "weeks",
        "hour", "hours", "minute", "minutes", "second", "seconds",
    ];
    let mut rest = unsigned;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if number == 0 {
            return false;
        }
        let after = rest.get(number..).unwrap_or_default().trim_start();
        let unit = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at_checked(unit).unwrap_or_default();
        if !units.contains(&unit.trim()) {
            return false;
        }
        rest = next;
    }
    !unsigned.is_empty()
}

fn is_email(text: &str) -> bool {
    let address = text.rsplit_once('<').map_or(text, |(_, rest)| rest.trim_end_matches('>'));
    address.split_once('@').is_some_and(|(user, host)| {
        !user.is_empty() && !host.is_empty() && !host.contains('@') && !address.contains(' ')
    })
}

fn is_host_part(part: &str) -> bool {
    let inner = part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    inner && !part.is_empty() && !part.starts_with('-') && !part.ends_with('-')
}

fn is_uri(text: &str) -> bool {
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let letters = scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    letters
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && !rest.is_empty()
        && !text.contains(' ')
}

fn is_uuid(text: &str) -> bool {
    let plain: String = text.split('-').collect();
    plain.len() == 32 && is_hex(&plain) && matches!(text.len(), 32 | 36)
}

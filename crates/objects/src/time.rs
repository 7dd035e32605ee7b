//! Instants as API objects write them.

use jiff::Timestamp;

/// How many digits microseconds have.
const MICROS: usize = 6;

/// Returns the instant in UTC, with seconds or with microseconds, or the text of Go's error.
pub fn canonical(text: &str, micro: bool) -> Result<String, String> {
    match parse(text) {
        Some(_) if micro && !has_micros(text) => Err(parse_error(text, micro)),
        Some(instant) if micro => Ok(format_micro(instant)),
        Some(instant) => Ok(format_seconds(instant)),
        None => Err(parse_error(text, micro)),
    }
}

/// Returns whether an instant has six digits behind its seconds, no more and no less.
fn has_micros(text: &str) -> bool {
    let behind = text.get(19..).and_then(|behind| behind.strip_prefix('.')).unwrap_or_default();
    behind.bytes().take_while(u8::is_ascii_digit).count() == MICROS
}

/// Reads an instant as RFC 3339 writes it.
pub fn parse(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let shaped = bytes.get(10) == Some(&b'T') && bytes.len() >= 20;
    if shaped { text.parse().ok() } else { None }
}

/// Returns the instant with seconds, for example `2026-01-02T03:04:05Z`.
pub fn format_seconds(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns the instant with microseconds, for example `2026-01-02T03:04:05.000000Z`.
pub fn format_micro(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Returns how Go words that a text is no instant; it names the first part of the layout that does not fit.
fn parse_error(text: &str, micro: bool) -> String {
    let layout = if micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let mut rest = text;
    let fraction = if micro { (".000000", MICROS) } else { ("", 0) };
    let parts = [
        ("2006", 4),
        ("-", 0),
        ("01", 2),
        ("-", 0),
        ("02", 2),
        ("T", 0),
        ("15", 2),
        (":", 0),
        ("04", 2),
        (":", 0),
        ("05", 2),
        fraction,
        ("Z07:00", 9),
    ];
    for (part, digits) in parts {
        let taken = match digits {
            0 => rest.strip_prefix(part),
            9 => None,
            MICROS => rest.strip_prefix('.').and_then(|tail| digits_of(tail, MICROS)),
            count => digits_of(rest, count),
        };
        match taken {
            Some(tail) => rest = tail,
            None => return format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}"),
        }
    }
    format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as \"Z07:00\"")
}

/// Returns what stands behind so many digits, if a text begins with them.
fn digits_of(text: &str, count: usize) -> Option<&str> {
    let (head, tail) = text.split_at_checked(count)?;
    head.bytes().all(|b| b.is_ascii_digit()).then_some(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_have_six_digits() {
        let rests = [
            ("Z", "Z", ".000000"),
            (".5Z", ".5Z", ".000000"),
            (".12345Z", ".12345Z", ".000000"),
            (".123456789Z", "789Z", "Z07:00"),
        ];
        for (behind, rest, part) in rests {
            let error = canonical(&format!("2026-01-02T03:04:05{behind}"), true).unwrap_err();
            let expected = format!("cannot parse {rest:?} as {part:?}");
            assert!(error.ends_with(&expected), "{error}");
        }
        // Seconds may have any fraction.
        assert_eq!(canonical("2026-01-02T03:04:05.5Z", false).unwrap(), "2026-01-02T03:04:05Z");
    }

    #[test]
    fn instants_are_written_in_utc() {
        assert_eq!(canonical("2026-01-02T03:04:05+01:00", false).unwrap(), "2026-01-02T02:04:05Z");
        assert_eq!(
            canonical("2026-01-02T03:04:05.500000+01:00", true).unwrap(),
            "2026-01-02T02:04:05.500000Z"
        );
        let error = canonical("2026-01-02 x", false).unwrap_err();
        assert_eq!(
            error,
            r#"parsing time "2026-01-02 x" as "2006-01-02T15:04:05Z07:00": cannot parse " x" as "T""#
        );
    }
}

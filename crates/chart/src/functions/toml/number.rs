//! What is wrong with numbers, dates and times of TOML.

/// Returns what is wrong with a decimal number, a date or a time.
pub(super) fn check(text: &str, whole: &str) -> Result<(), String> {
    let is_date = text.contains(':') || text.get(4..5) == Some("-") && text.len() > 5;
    if is_date {
        // Seconds may not be left out, as the parser would have it.
        let time = if text.get(4..5) == Some("-") { text.get(11..) } else { Some(text) };
        let has_seconds = time.is_none_or(|time| time.get(5..6) == Some(":"));
        let is_time = text.parse::<toml::value::Datetime>().is_ok();
        return if is_time && has_seconds {
            Ok(())
        } else {
            Err(format!("invalid datetime: {}", quoted(whole)))
        };
    }
    let is_float = text.contains(['.', 'e', 'E']);
    let kind = if is_float { "float" } else { "integer" };
    let bytes = text.as_bytes();
    let lone = bytes.iter().enumerate().any(|(at, byte)| {
        let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
        *byte == b'_' && !(is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)))
    });
    if lone {
        return Err(format!("Invalid {kind} {}: underscores must be surrounded by digits", quoted(whole)));
    }
    if matches!(bytes, [b'0', b'0'..=b'9', ..]) {
        return Err(format!("Invalid {kind} {}: cannot have leading zeroes", quoted(whole)));
    }
    let plain = whole.replace('_', "");
    if is_float {
        let bare = plain.find('.').is_some_and(|dot| {
            !plain.get(dot + 1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        if bare {
            return Err(format!(
                "Invalid float {}: '.' must be followed by one or more digits",
                quoted(whole)
            ));
        }
        return match plain.parse::<f64>() {
            Ok(number) if number.is_infinite() => Err(format!("{plain} is out of range for float64")),
            Ok(_) => Ok(()),
            Err(_) => Err(format!("Invalid float value: {}", quoted(whole))),
        };
    }
    match plain.parse::<i64>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("{plain} is out of range for int64")),
    }
}

/// Returns a text in Go's quotes.
pub(super) fn quoted(text: &str) -> String {
    golang::strconv::quote(text.as_bytes())
}

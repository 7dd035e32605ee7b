//! Characters written with a backslash.

use std::fmt::Write as _;

use super::error::{ErrorCode, SyntaxError};

/// Returns what was consumed of `text`, of which `rest` remains.
pub(super) fn consumed<'a>(text: &'a str, rest: &str) -> &'a str {
    text.get(..text.len().saturating_sub(rest.len())).unwrap_or(text)
}

/// Reads the character that begins with a backslash at the front of `text`.
pub(super) fn character(text: &str) -> Result<(char, &str), SyntaxError> {
    let after = text.strip_prefix('\\').unwrap_or(text);
    let mut chars = after.chars();
    let Some(first) = chars.next() else {
        return Err(SyntaxError::new(ErrorCode::TrailingBackslash, ""));
    };
    let rest = chars.as_str();
    let (found, rest) = match first {
        '0' => octal(0, rest),
        // A single digit would be a back reference.
        '1'..='7' if rest.starts_with(|c| matches!(c, '0'..='7')) => {
            octal(u32::from(first) - u32::from('0'), rest)
        }
        'x' => hexadecimal(rest),
        'a' => (Some('\x07'), rest),
        'f' => (Some('\x0c'), rest),
        'n' => (Some('\n'), rest),
        'r' => (Some('\r'), rest),
        't' => (Some('\t'), rest),
        'v' => (Some('\x0b'), rest),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => (Some(c), rest),
        _ => (None, rest),
    };
    match found {
        Some(found) => Ok((found, rest)),
        None => Err(SyntaxError::new(ErrorCode::Escape, consumed(text, rest))),
    }
}

/// Reads up to two more octal digits.
fn octal(first: u32, text: &str) -> (Option<char>, &str) {
    let (mut number, mut rest) = (first, text);
    for _ in 0..2 {
        let mut chars = rest.chars();
        let Some(digit) = chars.next().and_then(|c| c.to_digit(8)) else {
            break;
        };
        number = number * 8 + digit;
        rest = chars.as_str();
    }
    (char::from_u32(number), rest)
}

/// Reads two hexadecimal digits, or any number of them in braces.
fn hexadecimal(text: &str) -> (Option<char>, &str) {
    let mut chars = text.chars();
    let first = chars.next();
    if first != Some('{') {
        let Some(first) = first else {
            return (None, text);
        };
        let Some(second) = chars.next() else {
            return (None, chars.as_str());
        };
        let number = first.to_digit(16).zip(second.to_digit(16)).map(|(a, b)| a * 16 + b);
        return (number.and_then(char::from_u32), chars.as_str());
    }
    let mut number: Option<u32> = None;
    while let Some(next) = chars.next() {
        if next == '}' {
            return (number.and_then(char::from_u32), chars.as_str());
        }
        let Some(digit) = next.to_digit(16) else {
            break;
        };
        let sum = number.unwrap_or_default() * 16 + digit;
        if sum > u32::from(char::MAX) {
            break;
        }
        number = Some(sum);
    }
    (None, chars.as_str())
}

/// Appends `c` so that it stands for itself.
pub(super) fn push_literal(out: &mut String, c: char) {
    if c.is_ascii_control() {
        let _ = write!(out, "\\x{:02x}", u32::from(c));
    } else {
        // Not every mark may be escaped: `\<` is the beginning of a word to `regex`.
        out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }
}

/// Returns an expression that matches nothing but `text`.
pub fn quote_meta(text: &str) -> String {
    let mut quoted = String::new();
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted
}

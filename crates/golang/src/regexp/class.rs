//! Classes of characters.

use super::error::{ErrorCode, SyntaxError};
use super::escape::{character, consumed, push_literal};

/// The classes between `[:` and `:]`.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// A class that was read: its translation and what follows it.
type Read<'a> = Result<Option<(String, &'a str)>, SyntaxError>;

/// Reads `\d`, `\s` or `\w` or their opposites, which are about ASCII only.
pub(super) fn perl(text: &str) -> Option<(&'static str, &str)> {
    let rest = text.get(2..)?;
    let class = match text.get(..2)? {
        r"\d" => "[0-9]",
        r"\D" => "[^0-9]",
        r"\s" => r"[\t\n\x0c\r ]",
        r"\S" => r"[^\t\n\x0c\r ]",
        r"\w" => "[0-9A-Za-z_]",
        r"\W" => "[^0-9A-Za-z_]",
        _ => return None,
    };
    Some((class, rest))
}

/// Reads `\pL`, `\p{Greek}` or `\P{^Greek}`.
pub(super) fn unicode(text: &str) -> Read<'_> {
    let (negated, rest) = if let Some(rest) = text.strip_prefix(r"\p") {
        (false, rest)
    } else if let Some(rest) = text.strip_prefix(r"\P") {
        (true, rest)
    } else {
        return Ok(None);
    };
    let unknown = |rest: &str| SyntaxError::new(ErrorCode::CharRange, consumed(text, rest));
    let (name, rest) = match rest.chars().next() {
        None => return Ok(None),
        Some('{') => rest.get(1..).and_then(|r| r.split_once('}')).ok_or_else(|| unknown(""))?,
        Some(c) => rest.split_at_checked(c.len_utf8()).unwrap_or((rest, "")),
    };
    let (negated, name) = match name.strip_prefix('^') {
        Some(name) => (!negated, name),
        None => (negated, name),
    };
    let class = format!("\\{}{{{name}}}", if negated { 'P' } else { 'p' });
    if is_known(name) { Ok(Some((class, rest))) } else { Err(unknown(rest)) }
}

/// Scripts whose whole names are as short as the abbreviations of others, which Go does not know.
const SHORT_SCRIPTS: [&str; 8] = ["ahom", "cham", "kawi", "lisu", "modi", "newa", "thai", "toto"];

/// Returns whether Go knows a category or a script of this name. `regex` knows many more properties.
fn is_known(name: &str) -> bool {
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ' | '-')) {
        return false;
    }
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    let compiles = |property: &str| regex::Regex::new(&format!("\\p{{{property}={name}}}")).is_ok();
    let is_script = plain.len() != 4 || SHORT_SCRIPTS.contains(&plain.as_str());
    !plain.starts_with("is") && (compiles("gc") || (is_script && compiles("sc")))
}

/// Reads `[:alpha:]`.
fn posix(text: &str) -> Read<'_> {
    let Some((name, rest)) = text.strip_prefix("[:").and_then(|r| r.split_once(":]")) else {
        return Ok(None);
    };
    if POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
        Ok(Some((format!("[:{name}:]"), rest)))
    } else {
        Err(SyntaxError::new(ErrorCode::CharRange, consumed(text, rest)))
    }
}

/// Reads a class in brackets at the front of `text`.
pub(super) fn bracketed(text: &str) -> Result<(String, &str), SyntaxError> {
    let mut class = String::from("[");
    let mut rest = text.strip_prefix('[').unwrap_or(text);
    if let Some(after) = rest.strip_prefix('^') {
        class.push('^');
        rest = after;
    }
    let mut first = true;
    while first || !rest.starts_with(']') {
        first = false;
        if let Some((part, after)) = posix(rest)? {
            class.push_str(&part);
            rest = after;
        } else if let Some((part, after)) = unicode(rest)? {
            class.push_str(&part);
            rest = after;
        } else if let Some((part, after)) = perl(rest) {
            class.push_str(part);
            rest = after;
        } else {
            rest = range(&mut class, rest, text)?;
        }
    }
    class.push(']');
    Ok((class, rest.strip_prefix(']').unwrap_or(rest)))
}

/// Reads one character of a class, or a range of them.
fn range<'a>(class: &mut String, text: &'a str, whole: &str) -> Result<&'a str, SyntaxError> {
    let (low, mut rest) = class_character(text, whole)?;
    let mut high = low;
    if let Some(after) = rest.strip_prefix('-').filter(|r| !r.is_empty() && !r.starts_with(']')) {
        (high, rest) = class_character(after, whole)?;
        if high < low {
            return Err(SyntaxError::new(ErrorCode::CharRange, consumed(text, rest)));
        }
    }
    push_literal(class, low);
    if high > low {
        class.push('-');
        push_literal(class, high);
    }
    Ok(rest)
}

fn class_character<'a>(text: &'a str, whole: &str) -> Result<(char, &'a str), SyntaxError> {
    if text.starts_with('\\') {
        return character(text);
    }
    let mut chars = text.chars();
    match chars.next() {
        Some(c) => Ok((c, chars.as_str())),
        None => Err(SyntaxError::new(ErrorCode::MissingBracket, whole)),
    }
}

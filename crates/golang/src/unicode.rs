//! Characters in bytes that need not be UTF-8, and Go's classes of them.

use std::sync::LazyLock;

use regex::Regex;

/// Returns the first character of `bytes` and its width; U+FFFD and 1 for what is not UTF-8.
pub fn decode_rune(bytes: &[u8]) -> Option<(char, usize)> {
    let first = *bytes.first()?;
    if first.is_ascii() {
        return Some((char::from(first), 1));
    }
    let head = bytes.get(..bytes.len().min(4))?;
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => head
            .get(..error.valid_up_to())
            .and_then(|valid| std::str::from_utf8(valid).ok())
            .unwrap_or_default(),
    };
    match valid.chars().next() {
        Some(rune) => Some((rune, rune.len_utf8())),
        None => Some((char::REPLACEMENT_CHARACTER, 1)),
    }
}

static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{L}$").ok());
static LOWER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{Ll}$").ok());
static DIGIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{Nd}$").ok());
static PRINT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\p{L}\p{M}\p{N}\p{P}\p{S}]$").ok());

fn matches(class: &LazyLock<Option<Regex>>, rune: char) -> bool {
    let mut buffer = [0; 4];
    let text: &str = rune.encode_utf8(&mut buffer);
    class.as_ref().is_some_and(|class| class.is_match(text))
}

/// Reports whether Unicode calls `rune` a letter.
pub fn is_letter(rune: char) -> bool {
    if rune.is_ascii() { rune.is_ascii_alphabetic() } else { matches(&LETTER, rune) }
}

/// Reports whether `rune` is a decimal digit of any script.
pub fn is_digit(rune: char) -> bool {
    if rune.is_ascii() { rune.is_ascii_digit() } else { matches(&DIGIT, rune) }
}

/// Reports whether Go prints `rune` as it is in a quoted string.
pub fn is_print(rune: char) -> bool {
    if rune.is_ascii() { matches!(rune, ' '..='~') } else { matches(&PRINT, rune) }
}

/// Reports whether `rune` is an upper-case letter; numbers and symbols that look like one are none.
pub fn is_upper(rune: char) -> bool {
    rune.is_uppercase() && (rune.is_ascii() || matches(&LETTER, rune))
}

/// Reports whether `rune` is a lower-case letter; modifiers, numbers and symbols that look like one are none.
pub fn is_lower(rune: char) -> bool {
    if rune.is_ascii() { rune.is_ascii_lowercase() } else { matches(&LOWER, rune) }
}

/// Returns the one upper-case letter of `c`; letters that would become two stay.
pub fn to_upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// Returns the one lower-case letter of `c`.
pub fn to_lower(c: char) -> char {
    // The only letter whose full mapping is longer than its simple one.
    if c == '\u{130}' { 'i' } else { c.to_lowercase().next().unwrap_or(c) }
}

/// Returns the title-case letter, which for a few digraphs is not the upper-case one.
pub fn to_title(c: char) -> char {
    match c {
        '\u{1c4}'..='\u{1c6}' => '\u{1c5}',
        '\u{1c7}'..='\u{1c9}' => '\u{1c8}',
        '\u{1ca}'..='\u{1cc}' => '\u{1cb}',
        '\u{1f1}'..='\u{1f3}' => '\u{1f2}',
        _ => to_upper(c),
    }
}

/// Reports whether this is a digraph whose first letter only is a capital.
pub fn is_title(c: char) -> bool {
    matches!(c, '\u{1c5}' | '\u{1c8}' | '\u{1cb}' | '\u{1f2}')
}

//! Go's quoted strings.

use crate::unicode::{decode_rune, is_print};

const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];

/// Returns `text` as a Go string literal.
pub fn quote(text: &[u8]) -> String {
    quoted(text, '"', false)
}

/// Returns `text` as a Go string literal of ASCII characters only.
pub fn quote_to_ascii(text: &[u8]) -> String {
    quoted(text, '"', true)
}

/// Returns a character as a Go character literal.
pub fn quote_rune(rune: char, ascii: bool) -> String {
    let mut out = String::from('\'');
    escape(&mut out, rune, '\'', ascii);
    out.push('\'');
    out
}

/// Reports whether `text` fits between back quotes.
pub fn can_backquote(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| {
        text.chars().all(|rune| {
            rune != '\u{feff}' && rune != '`' && rune != '\u{7f}' && (rune >= ' ' || rune == '\t')
        })
    })
}

fn quoted(mut text: &[u8], delimiter: char, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(delimiter);
    while let Some((rune, width)) = decode_rune(text) {
        let (head, rest) = text.split_at_checked(width).unwrap_or((text, &[]));
        match head {
            [byte] if rune == char::REPLACEMENT_CHARACTER => push_hex(&mut out, 'x', u32::from(*byte), 2),
            _ => escape(&mut out, rune, delimiter, ascii),
        }
        text = rest;
    }
    out.push(delimiter);
    out
}

fn escape(out: &mut String, rune: char, delimiter: char, ascii: bool) {
    if rune == delimiter || rune == '\\' {
        out.push('\\');
        out.push(rune);
        return;
    }
    if is_print(rune) && (rune.is_ascii() || !ascii) {
        out.push(rune);
        return;
    }
    match rune {
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        _ => {
            let code = u32::from(rune);
            if code < 0x20 || code == 0x7f {
                push_hex(out, 'x', code, 2);
            } else if code < 0x1_0000 {
                push_hex(out, 'u', code, 4);
            } else {
                push_hex(out, 'U', code, 8);
            }
        }
    }
}

fn push_hex(out: &mut String, kind: char, code: u32, digits: u32) {
    out.push('\\');
    out.push(kind);
    for place in (0..digits).rev() {
        let digit = usize::try_from((code >> (4 * place)) & 0xf).unwrap_or_default();
        out.extend(HEX.get(digit));
    }
}

//! Percent signs.

use std::fmt::Write as _;

use super::error::UrlErrorKind;

/// The part of a URL; each allows other characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Fragment,
    Host,
    Path,
    Segment,
    User,
    Zone,
}

/// Reports whether this byte must be written with a percent sign.
fn is_special(byte: u8, mode: Mode) -> bool {
    if byte.is_ascii_alphanumeric() {
        return false;
    }
    if matches!(mode, Mode::Host | Mode::Zone) && b"!$&'()*+,;=:[]<>\"".contains(&byte) {
        return false;
    }
    match byte {
        b'-' | b'_' | b'.' | b'~' => false,
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match mode {
            Mode::Path => byte == b'?',
            Mode::Segment => matches!(byte, b'/' | b';' | b',' | b'?'),
            Mode::User => matches!(byte, b'@' | b'/' | b'?' | b':'),
            Mode::Fragment => false,
            Mode::Host | Mode::Zone => true,
        },
        b'!' | b'(' | b')' | b'*' if mode == Mode::Fragment => false,
        _ => true,
    }
}

/// Writes a text with percent signs where the part needs them.
pub(super) fn escaped(text: &str, mode: Mode) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let mut buffer = [0; 4];
        let bytes = c.encode_utf8(&mut buffer).as_bytes();
        for byte in bytes {
            if is_special(*byte, mode) {
                let _ = write!(out, "%{byte:02X}");
            } else {
                out.push(char::from(*byte));
            }
        }
    }
    out
}

/// Reads a text with percent signs.
pub(super) fn unescaped(text: &str, mode: Mode) -> Result<String, UrlErrorKind> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            let in_host = matches!(mode, Mode::Host | Mode::Zone);
            if in_host && first.is_ascii() && is_special(*first, mode) {
                return Err(UrlErrorKind::HostCharacter(char::from(*first)));
            }
            out.push(*first);
            rest = after;
            continue;
        }
        let written = rest.get(..3).unwrap_or(rest);
        let bad = || UrlErrorKind::Escape(String::from_utf8_lossy(written).into_owned());
        let [high, low] = [1, 2].map(|index| rest.get(index).and_then(|b| char::from(*b).to_digit(16)));
        let (Some(high), Some(low)) = (high, low) else {
            return Err(bad());
        };
        let byte = u8::try_from(high * 16 + low).unwrap_or_default();
        // A host may hold bytes beyond ASCII and a percent sign, but no other escapes.
        let refused = match mode {
            Mode::Host => high < 8 && written != b"%25",
            Mode::Zone => written != b"%25" && byte != b' ' && is_special(byte, Mode::Host),
            Mode::Fragment | Mode::Path | Mode::Segment | Mode::User => false,
        };
        if refused {
            return Err(bad());
        }
        out.push(byte);
        rest = rest.get(3..).unwrap_or_default();
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Writes one segment of a path with percent signs where it needs them.
pub fn path_escape(text: &str) -> String {
    escaped(text, Mode::Segment)
}

/// Reads one segment of a path; an error says what is no escape.
pub fn path_unescape(text: &str) -> Result<String, UrlErrorKind> {
    unescaped(text, Mode::Segment)
}

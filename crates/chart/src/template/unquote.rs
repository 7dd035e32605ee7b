//! Go's string and character literals.

/// Returns what a quoted or raw string literal stands for; bytes, since `\xff` is one.
pub(super) fn unquote(literal: &str) -> Option<Vec<u8>> {
    if let Some(raw) = literal.strip_prefix('`') {
        let body = raw.strip_suffix('`')?;
        return (!body.contains('`')).then(|| body.bytes().filter(|byte| *byte != b'\r').collect());
    }
    let mut rest = literal.strip_prefix('"')?;
    // Most literals stand for what they read.
    if let Some(body) = rest.strip_suffix('"')
        && !body.bytes().any(|byte| matches!(byte, b'\\' | b'"'))
    {
        return Some(body.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(rest.len());
    loop {
        if rest == "\"" {
            return Some(out);
        }
        if rest.is_empty() || rest.starts_with('"') {
            return None;
        }
        if let Some((byte, after)) = byte_escape(rest) {
            out.push(byte);
            rest = after;
            continue;
        }
        let (rune, after) = unquote_char(rest, '"')?;
        let mut buffer = [0; 4];
        out.extend_from_slice(char::from_u32(rune)?.encode_utf8(&mut buffer).as_bytes());
        rest = after;
    }
}

/// Reads `\x41` and `\101`, which stand for one byte.
fn byte_escape(text: &str) -> Option<(u8, &str)> {
    let escape = text.strip_prefix('\\')?;
    let (digits, radix, from) = match escape.as_bytes().first()? {
        b'x' => (2, 16, 1),
        b'0'..=b'7' => (3, 8, 0),
        _ => return None,
    };
    let number = escape.get(from..from + digits)?;
    if !number.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let byte = u8::try_from(u32::from_str_radix(number, radix).ok()?).ok()?;
    Some((byte, escape.get(from + digits..)?))
}

/// Reads one character of a literal that is delimited by `delimiter`; returns it and the rest.
pub(super) fn unquote_char(text: &str, delimiter: char) -> Option<(u32, &str)> {
    let mut runes = text.chars();
    let first = runes.next()?;
    if first == delimiter {
        return None;
    }
    if first != '\\' {
        return Some((u32::from(first), runes.as_str()));
    }
    if let Some((byte, rest)) = byte_escape(text) {
        return Some((u32::from(byte), rest));
    }
    let escape = runes.next()?;
    let rest = runes.as_str();
    let simple = |rune: u32| Some((rune, rest));
    match escape {
        'a' => simple(7),
        'b' => simple(8),
        'f' => simple(12),
        'n' => simple(10),
        'r' => simple(13),
        't' => simple(9),
        'v' => simple(11),
        '\\' => simple(u32::from('\\')),
        '\'' | '"' if escape == delimiter => simple(u32::from(escape)),
        'u' | 'U' => {
            let digits = if escape == 'u' { 4 } else { 8 };
            let number = rest.get(..digits)?;
            if !number.chars().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            let rune = u32::from_str_radix(number, 16).ok()?;
            char::from_u32(rune)?;
            Some((rune, rest.get(digits..)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{unquote, unquote_char};
    use golang::strconv::{quote, quote_to_ascii};

    proptest! {
        #[test]
        fn quoted_bytes_are_read_back(bytes: Vec<u8>, text: String) {
            for bytes in [bytes.as_slice(), text.as_bytes()] {
                prop_assert_eq!(unquote(&quote(bytes)), Some(bytes.to_vec()));
                prop_assert_eq!(unquote(&quote_to_ascii(bytes)), Some(bytes.to_vec()));
            }
        }
    }

    #[test]
    fn escapes_are_read_as_go_reads_them() {
        for (literal, expected) in [
            (r#""a\tb""#, Some("a\tb".as_bytes().to_vec())),
            (r#""\x41\101\u00e9\U0001F600""#, Some("AAé😀".as_bytes().to_vec())),
            (r#""\xff""#, Some(vec![0xff])),
            (r#""\q""#, None),
            (r#""\'""#, None),
            (r#""\400""#, None),
            (r#""\ud800""#, None),
            ("`a\\n\r\n`", Some(b"a\\n\n".to_vec())),
        ] {
            assert_eq!(unquote(literal), expected, "{literal}");
        }
        assert_eq!(unquote_char(r"\'x", '\''), Some((39, "x")));
    }
}

//! Reading.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use crate::MAX_NESTING;

/// Why a text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The text ends too early.
    #[error("unexpected end of JSON input")]
    End,
    /// A character stands where it may not.
    #[error("invalid character {character} {place}")]
    Character {
        /// The character in quotes.
        character: String,
        /// What was expected there.
        place: &'static str,
    },
    /// The value is nested too deeply.
    #[error("exceeded max depth")]
    Depth,
}

/// What a text holds.
#[derive(Clone, Debug)]
pub struct Decoded<V = Value> {
    /// The value; every number is a `float64`.
    pub value: V,
    /// The first number that is too great for a `float64`; it became null.
    pub too_great: Option<String>,
}

/// A value that JSON is read into.
pub trait Unmarshal: Sized {
    /// The members of an object that is being read.
    type Members: Default;

    /// Returns `null`.
    fn null() -> Self;

    /// Returns a boolean.
    fn bool(truth: bool) -> Self;

    /// Returns a number, which is finite.
    fn number(number: f64) -> Self;

    /// Returns a string.
    fn text(text: Cow<'_, str>) -> Self;

    /// Returns an array.
    fn array(items: Vec<Self>) -> Self;

    /// Adds a member; the last one of a key counts.
    fn add(members: &mut Self::Members, key: Cow<'_, str>, value: Self);

    /// Returns an object.
    fn object(members: Self::Members) -> Self;
}

impl Unmarshal for Value {
    type Members = Map<String, Value>;

    fn null() -> Self {
        Self::Null
    }

    fn bool(truth: bool) -> Self {
        Self::Bool(truth)
    }

    fn number(number: f64) -> Self {
        Number::from_f64(number).map_or(Self::Null, Self::Number)
    }

    fn text(text: Cow<'_, str>) -> Self {
        Self::String(text.into_owned())
    }

    fn array(items: Vec<Self>) -> Self {
        Self::Array(items)
    }

    fn add(members: &mut Self::Members, key: Cow<'_, str>, value: Self) {
        members.insert(key.into_owned(), value);
    }

    fn object(members: Self::Members) -> Self {
        Self::Object(members)
    }
}

/// Reads a text that holds one JSON value.
pub fn decode(text: &[u8]) -> Result<Decoded, DecodeError> {
    decode_as(text)
}

/// Reads such a text into a value of another type.
pub fn decode_as<V: Unmarshal>(text: &[u8]) -> Result<Decoded<V>, DecodeError> {
    let mut reader = Reader { text, rest: text, too_great: None };
    let value = reader.value("looking for beginning of value", 0)?;
    reader.skip_space();
    match reader.rest.first() {
        Some(byte) => Err(unexpected(*byte, "after top-level value")),
        None => Ok(Decoded { value, too_great: reader.too_great }),
    }
}

struct Reader<'a> {
    text: &'a [u8],
    rest: &'a [u8],
    too_great: Option<String>,
}

/// At the end of the text Go asks whether a space could come next, and complains about that.
const AT_END: u8 = b' ';

impl<'a> Reader<'a> {
    /// Returns how many bytes were taken.
    fn read(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    fn skip_space(&mut self) {
        let space = self.rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')).count();
        self.rest = self.rest.get(space..).unwrap_or_default();
    }

    /// Takes the next byte; `place` is what a space at the end is complained about with.
    fn next(&mut self, place: &'static str) -> Result<u8, DecodeError> {
        let (first, rest) = self.rest.split_first().ok_or_else(|| unexpected(AT_END, place))?;
        self.rest = rest;
        Ok(*first)
    }

    /// Takes the next byte that is not space.
    fn next_token(&mut self) -> Result<u8, DecodeError> {
        self.skip_space();
        let (first, rest) = self.rest.split_first().ok_or(DecodeError::End)?;
        self.rest = rest;
        Ok(*first)
    }

    fn value<V: Unmarshal>(&mut self, place: &'static str, depth: usize) -> Result<V, DecodeError> {
        let first = self.next_token()?;
        self.value_of(first, place, depth)
    }

    fn value_of<V: Unmarshal>(
        &mut self,
        first: u8,
        place: &'static str,
        depth: usize,
    ) -> Result<V, DecodeError> {
        if depth > MAX_NESTING {
            return Err(DecodeError::Depth);
        }
        match first {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(V::text),
            b't' => self.literal(TRUE).map(|()| V::bool(true)),
            b'f' => self.literal(FALSE).map(|()| V::bool(false)),
            b'n' => self.literal(NULL).map(|()| V::null()),
            b'-' | b'0'..=b'9' => self.number(first),
            other => Err(unexpected(other, place)),
        }
    }

    fn object<V: Unmarshal>(&mut self, depth: usize) -> Result<V, DecodeError> {
        const KEY: &str = "looking for beginning of object key string";
        let mut members = V::Members::default();
        let mut first = true;
        loop {
            match self.next_token()? {
                b'}' if first => break,
                b'"' => {}
                other => return Err(unexpected(other, KEY)),
            }
            first = false;
            let key = self.string()?;
            match self.next_token()? {
                b':' => {}
                other => return Err(unexpected(other, "after object key")),
            }
            let value = self.value("looking for beginning of value", depth + 1)?;
            V::add(&mut members, key, value);
            match self.next_token()? {
                b',' => {}
                b'}' => break,
                other => return Err(unexpected(other, "after object key:value pair")),
            }
        }
        Ok(V::object(members))
    }

    fn array<V: Unmarshal>(&mut self, depth: usize) -> Result<V, DecodeError> {
        let mut items = Vec::new();
        loop {
            let first = self.next_token()?;
            if first == b']' && items.is_empty() {
                break;
            }
            items.push(self.value_of(first, "looking for beginning of value", depth + 1)?);
            match self.next_token()? {
                b',' => {}
                b']' => break,
                other => return Err(unexpected(other, "after array element")),
            }
        }
        Ok(V::array(items))
    }

    fn literal(&mut self, rest: &[(u8, &'static str)]) -> Result<(), DecodeError> {
        for (wanted, place) in rest {
            let byte = self.next(place)?;
            if byte != *wanted {
                return Err(unexpected(byte, place));
            }
        }
        Ok(())
    }

    /// Reads the rest of a string whose opening quote was taken.
    fn string(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        let plain = self.rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
        if let Some((text, [b'"', rest @ ..])) = plain.and_then(|end| self.rest.split_at_checked(end))
            && let Ok(text) = std::str::from_utf8(text)
        {
            self.rest = rest;
            return Ok(Cow::Borrowed(text));
        }
        let mut bytes = Vec::with_capacity(plain.unwrap_or_default());
        loop {
            let Some((byte, rest)) = self.rest.split_first() else {
                return Err(DecodeError::End);
            };
            self.rest = rest;
            match byte {
                b'"' => break,
                b'\\' => {
                    let c = self.escape()?;
                    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                0..=0x1f => return Err(unexpected(*byte, "in string literal")),
                byte => bytes.push(*byte),
            }
        }
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            chunk.invalid().iter().for_each(|_| text.push(char::REPLACEMENT_CHARACTER));
        }
        Ok(Cow::Owned(text))
    }

    fn escape(&mut self) -> Result<char, DecodeError> {
        const PLACE: &str = "in string escape code";
        Ok(match self.next(PLACE)? {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hexadecimal()?;
                return self.surrogates(first);
            }
            other => return Err(unexpected(other, PLACE)),
        })
    }

    fn hexadecimal(&mut self) -> Result<u32, DecodeError> {
        const PLACE: &str = "in \\u hexadecimal character escape";
        let mut number = 0;
        for _ in 0..4 {
            let byte = self.next(PLACE)?;
            let digit = char::from(byte).to_digit(16).ok_or_else(|| unexpected(byte, PLACE))?;
            number = number * 16 + digit;
        }
        Ok(number)
    }

    /// Joins two halves of a character; a half without the other becomes U+FFFD.
    fn surrogates(&mut self, first: u32) -> Result<char, DecodeError> {
        if (0xd800..0xdc00).contains(&first)
            && let Some(rest) = self.rest.strip_prefix(b"\\u")
        {
            let mut ahead = Reader { text: rest, rest, too_great: None };
            let second = ahead.hexadecimal()?;
            if (0xdc00..0xe000).contains(&second) {
                self.rest = ahead.rest;
                let c = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Reads the rest of a number whose first byte was taken.
    fn number<V: Unmarshal>(&mut self, first: u8) -> Result<V, DecodeError> {
        let begin = self.read().saturating_sub(1);
        let mut digit = first;
        if first == b'-' {
            digit = self.next("in numeric literal")?;
        }
        match digit {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            other => return Err(unexpected(other, "in numeric literal")),
        }
        if let Some(rest) = self.rest.strip_prefix(b".") {
            self.rest = rest;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if let Some((b'e' | b'E', rest)) = self.rest.split_first() {
            self.rest = rest;
            if let Some((b'+' | b'-', rest)) = self.rest.split_first() {
                self.rest = rest;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        let text = self.text.get(begin..self.read()).unwrap_or_default();
        let text = std::str::from_utf8(text).unwrap_or_default();
        let number: f64 = text.parse().unwrap_or(f64::INFINITY);
        if number.is_finite() {
            return Ok(V::number(number));
        }
        self.too_great.get_or_insert_with(|| text.replace('E', "e"));
        Ok(V::null())
    }

    fn digits(&mut self) {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.rest = self.rest.get(digits..).unwrap_or_default();
    }

    fn some_digits(&mut self, place: &'static str) -> Result<(), DecodeError> {
        let first = self.next(place)?;
        if !first.is_ascii_digit() {
            return Err(unexpected(first, place));
        }
        self.digits();
        Ok(())
    }
}

const TRUE: &[(u8, &str)] = &[
    (b'r', "in literal true (expecting 'r')"),
    (b'u', "in literal true (expecting 'u')"),
    (b'e', "in literal true (expecting 'e')"),
];
const FALSE: &[(u8, &str)] = &[
    (b'a', "in literal false (expecting 'a')"),
    (b'l', "in literal false (expecting 'l')"),
    (b's', "in literal false (expecting 's')"),
    (b'e', "in literal false (expecting 'e')"),
];
const NULL: &[(u8, &str)] = &[
    (b'u', "in literal null (expecting 'u')"),
    (b'l', "in literal null (expecting 'l')"),
    (b'l', "in literal null (expecting 'l')"),
];

fn unexpected(byte: u8, place: &'static str) -> DecodeError {
    let character = match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0..=0x1f | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    };
    DecodeError::Character { character, place }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_json_is_reported_as_go_does() {
        for (text, error) in [
            ("", "unexpected end of JSON input"),
            ("{a}", "invalid character 'a' looking for beginning of object key string"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("nul", "invalid character ' ' in literal null (expecting 'l')"),
            ("1 2", "invalid character '2' after top-level value"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 2}", "invalid character '2' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("1.", "invalid character ' ' after decimal point in numeric literal"),
            ("1e", "invalid character ' ' in exponent of numeric literal"),
            ("\"\\q\"", "invalid character 'q' in string escape code"),
            ("\"\\u12x4\"", "invalid character 'x' in \\u hexadecimal character escape"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            ("\"abc", "unexpected end of JSON input"),
            ("é", "invalid character 'Ã' looking for beginning of value"),
        ] {
            assert_eq!(decode(text.as_bytes()).unwrap_err().to_string(), error, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_floats_and_the_first_that_is_too_great_is_told() {
        let decoded = decode(b" [0, -1.5e3,2E-1 ,1E400, -2e999]").unwrap();
        assert_eq!(decoded.value, serde_json::json!([0.0, -1500.0, 0.2, null, null]));
        assert_eq!(decoded.too_great.as_deref(), Some("1e400"));
        assert_eq!(decode(b"-7").unwrap().value, serde_json::json!(-7.0));
    }

    #[test]
    fn nesting_is_limited() {
        let deep = "[".repeat(100_000);
        assert_eq!(decode(deep.as_bytes()).unwrap_err(), DecodeError::Depth);
    }
}

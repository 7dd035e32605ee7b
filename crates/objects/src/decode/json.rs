//! A JSON reader that keeps the order of keys and words its errors as Go does.

use serde_json::Number;
use thiserror::Error;

use super::Node;

/// How deep lists and objects may be nested in what is read.
///
/// The real server reads 10,000 levels.
pub const MAX_DEPTH: usize = 420;

/// Why bytes are no JSON.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SyntaxError {
    /// The text ends too early.
    #[error("unexpected end of JSON input")]
    End,
    /// A character does not belong where it is.
    #[error("invalid character {0} {1}")]
    Character(String, &'static str),
    /// Values are nested more deeply than we read.
    #[error("exceeded max depth")]
    Depth,
    /// A number is too large for any type.
    #[error("json: cannot unmarshal number {0} into Go value of type float64")]
    Number(String),
}

/// Reads one JSON value; nothing but white space may follow.
pub fn parse(bytes: &[u8]) -> Result<Node, SyntaxError> {
    let mut reader = Reader { bytes, at: 0 };
    reader.skip_space();
    let node = reader.value(0)?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(node),
        Some(byte) => Err(wrong(byte, "after top-level value")),
    }
}

/// What follows the first letter of a word, and what is said of anything else.
const TRUE: [(u8, &str); 3] = [
    (b'r', "in literal true (expecting 'r')"),
    (b'u', "in literal true (expecting 'u')"),
    (b'e', "in literal true (expecting 'e')"),
];
const FALSE: [(u8, &str); 4] = [
    (b'a', "in literal false (expecting 'a')"),
    (b'l', "in literal false (expecting 'l')"),
    (b's', "in literal false (expecting 's')"),
    (b'e', "in literal false (expecting 'e')"),
];
const NULL: [(u8, &str); 3] = [
    (b'u', "in literal null (expecting 'u')"),
    (b'l', "in literal null (expecting 'l')"),
    (b'l', "in literal null (expecting 'l')"),
];

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

fn wrong(byte: u8, place: &'static str) -> SyntaxError {
    let shown = match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0x20..=0x7e | 0x80.. => format!("'{}'", char::from(byte)),
        _ => format!(r"'\x{byte:02x}'"),
    };
    SyntaxError::Character(shown, place)
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, SyntaxError> {
        let byte = self.peek().ok_or(SyntaxError::End)?;
        self.at += 1;
        Ok(byte)
    }

    /// Returns the next byte where white space cannot stand: the end is read as a space, as Go does.
    fn next_inside(&mut self) -> u8 {
        self.next().unwrap_or(b' ')
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(SyntaxError::Depth);
        }
        match self.next()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(Node::String),
            b't' => self.word(&TRUE).map(|()| Node::Bool(true)),
            b'f' => self.word(&FALSE).map(|()| Node::Bool(false)),
            b'n' => self.word(&NULL).map(|()| Node::Null),
            b'-' | b'0'..=b'9' => self.number(),
            byte => Err(wrong(byte, "looking for beginning of value")),
        }
    }

    fn word(&mut self, rest: &[(u8, &'static str)]) -> Result<(), SyntaxError> {
        for (expected, place) in rest {
            let byte = self.next_inside();
            if byte != *expected {
                return Err(wrong(byte, place));
            }
        }
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        let mut fields = Vec::new();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Node::Object(fields));
        }
        loop {
            self.skip_space();
            match self.next()? {
                b'"' => {}
                byte => return Err(wrong(byte, "looking for beginning of object key string")),
            }
            let key = self.string()?;
            self.skip_space();
            match self.next()? {
                b':' => {}
                byte => return Err(wrong(byte, "after object key")),
            }
            self.skip_space();
            fields.push((key, self.value(depth + 1)?));
            self.skip_space();
            match self.next()? {
                b',' => {}
                b'}' => return Ok(Node::Object(fields)),
                byte => return Err(wrong(byte, "after object key:value pair")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Node::Array(items));
        }
        loop {
            self.skip_space();
            items.push(self.value(depth + 1)?);
            self.skip_space();
            match self.next()? {
                b',' => {}
                b']' => return Ok(Node::Array(items)),
                byte => return Err(wrong(byte, "after array element")),
            }
        }
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        let mut text = Vec::new();
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            let plain = plain.ok_or(SyntaxError::End)?;
            text.extend_from_slice(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.next()? {
                b'"' => {
                    let text = String::from_utf8(text);
                    return Ok(
                        text.unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned())
                    );
                }
                b'\\' => self.escape(&mut text)?,
                byte => return Err(wrong(byte, "in string literal")),
            }
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let byte = match self.next_inside() {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let mut letter = self.code_unit()?;
                if (0xd800..0xdc00).contains(&letter) && self.bytes.get(self.at..self.at + 2) == Some(b"\\u")
                {
                    let before = self.at;
                    self.at += 2;
                    let low = self.code_unit()?;
                    if (0xdc00..0xe000).contains(&low) {
                        letter = 0x10000 + ((letter - 0xd800) << 10) + (low - 0xdc00);
                    } else {
                        self.at = before;
                    }
                }
                let letter = char::from_u32(letter).unwrap_or(char::REPLACEMENT_CHARACTER);
                text.extend(letter.encode_utf8(&mut [0; 4]).bytes());
                return Ok(());
            }
            byte => return Err(wrong(byte, "in string escape code")),
        };
        text.push(byte);
        Ok(())
    }

    fn code_unit(&mut self) -> Result<u32, SyntaxError> {
        let mut unit = 0;
        for _ in 0..4 {
            let byte = self.next_inside();
            let digit = char::from(byte).to_digit(16);
            unit = unit * 16 + digit.ok_or_else(|| wrong(byte, "in \\u hexadecimal character escape"))?;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<Node, SyntaxError> {
        let start = self.at - 1;
        self.at = start;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.next_inside() {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            byte => return Err(wrong(byte, "in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        let text = self.bytes.get(start..self.at).unwrap_or_default();
        let text = String::from_utf8_lossy(text);
        serde_json::from_str(&text).map(Node::Number).map_err(|_| SyntaxError::Number(text.into_owned()))
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self, place: &'static str) -> Result<(), SyntaxError> {
        match self.next_inside() {
            b'0'..=b'9' => {
                self.digits();
                Ok(())
            }
            byte => Err(wrong(byte, place)),
        }
    }
}

/// Returns the number as Go prints it in error texts.
pub(super) fn number_text(number: &Number) -> String {
    number.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn what_is_read_is_what_other_readers_read() {
        for text in [
            "{}",
            "[]",
            "null",
            " true ",
            "-0",
            "1e3",
            "1.5",
            "18446744073709551615",
            "-9223372036854775808",
            r#"{"a":{"b":[1,"x\nA😀",false]},"c":null}"#,
            r#""é\/""#,
        ] {
            let ours = Value::from(parse(text.as_bytes()).unwrap());
            assert_eq!(ours, serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn errors_are_worded_as_clients_know_them() {
        for (text, expected) in [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            (r#"{"a":1 x}"#, "invalid character 'x' after object key:value pair"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("metadata", "invalid character 'm' looking for beginning of value"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{a}", "invalid character 'a' looking for beginning of object key string"),
            ("01", "invalid character '1' after top-level value"),
            ("nul", "invalid character ' ' in literal null (expecting 'l')"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("-", "invalid character ' ' in numeric literal"),
            ("1.", "invalid character ' ' after decimal point in numeric literal"),
            ("1e", "invalid character ' ' in exponent of numeric literal"),
            (r#""\"#, "invalid character ' ' in string escape code"),
            (r#""\u12"#, "invalid character ' ' in \\u hexadecimal character escape"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error() {
        assert_eq!(parse(&vec![b'['; 100_000]), Err(SyntaxError::Depth));
        assert!(parse(&[[b'['; 300], [b']'; 300]].concat()).is_ok());
    }
}

//! JSON text in the form that the reference operator writes: compact, keys sorted, HTML characters escaped.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter};

/// Writes compact JSON whose strings are safe inside HTML and whose numbers look like those of Go.
#[derive(Clone, Copy, Debug, Default)]
struct Escaping;

impl Formatter for Escaping {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        // A number that JSON has not, can't be in a `Value`.
        let text = values::number::format_json(value).unwrap_or_else(|| "null".to_owned());
        writer.write_all(text.as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (plain, special) = rest.split_at_checked(at).unwrap_or((rest, ""));
            writer.write_all(plain.as_bytes())?;
            let mut chars = special.chars();
            if let Some(found) = chars.next() {
                write!(writer, "\\u{:04x}", u32::from(found))?;
            }
            rest = chars.as_str();
        }
        writer.write_all(rest.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        match escape {
            CharEscape::Quote => writer.write_all(b"\\\""),
            CharEscape::ReverseSolidus => writer.write_all(b"\\\\"),
            CharEscape::Solidus => writer.write_all(b"/"),
            CharEscape::Backspace => writer.write_all(b"\\b"),
            CharEscape::FormFeed => writer.write_all(b"\\f"),
            CharEscape::LineFeed => writer.write_all(b"\\n"),
            CharEscape::CarriageReturn => writer.write_all(b"\\r"),
            CharEscape::Tab => writer.write_all(b"\\t"),
            CharEscape::AsciiControl(byte) => write!(writer, "\\u{byte:04x}"),
        }
    }
}

/// Writes `value` as compact JSON.
///
/// # Errors
///
/// An error is one of `writer`, or of a value whose serialisation fails.
pub fn write(writer: &mut impl Write, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(writer, Escaping);
    value.serialize(&mut serializer).map_err(io::Error::from)
}

/// Returns `value` as compact JSON. Objects and filter results of snapshots are kept in this form.
pub fn bytes(value: &serde_json::Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A `Value` can always be written, and so can anything to a vector.
    if write(&mut bytes, value).is_err() {
        bytes.clear();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_written_as_the_reference_operator_does() {
        let cases = [
            (serde_json::json!("a<b>&\u{2028}\u{2029}\"\\/é"), r#""a\u003cb\u003e\u0026\u2028\u2029\"\\/é""#),
            (serde_json::json!("\n\t\r\u{8}\u{c}\u{1}\u{1f}"), r#""\n\t\r\b\f\u0001\u001f""#),
            (serde_json::json!({"b": 1, "a": [true, null, "<"]}), r#"{"a":[true,null,"\u003c"],"b":1}"#),
            (serde_json::json!({"a&b": {}}), r#"{"a\u0026b":{}}"#),
            (serde_json::json!(9_223_372_036_854_775_807_i64), "9223372036854775807"),
            (serde_json::json!(1.0), "1"),
            (serde_json::json!(0.1), "0.1"),
            (serde_json::json!(1e20), "100000000000000000000"),
            (serde_json::json!(1e21), "1e+21"),
            (serde_json::json!(1.5e-7), "1.5e-7"),
            (serde_json::json!(0.000_001), "0.000001"),
            (serde_json::json!(-1.25e300), "-1.25e+300"),
        ];
        for (value, expected) in cases {
            assert_eq!(String::from_utf8(bytes(&value)).unwrap(), expected);
        }
    }
}

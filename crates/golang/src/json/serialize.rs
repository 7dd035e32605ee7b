//! Writing what `serde` serialises.

use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;

use super::encode::SPECIAL;
use super::format_number;

/// Writes `value` as compact JSON: `<`, `>` and `&` escaped, floats in their shortest form.
///
/// # Errors
///
/// An error is one of `writer`, or of a value whose serialisation fails.
pub fn write(writer: &mut impl io::Write, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    serialize(writer, value).map_err(io::Error::from)
}

/// Returns `value` as [`write()`] writes it.
pub fn to_vec(value: &(impl Serialize + ?Sized)) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = Vec::with_capacity(1024);
    serialize(&mut text, value)?;
    Ok(text)
}

/// Returns `value` as [`write()`] writes it, in no more memory than that takes.
pub fn bytes(value: &serde_json::Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A `Value` can always be written, and so can anything to a vector.
    if serialize(&mut bytes, value).is_err() {
        bytes.clear();
    }
    bytes
}

fn serialize(
    writer: &mut impl io::Write,
    value: &(impl Serialize + ?Sized),
) -> Result<(), serde_json::Error> {
    value.serialize(&mut serde_json::Serializer::with_formatter(writer, GoFormatter))
}

struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        // The serializer writes `null` by itself for what JSON has no number for.
        writer.write_all(format_number(value).unwrap_or_default().as_bytes())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(SPECIAL) {
            let (before, from) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            let mut chars = from.chars();
            if let Some(c) = chars.next() {
                write!(writer, "\\u{:04x}", u32::from(c))?;
            }
            rest = chars.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_and_texts_are_written_as_go_does() {
        for (value, expected) in [
            (json!(1.0), "1"),
            (json!(1e21), "1e+21"),
            (json!(1e20), "100000000000000000000"),
            (json!(1e-7), "1e-7"),
            (json!(1e-6), "0.000001"),
            (json!(1.5e-10), "1.5e-10"),
            (json!(-0.0), "-0"),
            (json!(0.0), "0"),
            (json!(9_007_199_254_740_993_i64), "9007199254740993"),
            (json!("<a&b>\u{2028}é\u{1}\n"), "\"\\u003ca\\u0026b\\u003e\\u2028é\\u0001\\n\""),
            (json!({"b": [1.25, null], "a": true}), "{\"a\":true,\"b\":[1.25,null]}"),
            (json!("a<b>&\u{2028}\u{2029}\"\\/é"), r#""a\u003cb\u003e\u0026\u2028\u2029\"\\/é""#),
            (json!("\n\t\r\u{8}\u{c}\u{1}\u{1f}"), r#""\n\t\r\b\f\u0001\u001f""#),
            (json!({"b": 1, "a": [true, null, "<"]}), r#"{"a":[true,null,"\u003c"],"b":1}"#),
            (json!({"a&b": {}}), r#"{"a\u0026b":{}}"#),
            (json!(9_223_372_036_854_775_807_i64), "9223372036854775807"),
            (json!(0.1), "0.1"),
            (json!(1.5e-7), "1.5e-7"),
            (json!(-1.25e300), "-1.25e+300"),
        ] {
            assert_eq!(String::from_utf8(to_vec(&value).unwrap()).unwrap(), expected);
            assert_eq!(bytes(&value), expected.as_bytes());
        }
    }
}

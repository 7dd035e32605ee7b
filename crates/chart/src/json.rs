//! JSON text as Go's `encoding/json` writes it.

use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};

/// Returns `value` as compact JSON: `<`, `>` and `&` escaped, floats in their shortest form.
pub fn to_vec<T: Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = Vec::with_capacity(1024);
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, GoFormatter);
    value.serialize(&mut serializer)?;
    Ok(text)
}

/// Returns the shortest text of `number`, in exponent form where the exponent is
/// below -4 or above 5, as `strconv` does with `'g'`.
pub fn format_general(number: f64) -> String {
    values::number::format_g(number, None)
}

struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(values::number::format_json(value).unwrap_or_default().as_bytes())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (before, from) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            let mut chars = from.chars();
            if let Some(c) = chars.next() {
                write!(writer, "\\u{:04x}", u32::from(c))?;
            }
            rest = chars.as_str();
        }
        CompactFormatter.write_string_fragment(writer, rest)
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
        ] {
            assert_eq!(String::from_utf8(to_vec(&value).unwrap()).unwrap(), expected);
        }
        for (number, expected) in [
            (1.1, "1.1"),
            (1e6, "1e+06"),
            (-1_234_567.5, "-1.2345675e+06"),
            (1e-5, "1e-05"),
            (999_999.0, "999999"),
        ] {
            assert_eq!(format_general(number), expected);
        }
    }
}

//! Writing values of Go.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::format_number;
use crate::MAX_NESTING;
use crate::fmt::{Operand, Shape};

/// Whether strings escape what means something in HTML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// `<`, `>` and `&` are escaped.
    Html,
    /// They stand as they are.
    Nothing,
}

/// The characters beside control characters, quotes and backslashes that strings escape; the
/// first three for HTML only.
pub(super) const SPECIAL: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];

/// Why a value has no JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Not a number, or an infinite one.
    #[error("json: unsupported value: {0}")]
    Number(&'static str),
    /// A type that JSON does not know.
    #[error("json: unsupported type: {0}")]
    Type(String),
    /// The value is nested too deeply, or holds itself.
    #[error("json: value is nested more than {MAX_NESTING} levels deep or holds itself")]
    Nesting,
}

/// A value that JSON can be written of.
pub trait Marshal: Operand {
    /// Returns the value that is written in place of this one, which is a struct or of a named type.
    fn replacement(&self) -> Option<Self>;

    /// Returns what is written of a struct: its fields, under the names that JSON has for them.
    fn members(&self) -> Vec<(&'static str, Self)>;
}

/// Returns the JSON of a value.
///
/// Numbers and types that JSON does not know and values that hold themselves are errors.
pub fn encode<V: Marshal>(value: &V, escape: Escape) -> Result<String, EncodeError> {
    let mut out = String::new();
    write(&mut out, value, escape, 0)?;
    Ok(out)
}

/// Breaks the lines of JSON and indents them by two spaces.
pub fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth: usize = 0;
    let newline = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    let mut rest = json;
    while let Some(at) = rest.find(['"', '{', '[', '}', ']', ',', ':']) {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(before);
        if from.starts_with('"') {
            let (text, behind) = from.split_at_checked(end_of_string(from)).unwrap_or((from, ""));
            out.push_str(text);
            rest = behind;
            continue;
        }
        let mut chars = from.chars();
        let Some(mark) = chars.next() else { break };
        rest = chars.as_str();
        match mark {
            '{' | '[' => {
                out.push(mark);
                // Nothing inside stays on one line.
                if let Some(close) = rest.chars().next().filter(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                    rest = rest.get(1..).unwrap_or_default();
                } else {
                    depth += 1;
                    newline(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                newline(&mut out, depth);
                out.push(mark);
            }
            ',' => {
                out.push(mark);
                newline(&mut out, depth);
            }
            _ => out.push_str(": "),
        }
    }
    out.push_str(rest);
    out
}

/// Returns how many bytes the string at the front of `json` has, with both of its quotes.
fn end_of_string(json: &str) -> usize {
    let mut escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    });
    end.map_or(json.len(), |end| end + 2)
}

fn write<V: Marshal>(out: &mut String, value: &V, escape: Escape, depth: usize) -> Result<(), EncodeError> {
    if depth > MAX_NESTING {
        return Err(EncodeError::Nesting);
    }
    match value.shape() {
        Shape::Nil | Shape::Slice { nil: true } | Shape::Map { nil: true } => out.push_str("null"),
        Shape::Bool(truth) => out.push_str(if truth { "true" } else { "false" }),
        // Writing into a text can't fail.
        Shape::Int(n) => {
            let _ = write!(out, "{n}");
        }
        Shape::Uint(n) => {
            let _ = write!(out, "{n}");
        }
        Shape::Float(n) => out.push_str(&format_number(n).ok_or_else(|| unsupported(n))?),
        Shape::Complex(..) => return Err(EncodeError::Type(value.type_name().to_owned())),
        Shape::Text(text) => write_string(out, text, escape),
        Shape::Bytes(bytes) => {
            out.push('"');
            STANDARD.encode_string(bytes, out);
            out.push('"');
        }
        Shape::Slice { nil: false } => {
            out.push('[');
            let mut between = "";
            value.each_item(&mut |item| {
                out.push_str(std::mem::replace(&mut between, ","));
                write(out, item, escape, depth + 1)
            })?;
            out.push(']');
        }
        Shape::Map { nil: false } => {
            out.push('{');
            let mut between = "";
            value.each_entry(&mut |key, value| {
                out.push_str(std::mem::replace(&mut between, ","));
                write_member(out, key, value, escape, depth)
            })?;
            out.push('}');
        }
        Shape::Object => {
            if let Some(value) = value.replacement() {
                return write(out, &value, escape, depth + 1);
            }
            out.push('{');
            let mut between = "";
            for (key, value) in value.members() {
                out.push_str(std::mem::replace(&mut between, ","));
                write_member(out, key, &value, escape, depth)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn write_member<V: Marshal>(
    out: &mut String,
    key: &str,
    value: &V,
    escape: Escape,
    depth: usize,
) -> Result<(), EncodeError> {
    write_string(out, key.as_bytes(), escape);
    out.push(':');
    write(out, value, escape, depth + 1)
}

fn unsupported(number: f64) -> EncodeError {
    EncodeError::Number(if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    })
}

fn write_string(out: &mut String, text: &[u8], escape: Escape) {
    out.push('"');
    let is_plain = |byte: &u8| match byte {
        b'"' | b'\\' | 0..=0x1f | 0x80.. => false,
        b'<' | b'>' | b'&' => escape == Escape::Nothing,
        _ => true,
    };
    let plain = text.iter().position(|byte| !is_plain(byte)).unwrap_or(text.len());
    let (plain, text) = text.split_at_checked(plain).unwrap_or((&[], text));
    out.push_str(std::str::from_utf8(plain).unwrap_or_default());
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => {
                    out.push('\\');
                    out.push(c);
                }
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{2028}' | '\u{2029}' | '\0'..='\x1f' => {
                    let _ = write!(out, "\\u{:04x}", u32::from(c));
                }
                '<' | '>' | '&' if escape == Escape::Html => {
                    let _ = write!(out, "\\u{:04x}", u32::from(c));
                }
                _ => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|_| out.push_str("\\ufffd"));
    }
    out.push('"');
}

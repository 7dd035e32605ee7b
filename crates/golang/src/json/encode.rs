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
    let mut in_string = false;
    let mut escaped = false;
    let mut chars = json.chars().peekable();
    let newline = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(c) = chars.next() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '"' => {
                in_string = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                // Nothing inside stays on one line.
                if let Some(close) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    newline(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                newline(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                newline(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => out.push(c),
        }
    }
    out
}

fn write<V: Marshal>(out: &mut String, value: &V, escape: Escape, depth: usize) -> Result<(), EncodeError> {
    if depth > MAX_NESTING {
        return Err(EncodeError::Nesting);
    }
    match value.shape() {
        Shape::Nil | Shape::Slice { nil: true } | Shape::Map { nil: true } => out.push_str("null"),
        Shape::Bool(truth) => out.push_str(if truth { "true" } else { "false" }),
        Shape::Int(n) => out.push_str(&n.to_string()),
        Shape::Uint(n) => out.push_str(&n.to_string()),
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

//! Writing.

use std::fmt::Write as _;

use crate::call::CallError;
use crate::value::{MAX_NESTING, Value};

/// Returns the JSON of a value. `html` tells whether `<`, `>` and `&` are escaped.
///
/// Numbers that JSON does not know, types that it does not know and values that hold
/// themselves are errors.
pub fn encode(value: &Value, html: bool) -> Result<String, CallError> {
    let mut out = String::new();
    write(&mut out, value, html, 0)?;
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

fn write(out: &mut String, value: &Value, html: bool, depth: usize) -> Result<(), CallError> {
    if depth > MAX_NESTING {
        return Err(CallError::new(format!(
            "json: value is nested more than {MAX_NESTING} levels deep or holds itself"
        )));
    }
    match value {
        Value::Nil => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Int(n) | Value::Int64(n) | Value::Small(_, n) => out.push_str(&n.to_string()),
        Value::Uint(_, n) => out.push_str(&n.to_string()),
        Value::Float(n) => match values::number::format_json(*n) {
            Some(text) => out.push_str(&text),
            None => return Err(unsupported_number(*n)),
        },
        Value::Complex(..) => {
            let name = value.type_name();
            return Err(CallError::new(format!("json: unsupported type: {name}")));
        }
        Value::Text(text) => write_string(out, text, html),
        Value::Bytes(bytes) => {
            use base64::Engine as _;
            let text = base64::engine::general_purpose::STANDARD.encode(bytes);
            out.push('"');
            out.push_str(&text);
            out.push('"');
        }
        Value::List(list) if list.is_nil() => out.push_str("null"),
        Value::Map(map) if map.is_nil() => out.push_str("null"),
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.items().iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(out, item, html, depth + 1)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            let entries = map.entries();
            write_entries(out, entries.iter().map(|(k, v)| (k.as_ref(), v)), html, depth)?;
        }
        Value::Object(object) => match (object.json(), object.underlying()) {
            (Some(json), _) => write(out, &Value::from_typed_json(&json), html, depth + 1)?,
            (None, Some(value)) => write(out, &value, html, depth + 1)?,
            (None, None) => {
                let fields = object.json_members().unwrap_or_else(|| object.fields());
                write_entries(out, fields.iter().map(|(k, v)| (*k, v)), html, depth)?;
            }
        },
    }
    Ok(())
}

fn write_entries<'a>(
    out: &mut String,
    entries: impl Iterator<Item = (&'a str, &'a Value)>,
    html: bool,
    depth: usize,
) -> Result<(), CallError> {
    out.push('{');
    for (index, (key, value)) in entries.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, key.as_bytes(), html);
        out.push(':');
        write(out, value, html, depth + 1)?;
    }
    out.push('}');
    Ok(())
}

fn unsupported_number(number: f64) -> CallError {
    let name = if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    };
    CallError::new(format!("json: unsupported value: {name}"))
}

fn write_string(out: &mut String, text: &[u8], html: bool) {
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
                '<' | '>' | '&' if html => {
                    let _ = write!(out, "\\u{:04x}", u32::from(c));
                }
                _ => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|_| out.push_str("\\ufffd"));
    }
    out.push('"');
}

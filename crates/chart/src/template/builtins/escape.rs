//! `html`, `js` and `urlquery`.

use golang::fmt::sprint_dereferenced;
use golang::unicode::{decode_rune, is_print};

use crate::value::{CallError, Context, Function, Text, Type, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("html", &[Type::Any], Type::String, html),
    Function::variadic("js", &[Type::Any], Type::String, js),
    Function::variadic("urlquery", &[Type::Any], Type::String, urlquery),
];

/// Returns the arguments as text, with `<no value>` for nil.
fn text(context: &mut dyn Context, args: &[Value]) -> Result<Text, CallError> {
    if let [Value::Text(text)] = args {
        return Ok(text.clone());
    }
    let shown: Vec<Value> = args
        .iter()
        .map(|value| if value.is_nil() { Value::text("<no value>") } else { value.clone() })
        .collect();
    let text = sprint_dereferenced(&shown).map_err(|error| CallError::new(error.to_string()))?;
    context.charge(text.len())?;
    Ok(text.into())
}

fn html(context: &mut dyn Context, args: &[Value]) -> Result<Value, CallError> {
    let text = text(context, args)?;
    let mut out = Vec::with_capacity(text.len());
    for byte in text.iter() {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            _ => out.push(*byte),
        }
    }
    Ok(Value::text(out))
}

fn js(context: &mut dyn Context, args: &[Value]) -> Result<Value, CallError> {
    let text = text(context, args)?;
    let mut out = Vec::with_capacity(text.len());
    let mut rest: &[u8] = &text;
    while let Some((rune, width)) = decode_rune(rest) {
        let (head, tail) = rest.split_at_checked(width).unwrap_or((rest, &[]));
        match rune {
            '\\' => out.extend_from_slice(b"\\\\"),
            '\'' => out.extend_from_slice(b"\\'"),
            '"' => out.extend_from_slice(b"\\\""),
            '<' | '>' | '&' | '=' => out.extend_from_slice(format!("\\u{:04X}", u32::from(rune)).as_bytes()),
            _ if rune < ' ' || (!rune.is_ascii() && !is_print(rune)) => {
                out.extend_from_slice(format!("\\u{:04X}", u32::from(rune)).as_bytes());
            }
            _ => out.extend_from_slice(head),
        }
        rest = tail;
    }
    Ok(Value::text(out))
}

fn urlquery(context: &mut dyn Context, args: &[Value]) -> Result<Value, CallError> {
    let text = text(context, args)?;
    let mut out = Vec::with_capacity(text.len());
    for byte in text.iter() {
        match byte {
            b' ' => out.push(b'+'),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(*byte),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    Ok(Value::text(out))
}

//! Strings: trimming, cutting, searching, repeating.

use super::args::{Answer, BOOL, INT, STRING, bytes, int, string};
use crate::value::{CallError, Context, Function, Text, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("contains", &[STRING, STRING], BOOL, |_, args| {
        Ok(find(bytes(args, 1), bytes(args, 0)).is_some().into())
    }),
    Function::new("hasPrefix", &[STRING, STRING], BOOL, |_, args| {
        Ok(bytes(args, 1).starts_with(bytes(args, 0)).into())
    }),
    Function::new("hasSuffix", &[STRING, STRING], BOOL, |_, args| {
        Ok(bytes(args, 1).ends_with(bytes(args, 0)).into())
    }),
    Function::new("hello", &[], STRING, |_, _| Ok("Hello!".into())),
    Function::new("indent", &[INT, STRING], STRING, |context, args| indented(context, args, "")),
    Function::new("nindent", &[INT, STRING], STRING, |context, args| indented(context, args, "\n")),
    Function::new("nospace", &[STRING], STRING, |_, args| {
        Ok(without_spaces(bytes(args, 0)).map_or_else(|| super::args::any(args, 0).clone(), Value::from))
    }),
    Function::new("plural", &[STRING, STRING, INT], STRING, |_, args| {
        Ok(super::args::any(args, usize::from(int(args, 2) != 1)).clone())
    }),
    Function::new("repeat", &[INT, STRING], STRING, |context, args| {
        repeated(context, bytes(args, 1), int(args, 0)).map(Value::text)
    }),
    Function::new("replace", &[STRING, STRING, STRING], STRING, replace),
    Function::new("substr", &[INT, INT, STRING], STRING, substr),
    Function::new("trim", &[STRING], STRING, |_, args| Ok(string(args, 0).trim().into())),
    Function::new("trimAll", &[STRING, STRING], STRING, |_, args| Ok(trimmed(args))),
    Function::new("trimall", &[STRING, STRING], STRING, |_, args| Ok(trimmed(args))),
    Function::new("trimPrefix", &[STRING, STRING], STRING, |_, args| {
        let text = bytes(args, 1);
        Ok(Value::text(text.strip_prefix(bytes(args, 0)).unwrap_or(text)))
    }),
    Function::new("trimSuffix", &[STRING, STRING], STRING, |_, args| {
        let text = bytes(args, 1);
        Ok(Value::text(text.strip_suffix(bytes(args, 0)).unwrap_or(text)))
    }),
    Function::new("trunc", &[INT, STRING], STRING, |_, args| {
        Ok(Value::text(truncated(bytes(args, 1), int(args, 0))))
    }),
];

/// Returns the text without white space; nothing if there is none in it.
///
/// Bytes are taken for characters then, so that only ASCII comes out unharmed.
fn without_spaces(text: &[u8]) -> Option<String> {
    let is_space = |byte: u8| char::from(byte).is_whitespace();
    let has_space = text.iter().any(|byte| is_space(*byte));
    has_space.then(|| text.iter().filter(|byte| !is_space(**byte)).copied().map(char::from).collect())
}

/// Returns where `needle` begins in `text`.
pub(super) fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    if let (Ok(text), Ok(needle)) = (std::str::from_utf8(text), std::str::from_utf8(needle)) {
        return text.find(needle);
    }
    if needle.is_empty() {
        return Some(0);
    }
    text.windows(needle.len()).position(|window| window == needle)
}

/// Returns `text` with every `old` replaced by `new`.
pub(super) fn replaced(text: &[u8], old: &[u8], new: &[u8]) -> Text {
    if let (Ok(text), Ok(old), Ok(new)) =
        (std::str::from_utf8(text), std::str::from_utf8(old), std::str::from_utf8(new))
    {
        return text.replace(old, new).into();
    }
    let mut result = Vec::with_capacity(text.len());
    let mut rest = text;
    if old.is_empty() {
        for chunk in text.utf8_chunks() {
            for c in chunk.valid().chars() {
                result.extend_from_slice(new);
                result.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            for byte in chunk.invalid() {
                result.extend_from_slice(new);
                result.push(*byte);
            }
        }
        result.extend_from_slice(new);
        return result.into();
    }
    while let Some((before, after)) = split_once(rest, old) {
        result.extend_from_slice(before);
        result.extend_from_slice(new);
        rest = after;
    }
    result.extend_from_slice(rest);
    result.into()
}

/// Splits at the first `separator`, which is not empty.
pub(super) fn split_once<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (before, rest) = text.split_at_checked(find(text, separator)?)?;
    Some((before, rest.strip_prefix(separator)?))
}

fn replace(context: &mut dyn Context, args: &[Value]) -> Answer {
    let (old, new, text) = (bytes(args, 0), bytes(args, 1), bytes(args, 2));
    // Every byte may grow by the difference, one more of it stands at the end.
    let growth = new.len().saturating_sub(old.len()).saturating_mul(text.len() / old.len().max(1) + 1);
    context.charge(text.len().saturating_add(growth))?;
    Ok(replaced(text, old, new).into())
}

/// Returns `text` so many times, or the panic of Go.
pub(super) fn repeated(context: &mut dyn Context, text: &[u8], times: i64) -> Result<Vec<u8>, CallError> {
    if times < 0 {
        return Err(CallError::new("strings: negative Repeat count"));
    }
    let times = usize::try_from(times).unwrap_or(usize::MAX);
    if text.is_empty() {
        return Ok(Vec::new());
    }
    context.charge(text.len().saturating_mul(times))?;
    Ok(text.repeat(times))
}

/// Puts spaces before every line.
fn indented(context: &mut dyn Context, args: &[Value], before: &str) -> Answer {
    let padding = repeated(context, b" ", int(args, 0))?;
    let text = bytes(args, 1);
    let lines = text.split(|byte| *byte == b'\n').count();
    let len = padding.len().saturating_mul(lines).saturating_add(text.len() + before.len());
    context.charge(len)?;
    let mut result = Vec::with_capacity(len);
    result.extend_from_slice(before.as_bytes());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        result.extend_from_slice(&padding);
        result.extend_from_slice(line);
    }
    if text.is_empty() || text.ends_with(b"\n") {
        result.extend_from_slice(&padding);
    }
    Ok(Value::text(result))
}

/// Cuts `text` to its first bytes, or to its last ones if `len` is negative.
fn truncated(text: &[u8], len: i64) -> &[u8] {
    if len < 0 {
        let last = usize::try_from(len.unsigned_abs()).unwrap_or(usize::MAX);
        return text.len().checked_sub(last).and_then(|start| text.get(start..)).unwrap_or(text);
    }
    usize::try_from(len).ok().and_then(|len| text.get(..len)).unwrap_or(text)
}

fn substr(_: &mut dyn Context, args: &[Value]) -> Answer {
    let (start, end, text) = (int(args, 0), int(args, 1), bytes(args, 2));
    let len = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let cut = match (usize::try_from(start), usize::try_from(end)) {
        (Err(_), Err(_)) => {
            return Err(CallError::new(format!("runtime error: slice bounds out of range [:{end}]")));
        }
        (Err(_), Ok(to)) => text
            .get(..to)
            .ok_or_else(|| format!("runtime error: slice bounds out of range [:{end}] with length {len}")),
        (Ok(from), Ok(to)) if end <= len => text
            .get(from..to)
            .ok_or_else(|| format!("runtime error: slice bounds out of range [{start}:{end}]")),
        (Ok(from), _) => text
            .get(from..)
            .ok_or_else(|| format!("runtime error: slice bounds out of range [{start}:{len}]")),
    };
    Ok(Value::text(cut?))
}

/// Cuts the characters of the first argument off both ends of the second.
fn trimmed(args: &[Value]) -> Value {
    let (set, text) = (string(args, 0), string(args, 1));
    text.trim_matches(|c| set.contains(c)).into()
}

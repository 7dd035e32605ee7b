//! Strings out of values, and lists of strings.

use super::args::{ANY, Answer, INT, STRING, STRINGS, any, bytes, int};
use super::{format, strings};
use crate::value::{CallError, Context, Entries, Function, Kind, ListType, Map, MapType, Text, Type, Value};

const STRING_MAP: Type = Type::Map(&MapType::STRINGS);

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("cat", &[ANY], STRING, |context, args| each(context, args, format::plain)),
    Function::new("join", &[STRING, ANY], STRING, join),
    Function::variadic("quote", &[ANY], STRING, |context, args| {
        each(context, args, |value| Ok(format::quoted(&format::text(value)?)))
    }),
    Function::new("sortAlpha", &[ANY], STRINGS, sorted),
    Function::new("split", &[STRING, STRING], STRING_MAP, |context, args| {
        numbered(context, bytes(args, 1), bytes(args, 0), -1)
    }),
    Function::new("splitList", &[STRING, STRING], STRINGS, |context, args| {
        Ok(Value::strings(pieces(context, bytes(args, 1), bytes(args, 0), -1)?))
    }),
    Function::new("splitn", &[STRING, INT, STRING], STRING_MAP, |context, args| {
        numbered(context, bytes(args, 2), bytes(args, 0), int(args, 1))
    }),
    Function::variadic("squote", &[ANY], STRING, |context, args| {
        each(context, args, |value| Ok([b"'", format::plain(value)?.as_slice(), b"'"].concat()))
    }),
    Function::new("toString", &[ANY], STRING, |context, args| {
        format::charge(context, any(args, 0))?;
        Ok(format::text(any(args, 0))?.into())
    }),
    Function::new("toStrings", &[ANY], STRINGS, |context, args| {
        format::charge(context, any(args, 0))?;
        let value = any(args, 0);
        // A list of strings is handed back as it is.
        if value.as_list().is_some_and(|list| list.class().name == ListType::STRINGS.name) {
            return Ok(value.clone());
        }
        Ok(Value::strings(texts(value)?))
    }),
];

/// Joins what each value but nil becomes.
fn each(context: &mut dyn Context, args: &[Value], show: fn(&Value) -> Result<Vec<u8>, CallError>) -> Answer {
    let mut joined = Vec::new();
    for (index, value) in args.iter().filter(|value| !value.is_nil()).enumerate() {
        format::charge(context, value)?;
        if index > 0 {
            joined.push(b' ');
        }
        joined.extend(show(value)?);
    }
    Ok(Value::text(joined))
}

/// Returns the elements of a list as texts without nils; anything else is a list of itself.
fn texts(value: &Value) -> Result<Vec<Text>, CallError> {
    if let Value::List(list) = value {
        let items = list.items();
        return items.iter().filter(|item| !item.is_nil()).map(format::text).collect();
    }
    if let Value::Bytes(bytes) = value {
        return Ok(bytes.iter().map(|byte| Text::from(byte.to_string())).collect());
    }
    if value.is_nil() {
        return Ok(Vec::new());
    }
    Ok(vec![format::text(value)?])
}

fn join(context: &mut dyn Context, args: &[Value]) -> Answer {
    format::charge(context, any(args, 1))?;
    let texts = texts(any(args, 1))?;
    let separator = bytes(args, 0);
    let len = texts.iter().map(|text| text.len().saturating_add(separator.len())).sum();
    context.charge(len)?;
    let parts: Vec<&[u8]> = texts.iter().map(Text::as_bytes).collect();
    Ok(Value::text(parts.join(separator)))
}

fn sorted(context: &mut dyn Context, args: &[Value]) -> Answer {
    let value = any(args, 0);
    format::charge(context, value)?;
    if value.kind() != Kind::Slice {
        return Ok(Value::strings([format::text(value)?]));
    }
    let mut texts = texts(value)?;
    texts.sort();
    if let Value::List(list) = value
        && list.class().name == ListType::STRINGS.name
    {
        // A list of strings is sorted in place, for everybody who holds it.
        list.replace(texts.into_iter().map(Value::Text).collect());
        return Ok(list.clone().into());
    }
    Ok(Value::strings(texts))
}

/// Splits a text into at most `limit` pieces; all if it is negative. Without a separator
/// the pieces are characters.
fn pieces(
    context: &mut dyn Context,
    text: &[u8],
    separator: &[u8],
    limit: i64,
) -> Result<Vec<Text>, CallError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut pieces = Vec::new();
    let mut rest = text;
    if limit == 0 {
        return Ok(pieces);
    }
    // To be looked at once, not once for each piece.
    if let (Ok(text), Ok(separator)) = (std::str::from_utf8(text), std::str::from_utf8(separator))
        && !separator.is_empty()
    {
        for piece in text.splitn(limit, separator) {
            context.charge(size_of::<Value>() + piece.len())?;
            pieces.push(Text::from(piece));
        }
        return Ok(pieces);
    }
    while pieces.len() + 1 < limit {
        let next = if separator.is_empty() { split_char(rest) } else { strings::split_once(rest, separator) };
        let Some((piece, after)) = next else {
            break;
        };
        context.charge(size_of::<Value>() + piece.len())?;
        pieces.push(Text::from(piece));
        rest = after;
    }
    if !separator.is_empty() || !rest.is_empty() {
        pieces.push(Text::from(rest));
    }
    Ok(pieces)
}

fn split_char(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = text.utf8_chunks().next()?;
    let len = first.valid().chars().next().map_or(1, char::len_utf8);
    text.split_at_checked(len)
}

fn numbered(context: &mut dyn Context, text: &[u8], separator: &[u8], limit: i64) -> Answer {
    let mut entries = Entries::new();
    for (index, piece) in pieces(context, text, separator, limit)?.into_iter().enumerate() {
        entries.insert(format!("_{index}").into(), Value::Text(piece));
    }
    Ok(Value::Map(Map::of(&MapType::STRINGS, entries)))
}

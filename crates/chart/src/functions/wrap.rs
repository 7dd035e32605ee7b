//! Strings: breaking and shortening lines. All lengths are in bytes.

use super::args::{Answer, INT, STRING, bytes, int};
use crate::value::{CallError, Context, Function, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("abbrev", &[INT, STRING], STRING, |_, args| {
        Ok(Value::text(abbreviated(bytes(args, 1), 0, int(args, 0))))
    }),
    Function::new("abbrevboth", &[INT, INT, STRING], STRING, |_, args| {
        let (left, width) = (int(args, 0), int(args, 1));
        let text = bytes(args, 2);
        if width < 4 || (left > 0 && width < 7) {
            return Ok(Value::text(text));
        }
        Ok(Value::text(abbreviated(text, left, width)))
    }),
    Function::new("wrap", &[INT, STRING], STRING, |context, args| {
        wrapped(context, bytes(args, 1), int(args, 0), b"\n", false)
    }),
    Function::new("wrapWith", &[INT, STRING, STRING], STRING, |context, args| {
        wrapped(context, bytes(args, 2), int(args, 0), bytes(args, 1), true)
    }),
];

/// Shortens `text` to `width`, with dots for what was cut; `offset` is shown in any case.
fn abbreviated(text: &[u8], offset: i64, width: i64) -> Vec<u8> {
    let whole = || text.to_vec();
    let Some(width) = usize::try_from(width).ok().filter(|width| *width >= 4) else {
        return whole();
    };
    if text.len() <= width {
        return whole();
    }
    let room = width - 3;
    let offset = usize::try_from(offset).unwrap_or_default().min(text.len() - room);
    if offset <= 4 {
        return [text.get(..room).unwrap_or_default(), b"..."].concat();
    }
    if offset + room < text.len() {
        let tail =
            abbreviated(text.get(offset..).unwrap_or_default(), 0, i64::try_from(room).unwrap_or(i64::MAX));
        return [b"...", tail.as_slice()].concat();
    }
    [b"...", text.get(text.len() - room..).unwrap_or_default()].concat()
}

/// Breaks `text` at spaces so that no line is longer than `width`.
fn wrapped(context: &mut dyn Context, text: &[u8], width: i64, newline: &[u8], break_words: bool) -> Answer {
    let newline = if newline.is_empty() { b"\n" } else { newline };
    let width = usize::try_from(width).unwrap_or_default().max(1);
    let breaks = text.len() / width + 1;
    context.charge(text.len().saturating_add(breaks.saturating_mul(newline.len())))?;
    let mut lines: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    while rest.len() > width {
        if let Some(after) = rest.strip_prefix(b" ") {
            rest = after;
            continue;
        }
        let window = rest.get(..=width).unwrap_or(rest);
        let space = window.iter().rposition(|byte| *byte == b' ');
        let (end, skip) = match space {
            Some(space) => (space, 1),
            None if break_words => (width, 0),
            None => match rest.iter().skip(width).position(|byte| *byte == b' ') {
                Some(space) => (width + space, 1),
                None => break,
            },
        };
        let (line, after) = rest.split_at_checked(end).ok_or_else(|| CallError::new("no place to break"))?;
        lines.extend_from_slice(line);
        lines.extend_from_slice(newline);
        rest = after.get(skip..).unwrap_or_default();
    }
    lines.extend_from_slice(rest);
    Ok(Value::text(lines))
}

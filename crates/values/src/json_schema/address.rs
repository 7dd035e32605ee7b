//! Addresses of schemas: a document, and a place in it.

use golang::url::{Url, path_escape, path_unescape};
use serde_json::Value;

use super::problem::SchemaProblem;

/// Splits off what stands behind the hash sign, unescaped.
pub(super) fn split(reference: &str) -> Result<(&str, String), SchemaProblem> {
    let (url, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    match path_unescape(fragment) {
        Ok(fragment) => Ok((url, fragment)),
        Err(why) => Err(SchemaProblem::ParseUrl { url: reference.to_owned(), why: why.to_string() }),
    }
}

/// Returns the document and the fragment that `reference` means at `base`.
pub(super) fn join(base: &str, reference: &str) -> Result<(String, String), SchemaProblem> {
    let parse = |text: &str| {
        Url::parse(text)
            .map_err(|error| SchemaProblem::ParseUrl { url: text.to_owned(), why: error.to_string() })
    };
    let base = parse(base)?;
    let (reference, fragment) = split(reference)?;
    let reference = parse(reference)?;
    Ok((base.resolve(&reference).to_string(), fragment))
}

/// Returns `pointer` with one more segment.
pub(super) fn below(pointer: &str, segment: &str) -> String {
    format!("{pointer}/{}", escaped(segment))
}

/// Returns a segment as it stands in a pointer.
pub(super) fn escaped(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
}

/// Returns the whole address.
pub(super) fn shown(url: &str, pointer: &str) -> String {
    let parts: Vec<String> = pointer.split('/').map(path_escape).collect();
    format!("{url}#{}", parts.join("/"))
}

/// Returns what stands at `pointer` in a document.
pub(super) fn lookup<'d>(document: &'d Value, url: &str, pointer: &str) -> Result<&'d Value, SchemaProblem> {
    let mut value = document;
    for segment in pointer.split('/').skip(1) {
        let segment = unescaped(segment).ok_or_else(|| SchemaProblem::Pointer(shown(url, pointer)))?;
        let next = match value {
            Value::Object(members) => members.get(&segment),
            Value::Array(items) => segment.parse::<usize>().ok().and_then(|index| items.get(index)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        value = next.ok_or_else(|| SchemaProblem::PointerNotFound(shown(url, pointer)))?;
    }
    Ok(value)
}

fn unescaped(segment: &str) -> Option<String> {
    let mut parts = segment.split('~');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (mark, rest) = part.split_at_checked(1)?;
        text.push(match mark {
            "0" => '~',
            "1" => '/',
            _ => return None,
        });
        text.push_str(rest);
    }
    Some(text)
}

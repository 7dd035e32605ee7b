//! Addresses of schemas: a document, and a place in it.

use golang::url::{Url, path_escaped, path_unescaped};
use serde_json::Value;

use super::problem::SchemaProblem;

/// Splits off what stands behind the hash sign, unescaped.
pub(super) fn split(reference: &str) -> Result<(&str, String), SchemaProblem> {
    let (url, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    match path_unescaped(fragment) {
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
    Ok((resolved(&base, &reference).to_string(), fragment))
}

fn resolved(base: &Url, reference: &Url) -> Url {
    let mut url = reference.clone();
    if !reference.scheme.is_empty() {
        if reference.opaque.is_empty() {
            url.path = without_dots(&reference.path);
        }
        return url;
    }
    url.scheme.clone_from(&base.scheme);
    if !reference.host.is_empty() || reference.user.is_some() {
        url.path = without_dots(&reference.path);
        return url;
    }
    if !base.opaque.is_empty() {
        url.opaque.clone_from(&base.opaque);
        url.path.clear();
        return url;
    }
    url.host.clone_from(&base.host);
    url.user.clone_from(&base.user);
    url.omit_host = base.omit_host;
    if reference.path.is_empty() {
        url.path.clone_from(&base.path);
        if reference.query.is_empty() && !reference.force_query {
            url.query.clone_from(&base.query);
        }
        return url;
    }
    let path = if reference.path.starts_with('/') {
        reference.path.clone()
    } else {
        let folder = base.path.rfind('/').and_then(|slash| base.path.get(..=slash)).unwrap_or_default();
        format!("{folder}{}", reference.path)
    };
    url.path = without_dots(&path);
    url
}

/// Resolves `.` and `..`.
fn without_dots(path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut last_is_dots = false;
    for part in path.strip_prefix('/').unwrap_or(path).split('/') {
        last_is_dots = matches!(part, "." | "..");
        match part {
            "." => {}
            ".." => {
                kept.pop();
            }
            part => kept.push(part),
        }
    }
    if last_is_dots {
        kept.push("");
    }
    format!("/{}", kept.join("/"))
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
    let parts: Vec<String> = pointer.split('/').map(path_escaped).collect();
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

//! The paths of fields that rules name: `.spec.names['a.b']`.

use serde_json::Value as Json;

/// Returns a path as errors show it, or why it leads nowhere in a schema.
pub(super) fn normalized(path: &str, schema: &Json) -> Result<String, &'static str> {
    let mut shown = String::new();
    let mut schema = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            let (found, after) = after.split_at_checked(end).unwrap_or((after, ""));
            if found.is_empty() {
                return Err("unexpected end of JSON path");
            }
            (name, rest) = (found.to_owned(), after);
        } else if let Some(after) = rest.strip_prefix("['") {
            let (found, after) = quoted(after).ok_or("unexpected end of JSON path")?;
            (name, rest) = (found, after.strip_prefix(']').ok_or("expected ]")?);
        } else {
            return Err("expected [ or .");
        }
        if let Some(properties) = schema.get("properties") {
            schema = properties.get(&name).ok_or("does not refer to a valid field")?;
            if !shown.is_empty() {
                shown.push('.');
            }
            shown.push_str(&name);
        } else if let Some(values @ Json::Object(_)) = schema.get("additionalProperties") {
            schema = values;
            shown.push('[');
            shown.push_str(&name);
            shown.push(']');
        } else {
            return Err("does not refer to a valid field");
        }
    }
    Ok(shown)
}

/// Returns the text up to the next single quote, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text.char_indices();
    while let Some((at, character)) = rest.next() {
        match character {
            '\'' => return Some((name, text.get(at + 1..)?)),
            '\\' => name.push(match rest.next()?.1 {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                plain @ ('\'' | '\\') => plain,
                _ => return None,
            }),
            plain => name.push(plain),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_fields_that_there_are() {
        let schema = json!({"properties": {"a": {"properties": {"b.c": {"type": "string"}}},
            "m": {"additionalProperties": {"type": "string"}}}});
        for (path, expected) in [
            (".a", Some("a")),
            (".a['b.c']", Some("a.b.c")),
            (".m['x']", Some("m[x]")),
            (".m.x", Some("m[x]")),
            (".b", None),
            ("a", None),
            (".a.", None),
            (".a['b", None),
            (".a[0]", None),
            (".a.b.c", None),
        ] {
            assert_eq!(normalized(path, &schema).ok().as_deref(), expected, "{path}");
        }
    }
}

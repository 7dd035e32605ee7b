//! Paths as hooks write them: `a.b-c.0.'d.e'`.

use std::fmt;

use serde_json::Value;

/// A part of a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Part {
    /// The key.
    pub(super) text: String,
    /// The place in a list, where the part is a number without quotes.
    pub(super) place: Option<usize>,
}

/// A path: parts separated by dots. Parts in quotes may hold dots, a number is a place in a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct HookPath {
    written: String,
    parts: Vec<Part>,
}

impl HookPath {
    pub(super) fn parse(written: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = written.strip_prefix('.').unwrap_or(written);
        while !rest.is_empty() {
            let (mut text, mut quoted) = (String::new(), false);
            while let Some(char) = rest.chars().next().filter(|char| *char != '.') {
                rest = rest.get(char.len_utf8()..).unwrap_or_default();
                match rest.split_once(char).filter(|_| matches!(char, '\'' | '"')) {
                    Some((inside, behind)) => {
                        quoted = true;
                        text.push_str(inside);
                        rest = behind;
                    }
                    None => text.push(char),
                }
            }
            rest = rest.strip_prefix('.').unwrap_or(rest);
            if !text.is_empty() || quoted {
                let plain =
                    text == "0" || !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
                let place = if plain && !quoted { text.parse().ok() } else { None };
                parts.push(Part { text, place });
            }
        }
        Self { written: written.to_owned(), parts }
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns what the path leads to.
    pub(super) fn value_in<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        lookup(root, &self.parts)
    }

    /// Returns whether there is something, be it null.
    pub(super) fn exists_in(&self, root: &Value) -> bool {
        self.value_in(root).is_some()
    }
}

impl fmt::Display for HookPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// Returns what the parts lead to.
pub(super) fn lookup<'a>(root: &'a Value, parts: &[Part]) -> Option<&'a Value> {
    parts.iter().try_fold(root, |value, part| match value {
        Value::Object(object) => object.get(&part.text),
        Value::Array(items) => items.get(part.place?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// Returns the parts as a JSON pointer.
pub(super) fn pointer(parts: &[Part]) -> String {
    parts
        .iter()
        .fold(String::new(), |pointer, part| pointer + "/" + &part.text.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_read_as_the_shell_framework_reads_them() {
        let cases: &[(&str, &str)] = &[
            ("", ""),
            ("a.b-c.d", "/a/b-c/d"),
            ("items.0.name", "/items/0/name"),
            ("a.'b.c'", "/a/b.c"),
            ("a.\"b.c.d\".e", "/a/b.c.d/e"),
            (".a", "/a"),
            ("a/b~c", "/a~1b~0c"),
            ("it's", "/it's"),
        ];
        for (written, expected) in cases {
            assert_eq!(pointer(HookPath::parse(written).parts()), *expected, "{written}");
        }
        let value = json!({"l": ["x"], "o": {"0": "zero"}, "n": null});
        let found = |path: &str| HookPath::parse(path).value_in(&value).cloned();
        assert_eq!(found("l.0"), Some(json!("x")));
        assert_eq!(found("l.'0'"), None);
        assert_eq!(found("l.00"), None);
        assert_eq!(found("o.0"), Some(json!("zero")));
        assert_eq!(found("n"), Some(Value::Null));
        assert_eq!(found("n.x"), None);
    }
}

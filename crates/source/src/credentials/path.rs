//! `JSONPath` as kubectl has it: text with expressions in braces, such as `{.spec.clusterIP}:{.spec.ports[0].port}`.
//!
//! Names, indexes, slices, lists of them, `*` and filters are supported; `..`, `range`, `end` and filters inside filters
//! are not. Each expression is rewritten into `JSONPath` of RFC 9535, which a library evaluates: there names with dashes
//! stand in quotes.

use std::fmt::Write as _;

use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use serde_json::Value;
use thiserror::Error;

/// How many bytes a path may have.
const MAX_PATH: usize = 256;

/// Why a path leads nowhere.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PathError {
    /// It is too long.
    #[error("the path is longer than {MAX_PATH} bytes")]
    TooLong,
    /// A brace or bracket has no end.
    #[error("the path {0:?} has a brace, bracket or quote without its end")]
    Open(String),
    /// It is no path, or has something that is not supported.
    #[error(
        "can't read the path {0:?}: names, indexes, slices, * and filters are supported, as in {{.spec.ports[0].port}}"
    )]
    Unreadable(String),
    /// Nothing is there.
    #[error("nothing is at {0:?}")]
    Nothing(String),
}

/// A path, ready to be followed.
pub(super) struct Path {
    text: String,
    parts: Vec<Part>,
}

enum Part {
    Text(String),
    Query(JpQuery),
}

impl Path {
    /// Reads a path. Without braces all of it is one expression.
    pub(super) fn parse(text: &str) -> Result<Self, PathError> {
        if text.len() > MAX_PATH {
            return Err(PathError::TooLong);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        if !text.contains('{') {
            parts.push(query(text)?);
            rest = "";
        }
        while let Some(begin) = rest.find('{') {
            let (before, from) = rest.split_at(begin);
            let open = || PathError::Open(text.to_owned());
            let end = closing(from, '{', '}').ok_or_else(open)?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(query(from.get(1..end).unwrap_or_default())?);
            rest = from.get(end + 1..).unwrap_or_default();
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// Returns what it leads to as a text: several values stand behind each other, with spaces.
    pub(super) fn text(&self, value: &Value) -> Result<String, PathError> {
        let mut text = String::new();
        for part in &self.parts {
            let query = match part {
                Part::Text(part) => {
                    text.push_str(part);
                    continue;
                }
                Part::Query(query) => query,
            };
            let nothing = || PathError::Nothing(self.text.clone());
            let found = js_path_process(query, value).map_err(|_| nothing())?;
            if found.is_empty() {
                return Err(nothing());
            }
            for (number, found) in found.into_iter().enumerate() {
                if number > 0 {
                    text.push(' ');
                }
                match found.val() {
                    Value::String(found) => text.push_str(found),
                    Value::Null => {}
                    other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                        // Writing to a String can't fail.
                        let _ = write!(text, "{other}");
                    }
                }
            }
        }
        Ok(text)
    }
}

/// Reads one expression.
fn query(expression: &str) -> Result<Part, PathError> {
    let unreadable = || PathError::Unreadable(expression.to_owned());
    let trimmed = expression.trim();
    let mut rest = trimmed.strip_prefix('$').unwrap_or(trimmed);
    let mut rewritten = String::from("$");
    if rest.is_empty() {
        return Err(unreadable());
    }
    while !rest.is_empty() {
        if rest.starts_with('[') {
            let end = closing(rest, '[', ']').ok_or_else(|| PathError::Open(expression.to_owned()))?;
            let (inside, after) = rest.split_at(end + 1);
            // A filter in a filter takes the square of the time, and so on.
            if unquoted(inside).filter(|letter| *letter == '?').count() > 1
                || unquoted_text(inside).contains("..")
            {
                return Err(unreadable());
            }
            rewritten.push_str(inside);
            rest = after;
            continue;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if rest.starts_with('[') {
            continue;
        }
        let (name, after) = name(rest).filter(|(name, _)| !name.is_empty()).ok_or_else(unreadable)?;
        if name == "*" {
            rewritten.push_str("[*]");
        } else {
            let quoted = name.replace('\\', "\\\\").replace('\'', "\\'");
            // Writing to a String can't fail.
            let _ = write!(rewritten, "['{quoted}']");
        }
        rest = after;
    }
    parse_json_path(&rewritten).map(Part::Query).map_err(|_| unreadable())
}

/// Returns a name, in which `\.` is a dot, and what follows it.
fn name(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.push(letters.next()?.1),
            '.' | '[' => return Some((name, text.get(at..)?)),
            ' ' | '"' | '\'' | '{' | '}' | '(' | ')' | ']' | '@' | '?' => return None,
            letter if letter.is_control() => return None,
            letter => name.push(letter),
        }
    }
    Some((name, ""))
}

/// Returns where the bracket ends that the text begins with.
fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let (mut depth, mut quote, mut is_escaped) = (0_u32, None, false);
    for (at, letter) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if letter == '\\' {
            is_escaped = true;
        } else if quote.is_some() {
            if quote == Some(letter) {
                quote = None;
            }
        } else if letter == '\'' || letter == '"' {
            quote = Some(letter);
        } else if letter == open {
            depth += 1;
        } else if letter == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// Iterates over the letters that stand in no quotes.
fn unquoted(text: &str) -> impl Iterator<Item = char> {
    let (mut quote, mut is_escaped) = (None, false);
    text.chars().filter(move |letter| {
        if is_escaped {
            is_escaped = false;
            return false;
        }
        match (quote, *letter) {
            (Some(_), '\\') => is_escaped = true,
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(*letter),
            (None, _) => return true,
            (Some(_), _) => {}
        }
        false
    })
}

fn unquoted_text(text: &str) -> String {
    unquoted(text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(path: &str) -> Result<String, PathError> {
        let service = json!({
            "metadata": {"annotations": {"example.com/a": "slash"}},
            "spec": {"clusterIP": "10.0.0.7", "load-balancer": true, "it's": "quoted", "external": null,
                "ports": [{"name": "tls", "port": 443}, {"name": "web", "port": 80, "odd": "a..b"}]},
        });
        Path::parse(path)?.text(&service)
    }

    #[test]
    fn paths_lead_where_those_of_kubectl_do() {
        for (path, expected) in [
            ("{.spec.clusterIP}", "10.0.0.7"),
            ("{ .spec.clusterIP }", "10.0.0.7"),
            ("{$.spec.clusterIP}", "10.0.0.7"),
            (".spec.clusterIP", "10.0.0.7"),
            ("tcp://{.spec.clusterIP}:{.spec.ports[0].port}/", "tcp://10.0.0.7:443/"),
            ("{.spec.ports[-1].name}", "web"),
            ("{.spec.ports[*].port}", "443 80"),
            ("{.spec.ports.*.port}", "443 80"),
            ("{.spec.ports[0:1].port}", "443"),
            ("{.spec.ports[?(@.name==\"web\")].port}", "80"),
            ("{.spec.ports[?(@.odd=='a..b')].port}", "80"),
            ("{.spec['clusterIP']}", "10.0.0.7"),
            ("{.spec.load-balancer}", "true"),
            (r"{.metadata.annotations.example\.com/a}", "slash"),
            (r"{.spec.it\'s}", "quoted"),
            ("{.spec.ports[0]}", r#"{"name":"tls","port":443}"#),
            ("{.spec.external}", ""),
        ] {
            assert_eq!(text(path).as_deref(), Ok(expected), "{path}");
        }
    }

    #[test]
    fn what_is_no_path_or_leads_nowhere_is_told() {
        let nothing = |path: &str| Err(PathError::Nothing(path.to_owned()));
        assert_eq!(text("{.spec.none}"), nothing("{.spec.none}"));
        assert_eq!(text("{.spec.ports[7].port}"), nothing("{.spec.ports[7].port}"));
        assert_eq!(text("{.spec"), Err(PathError::Open("{.spec".to_owned())));
        assert_eq!(text(&format!("{{.{}}}", "a".repeat(256))), Err(PathError::TooLong));
        for path in [
            "",
            "{}",
            "{..port}",
            "{.spec..port}",
            "{range .spec.ports[*]}",
            "{end}{",
            "{\"text\"}",
            "{.spec.ports[?(@..port)]}",
            "{.a[?(@.b[?(@.c)])]}",
            "{.a[}",
        ] {
            assert!(matches!(text(path), Err(PathError::Unreadable(_) | PathError::Open(_))), "{path}");
        }
    }
}

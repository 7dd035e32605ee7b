//! The part of `JSONPath` that printer columns and scales of custom resources use.

use serde_json::Value;

/// A path through an object: `.spec.size`, `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(i64),
    All,
    /// Items whose value at the path is equal (or not equal) to this one.
    Filter(JsonPath, bool, String),
}

impl JsonPath {
    /// Reads a path. What can't be read leads nowhere.
    pub fn parse(text: &str) -> JsonPath {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        let mut steps = Vec::new();
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        while !rest.is_empty() {
            let step = if let Some(inner) = rest.strip_prefix('[') {
                bracket(inner)
            } else {
                key(rest.strip_prefix('.').unwrap_or(rest))
            };
            let Some((step, after)) = step else {
                // A step that nothing answers.
                return JsonPath { steps: vec![Step::Index(i64::MAX)] };
            };
            steps.extend(step);
            rest = after;
        }
        JsonPath { steps }
    }

    /// Returns the first value that the path leads to.
    pub fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        walk(&self.steps, value).into_iter().next()
    }
}

/// Reads a key up to the next dot or bracket; `\.` is a dot in a key.
fn key(text: &str) -> Option<(Option<Step>, &str)> {
    let mut name = String::new();
    let mut letters = text.char_indices();
    let mut end = text.len();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next().map(|(_, escaped)| escaped)),
            '.' | '[' => {
                end = at;
                break;
            }
            letter => name.push(letter),
        }
    }
    let rest = text.get(end..)?;
    match name.as_str() {
        "" if rest.is_empty() || rest.starts_with('[') => Some((None, rest)),
        "" => None,
        "*" => Some((Some(Step::All), rest)),
        _ => Some((Some(Step::Key(name)), rest)),
    }
}

fn bracket(text: &str) -> Option<(Option<Step>, &str)> {
    if let Some(filter) = text.strip_prefix("?(") {
        let (condition, rest) = filter.split_once(")]")?;
        return Some((Some(condition_step(condition)?), rest));
    }
    for quote in ['\'', '"'] {
        if let Some(quoted) = text.strip_prefix(quote) {
            let (name, rest) = quoted.split_once(quote)?;
            return Some((Some(Step::Key(name.to_owned())), rest.strip_prefix(']')?));
        }
    }
    let (inner, rest) = text.split_once(']')?;
    let step = match inner.trim() {
        "*" | ":" => Step::All,
        index => Step::Index(index.parse().ok()?),
    };
    Some((Some(step), rest))
}

fn condition_step(condition: &str) -> Option<Step> {
    let (left, equal, right) = match condition.split_once("==") {
        Some((left, right)) => (left, true, right),
        None => condition.split_once("!=").map(|(left, right)| (left, false, right))?,
    };
    let path = JsonPath::parse(left.trim().strip_prefix('@')?);
    let right = right.trim();
    let unquoted = ['\'', '"'].iter().find_map(|quote| right.strip_prefix(*quote)?.strip_suffix(*quote));
    Some(Step::Filter(path, equal, unquoted.unwrap_or(right).to_owned()))
}

fn walk<'a>(steps: &[Step], value: &'a Value) -> Vec<&'a Value> {
    let Some((step, rest)) = steps.split_first() else {
        return vec![value];
    };
    let next: Vec<&Value> = match step {
        Step::Key(key) => value.get(key).into_iter().collect(),
        Step::Index(index) => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let at = if *index < 0 { index + length } else { *index };
            usize::try_from(at).ok().and_then(|at| items.get(at)).into_iter().collect()
        }
        Step::All => children(value),
        Step::Filter(path, equal, wanted) => {
            let matches = |item: &&Value| {
                let found = path.first(item).map(plain);
                found.is_some_and(|found| (found == *wanted) == *equal)
            };
            children(value).into_iter().filter(matches).collect()
        }
    };
    next.into_iter().flat_map(|value| walk(rest, value)).collect()
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(map) => map.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_values() {
        let object = json!({"a": {"b.c": 1, "l": [{"n": "x", "v": 1}, {"n": "y", "v": 2}]}});
        for (path, expected) in [
            (".a['b.c']", Some(json!(1))),
            (r".a.b\.c", Some(json!(1))),
            (".a.l[0].v", Some(json!(1))),
            (".a.l[-1].v", Some(json!(2))),
            (".a.l[?(@.n=='y')].v", Some(json!(2))),
            (".a.l[*].v", Some(json!(1))),
            (".a.l[?(@.v!=1)].n", Some(json!("y"))),
            (".a.none", None),
            (".a.l[9]", None),
            (".a.l[x]", None),
            ("..", None),
            ("", Some(object.clone())),
        ] {
            assert_eq!(JsonPath::parse(path).first(&object), expected.as_ref(), "{path}");
        }
    }
}

//! Field selectors: `metadata.name=a,status.phase!=Running`.

use serde_json::Value;

use super::{Selectable, SelectorError};

/// A list of requirements that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<FieldRequirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldRequirement {
    field: Field,
    equal: bool,
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    Index(usize),
}

impl FieldSelector {
    /// Returns whether every object is selected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether `object` is selected.
    pub fn selects(&self, object: &impl Selectable) -> bool {
        self.0.iter().all(|requirement| {
            let value = match requirement.field {
                Field::Name => object.name(),
                Field::Namespace => object.namespace(),
                Field::Index(index) => object.field(index),
            };
            (value == requirement.value) == requirement.equal
        })
    }

    /// Returns the only name that is selected, if the selector says so.
    pub fn name(&self) -> Option<&str> {
        self.0.iter().find(|r| r.field == Field::Name && r.equal).map(|r| r.value.as_str())
    }

    /// Reads a selector as requests carry it; `fields` are the paths that the kind can be selected by,
    /// besides name and namespace. Custom kinds word their refusals in another way.
    pub fn parse(text: &str, fields: &[FieldPath], custom: bool) -> Result<FieldSelector, SelectorError> {
        let mut terms = Vec::new();
        for term in split(text) {
            if term.is_empty() {
                continue;
            }
            let (name, equal, value) = split_term(&term).ok_or_else(|| {
                SelectorError(format!("invalid selector: '{text}'; can't understand '{term}'"))
            })?;
            terms.push((name.to_owned(), equal, unescape(value)?));
        }
        // Whether there is such a field is asked when all of it has been read.
        let mut requirements = Vec::new();
        for (name, equal, value) in terms {
            // A requirement of nothing is none.
            if name.is_empty() && value.is_empty() && equal {
                continue;
            }
            let field = match &*name {
                "metadata.name" => Field::Name,
                "metadata.namespace" => Field::Namespace,
                other => match fields.iter().position(|field| field.name == other) {
                    Some(index) => Field::Index(index),
                    None if fields.is_empty() && !custom => {
                        let known = "only \"metadata.name\", \"metadata.namespace\"";
                        return Err(SelectorError(format!(
                            "{other:?} is not a known field selector: {known}"
                        )));
                    }
                    None => return Err(SelectorError(format!("field label not supported: {other}"))),
                },
            };
            requirements.push(FieldRequirement { field, equal, value });
        }
        Ok(FieldSelector(requirements))
    }
}

/// Splits at commas that are not escaped.
fn split(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == ',' && !escaped {
            terms.push(String::new());
            continue;
        }
        escaped = c == '\\' && !escaped;
        if let Some(term) = terms.last_mut() {
            term.push(c);
        }
    }
    terms
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    for (at, c) in term.char_indices() {
        let (name, rest) = term.split_at(at);
        if let Some(value) = rest.strip_prefix("!=") {
            return Some((name, false, value));
        }
        if let Some(value) = rest.strip_prefix("==") {
            return Some((name, true, value));
        }
        if c == '=' {
            return Some((name, true, rest.strip_prefix('=')?));
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => text.push(c),
                Some(c) => {
                    let why = format!("invalid field selector: invalid escape sequence: \\{c}");
                    return Err(SelectorError(why));
                }
                None => {
                    return Err(SelectorError(
                        "invalid field selector: invalid escape sequence: \\".to_owned(),
                    ));
                }
            },
            ',' | '=' => {
                let code = u32::from(c);
                return Err(SelectorError(format!(
                    "invalid field selector: unescaped character in value: {code}"
                )));
            }
            c => text.push(c),
        }
    }
    Ok(text)
}

/// A field that objects of a kind can be selected by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    /// The path as selectors write it, for example `spec.nodeName`.
    pub name: String,
    /// The value that an absent field has.
    pub absent: &'static str,
    /// The paths whose first value is taken, where it is not the path that selectors write.
    pub paths: &'static [&'static str],
}

impl FieldPath {
    /// A field that is empty when absent.
    pub fn new(name: &str) -> FieldPath {
        FieldPath { name: name.to_owned(), absent: "", paths: &[] }
    }

    /// Returns the value in `object` as text.
    pub fn read(&self, object: &Value) -> String {
        let found = match self.paths {
            [] => text_at(object, &self.name),
            paths => paths.iter().find_map(|path| text_at(object, path).filter(|text| !text.is_empty())),
        };
        found.unwrap_or_else(|| self.absent.to_owned())
    }
}

fn text_at(object: &Value, path: &str) -> Option<String> {
    match path.split('.').try_fold(object, |value, part| value.get(part))? {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Some(other.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pod;

    impl Selectable for Pod {
        fn label(&self, _: &str) -> Option<&str> {
            None
        }
        fn field(&self, _: usize) -> &'static str {
            "Run,ning"
        }
        fn name(&self) -> &'static str {
            "a"
        }
        fn namespace(&self) -> &'static str {
            "default"
        }
    }

    #[test]
    fn fields_are_compared() {
        let fields = [FieldPath::new("status.phase")];
        for (selector, selected) in [
            ("", true),
            ("metadata.name=a", true),
            ("metadata.name==a,metadata.namespace=default", true),
            ("metadata.name!=a", false),
            ("status.phase=Run\\,ning", true),
            ("status.phase!=Pending", true),
        ] {
            assert_eq!(
                FieldSelector::parse(selector, &fields, false).unwrap().selects(&Pod),
                selected,
                "{selector}"
            );
        }
    }

    #[test]
    fn unknown_fields_and_bad_terms_are_refused() {
        let check = |text: &str| FieldSelector::parse(text, &[], true).unwrap_err().0;
        assert_eq!(check("spec.x=1"), "field label not supported: spec.x");
        assert_eq!(check("abc"), "invalid selector: 'abc'; can't understand 'abc'");
        // What can't be read is told before what is not known.
        assert_eq!(check("a=b=c"), "invalid field selector: unescaped character in value: 61");
        assert_eq!(check("a=b\\x"), "invalid field selector: invalid escape sequence: \\x");
        assert_eq!(check("metadata.name=a\\"), "invalid field selector: invalid escape sequence: \\");
    }
}

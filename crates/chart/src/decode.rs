//! Reading YAML into typed fields as Go's `encoding/json` and `sigs.k8s.io/yaml` do.
//!
//! A number or a boolean where a text is expected becomes its text; names of
//! fields are compared without regard to case; `null` leaves a field as it is.

use std::collections::BTreeMap;

use serde_json::Value;

/// A value of another type than the field's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go {place} of type {expected}"
)]
pub struct DecodeError {
    found: &'static str,
    place: String,
    expected: String,
}

/// Where in a document a value is, for messages.
#[derive(Clone, Copy, Debug)]
pub struct FieldPath<'a> {
    /// The Go struct that has the field.
    pub owner: &'a str,
    /// The names of the fields that lead there, with dots between.
    pub path: &'a str,
}

impl FieldPath<'static> {
    /// The path of a whole document.
    pub(crate) const DOCUMENT: Self = Self { owner: "", path: "" };
}

impl FieldPath<'_> {
    /// Returns the error of `value`, which should have been `expected`.
    pub fn mismatch(&self, value: &Value, expected: &str) -> DecodeError {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let place = if self.path.is_empty() {
            "value".to_owned()
        } else {
            format!("struct field {}.{}", self.owner, self.path)
        };
        DecodeError { found, place, expected: expected.to_owned() }
    }

    /// Reads a text.
    pub fn text(&self, value: &Value, into: &mut String) -> Result<(), DecodeError> {
        match value {
            Value::Null => {}
            Value::String(text) => into.clone_from(text),
            Value::Bool(truth) => *into = truth.to_string(),
            Value::Number(number) => *into = number_text(number),
            Value::Array(_) | Value::Object(_) => return Err(self.mismatch(value, "string")),
        }
        Ok(())
    }

    /// Reads a boolean.
    pub fn bool(&self, value: &Value, into: &mut bool) -> Result<(), DecodeError> {
        match value {
            Value::Null => {}
            Value::Bool(truth) => *into = *truth,
            Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                return Err(self.mismatch(value, "bool"));
            }
        }
        Ok(())
    }

    /// Reads a list; `expected` is Go's name of its type.
    pub fn list<'v>(&self, value: &'v Value, expected: &str) -> Result<&'v [Value], DecodeError> {
        match value {
            Value::Null => Ok(&[]),
            Value::Array(items) => Ok(items),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                Err(self.mismatch(value, expected))
            }
        }
    }

    /// Reads a list of texts.
    pub fn texts(&self, value: &Value, into: &mut Vec<String>) -> Result<(), DecodeError> {
        let mut texts = Vec::new();
        for item in self.list(value, "[]string")? {
            let mut text = String::new();
            self.text(item, &mut text)?;
            texts.push(text);
        }
        *into = texts;
        Ok(())
    }

    /// Reads a map of texts.
    pub fn text_map(&self, value: &Value, into: &mut BTreeMap<String, String>) -> Result<(), DecodeError> {
        match value {
            Value::Null => Ok(()),
            Value::Object(entries) => {
                for (key, value) in entries {
                    let mut text = String::new();
                    self.text(value, &mut text)?;
                    into.insert(key.clone(), text);
                }
                Ok(())
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(self.mismatch(value, "map[string]string"))
            }
        }
    }
}

/// Calls `field` with the name of each known field and its value; unknown keys are passed over.
pub fn fields(
    value: &Value,
    place: FieldPath<'_>,
    expected: &str,
    names: &[&'static str],
    mut field: impl FnMut(&'static str, &Value) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let entries = match value {
        Value::Null => return Ok(()),
        Value::Object(entries) => entries,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(place.mismatch(value, expected));
        }
    };
    for (key, value) in entries {
        if let Some(name) = names.iter().find(|name| name.eq_ignore_ascii_case(key)) {
            field(name, value)?;
        }
    }
    Ok(())
}

/// Returns the text that a number has when a text is expected.
fn number_text(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => golang::strconv::format_float(float, 'g', None),
        Some(_) | None => number.to_string(),
    }
}

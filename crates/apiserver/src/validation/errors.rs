//! What is wrong with the fields of an object, in the words that clients know.

use objects::names;
use serde_json::Value;

/// One thing that is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The machine-readable reason, for example `FieldValueRequired`.
    pub reason: &'static str,
    /// The path of the field, for example `spec.containers[0].name`.
    pub field: String,
    /// The text for people, for example `Required value`.
    pub message: String,
}

/// What was found so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What is wrong.
    pub errors: Vec<FieldError>,
    /// What is unwise.
    pub warnings: Vec<String>,
}

impl Report {
    fn add(&mut self, reason: &'static str, field: &str, head: String, detail: &str) {
        let message = if detail.is_empty() { head } else { format!("{head}: {detail}") };
        self.errors.push(FieldError { reason, field: field.to_owned(), message });
    }

    /// Adds what is unwise in a field, if anything is.
    pub(super) fn warn(&mut self, field: &str, detail: Option<String>) {
        self.warnings.extend(detail.map(|detail| format!("{field}: {detail}")));
    }

    pub(super) fn required(&mut self, field: &str, detail: &str) {
        self.add("FieldValueRequired", field, "Required value".to_owned(), detail);
    }

    pub(super) fn forbidden(&mut self, field: &str, detail: &str) {
        self.add("FieldValueForbidden", field, "Forbidden".to_owned(), detail);
    }

    /// Adds what could not be found out about a field.
    pub(super) fn internal(&mut self, field: &str, detail: &str) {
        self.add("InternalError", field, "Internal error".to_owned(), detail);
    }

    pub(super) fn invalid(&mut self, field: &str, value: impl Into<Value>, detail: &str) {
        let head = format!("Invalid value: {}", shown(&value.into()));
        self.add("FieldValueInvalid", field, head, detail);
    }

    /// Like [`Report::invalid`], for values that the text leaves out.
    pub(super) fn invalid_omitted(&mut self, field: &str, detail: &str) {
        self.add("FieldValueInvalid", field, "Invalid value".to_owned(), detail);
    }

    /// Like [`Report::invalid`], for values whose keys have an order in the text.
    pub(super) fn invalid_shown(&mut self, field: &str, shown: &str, detail: &str) {
        self.add("FieldValueInvalid", field, format!("Invalid value: {shown}"), detail);
    }

    /// Like [`Report::unsupported`], for values whose keys have an order in the text.
    pub(super) fn unsupported_shown(&mut self, field: &str, shown: &str, supported: &[&str]) {
        self.unsupported(field, "", supported);
        if let Some(error) = self.errors.last_mut() {
            error.message = error.message.replacen("\"\"", shown, 1);
        }
    }

    /// Like [`Report::duplicate`], for values whose keys have an order in the text.
    pub(super) fn duplicate_shown(&mut self, field: &str, shown: &str) {
        self.add("FieldValueDuplicate", field, format!("Duplicate value: {shown}"), "");
    }

    pub(super) fn duplicate(&mut self, field: &str, value: impl Into<Value>) {
        let head = format!("Duplicate value: {}", shown(&value.into()));
        self.add("FieldValueDuplicate", field, head, "");
    }

    pub(super) fn not_found(&mut self, field: &str, value: &str) {
        self.add("FieldValueNotFound", field, format!("Not found: {value:?}"), "");
    }

    pub(super) fn unsupported(&mut self, field: &str, value: impl Into<Value>, supported: &[&str]) {
        let head = format!("Unsupported value: {}", shown(&value.into()));
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        self.add("FieldValueNotSupported", field, head, &detail);
    }

    /// Adds an error unless `value` is one of `supported`.
    pub(super) fn one_of(&mut self, field: &str, value: &str, supported: &[&str]) {
        if !supported.contains(&value) {
            self.unsupported(field, value, supported);
        }
    }

    /// Like [`Report::one_of`], for values that may be absent.
    pub(super) fn one_of_or_empty(&mut self, field: &str, value: &str, supported: &[&str]) {
        if !value.is_empty() {
            self.one_of(field, value, supported);
        }
    }

    /// Reports what is no path that begins with a domain.
    pub(super) fn domain_path(&mut self, field: &str, given: &str) {
        match given.split_once('/') {
            _ if given.is_empty() => self.required(field, ""),
            Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
                self.invalid_all(field, domain, names::subdomain(domain));
            }
            _ => {
                let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
                self.invalid(field, given, detail);
            }
        }
    }

    pub(super) fn too_long(&mut self, field: &str, most: usize) {
        let bytes = if most == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {most} {bytes}");
        self.add("FieldValueTooLong", field, "Too long".to_owned(), &detail);
    }

    /// Adds that a list has `found` items, and may have `most`.
    pub(super) fn too_many(&mut self, field: &str, found: usize, most: usize) {
        let items = if most == 1 { "item" } else { "items" };
        let detail = format!("must have at most {most} {items}");
        self.add("FieldValueTooMany", field, format!("Too many: {found}"), &detail);
    }

    /// Adds an error for each text of a check of names.
    pub(super) fn invalid_all(&mut self, field: &str, value: &str, details: Vec<String>) {
        for detail in details {
            self.invalid(field, value, &detail);
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => golang::strconv::quote(text.as_bytes()),
        value => value.to_string(),
    }
}

/// Returns the path of a field below `path`.
pub(super) fn at(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

/// Returns the path of an item of the list at `path`.
pub(super) fn item(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

/// Returns the path of an entry of the map at `path`.
pub(super) fn key(path: &str, key: &str) -> String {
    format!("{path}[{key}]")
}

//! How a write is to be carried out.

use golang::strconv;
use http::HeaderMap;
use http::header::USER_AGENT;
use serde_json::{Map, Value};

use super::query::Query;
use crate::status::{ApiError, Cause, Outcome};

/// What happens to fields that the kind does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// They are dropped silently.
    Ignore,
    /// The request is refused.
    Strict,
    /// They are dropped and the client is warned.
    Warn,
}

#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_manager: String,
    pub(crate) validation: FieldValidation,
    /// Whether fields of other managers are taken over.
    pub(crate) force: bool,
    pub(crate) applies: bool,
    /// What the client said of it, as webhooks are shown it.
    pub(crate) shown: Value,
}

impl WriteOptions {
    /// Reads the options of a request of this kind: `CreateOptions`, `UpdateOptions` or `PatchOptions`.
    pub(crate) fn of(query: &Query, headers: &HeaderMap, kind: &str) -> Outcome<WriteOptions> {
        WriteOptions::read(query, headers, kind, Vec::new())
    }

    /// Reads the options of a patch; one that applies names its manager, and only it can take over fields.
    pub(crate) fn of_patch(query: &Query, headers: &HeaderMap, applies: bool) -> Outcome<WriteOptions> {
        let mut causes = Vec::new();
        if !applies && query.get("force").is_some() {
            causes.push(Cause {
                reason: "FieldValueForbidden".into(),
                message: "Forbidden: may not be specified for non-apply patch".into(),
                field: "force".into(),
            });
        }
        if applies && query.text("fieldManager").is_none() {
            causes.push(Cause {
                reason: "FieldValueRequired".into(),
                message: "Required value: is required for apply patch".into(),
                field: "fieldManager".into(),
            });
        }
        WriteOptions::read(query, headers, "PatchOptions", causes)
    }

    fn read(query: &Query, headers: &HeaderMap, kind: &str, mut causes: Vec<Cause>) -> Outcome<WriteOptions> {
        let dry: Vec<&str> = query.all("dryRun").collect();
        if dry.iter().any(|value| *value != "All") {
            causes.push(not_supported("dryRun", &quoted(&dry), &["All"]));
        }
        let validation = match query.text("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some("Ignore") => FieldValidation::Ignore,
            Some(other) => {
                causes.push(not_supported(
                    "fieldValidation",
                    &format!("{other:?}"),
                    &["", "Ignore", "Strict", "Warn"],
                ));
                FieldValidation::Warn
            }
        };
        let named = query.text("fieldManager");
        if let Some(name) = named {
            check_manager(name, &mut causes);
        }
        if !causes.is_empty() {
            return Err(invalid_options(kind, causes));
        }
        let mut shown = Map::new();
        for name in ["fieldManager", "fieldValidation"] {
            shown.extend(query.text(name).map(|text| (name.to_owned(), text.into())));
        }
        if !dry.is_empty() {
            shown.insert("dryRun".to_owned(), dry.into());
        }
        Ok(WriteOptions {
            dry_run: query.get("dryRun").is_some(),
            field_manager: named.map_or_else(|| manager_of(headers), str::to_owned),
            validation,
            force: query.flag("force"),
            applies: false,
            shown: Value::Object(shown),
        })
    }

    /// Returns these options for an object that is made by an apply.
    pub(crate) fn applying(&self) -> WriteOptions {
        WriteOptions { applies: true, ..self.clone() }
    }

    /// Returns the options of writes that the server makes itself.
    pub(crate) fn internal(manager: &str) -> WriteOptions {
        WriteOptions {
            dry_run: false,
            field_manager: manager.to_owned(),
            validation: FieldValidation::Ignore,
            force: true,
            applies: false,
            shown: Value::Null,
        }
    }
}

/// Returns a list as texts show it.
pub(crate) fn quoted(values: &[&str]) -> String {
    let values: Vec<String> = values.iter().map(|value| strconv::quote(value.as_bytes())).collect();
    format!("[{}]", values.join(","))
}

pub(crate) fn not_supported(field: &str, value: &str, supported: &[&str]) -> Cause {
    let supported: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
    Cause {
        reason: "FieldValueNotSupported".into(),
        message: format!("Unsupported value: {value}: supported values: {}", supported.join(", ")),
        field: field.into(),
    }
}

fn check_manager(name: &str, causes: &mut Vec<Cause>) {
    if name.len() > 128 {
        causes.push(Cause {
            reason: "FieldValueTooLong".into(),
            message: "Too long: may not be more than 128 bytes".into(),
            field: "fieldManager".into(),
        });
    } else if let Some((index, c)) = name.char_indices().find(|(_, c)| c.is_control()) {
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!(
                "Invalid value: {}: invalid character U+{:04X} (at position {index})",
                strconv::quote(name.as_bytes()),
                u32::from(c)
            ),
            field: "fieldManager".into(),
        });
    }
}

/// Returns the refusal of options, which are validated like objects of the group `meta.k8s.io`.
pub(crate) fn invalid_options(kind: &str, causes: Vec<Cause>) -> ApiError {
    let kind = crate::kind::Kind {
        group: "meta.k8s.io".into(),
        version: "v1".into(),
        kind: kind.to_owned().into(),
        list_kind: "".into(),
        plural: "".into(),
        singular: "".into(),
        namespaced: false,
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: Vec::new(),
        subresources: Vec::new(),
        preferred: true,
        stored_as: None,
    };
    ApiError::invalid(&kind, "", causes)
}

/// A client that does not name itself is called by its program's name.
fn manager_of(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = agent.split('/').next().unwrap_or_default();
    let name: String = name.chars().filter(|c| !c.is_control()).take(128).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

//! OpenAPI schemas of sections: defaults, completion and validation. See docs/modules.md#schemas.

mod messages;
mod transform;

use std::fmt;

use objects::schema::{Problem, Schema};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::yaml::{self, Position, YamlError};

/// The keyword of rules in CEL.
const CEL_RULES: &str = "x-deckhouse-validations";

/// Why the schemas of a section cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// The file is not YAML.
    #[error("{file}: {reason}")]
    Yaml {
        /// The file, as the caller named it.
        file: String,
        /// What is wrong.
        reason: YamlError,
    },
    /// The file does not hold a schema.
    #[error("{file}: {}at \"{pointer}\": {problem}", line(*.position))]
    Invalid {
        /// The file, as the caller named it.
        file: String,
        /// The line, if it is known.
        position: Option<Position>,
        /// The JSON pointer of the place.
        pointer: String,
        /// What is wrong there.
        problem: String,
    },
}

fn line(position: Option<Position>) -> String {
    position.map_or_else(String::new, |position| format!("line {}, ", position.line))
}

/// How values break their schema, one message each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violations(Vec<String>);

/// How many violations are printed.
const PRINTED: usize = 50;

impl Violations {
    /// Returns violations with these messages.
    pub(crate) fn new(messages: Vec<String>) -> Self {
        Self(messages)
    }

    /// Returns the messages.
    pub fn messages(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => f.write_str("1 error occurred:\n")?,
            count => writeln!(f, "{count} errors occurred:")?,
        }
        for message in self.0.iter().take(PRINTED) {
            writeln!(f, "\t* {message}")?;
        }
        if self.0.len() > PRINTED {
            writeln!(f, "\t* and {} more", self.0.len() - PRINTED)?;
        }
        writeln!(f)
    }
}

/// The schemas of one section, compiled once.
///
/// A schema that is missing accepts everything and has no defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schemas {
    config: Option<Schema>,
    values: Option<Schema>,
    helm: Option<Schema>,
    has_cel_rules: bool,
}

impl Schemas {
    /// Compiles the schemas of a section from its files `config-values.yaml`
    /// and `values.yaml`, each given as its path, for messages, and its text.
    ///
    /// An empty file counts as missing.
    pub fn compile(config: Option<(&str, &str)>, values: Option<(&str, &str)>) -> Result<Self, SchemaError> {
        let config = config.map(|(file, text)| load(file, text)).transpose()?.flatten();
        let values = values.map(|(file, text)| load(file, text)).transpose()?.flatten();
        let has_cel_rules = [&config, &values].into_iter().flatten().any(has_cel_rules);

        let config = config.map(transform::closed);
        let values = values.map(|mut values| {
            if let Some(config) = &config {
                transform::extend(&mut values, config);
            }
            transform::closed(values)
        });
        let helm = values.clone().map(|mut helm| {
            transform::require_for_helm(&mut helm);
            helm
        });
        // Everything was compiled once as it was written, so nothing can fail
        // here; if it did, the schema would be treated as missing.
        let compile = |schema: Option<Map<String, Value>>| {
            schema.and_then(|schema| Schema::compile(&Value::Object(schema)).ok())
        };
        Ok(Self { config: compile(config), values: compile(values), helm: compile(helm), has_cel_rules })
    }

    /// Returns whether a file has rules in CEL, which are not checked.
    pub fn has_cel_rules(&self) -> bool {
        self.has_cel_rules
    }

    /// Returns whether there is a schema for config values.
    pub fn has_config(&self) -> bool {
        self.config.is_some()
    }

    /// Returns whether there is a schema for values.
    pub fn has_values(&self) -> bool {
        self.values.is_some()
    }

    /// Puts the defaults of the config schema where properties are missing. Returns whether there was room for all.
    pub fn complete_config(&self, section: &mut Value) -> bool {
        self.config.as_ref().is_none_or(|schema| schema.complete(section))
    }

    /// Puts the defaults of the values schema where properties are missing. Returns whether there was room for all.
    pub fn complete_values(&self, section: &mut Value) -> bool {
        self.values.as_ref().is_none_or(|schema| schema.complete(section))
    }

    /// Checks config values, with the defaults of the config schema, against
    /// it. `key` is the section's, and the root of paths in messages.
    pub fn validate_config(&self, key: &str, section: &Value) -> Result<(), Violations> {
        let Some(schema) = &self.config else {
            return Ok(());
        };
        let mut section = section.clone();
        if !schema.complete(&mut section) {
            let message = format!("{key} in body has too many items that get defaults");
            return Err(Violations(vec![message]));
        }
        check(schema, key, &section)
    }

    /// Checks values against their schema.
    pub fn validate_values(&self, key: &str, section: &Value) -> Result<(), Violations> {
        self.values.as_ref().map_or(Ok(()), |schema| check(schema, key, section))
    }

    /// Checks values for templates: what the values schema asks for, and what
    /// it requires for helm only.
    pub fn validate_helm(&self, key: &str, section: &Value) -> Result<(), Violations> {
        self.helm.as_ref().map_or(Ok(()), |schema| check(schema, key, section))
    }
}

fn check(schema: &Schema, key: &str, section: &Value) -> Result<(), Violations> {
    let messages = messages::violations(schema, key, section);
    if messages.is_empty() { Ok(()) } else { Err(Violations(messages)) }
}

/// Reads a schema and expands what it refers to.
fn load(file: &str, text: &str) -> Result<Option<Map<String, Value>>, SchemaError> {
    let invalid = |problem: Problem| SchemaError::Invalid {
        file: file.to_owned(),
        position: yaml::locate(text, &problem.pointer),
        pointer: problem.pointer,
        problem: problem.problem,
    };
    let document = yaml::parse(text).map_err(|reason| SchemaError::Yaml { file: file.to_owned(), reason })?;
    let document = match document {
        Value::Null => return Ok(None),
        Value::Object(_) => document,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let problem = "a schema must be a map".to_owned();
            return Err(invalid(Problem { pointer: String::new(), problem }));
        }
    };
    Schema::compile(&document).map_err(invalid)?;
    match transform::expanded(&document).map_err(invalid)? {
        Value::Object(schema) => Ok(Some(schema)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Ok(None),
    }
}

/// Returns whether rules in CEL stand anywhere in the schema.
fn has_cel_rules(schema: &Map<String, Value>) -> bool {
    fn in_value(value: &Value) -> bool {
        match value {
            Value::Object(map) => map.contains_key(CEL_RULES) || map.values().any(in_value),
            Value::Array(items) => items.iter().any(in_value),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    schema.contains_key(CEL_RULES) || schema.values().any(in_value)
}

#[cfg(test)]
mod tests;

//! OpenAPI schemas of sections: defaults, completion and validation. See docs/modules.md#schemas.

mod messages;
mod rules;
mod transform;

use std::fmt;

use objects::schema::{Problem, Schema};
use rules::Rules;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::yaml::{self, Position, YamlError};

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
pub struct Violations {
    messages: Vec<String>,
    /// Whether they are those of rules, which are printed as they are.
    are_rules: bool,
}

/// How many violations are printed.
const PRINTED: usize = 50;

impl Violations {
    /// Returns violations with these messages.
    pub(crate) fn new(messages: Vec<String>) -> Self {
        Self { messages, are_rules: false }
    }

    /// Returns the messages.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.are_rules {
            return f.write_str(&self.messages.join("\n"));
        }
        match self.messages.len() {
            1 => f.write_str("1 error occurred:\n")?,
            count => writeln!(f, "{count} errors occurred:")?,
        }
        for message in self.messages.iter().take(PRINTED) {
            writeln!(f, "\t* {message}")?;
        }
        if self.messages.len() > PRINTED {
            writeln!(f, "\t* and {} more", self.messages.len() - PRINTED)?;
        }
        writeln!(f)
    }
}

/// The schemas of one section, compiled once.
///
/// A schema that is missing accepts everything and has no defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schemas {
    config: Option<Checks>,
    values: Option<Checks>,
    helm: Option<Checks>,
    rule_problems: Vec<String>,
}

impl Schemas {
    /// Compiles the schemas of a section from its files `config-values.yaml`
    /// and `values.yaml`, each given as its path, for messages, and its text.
    ///
    /// An empty file counts as missing.
    pub fn compile(config: Option<(&str, &str)>, values: Option<(&str, &str)>) -> Result<Self, SchemaError> {
        let files = (config.map(|(file, _)| file), values.map(|(file, _)| file));
        let config = config.map(|(file, text)| load(file, text)).transpose()?.flatten();
        let values = values.map(|(file, text)| load(file, text)).transpose()?.flatten();
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
        let (config, values, helm) =
            (config.and_then(Checks::new), values.and_then(Checks::new), helm.and_then(Checks::new));
        let told = |file: &str, checks: &Option<Checks>| -> Vec<String> {
            let problems = checks.iter().flat_map(|checks| checks.rules.problems());
            problems.map(|problem| format!("{file}: {problem}")).collect()
        };
        let mut rule_problems = files.0.map(|file| told(file, &config)).unwrap_or_default();
        rule_problems.extend(files.1.map(|file| told(file, &values)).unwrap_or_default());
        Ok(Self { config, values, helm, rule_problems })
    }

    /// Returns what is wrong with rules in CEL that can't be evaluated: file, place, problem. Values that such a rule is about
    /// are refused when they come.
    pub fn rule_problems(&self) -> &[String] {
        &self.rule_problems
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
        self.config.as_ref().is_none_or(|checks| checks.schema.complete(section))
    }

    /// Puts the defaults of the values schema where properties are missing. Returns whether there was room for all.
    pub fn complete_values(&self, section: &mut Value) -> bool {
        self.values.as_ref().is_none_or(|checks| checks.schema.complete(section))
    }

    /// Checks config values, with the defaults of the config schema, against
    /// it. `key` is the section's, and the root of paths in messages. `old` are the config values before, for rules about
    /// changes.
    pub fn validate_config(&self, key: &str, section: &Value, old: Option<&Value>) -> Result<(), Violations> {
        let Some(checks) = &self.config else {
            return Ok(());
        };
        let mut section = section.clone();
        if !checks.schema.complete(&mut section) {
            let message = format!("{key} in body has too many items that get defaults");
            return Err(Violations::new(vec![message]));
        }
        checks.check(key, &section, old)
    }

    /// Checks values against their schema. `old` are the values before, for rules about changes.
    pub fn validate_values(&self, key: &str, section: &Value, old: Option<&Value>) -> Result<(), Violations> {
        self.values.as_ref().map_or(Ok(()), |checks| checks.check(key, section, old))
    }

    /// Checks values for templates: what the values schema asks for, and what
    /// it requires for helm only.
    pub fn validate_helm(&self, key: &str, section: &Value) -> Result<(), Violations> {
        self.helm.as_ref().map_or(Ok(()), |checks| checks.check(key, section, None))
    }
}

/// A schema and the rules in it.
#[derive(Clone, Debug, PartialEq)]
struct Checks {
    schema: Schema,
    rules: Rules,
}

impl Checks {
    /// Compiles a schema. Everything was compiled once as it was written, so nothing can fail here; if it did, the schema
    /// would be treated as missing.
    fn new(schema: Map<String, Value>) -> Option<Self> {
        let rules = Rules::of(&schema);
        Some(Self { schema: Schema::compile(&Value::Object(schema)).ok()?, rules })
    }

    /// Checks a section: first the rules, then, if they hold, the schema.
    fn check(&self, key: &str, section: &Value, old: Option<&Value>) -> Result<(), Violations> {
        let broken = self.rules.check(key, section, old);
        if !broken.is_empty() {
            return Err(Violations { messages: broken, are_rules: true });
        }
        let messages = messages::violations(&self.schema, key, section);
        if messages.is_empty() { Ok(()) } else { Err(Violations::new(messages)) }
    }
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

#[cfg(test)]
mod tests;

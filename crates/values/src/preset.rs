//! Presets of values, which the user picks by name: the plans of a chart bundle. See docs/sources.md#bundles-with-plans.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::document::kind;
use crate::json_schema::{self, Limits};
use crate::schema::Violations;

/// The key of a section that says which preset is picked. Charts do not see it.
pub const PLAN: &str = "plan";

/// How long a name may be that a message quotes, in bytes.
const MAX_QUOTED: usize = 63;

/// A preset of values, and what the user may configure with it.
#[derive(Clone, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: Arc<str>,
    /// Its values; an object.
    pub values: Arc<Value>,
    /// The JSON Schema of what the user configures, as its file has it; `None` accepts all.
    pub schema: Option<Arc<[u8]>>,
}

/// The presets of a section; none for most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Presets(Vec<Preset>);

/// Why no preset is picked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PickError {
    /// There are several, and none is named.
    #[error("no plan is picked; set {PLAN} to one of: {}", .plans.join(", "))]
    None {
        /// Their names.
        plans: Vec<String>,
    },
    /// There is no preset of this name.
    #[error("there is no plan {name:?}{}; plans are: {}", meant(.nearest.as_deref()), .plans.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The one that may be meant.
        nearest: Option<String>,
        /// The names of all.
        plans: Vec<String>,
    },
    /// The name is no text.
    #[error("{PLAN} should be the name of a plan, and is {found}; plans are: {}", .plans.join(", "))]
    NoName {
        /// What it is instead.
        found: &'static str,
        /// Their names.
        plans: Vec<String>,
    },
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!(", did you mean {nearest}?")).unwrap_or_default()
}

impl Presets {
    /// Returns these presets, in the order in which messages list them.
    pub fn new(presets: Vec<Preset>) -> Self {
        Self(presets)
    }

    /// Returns whether there are none: then nothing is picked, and `plan` is a value as any other.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over them in that order.
    pub fn iter(&self) -> impl Iterator<Item = &Preset> {
        self.0.iter()
    }

    /// Returns the preset that the user's section picks: that which it names, or the only one. None if there are none.
    ///
    /// # Errors
    ///
    /// If it names none of several, or one that is not there.
    pub fn pick(&self, config: Option<&Value>) -> Result<Option<&Preset>, PickError> {
        let plans = || self.0.iter().map(|preset| preset.name.to_string()).collect();
        let picked = config.and_then(|config| config.get(PLAN)).filter(|name| !name.is_null());
        match (self.0.as_slice(), picked) {
            ([], _) => Ok(None),
            ([only], None) => Ok(Some(only)),
            (_, None) => Err(PickError::None { plans: plans() }),
            (presets, Some(Value::String(name))) => {
                let found = presets.iter().find(|preset| *preset.name == **name);
                found.map(Some).ok_or_else(|| PickError::Unknown {
                    name: quoted(name),
                    nearest: nearest(name, presets.iter().map(|preset| &*preset.name)),
                    plans: plans(),
                })
            }
            (_, Some(other)) => Err(PickError::NoName { found: kind(other), plans: plans() }),
        }
    }
}

/// Returns the beginning of a name.
fn quoted(name: &str) -> String {
    let end = (0..=MAX_QUOTED.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    name.get(..end.unwrap_or_default()).unwrap_or_default().to_owned()
}

/// Returns the name that may be meant by a mistyped one.
fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<String> {
    if name.len() > MAX_QUOTED {
        return None;
    }
    let near = known.map(|known| (strsim::osa_distance(known, name), known));
    let limit = (name.chars().count() / 3).clamp(1, 3);
    near.filter(|(distance, _)| *distance <= limit).min().map(|(_, known)| known.to_owned())
}

impl Preset {
    /// Checks what the user configured, without the name of the preset, against the schema.
    ///
    /// # Errors
    ///
    /// How it breaks the schema, or that the schema is none. What is said can quote values.
    pub fn validate(&self, config: Option<&Value>) -> Result<(), Violations> {
        let Some(schema) = &self.schema else { return Ok(()) };
        let config = config.map_or_else(|| Value::Object(Map::new()), without_plan);
        // It is also in the messages: which schema is meant.
        let url = format!("file:///plans/{}/create-instance-schema.json", self.name);
        json_schema::validate(&url, schema, &config, Limits::NARROW).map_err(|found| {
            let lines = found.lines().map(|line| line.strip_prefix("- ").unwrap_or(line).to_owned());
            Violations::new(lines.map(|line| format!("plan {}: {line}", self.name)).collect())
        })
    }
}

/// Returns what the user configured without the name of the preset; `{}` for null.
pub(crate) fn without_plan(config: &Value) -> Value {
    match config {
        Value::Null => Value::Object(Map::new()),
        Value::Object(map) => Value::Object(
            map.iter().filter(|(key, _)| *key != PLAN).map(|(k, v)| (k.clone(), v.clone())).collect(),
        ),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => other.clone(),
    }
}

// Values can be secrets.
impl fmt::Debug for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Preset").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn presets(names: &[&str]) -> Presets {
        let preset = |name: &&str| Preset { name: (*name).into(), values: Arc::new(json!({})), schema: None };
        Presets::new(names.iter().map(preset).collect())
    }

    fn picked(names: &[&str], config: &Value) -> Result<Option<String>, String> {
        let presets = presets(names);
        let picked = presets.pick(Some(config)).map_err(|error| error.to_string())?;
        Ok(picked.map(|preset| preset.name.to_string()))
    }

    #[test]
    fn a_preset_is_picked_by_name_and_the_only_one_need_not_be_named() {
        let all = ["big", "micro"];
        let error = |text: &str| Err(text.to_owned());
        for (names, config, expected) in [
            (&all[..0], json!({"plan": "big"}), Ok(None)),
            (&all[..1], json!({}), Ok(Some("big".to_owned()))),
            (&all[..1], json!({"plan": null}), Ok(Some("big".to_owned()))),
            (&all, json!({"plan": "micro"}), Ok(Some("micro".to_owned()))),
            (&all, json!({}), error("no plan is picked; set plan to one of: big, micro")),
            (
                &all,
                json!({"plan": "bug"}),
                error("there is no plan \"bug\", did you mean big?; plans are: big, micro"),
            ),
            (&all[..1], json!({"plan": "other"}), error("there is no plan \"other\"; plans are: big")),
            (
                &all,
                json!({"plan": 7}),
                error("plan should be the name of a plan, and is a number; plans are: big, micro"),
            ),
        ] {
            assert_eq!(picked(names, &config), expected, "{config}");
        }
        let long = "ä".repeat(10_000);
        assert!(picked(&all, &json!({ "plan": long })).unwrap_err().len() < 200);
    }

    #[test]
    fn what_the_user_configures_is_checked_without_the_name_of_the_plan() {
        let schema = json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object",
            "additionalProperties": false, "required": ["size"],
            "properties": {"size": {"type": "integer", "minimum": 1, "exclusiveMinimum": true}}});
        let preset = |schema: &str| Preset {
            name: "big".into(),
            values: Arc::new(json!({})),
            schema: Some(schema.as_bytes().into()),
        };
        let check = |config: &Value| match preset(&schema.to_string()).validate(Some(config)) {
            Ok(()) => Vec::new(),
            Err(violations) => violations.messages().to_vec(),
        };
        assert_eq!(check(&json!({"plan": "big", "size": 2})), [""; 0]);
        assert_eq!(check(&json!({"size": "a"})), ["plan big: at '/size': got string, want integer"]);
        assert_eq!(check(&json!({"size": 1})), ["plan big: at '/size': exclusiveMinimum: got 1, want 1"]);
        assert_eq!(check(&json!({})), ["plan big: at '': missing property 'size'"]);
        assert_eq!(check(&Value::Null), check(&json!({})));
        let broken = preset("{\"type\": 7}").validate(None).unwrap_err();
        assert!(broken.messages()[0].contains("file:///plans/big/create-instance-schema.json"), "{broken:?}");
        let remote = preset("{\"$ref\": \"https://example.com/a.json\"}").validate(None).unwrap_err();
        assert!(remote.to_string().contains("failing loading"), "{remote}");
    }
}

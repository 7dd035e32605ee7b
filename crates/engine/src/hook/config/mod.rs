//! Reads what a hook prints for `--config` into a [`HookSpec`]. See docs/hooks.md#the-configuration.
//!
//! ```text
//! text ─▶ strict YAML ─▶ version ─▶ shape (all violations at once) ─▶ meaning (section by section)
//! ```

mod admission;
mod fields;
mod kubernetes;
mod report;
mod schedule;
mod selector;
mod settings;
mod v0;
mod v1;

use serde_json::Value;
use values::yaml::{self, YamlError};

pub use self::fields::distance;
use self::fields::type_name;
use self::report::{Path, Report};
pub use self::report::{Violation, Violations};
use super::spec::{ConfigVersion, HookKind, HookSpec, Lifecycle, Order};
use crate::name::HookName;

/// How long a configuration may be. Real ones have a few kilobytes.
pub const MAX_BYTES: usize = 4 << 20;

/// Tries to compile a jq program, and returns what is wrong with it.
pub type Compile<'a> = &'a dyn Fn(&str) -> Result<(), String>;

/// Checks the meaning of a section.
type Check<'a> = &'a dyn Fn(&HookSpec, &Report);

/// Why the configuration of a hook was refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Properties have the wrong shape or meaning.
    #[error("{0}")]
    Invalid(Violations),
    /// The whole is something else than a mapping.
    #[error("config unmarshal: the configuration must be a mapping, found \"{found}\"")]
    NotMapping {
        /// The type of what was found.
        found: &'static str,
    },
    /// The text is longer than [`MAX_BYTES`].
    #[error(
        "config unmarshal: the configuration has {length} bytes, more than {MAX_BYTES}; print less for --config"
    )]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// The text is not YAML, or a key occurs twice.
    #[error("config unmarshal: {0}")]
    Unmarshal(YamlError),
    /// The version of the dialect can't be found out.
    #[error("config version: {0}")]
    Version(String),
}

/// Returns what the hook `name` asked for with `text`, which it printed for `--config`.
///
/// The jq programs in it are not compiled: see [`parse_with`].
///
/// # Errors
///
/// As [`parse_with`].
pub fn parse(name: HookName, kind: HookKind, text: &str) -> Result<HookSpec, ConfigError> {
    parse_with(name, kind, text, &|_| Ok(()))
}

/// The same; `compile` returns why a jq program does not compile.
///
/// # Errors
///
/// All violations of the shape are reported together; only if there are none,
/// those of the first section whose meaning is wrong.
pub fn parse_with(
    name: HookName,
    kind: HookKind,
    text: &str,
    compile: Compile<'_>,
) -> Result<HookSpec, ConfigError> {
    if text.len() > MAX_BYTES {
        return Err(ConfigError::TooLong { length: text.len() });
    }
    let value = yaml::parse_strict(text).map_err(ConfigError::Unmarshal)?;
    let empty = serde_json::Map::new();
    let map = match &value {
        Value::Object(map) => map,
        // A hook that prints nothing is told what an empty mapping is told.
        Value::Null => &empty,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(ConfigError::NotMapping { found: type_name(&value) });
        }
    };
    match version(map, text)? {
        ConfigVersion::V0 => v0::parse(name, kind, map, text, compile),
        ConfigVersion::V1 => v1::parse(name, kind, map, text, compile),
    }
}

fn version(map: &serde_json::Map<String, Value>, text: &str) -> Result<ConfigVersion, ConfigError> {
    let fail = |problem: String| {
        let position = yaml::locate(text, "/configVersion");
        let place = position.map(|position| format!(" ({position})")).unwrap_or_default();
        Err(ConfigError::Version(problem + &place))
    };
    match map.get("configVersion") {
        None => Ok(ConfigVersion::V0),
        Some(Value::Null) => fail("missing 'configVersion' value".to_owned()),
        Some(Value::String(version)) => match version.as_str() {
            "v0" => Ok(ConfigVersion::V0),
            "v1" => Ok(ConfigVersion::V1),
            other => fail(format!("'configVersion' value '{other}' is unsupported")),
        },
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            fail("string value is expected for key 'configVersion'".to_owned())
        }
    }
}

/// Reads the lifecycle points that a hook of this kind may ask for.
fn lifecycle(fields: &mut fields::Fields<'_>, kind: HookKind, spec: &mut HookSpec) {
    for point in Lifecycle::ALL.into_iter().filter(|point| point.is_open_to(kind)) {
        if let Some(order) = fields.integer(point.as_str()) {
            spec.lifecycle.insert(point, Order(order));
        }
    }
}

/// Notes orders that are negative where that is not allowed.
fn check_lifecycle(spec: &HookSpec, report: &Report) {
    for (point, Order(order)) in &spec.lifecycle {
        if *order < 0 && *point != Lifecycle::OnStartup {
            let path = Path::default().key(point.as_str());
            report.note(&path, format!("invalid {point} config: order must not be negative: {order}"));
        }
    }
}

/// Returns the names of a list without those that came before, order kept.
fn unique(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for name in names {
        if !kept.contains(&name) {
            kept.push(name);
        }
    }
    kept
}

#[cfg(test)]
mod tests;

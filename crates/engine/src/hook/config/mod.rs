//! Reads what a hook prints for `--config` into a [`HookSpec`]. See docs/hooks.md#the-configuration.
//!
//! ```text
//! text ─▶ strict YAML ─▶ version ─▶ shape (all violations at once) ─▶ meaning (section by section)
//! ```

mod admission;
mod batch;
mod error;
mod fields;
mod kubernetes;
mod lifecycle;
mod reconcile;
mod report;
mod schedule;
mod selector;
mod settings;
mod v0;
mod v1;

use serde_json::Value;
use values::{json_type, yaml};

pub use self::batch::{is_batch, is_of_one_hook, parse_batch};
pub use self::error::{Compile, ConfigError, MAX_BYTES};
pub use self::fields::distance;
pub use self::report::{Violation, Violations};
use super::spec::{ConfigVersion, HookKind, HookSpec};
use crate::name::HookName;

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
        return Err(ConfigError::TooLong(text.len()));
    }
    let value = yaml::parse_strict(text).map_err(ConfigError::Unmarshal)?;
    let empty = serde_json::Map::new();
    let map = match &value {
        Value::Object(map) => map,
        // A hook that prints nothing is told what an empty mapping is told.
        Value::Null => &empty,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(ConfigError::NotMapping(json_type(&value)));
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

#[cfg(test)]
mod tests;

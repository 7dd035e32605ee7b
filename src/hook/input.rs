//! The files that a hook or script reads as values.

use std::io::{self, Write};

use engine::ValuesInput;
use serde::Serialize;
use serde_json::{Map, Value};

/// Writes the file of `CONFIG_VALUES_PATH`: the values that the user configured. See docs/modules.md#values.
pub(super) fn write_config_values(out: &mut impl Write, input: &ValuesInput) -> io::Result<()> {
    out.write_all(b"{\"global\":")?;
    json(out, &*input.global_config)?;
    if let Some(module) = &input.module {
        write_key(out, &module.key)?;
        json(out, &*module.config)?;
    }
    out.write_all(b"}")
}

/// Writes the file of `VALUES_PATH`: all values, with `enabledModules` where the reader sees that key.
pub(super) fn write_values(out: &mut impl Write, input: &ValuesInput) -> io::Result<()> {
    out.write_all(b"{\"global\":")?;
    match (&*input.global, &input.enabled_modules) {
        (Value::Object(global), Some(enabled)) => write_with_enabled(out, global, enabled)?,
        (global, _) => json(out, global)?,
    }
    if let Some(module) = &input.module {
        write_key(out, &module.key)?;
        json(out, &*module.values)?;
    }
    out.write_all(b"}")
}

/// Writes the global section with `enabledModules` set, without a copy of the section.
fn write_with_enabled(
    out: &mut impl Write,
    global: &Map<String, Value>,
    enabled: &impl Serialize,
) -> io::Result<()> {
    out.write_all(b"{\"enabledModules\":")?;
    json(out, enabled)?;
    for (key, value) in global.iter().filter(|(key, _)| *key != "enabledModules") {
        write_key(out, key)?;
        json(out, value)?;
    }
    out.write_all(b"}")
}

fn write_key(out: &mut impl Write, key: &str) -> io::Result<()> {
    out.write_all(b",")?;
    json(out, key)?;
    out.write_all(b":")
}

fn json(out: &mut impl Write, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    serde_json::to_writer(out, value).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::{ModuleName, ModuleValues};
    use serde_json::json;

    use super::*;

    #[test]
    fn readers_see_their_own_section_the_global_one_and_the_enabled_modules() {
        let first: Arc<[ModuleName]> = Arc::from([ModuleName::from("first")]);
        let input = ValuesInput {
            secret: Arc::default(),
            global: Arc::new(json!({"a": 1, "enabledModules": "mine"})),
            global_config: Arc::new(Value::Null),
            module: Some(ModuleValues {
                key: "webApp".into(),
                values: Arc::new(json!({"size": 9_007_199_254_740_993_u64})),
                config: Arc::new(json!({})),
            }),
            enabled_modules: Some(first.into()),
        };
        let mut out = Vec::new();
        write_values(&mut out, &input).unwrap();
        let values: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            values,
            json!({"global": {"a": 1, "enabledModules": ["first"]}, "webApp": {"size": 9_007_199_254_740_993_u64}})
        );
        let mut out = Vec::new();
        write_config_values(&mut out, &input).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"global":null,"webApp":{}}"#);
    }
}

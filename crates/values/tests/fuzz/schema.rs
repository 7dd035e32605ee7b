//! What must hold for every schema of a section, and for everything that is held against it.

use serde_json::Value;
use values::schema::Schemas;
use values::yaml;

/// The line between the config schema, the values schema and the section.
const BETWEEN: &str = "\n===\n";

/// How texts of a section begin that may stand in no message. Messages quote the schema and the names of properties.
const SECRET: &str = "hunter2";

/// Reads the parts of `bytes` as two schemas and a section, completes the section and checks it.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let mut parts = text.splitn(3, BETWEEN);
    let mut next = || parts.next().unwrap_or_default();
    let (config, values, section) = (next(), next(), next());
    let schemas = match Schemas::compile(Some(("config-values.yaml", config)), Some(("values.yaml", values)))
    {
        Ok(schemas) => schemas,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let Ok(section) = yaml::parse(section) else {
        return;
    };
    // A schema that leads into itself asks for defaults without end; each time some levels of them are put.
    let is_endless = [config, values].iter().any(|schema| schema.contains("$ref") || schema.contains('\\'));
    let (mut of_config, mut of_values) = (section.clone(), section.clone());
    let there_was_room = schemas.complete_config(&mut of_config) && schemas.complete_values(&mut of_values);
    if there_was_room && !is_endless {
        let (mut config_again, mut values_again) = (of_config.clone(), of_values.clone());
        assert!(schemas.complete_config(&mut config_again) && config_again == of_config, "{of_config}");
        assert!(schemas.complete_values(&mut values_again) && values_again == of_values, "{of_values}");
        let (before, after) =
            (schemas.validate_config("m", &section, None), schemas.validate_config("m", &of_config, None));
        assert_eq!(before, after, "defaults are put before a check");
    }
    let is_known = [config, values].iter().any(|schema| schema.contains('\\') || schema.contains(SECRET));
    let mut names = String::new();
    collect_names(&section, &mut names);
    let may_be_named = is_known || names.contains(SECRET);
    let checks = [
        schemas.validate_config("m", &section, None),
        schemas.validate_values("m", &of_values, None),
        schemas.validate_helm("m", &of_values),
    ];
    for violations in checks.into_iter().filter_map(Result::err) {
        assert!(!violations.messages().is_empty());
        assert!(violations.messages().len() <= 1_000, "the number of messages has a limit");
        let text = violations.to_string();
        assert!(may_be_named || !text.contains(SECRET), "a value is in a message: {text}");
    }
}

fn collect_names(value: &Value, names: &mut String) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, names)),
        Value::Object(entries) => {
            for (name, value) in entries {
                names.push_str(name);
                names.push('\n');
                collect_names(value, names);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

//! What `module.yaml` says about drift. See docs/modules.md#drift.

use std::sync::Arc;

use serde_json::Value;

use crate::{DriftMode, DriftSettings, IgnoreRule, MAX_IGNORE_RULES, MAX_IGNORED_PATHS};

use super::fields::{MAX_TEXT, check_keys};

/// All keys.
const DRIFT_KEYS: [&str; 2] = ["ignore", "mode"];

/// All keys of a rule that leaves fields to others.
const IGNORE_KEYS: [&str; 3] = ["kind", "name", "paths"];

/// Reads the value of the key `drift`.
///
/// # Errors
///
/// What is wrong, with its place.
pub(super) fn drift_settings(value: &Value) -> Result<DriftSettings, String> {
    let mode = |value: &Value| match value.as_str() {
        Some("enforce") => Ok(DriftMode::Enforce),
        Some("off") => Ok(DriftMode::Off),
        Some("watch") => Ok(DriftMode::Watch),
        // YAML 1.1 reads `off` without quotes as a boolean.
        None if *value == Value::Bool(false) => Ok(DriftMode::Off),
        Some(_) | None => Err("should be watch, enforce or off".to_owned()),
    };
    let Some(fields) = value.as_object() else {
        let mode =
            mode(value).map_err(|error| format!("drift: {error}, or a mapping with mode and ignore"))?;
        return Ok(DriftSettings { mode, ignore: Vec::new() });
    };
    check_keys(fields, "drift: ", &DRIFT_KEYS)?;
    let mode = fields.get("mode").map(mode).transpose().map_err(|error| format!("drift.mode: {error}"))?;
    let items = match fields.get("ignore") {
        None => &[],
        Some(items) => items
            .as_array()
            .ok_or("drift.ignore: should be a list of mappings with kind and paths")?
            .as_slice(),
    };
    if items.len() > MAX_IGNORE_RULES {
        return Err(format!(
            "drift.ignore: has {} entries, at most {MAX_IGNORE_RULES} are allowed",
            items.len()
        ));
    }
    let rules =
        items.iter().enumerate().map(|(place, item)| ignore_rule(item, &format!("drift.ignore[{place}]")));
    Ok(DriftSettings { mode: mode.unwrap_or_default(), ignore: rules.collect::<Result<_, _>>()? })
}

fn ignore_rule(value: &Value, place: &str) -> Result<IgnoreRule, String> {
    let fields =
        value.as_object().ok_or_else(|| format!("{place}: should be a mapping with kind and paths"))?;
    check_keys(fields, &format!("{place}: "), &IGNORE_KEYS)?;
    let text = |key: &str| {
        let text = fields.get(key)?.as_str().filter(|text| !text.is_empty() && text.len() <= MAX_TEXT);
        Some(text.ok_or_else(|| format!("{place}.{key}: should be a text of at most {MAX_TEXT} letters")))
    };
    let kind =
        text("kind").ok_or_else(|| format!("{place}.kind: should be a kind, such as Deployment"))??;
    let paths = fields.get("paths").and_then(Value::as_array).filter(|paths| !paths.is_empty());
    let paths = paths.ok_or_else(|| {
        format!("{place}.paths: should be a list of JSON pointers, such as [/spec/replicas]")
    })?;
    if paths.len() > MAX_IGNORED_PATHS {
        return Err(format!(
            "{place}.paths: has {} entries, at most {MAX_IGNORED_PATHS} are allowed",
            paths.len()
        ));
    }
    let pointer = |(index, path): (usize, &Value)| {
        let pointer =
            path.as_str().filter(|path| is_pointer(path) && path.len() > 1 && path.len() <= MAX_TEXT);
        let pointer = pointer.map(Arc::from);
        pointer.ok_or_else(|| {
            format!("{place}.paths[{index}]: should be a JSON pointer, such as /spec/replicas (~1 is a slash in a name, ~0 a tilde)")
        })
    };
    Ok(IgnoreRule {
        kind: kind.into(),
        name: text("name").transpose()?.map(Into::into),
        paths: paths.iter().enumerate().map(pointer).collect::<Result<_, _>>()?,
    })
}

/// Returns whether a text is a JSON pointer that is not empty: behind each `~` there is a 0 or a 1.
fn is_pointer(text: &str) -> bool {
    text.starts_with('/') && text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<DriftSettings, String> {
        drift_settings(&values::yaml::parse(text).unwrap())
    }

    #[test]
    fn drift_is_put_right_but_for_fields_that_are_left_to_others() {
        let drift = read("{mode: enforce, ignore: [{kind: Deployment, name: web, paths: [/spec/replicas]}]}")
            .unwrap();
        assert_eq!(drift.mode, DriftMode::Enforce);
        assert!(drift.rules("Deployment", "web").any(|rule| rule.covers("/spec/replicas")));
        for (text, mode) in [("'off'", DriftMode::Off), ("off", DriftMode::Off), ("{}", DriftMode::Watch)] {
            assert_eq!(read(text).unwrap().mode, mode, "{text}");
        }
        let rules =
            |count: usize| format!("{{ignore: [{}]}}", vec!["{kind: A, paths: [/a]}"; count].join(", "));
        assert_eq!(read(&rules(MAX_IGNORE_RULES)).unwrap().ignore.len(), MAX_IGNORE_RULES);
        assert!(read(&rules(MAX_IGNORE_RULES + 1)).unwrap_err().contains("drift.ignore: has 65 entries"));
        let paths =
            |count: usize| format!("{{ignore: [{{kind: A, paths: [{}]}}]}}", vec!["/a"; count].join(", "));
        assert!(read(&paths(MAX_IGNORED_PATHS)).is_ok());
        assert!(read(&paths(MAX_IGNORED_PATHS + 1)).unwrap_err().contains("paths: has 65 entries"));
    }

    #[test]
    fn what_can_not_be_used_is_named_with_its_place() {
        for (text, problem) in [
            ("fix", "drift: should be watch, enforce or off"),
            ("{mode: fix}", "drift.mode: should be watch, enforce or off"),
            ("{moed: off}", r#"drift: there is no key "moed"; did you mean mode?"#),
            ("{ignore: [x]}", "drift.ignore[0]: should be a mapping with kind and paths"),
            ("{ignore: [{paths: [/a]}]}", "drift.ignore[0].kind: should be a kind"),
            ("{ignore: [{kind: A}]}", "drift.ignore[0].paths: should be a list of JSON pointers"),
            ("{ignore: [{kind: A, paths: [a]}]}", "drift.ignore[0].paths[0]: should be a JSON pointer"),
            (
                "{ignore: [{kind: A, paths: [/a~1b, /a~2b]}]}",
                "drift.ignore[0].paths[1]: should be a JSON pointer",
            ),
            ("{ignore: [{kind: A, paths: [/a~]}]}", "drift.ignore[0].paths[0]: should be a JSON pointer"),
            ("{ignore: [{kind: A, name: 3, paths: [/a]}]}", "drift.ignore[0].name: should be a text"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}

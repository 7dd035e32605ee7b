//! Merging of values: what users give over what charts bring along.

use serde_json::{Map, Value};

use crate::chart::Chart;
use crate::warnings::Warnings;

/// The key whose content all charts share.
const GLOBAL: &str = "global";

/// How nulls of users are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// A null removes the key that a chart has.
    Remove,
    /// A null stays.
    Keep,
}

/// The values for a dependency are not a map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("type mismatch on {name}: {found}")]
pub struct CoalesceError {
    name: String,
    found: String,
}

/// Returns `user` over the defaults of `chart`, with a section for each dependency.
pub fn coalesce(
    chart: &Chart,
    user: &Map<String, Value>,
    nulls: Nulls,
    warnings: &mut Warnings,
) -> Result<Map<String, Value>, CoalesceError> {
    let mut merge = Merge { nulls, warnings };
    let mut values = user.clone();
    merge.chart(chart, &mut values, "")?;
    Ok(values)
}

/// Puts what `under` has and `over` lacks into `over`.
pub fn merge_tables(over: &mut Map<String, Value>, under: &Map<String, Value>, warnings: &mut Warnings) {
    Merge { nulls: Nulls::Keep, warnings }.tables(over, under, "", Nulls::Keep);
}

/// Merges maps key by key; anything else in `over` replaces what is in `base`. This
/// is how values files and `--set-json` objects are put upon each other.
///
/// Unlike Helm's defaults, nulls are kept: they remove defaults later.
pub fn overlay(base: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Object(inner)), Value::Object(value)) => overlay(inner, value),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

struct Merge<'w> {
    nulls: Nulls,
    warnings: &'w mut Warnings,
}

impl Merge<'_> {
    fn chart(
        &mut self,
        chart: &Chart,
        values: &mut Map<String, Value>,
        prefix: &str,
    ) -> Result<(), CoalesceError> {
        let path = join(prefix, chart.name());
        self.defaults(chart, values, &path);
        for dependency in &chart.dependencies {
            let name = dependency.name();
            let mut section = match values.remove(name) {
                None => Map::new(),
                Some(Value::Object(section)) => section,
                Some(other) => {
                    let error = CoalesceError { name: name.to_owned(), found: printed("%t", &other) };
                    values.insert(name.to_owned(), other);
                    return Err(error);
                }
            };
            self.globals(&mut section, values, &path);
            self.chart(dependency, &mut section, &path)?;
            values.insert(name.to_owned(), Value::Object(section));
        }
        Ok(())
    }

    /// Puts the defaults of `chart` below `values`.
    fn defaults(&mut self, chart: &Chart, values: &mut Map<String, Value>, path: &str) {
        let Some(defaults) = chart.values.as_deref() else { return };
        for (key, default) in defaults {
            match values.get_mut(key) {
                None => {
                    values.insert(key.clone(), default.clone());
                }
                Some(Value::Null) if self.nulls == Nulls::Remove => {
                    values.remove(key);
                }
                Some(Value::Object(section)) => match default {
                    Value::Object(default) => {
                        // The section of a dependency keeps its nulls: they are meant
                        // for defaults that the dependency itself brings.
                        let is_dependency =
                            chart.dependencies.iter().any(|dependency| dependency.name() == key);
                        let nulls = if is_dependency { Nulls::Keep } else { self.nulls };
                        self.tables(section, default, &join(path, key), nulls);
                    }
                    Value::Null => {}
                    Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                        self.warnings.add_from(
                            "coalesce.go:237",
                            format!("warning: skipped value for {}: Not a table.", join(path, key)),
                        );
                    }
                },
                Some(_) => {}
            }
        }
    }

    fn tables(
        &mut self,
        over: &mut Map<String, Value>,
        under: &Map<String, Value>,
        path: &str,
        nulls: Nulls,
    ) {
        for (key, value) in under {
            match (over.get_mut(key), value) {
                (None, value) => {
                    over.insert(key.clone(), value.clone());
                }
                (Some(Value::Null), _) if nulls == Nulls::Remove => {
                    over.remove(key);
                }
                (Some(Value::Object(inner)), Value::Object(value)) => {
                    self.tables(inner, value, &join(path, key), nulls);
                }
                (Some(_), value @ Value::Object(_)) => {
                    let (path, value) = (join(path, key), printed("%v", value));
                    self.warnings.add_from(
                        "coalesce.go:298",
                        format!("warning: cannot overwrite table with non table for {path} ({value})"),
                    );
                }
                (Some(Value::Object(_)), value) if !value.is_null() => {
                    let (path, value) = (join(path, key), printed("%v", value));
                    self.warnings.add_from(
                        "coalesce.go:301",
                        format!(
                            "warning: destination for {path} is a table. Ignoring non-table value ({value})"
                        ),
                    );
                }
                (Some(_), _) => {}
            }
        }
    }

    /// Puts the globals of `from` over those of a dependency's section.
    fn globals(&mut self, section: &mut Map<String, Value>, from: &Map<String, Value>, path: &str) {
        if section.get(GLOBAL).is_some_and(|own| !own.is_object()) {
            self.warnings.add_from(
                "coalesce.go:138",
                "warning: skipping globals because destination global is not a table.".to_owned(),
            );
            return;
        }
        let none = Map::new();
        let outer = match from.get(GLOBAL) {
            None => &none,
            Some(Value::Object(outer)) => outer,
            Some(_) => {
                self.warnings.add_from(
                    "coalesce.go:145",
                    "warning: skipping globals because source global is not a table.".to_owned(),
                );
                return;
            }
        };
        let own = section.entry(GLOBAL).or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(own) = own else { return };
        for (key, value) in outer {
            match (value, own.get_mut(key)) {
                (Value::Object(table), Some(Value::Object(inner))) => {
                    let mut table = table.clone();
                    self.tables(&mut table, inner, &join(path, key), Nulls::Keep);
                    *inner = table;
                }
                (Value::Object(_), Some(_)) => {
                    self.warnings.add_from(
                        "coalesce.go:161",
                        format!("Conflict: cannot merge map onto non-map for {key:?}. Skipping."),
                    );
                }
                (_, Some(Value::Object(_))) => {
                    self.warnings.add_from("coalesce.go:175", format!("key {key} is table. Skipping"));
                }
                (value, _) => {
                    own.insert(key.clone(), value.clone());
                }
            }
        }
    }
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

/// Returns what Go prints for a value with `verb`.
fn printed(verb: &str, value: &Value) -> String {
    let text = golang::fmt::sprintf(verb.as_bytes(), std::slice::from_ref(value));
    text.map_or_else(|error| error.to_string(), |text| String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("not an object") };
        map
    }

    fn chart(name: &str, values: Value, dependencies: Vec<Chart>) -> Chart {
        let mut chart = Chart { values: Some(Arc::new(map(values))), dependencies, ..Chart::default() };
        name.clone_into(&mut chart.metadata.name);
        chart
    }

    fn check(chart: &Chart, user: Value) -> (Value, Vec<String>) {
        let mut warnings = Warnings::default();
        let values = coalesce(chart, &map(user), Nulls::Remove, &mut warnings).unwrap();
        (Value::Object(values), warnings.texts().to_vec())
    }

    #[test]
    fn null_removes_what_the_chart_brings_and_stays_elsewhere() {
        let chart = chart("c", json!({"a": 1, "m": {"x": 1, "y": 2}}), vec![]);
        let (values, warnings) = check(&chart, json!({"a": null, "m": {"x": null, "z": null}, "n": null}));
        assert_eq!(values, json!({"m": {"y": 2, "z": null}, "n": null}));
        assert!(warnings.is_empty());
    }

    #[test]
    fn globals_reach_every_dependency_and_the_outer_one_wins() {
        let kid = chart("kid", json!({"global": {"m": {"c": 1}, "q": 1}}), vec![]);
        let chart = chart("c", json!({"global": {"m": {"a": 0}, "q": 2}}), vec![kid]);
        let (values, _) = check(&chart, json!({}));
        assert_eq!(values["kid"], json!({"global": {"m": {"a": 0, "c": 1}, "q": 2}}));
        assert_eq!(values["global"], json!({"m": {"a": 0}, "q": 2}));
    }

    #[test]
    fn maps_against_texts_give_warnings() {
        let kid = chart("kid", json!({"m": {"x": 1}}), vec![]);
        let chart = chart("c", json!({"t": "text", "s": {"u": 1}}), vec![kid]);
        let (values, warnings) =
            check(&chart, json!({"t": {"a": 1}, "s": {"u": {"v": 1}}, "kid": {"m": "x"}}));
        assert_eq!(values, json!({"t": {"a": 1}, "s": {"u": {"v": 1}}, "kid": {"global": {}, "m": "x"}}));
        assert_eq!(
            warnings,
            [
                "warning: destination for c.s.u is a table. Ignoring non-table value (1)",
                "warning: skipped value for c.t: Not a table.",
            ]
        );
    }

    #[test]
    fn a_section_that_is_no_map_is_refused() {
        let chart = chart("c", json!({}), vec![chart("kid", json!({}), vec![])]);
        for (section, expected) in [
            (json!("text"), "%!t(string=text)"),
            (json!(null), "%!t(<nil>)"),
            (json!(1.5), "%!t(float64=1.5)"),
            (
                json!([{"a": null, "b": "x"}, null]),
                "[map[%!t(string=a):<nil> %!t(string=b):%!t(string=x)] <nil>]",
            ),
        ] {
            let user = map(json!({ "kid": section }));
            let error = coalesce(&chart, &user, Nulls::Remove, &mut Warnings::default()).unwrap_err();
            assert_eq!(error.to_string(), format!("type mismatch on kid: {expected}"));
        }
    }
}

//! Merging of values: what users give over what charts bring along.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::chart::Chart;
use crate::table::{Endless, Node, Table};
use crate::value::Map as Dict;
use crate::warnings::Warnings;

/// The key whose content all charts share.
const GLOBAL: &str = "global";

/// How long paths of tables may be, in bytes, that are followed into one another.
const MAX_PATH: usize = 64 << 10;

/// How nulls of users are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// A null removes the key that a chart has.
    Remove,
    /// A null stays.
    Keep,
}

/// Values that can't be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoalesceError {
    /// The values for a dependency are not a map.
    #[error("type mismatch on {name}: {found}")]
    Mismatch {
        /// The dependency.
        name: String,
        /// The values, as Helm prints them.
        found: String,
    },
    /// Imports put a map of values into itself, or multiply it without bounds. Helm crashes.
    #[error(
        "values of {chart} have no end, look at its import-values: a map must not be imported into itself"
    )]
    Endless {
        /// The chart.
        chart: String,
    },
}

/// Returns `user` over the defaults of `chart`, with a section for each dependency.
pub fn coalesce(
    chart: &Chart,
    user: &Map<String, Value>,
    nulls: Nulls,
    warnings: &mut Warnings,
) -> Result<Map<String, Value>, CoalesceError> {
    written(chart, &coalesced(chart, user, nulls, warnings)?)
}

/// Does the same, and leaves shared what Helm shares.
pub(crate) fn coalesced<'v>(
    chart: &'v Chart,
    user: &'v Map<String, Value>,
    nulls: Nulls,
    warnings: &mut Warnings,
) -> Result<Table<'v>, CoalesceError> {
    let values = Table::of(user);
    Merge { nulls, warnings }.chart(chart, &values, "")?;
    Ok(values)
}

/// Returns the values of `chart` without what is shared.
pub(crate) fn written(chart: &Chart, values: &Table<'_>) -> Result<Map<String, Value>, CoalesceError> {
    values.map().map_err(|Endless| endless(chart))
}

/// Returns the values of `chart` that templates see, which share what Helm shares.
pub(crate) fn shown(chart: &Chart, values: &Table<'_>) -> Result<Dict, CoalesceError> {
    values.dict().map_err(|Endless| endless(chart))
}

fn endless(chart: &Chart) -> CoalesceError {
    CoalesceError::Endless { chart: chart.name().to_owned() }
}

/// Puts what `under` has and `over` lacks into `over`.
pub(crate) fn merge_tables<'v>(over: &Table<'v>, under: &Table<'v>, warnings: &mut Warnings) {
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
    fn chart<'v>(&mut self, chart: &'v Chart, values: &Table<'v>, prefix: &str) -> Result<(), CoalesceError> {
        let path = join(prefix, chart.name());
        self.defaults(chart, values, &path);
        for dependency in &chart.dependencies {
            let name = dependency.name();
            let section = match values.get(name) {
                None => Table::default(),
                Some(Node::Table(section)) => section,
                Some(Node::Other(other)) => {
                    let (name, found) = (name.to_owned(), printed("%t", other));
                    return Err(CoalesceError::Mismatch { name, found });
                }
            };
            values.insert(name, Node::Table(section.clone()));
            self.globals(&section, values, &path);
            self.chart(dependency, &section, &path)?;
        }
        Ok(())
    }

    /// Puts the defaults of `chart` below `values`.
    fn defaults<'v>(&mut self, chart: &'v Chart, values: &Table<'v>, path: &str) {
        let Some(defaults) = chart.values.as_deref() else { return };
        for (key, default) in defaults {
            match (values.get(key), default) {
                (None, default) => values.insert(key.as_str(), Node::of(default)),
                (Some(Node::Other(value)), _) => {
                    if value.is_null() && self.nulls == Nulls::Remove {
                        values.remove(key);
                    }
                }
                (Some(Node::Table(section)), Value::Object(default)) => {
                    // The section of a dependency keeps its nulls: they are meant
                    // for defaults that the dependency itself brings.
                    let is_dependency = chart.dependencies.iter().any(|dependency| dependency.name() == key);
                    let nulls = if is_dependency { Nulls::Keep } else { self.nulls };
                    self.tables(&section, &Table::of(default), &join(path, key), nulls);
                }
                (Some(Node::Table(_)), Value::Null) => {}
                (
                    Some(Node::Table(_)),
                    Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_),
                ) => {
                    self.warnings.add_from(
                        "coalesce.go:237",
                        format!("warning: skipped value for {}: Not a table.", join(path, key)),
                    );
                }
            }
        }
    }

    /// Merges what `under` has, and what is added to it meanwhile: it may stand in `over`. Go's loops meet what is added if the
    /// place that it gets is still before them, which is so more often than not.
    fn tables<'v>(&mut self, over: &Table<'v>, under: &Table<'v>, path: &str, nulls: Nulls) {
        let mut met = BTreeSet::new();
        while under.len() > met.len() {
            let new: Vec<_> = under.entries().into_iter().filter(|(key, _)| !met.contains(key)).collect();
            if new.is_empty() {
                return;
            }
            met.extend(new.iter().map(|(key, _)| key.clone()));
            self.entries(over, new, path, nulls);
        }
    }

    fn entries<'v>(
        &mut self,
        over: &Table<'v>,
        entries: Vec<(Cow<'v, str>, Node<'v>)>,
        path: &str,
        nulls: Nulls,
    ) {
        for (key, value) in entries {
            match (over.get(&key), value) {
                (None, value) => over.insert(key, value),
                (Some(Node::Other(null)), _) if null.is_null() && nulls == Nulls::Remove => over.remove(&key),
                (Some(Node::Table(inner)), Node::Table(value)) => {
                    // A table that came to lie in itself is told when it is written out.
                    if path.len() < MAX_PATH {
                        self.tables(&inner, &value, &join(path, &key), nulls);
                    }
                }
                (Some(Node::Other(_)), value @ Node::Table(_)) => {
                    let value =
                        value.value().map_or_else(|Endless| String::new(), |value| printed("%v", &value));
                    let path = join(path, &key);
                    self.warnings.add_from(
                        "coalesce.go:298",
                        format!("warning: cannot overwrite table with non table for {path} ({value})"),
                    );
                }
                (Some(Node::Table(_)), Node::Other(value)) if !value.is_null() => {
                    let (path, value) = (join(path, &key), printed("%v", value));
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
    ///
    /// The tables in a table of globals are the same for both afterwards.
    fn globals<'v>(&mut self, section: &Table<'v>, from: &Table<'v>, path: &str) {
        let Some(own) = self.table_of_globals(section, ("coalesce.go:138", "destination")) else { return };
        let Some(outer) = self.table_of_globals(from, ("coalesce.go:145", "source")) else { return };
        for (key, value) in outer.entries() {
            match (value, own.get(&key)) {
                (Node::Table(table), Some(Node::Table(inner))) => {
                    let top = table.top();
                    self.tables(&top, &inner, &join(path, &key), Nulls::Keep);
                    own.insert(key, Node::Table(top));
                }
                (Node::Table(table), None) => own.insert(key, Node::Table(table.top())),
                (Node::Table(_), Some(Node::Other(_))) => {
                    self.warnings.add_from(
                        "coalesce.go:161",
                        format!("Conflict: cannot merge map onto non-map for {key:?}. Skipping."),
                    );
                }
                (Node::Other(_), Some(Node::Table(_))) => {
                    self.warnings.add_from("coalesce.go:175", format!("key {key} is table. Skipping"));
                }
                (value @ Node::Other(_), _) => own.insert(key, value),
            }
        }
        section.insert(GLOBAL, Node::Table(own));
    }

    /// Returns the globals of a section, empty where it has none; `None` with a warning where they are no table.
    ///
    /// The warning comes from `place` in Helm, and names the `side` that the section is on.
    fn table_of_globals<'v>(
        &mut self,
        section: &Table<'v>,
        (place, side): (&'static str, &str),
    ) -> Option<Table<'v>> {
        match section.get(GLOBAL) {
            None => Some(Table::default()),
            Some(Node::Table(globals)) => Some(globals),
            Some(Node::Other(_)) => {
                let message = format!("warning: skipping globals because {side} global is not a table.");
                self.warnings.add_from(place, message);
                None
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

//! How an object of a release is changed: what is sent over what is there. No I/O.
//!
//! Helm makes three-way strategic patches for the kinds that it knows, and two-way merge patches for all others. So a
//! field of a custom resource that others have changed, as an autoscaler does, stays until the chart changes it.

use objects::patch::strategic;
use objects::types::{self, Shape, TypeName};
use serde_json::{Map, Value};

use crate::cluster::Resource;
use crate::cluster::request::PatchKind;

/// The group of a built-in kind that Helm does not know.
const AGGREGATION: &str = "apiregistration.k8s.io";

/// How objects of one kind are changed.
#[derive(Clone, Copy)]
pub(super) enum Merge {
    /// By a strategic patch of three states.
    Strategic(TypeName),
    /// By a merge patch of three states.
    ThreeWay,
    /// By a merge patch of what the chart changes.
    TwoWay,
}

impl Merge {
    /// Returns how objects of this kind are changed.
    pub(super) fn of(resource: &Resource) -> Self {
        match types::name_of_kind(&resource.group, &resource.version, &resource.kind) {
            Some(_) if resource.kind == "CustomResourceDefinition" => Self::ThreeWay,
            Some(name) if resource.group != AGGREGATION => Self::Strategic(name),
            Some(_) | None => Self::TwoWay,
        }
    }

    /// Returns the earlier states that each change takes into account: all at once, or one after the other. Without
    /// any there is one change all the same.
    pub(super) fn steps<'s, 'v>(self, earlier: &'s [&'v Value]) -> Vec<&'s [&'v Value]> {
        match self {
            Self::Strategic(_) | Self::ThreeWay if !earlier.is_empty() => earlier.chunks(1).collect(),
            Self::Strategic(_) | Self::ThreeWay | Self::TwoWay => vec![earlier],
        }
    }

    /// Returns the patch that brings `current` to `wanted`; empty when nothing has to be changed.
    ///
    /// # Errors
    ///
    /// An object is not what its type says.
    pub(super) fn change(
        self,
        earlier: &[&Value],
        wanted: &Value,
        current: &Value,
    ) -> Result<(PatchKind, Value), String> {
        // An object that was not of the release has nothing that must go.
        let original = earlier.first().copied().unwrap_or(wanted);
        match self {
            Self::Strategic(name) => strategic::three_way(original, wanted, current, &Shape::Named(name))
                .map(|patch| (PatchKind::Strategic, patch))
                .map_err(|error| error.to_string()),
            Self::TwoWay if !earlier.is_empty() => {
                let earlier: Vec<Option<&Value>> = earlier.iter().copied().map(Some).collect();
                Ok((PatchKind::Merge, chart_changes(&earlier, wanted, current)))
            }
            Self::ThreeWay | Self::TwoWay => Ok((PatchKind::Merge, merge_patch(original, wanted, current))),
        }
    }
}

impl Merge {
    /// Returns the patch that gives items of lists the keys back that others have edited; `None` if there are none.
    ///
    /// It comes before any other change, which would take such items for items of others.
    pub(super) fn keys(
        self,
        earlier: &[&Value],
        wanted: &Value,
        current: &Value,
    ) -> Option<(PatchKind, Value)> {
        let Self::Strategic(name) = self else { return None };
        let shape = Shape::Named(name);
        let before = if earlier.is_empty() { &[wanted] } else { earlier };
        let restored = strategic::with_keys(before, wanted, current, &shape)?;
        let patch = strategic::two_way(current, &restored, &shape).ok()?;
        Some((PatchKind::Strategic, patch))
    }

    /// Returns the patch that makes `current` what was rendered, whoever has changed it; empty when nothing differs.
    ///
    /// # Errors
    ///
    /// An object is not what its type says.
    pub(super) fn difference(self, wanted: &Value, current: &Value) -> Result<(PatchKind, Value), String> {
        self.change(&[], wanted, current)
    }
}

/// Returns the merge patch of three states.
pub(super) fn merge_patch(original: &Value, wanted: &Value, current: &Value) -> Value {
    let (Value::Object(wanted), Value::Object(current)) = (wanted, current) else { return wanted.clone() };
    let mut patch = Map::new();
    for (key, new) in wanted {
        match current.get(key) {
            Some(old) if old == new => {}
            Some(old) if old.is_object() && new.is_object() => {
                let inner = merge_patch(original.get(key).unwrap_or(&Value::Null), new, old);
                if inner.as_object().is_none_or(|inner| !inner.is_empty()) {
                    patch.insert(key.clone(), inner);
                }
            }
            // A null of the chart asks for a field that is not there.
            None if new.is_null() => {}
            Some(_) | None => {
                patch.insert(key.clone(), new.clone());
            }
        }
    }
    if let Value::Object(original) = original {
        for key in original.keys().filter(|key| !wanted.contains_key(*key) && current.contains_key(*key)) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    Value::Object(patch)
}

/// Returns the merge patch of what the chart changes: a field that it has had like this in all `earlier` states is left
/// to whoever changed it since. What `current` has already is not sent again.
fn chart_changes(earlier: &[Option<&Value>], wanted: &Value, current: &Value) -> Value {
    let (Value::Object(wanted), Value::Object(current)) = (wanted, current) else { return wanted.clone() };
    let mut patch = Map::new();
    for (key, new) in wanted {
        let before: Vec<Option<&Value>> =
            earlier.iter().map(|state| state.and_then(|state| state.get(key))).collect();
        if before.iter().all(|before| *before == Some(new)) {
            continue;
        }
        match current.get(key) {
            Some(old) if old == new => {}
            Some(old) if old.is_object() && new.is_object() => {
                let inner = chart_changes(&before, new, old);
                if inner.as_object().is_none_or(|inner| !inner.is_empty()) {
                    patch.insert(key.clone(), inner);
                }
            }
            None if new.is_null() => {}
            Some(_) | None => {
                patch.insert(key.clone(), new.clone());
            }
        }
    }
    for state in earlier.iter().filter_map(|state| state.and_then(Value::as_object)) {
        for key in state.keys().filter(|key| !wanted.contains_key(*key) && current.contains_key(*key)) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_keeps_what_others_added() {
        for (original, wanted, current, expected) in [
            (json!({"a": 1}), json!({"a": 1}), json!({"a": 1, "b": 2}), json!({})),
            (
                json!({"a": 1, "b": 1}),
                json!({"a": 2}),
                json!({"a": 1, "b": 1, "c": 1}),
                json!({"a": 2, "b": null}),
            ),
            (
                json!({"s": {"x": 1, "y": 1}}),
                json!({"s": {"x": 1}}),
                json!({"s": {"x": 1, "y": 1, "z": 1}}),
                json!({"s": {"y": null}}),
            ),
            (json!({}), json!({"l": [1]}), json!({"l": [1, 2]}), json!({"l": [1]})),
            (json!({}), json!({"n": null}), json!({}), json!({})),
            (json!({}), json!({"s": {"x": 1}}), json!({"s": "text"}), json!({"s": {"x": 1}})),
        ] {
            assert_eq!(merge_patch(&original, &wanted, &current), expected);
        }
    }

    #[test]
    fn slip_21_a_change_of_a_chart_leaves_alone_what_the_chart_did_not_change() {
        for (earlier, wanted, current, expected) in [
            (vec![json!({"a": 1})], json!({"a": 1}), json!({"a": 5}), json!({})),
            (vec![json!({"a": 1})], json!({"a": 2}), json!({"a": 5}), json!({"a": 2})),
            (vec![json!({"a": 1})], json!({"a": 2}), json!({"a": 2}), json!({})),
            (vec![json!({"a": 1, "b": 1})], json!({"a": 1}), json!({"a": 1, "b": 7}), json!({"b": null})),
            (vec![json!({"a": 1})], json!({"a": 1, "n": null}), json!({"a": 1}), json!({})),
            // An object that somebody has taken away stays away, as with Helm; one that is new comes.
            (vec![json!({"s": {"x": 1}})], json!({"s": {"x": 1}}), json!({}), json!({})),
            (
                vec![json!({"s": {"x": 1, "y": 1}})],
                json!({"s": {"x": 1, "y": 2}}),
                json!({"s": {"x": 9}}),
                json!({"s": {"y": 2}}),
            ),
            (vec![json!({"l": [1]})], json!({"l": [1, 2]}), json!({"l": [3]}), json!({"l": [1, 2]})),
            // Of two revisions either may be in the cluster.
            (vec![json!({"a": 1}), json!({"a": 2})], json!({"a": 2}), json!({"a": 1}), json!({"a": 2})),
            (
                vec![json!({"a": 1, "b": 1}), json!({"a": 1})],
                json!({"a": 1}),
                json!({"a": 4, "b": 1}),
                json!({"b": null}),
            ),
            (
                vec![json!({}), json!({"s": {"x": 1}})],
                json!({"s": {"x": 1}}),
                json!({"s": {}}),
                json!({"s": {"x": 1}}),
            ),
        ] {
            let states: Vec<Option<&Value>> = earlier.iter().map(Some).collect();
            assert_eq!(chart_changes(&states, &wanted, &current), expected, "{earlier:?} {wanted} {current}");
        }
    }
}

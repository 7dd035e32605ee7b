//! Conversions of custom resources: which hooks lead from one version to another, and what has to be the same afterwards.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use crate::catalog::Hook;
use crate::hook::spec::ConversionBinding;
use crate::name::HookId;

/// The rules for the objects of one definition, in the order of hooks and bindings.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<Rule>);

/// From one version to another: by a binding of a hook.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Rule {
    pub(super) hook: HookId,
    /// The index of the binding in the hook's configuration.
    pub(super) binding: usize,
    /// `v1` or `group/v1`, as the configuration writes it.
    pub(super) from: Arc<str>,
    pub(super) to: Arc<str>,
}

impl Rules {
    /// Adds the rules of a binding.
    pub(super) fn add(&mut self, hook: &Hook, binding: usize, spec: &ConversionBinding) {
        self.0.extend(spec.conversions.iter().map(|(from, to)| Rule {
            hook: hook.id.clone(),
            binding,
            from: from.as_str().into(),
            to: to.as_str().into(),
        }));
    }

    /// Returns the shortest way from one full version to another; of equally short ones that which was declared first.
    ///
    /// A rule may leave out the group of its versions.
    pub(super) fn path(&self, from: &str, to: &str) -> Option<Vec<&Rule>> {
        let mut ways: BTreeMap<&Arc<str>, (Option<&Arc<str>>, &Rule)> = BTreeMap::new();
        let mut ends: VecDeque<Option<&Arc<str>>> = VecDeque::from([None]);
        while let Some(end) = ends.pop_front() {
            let at = end.map_or(from, |end| &**end);
            for rule in self.0.iter().filter(|rule| is_same(&rule.from, at)) {
                if ways.contains_key(&rule.to) {
                    continue;
                }
                ways.insert(&rule.to, (end, rule));
                if is_same(&rule.to, to) {
                    return Some(way(&ways, &rule.to));
                }
                ends.push_back(Some(&rule.to));
            }
        }
        None
    }
}

/// Returns the rules that lead to `end`.
fn way<'r>(
    ways: &BTreeMap<&'r Arc<str>, (Option<&'r Arc<str>>, &'r Rule)>,
    end: &'r Arc<str>,
) -> Vec<&'r Rule> {
    let mut rules = Vec::new();
    let mut at = Some(end);
    while let Some((before, rule)) = at.and_then(|at| ways.get(at)) {
        rules.push(*rule);
        at = *before;
    }
    rules.reverse();
    rules
}

/// Returns whether two versions mean the same: they are equal, or one has no group and is the version of the other.
pub(super) fn is_same(a: &str, b: &str) -> bool {
    let short = |full: &str, version: &str| full.rsplit_once('/').is_some_and(|(_, short)| short == version);
    a == b || (!a.contains('/') && short(b, a)) || (!b.contains('/') && short(a, b))
}

/// Returns why `after` are not the objects `before` in the version `to`, if they are not. It names objects and quotes nothing
/// else of them.
pub(super) fn difference(before: &[Value], after: &[Value], to: &str) -> Option<String> {
    if before.len() != after.len() {
        return Some(format!("it returned {} objects instead of {}", after.len(), before.len()));
    }
    before.iter().zip(after).enumerate().find_map(|(place, (old, new))| {
        let version = text(new, "/apiVersion");
        if !is_same(version, to) {
            return Some(format!("object {place}, {}, is not in version {to} afterwards", named(old)));
        }
        let fields = ["/kind", "/metadata/name", "/metadata/namespace", "/metadata/uid"];
        let changed = fields.into_iter().find(|field| text(old, field) != text(new, field))?;
        Some(format!("object {place}, {}, has another {changed} afterwards", named(old)))
    })
}

/// Returns the namespace and name of an object.
fn named(object: &Value) -> String {
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// Returns a text of an object; empty if there is none.
pub(super) fn text<'o>(object: &'o Value, pointer: &str) -> &'o str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::name::Scope;

    fn rules(pairs: &[(&str, &str)]) -> Rules {
        let rule = |(place, (from, to)): (usize, &(&str, &str))| Rule {
            hook: HookId { scope: Scope::Global, name: "a.sh".into() },
            binding: place,
            from: (*from).into(),
            to: (*to).into(),
        };
        Rules(pairs.iter().enumerate().map(rule).collect())
    }

    fn path(rules: &Rules, from: &str, to: &str) -> Option<Vec<usize>> {
        Some(rules.path(from, to)?.iter().map(|rule| rule.binding).collect())
    }

    #[test]
    fn the_shortest_way_is_taken_up_and_down() {
        let rules = rules(&[
            ("alpha", "beta"),
            ("beta", "gamma"),
            ("gamma", "delta"),
            ("delta", "gamma"),
            ("gamma", "alpha"),
            ("beta", "delta"),
        ]);
        assert_eq!(path(&rules, "g/alpha", "g/delta"), Some(vec![0, 5]));
        assert_eq!(path(&rules, "g/delta", "g/beta"), Some(vec![3, 4, 0]));
        assert_eq!(path(&rules, "g/alpha", "g/omega"), None);
        assert_eq!(path(&rules, "g/omega", "g/alpha"), None);
    }

    #[test]
    fn a_version_is_never_taken_for_one_that_it_begins() {
        let rules = rules(&[("v1beta1", "v2"), ("v1", "v3")]);
        assert_eq!(path(&rules, "g/v1", "g/v2"), None);
        assert_eq!(path(&rules, "g/v1beta1", "g/v2"), Some(vec![0]));
        assert!(is_same("v1", "g/v1") && !is_same("a/v1", "b/v1") && !is_same("v1", "g/v1beta1"));
    }

    #[test]
    fn short_and_full_names_are_mixed_and_a_group_may_change() {
        let rules = rules(&[
            ("group.io/alpha", "unstable.example.com/beta"),
            ("beta", "stable.example.com/gamma"),
            ("stable.example.com/gamma", "next.io/delta"),
        ]);
        assert_eq!(path(&rules, "group.io/alpha", "next.io/delta"), Some(vec![0, 1, 2]));
        let same_version =
            self::rules(&[("unstable.io/v1", "stable.io/v1"), ("stable.io/v1", "stable.io/v2")]);
        assert_eq!(path(&same_version, "unstable.io/v1", "stable.io/v2"), Some(vec![0, 1]));
    }

    #[test]
    fn of_two_ways_the_one_that_was_declared_first_is_taken_and_circles_end() {
        let rules = rules(&[("a", "c"), ("a", "b"), ("b", "d"), ("c", "d"), ("d", "a"), ("c", "a")]);
        assert_eq!(path(&rules, "g/a", "g/d"), Some(vec![0, 3]));
        assert_eq!(path(&rules, "g/a", "g/x"), None);
    }

    #[test]
    fn f_f6_objects_that_are_lost_renamed_or_doubled_are_named_and_nothing_of_them_is_told() {
        let object = |name: &str, version: &str| {
            json!({"apiVersion": format!("g/{version}"), "kind": "K",
            "metadata": {"name": name, "namespace": "ns", "uid": name}, "data": "secret"})
        };
        let before = [object("a", "v1"), object("b", "v1")];
        let found = |after: &[Value]| difference(&before, after, "v2");
        assert_eq!(found(&[object("a", "v2"), object("b", "v2")]), None);
        let cases = [
            (vec![object("a", "v2")], "it returned 1 objects instead of 2"),
            (
                vec![object("a", "v2"), object("a", "v2")],
                "object 1, ns/b, has another /metadata/name afterwards",
            ),
            (
                vec![object("b", "v2"), object("a", "v2")],
                "object 0, ns/a, has another /metadata/name afterwards",
            ),
            (vec![object("a", "v2"), object("b", "v1")], "object 1, ns/b, is not in version v2 afterwards"),
            (vec![object("a", "v2"), json!(null)], "object 1, ns/b, is not in version v2 afterwards"),
        ];
        for (after, problem) in cases {
            assert_eq!(found(&after).as_deref(), Some(problem));
        }
    }
}

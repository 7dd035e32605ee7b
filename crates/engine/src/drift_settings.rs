//! What a module says about objects of its release that others change. See docs/modules.md#moduleyaml.

use std::sync::Arc;

/// How many rules a module may have that leave fields to others.
pub const MAX_IGNORE_RULES: usize = 64;

/// How many fields one such rule may name.
pub const MAX_IGNORED_PATHS: usize = 64;

/// What is done about objects of a release that others change.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DriftSettings {
    /// Whether it is watched, and put right.
    pub mode: DriftMode,
    /// The fields that are left to others, at most [`MAX_IGNORE_RULES`] rules.
    pub ignore: Vec<IgnoreRule>,
}

/// Whether drift is watched, and put right.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DriftMode {
    /// Objects are not watched: what is deleted or changed is seen by nobody until the release is upgraded.
    Off,
    /// Deleted objects come back; changed fields are told.
    #[default]
    Watch,
    /// Changed fields are written back, too.
    Enforce,
}

/// Fields of objects that are left to others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IgnoreRule {
    /// The kind of the objects: `Deployment`.
    pub kind: Arc<str>,
    /// The name of the only one; all of the kind without it.
    pub name: Option<Arc<str>>,
    /// JSON pointers of the fields, each with all that is in it: `/spec/replicas`. At most [`MAX_IGNORED_PATHS`].
    pub paths: Vec<Arc<str>>,
}

impl IgnoreRule {
    /// Returns whether the rule is about an object.
    pub fn is_about(&self, kind: &str, name: &str) -> bool {
        *self.kind == *kind && self.name.as_ref().is_none_or(|own| **own == *name)
    }

    /// Returns whether the rule leaves the field at a JSON pointer to others.
    pub fn covers(&self, pointer: &str) -> bool {
        let is_in = |path: &Arc<str>| {
            pointer.strip_prefix(&**path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.paths.iter().any(is_in)
    }
}

impl DriftSettings {
    /// Returns the rules about an object.
    pub fn rules<'s>(&'s self, kind: &'s str, name: &'s str) -> impl Iterator<Item = &'s IgnoreRule> {
        self.ignore.iter().filter(move |rule| rule.is_about(kind, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_covers_a_field_with_all_that_is_in_it_and_no_neighbour() {
        let rule = IgnoreRule {
            kind: "Deployment".into(),
            name: Some("web".into()),
            paths: vec!["/spec/replicas".into(), "/metadata/annotations/a~1b".into()],
        };
        assert!(rule.is_about("Deployment", "web"));
        assert!(!rule.is_about("Deployment", "db") && !rule.is_about("StatefulSet", "web"));
        assert!(rule.covers("/spec/replicas") && rule.covers("/spec/replicas/x"));
        assert!(rule.covers("/metadata/annotations/a~1b"));
        assert!(!rule.covers("/spec/replicasets") && !rule.covers("/spec") && !rule.covers(""));
    }
}

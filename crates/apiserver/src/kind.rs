//! The table of kinds: what a server offers, as data.
//!
//! Built-in kinds come from `data/kinds.tsv`; a custom resource definition makes values of the same type.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use objects::types::Name;

/// One kind in one version: the names it goes by and what can be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: Name,
    /// The version within the group, for example `v1`.
    pub version: Name,
    /// The kind in camel case, for example `Deployment`.
    pub kind: Name,
    /// The kind of a list, for example `DeploymentList`.
    pub list_kind: Name,
    /// The resource in paths, for example `deployments`.
    pub plural: Name,
    /// The resource in the singular, for example `deployment`.
    pub singular: Name,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// What people type instead of the plural.
    pub short_names: Vec<Name>,
    /// The groups of resources it belongs to, for example `all`.
    pub categories: Vec<Name>,
    /// What can be done with objects, in alphabetical order.
    pub verbs: Vec<Verb>,
    /// The subresources, in alphabetical order.
    pub subresources: Vec<Subresource>,
    /// Whether this is the version that clients of the group should use.
    pub preferred: bool,
    /// Group and version under which objects are stored when other than this kind's own: the other one shows the same objects.
    pub stored_as: Option<(Name, Name)>,
}

/// A part of an object with a path of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// The last part of the path, for example `status`.
    pub name: Name,
    /// What can be done with it, in alphabetical order.
    pub verbs: Vec<Verb>,
    /// Group of what it speaks, for example `autoscaling` for a scale.
    pub group: Name,
    /// Version of what it speaks.
    pub version: Name,
    /// Kind of what it speaks, for example `Scale`.
    pub kind: Name,
}

/// What can be done with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// POST.
    Create,
    /// DELETE of one.
    Delete,
    /// DELETE of many.
    DeleteCollection,
    /// GET of one.
    Get,
    /// GET of many.
    List,
    /// PATCH.
    Patch,
    /// PUT.
    Update,
    /// GET of a stream of changes.
    Watch,
}

impl Verb {
    /// All verbs in alphabetical order.
    pub const ALL: [Verb; 8] = [
        Verb::Create,
        Verb::Delete,
        Verb::DeleteCollection,
        Verb::Get,
        Verb::List,
        Verb::Patch,
        Verb::Update,
        Verb::Watch,
    ];

    /// Returns the verb as discovery writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Patch => "patch",
            Verb::Update => "update",
            Verb::Watch => "watch",
        }
    }

    fn from_letter(letter: char) -> Option<Verb> {
        Some(match letter {
            'c' => Verb::Create,
            'd' => Verb::Delete,
            'D' => Verb::DeleteCollection,
            'g' => Verb::Get,
            'l' => Verb::List,
            'p' => Verb::Patch,
            'u' => Verb::Update,
            'w' => Verb::Watch,
            _ => return None,
        })
    }
}

impl Kind {
    /// Returns `apiVersion` as objects of this kind carry it.
    pub fn api_version(&self) -> String {
        join_group_version(&self.group, &self.version)
    }

    /// Returns the name of the resource with its group, as errors show it: `deployments.apps`, `pods`.
    pub fn qualified_resource(&self) -> String {
        qualify(&self.plural, &self.group)
    }

    /// Returns the kind with its group, as errors show it: `Deployment.apps`, `Pod`.
    pub fn qualified_kind(&self) -> String {
        qualify(&self.kind, &self.group)
    }

    /// Returns whether `verb` is offered for the resource itself.
    pub fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    /// Returns the subresource `name`.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Returns whether `status` is a subresource, so that writes of the object leave it alone.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
}

fn qualify(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// Returns `group/version`, or `version` alone for the core group.
pub fn join_group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Returns the built-in kinds in the order of discovery: groups by priority, resources by name.
pub fn builtin() -> &'static [Arc<Kind>] {
    &TABLE
}

/// Returns the built-in kind of a resource.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Arc<Kind>> {
    TABLE.iter().find(|k| k.plural == plural && k.group == group && k.version == version)
}

/// Returns the built-in kind called `kind`.
pub fn find_kind(group: &str, version: &str, kind: &str) -> Option<&'static Arc<Kind>> {
    TABLE.iter().find(|k| k.kind == kind && k.group == group && k.version == version)
}

static TABLE: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(|| {
    let mut kinds: Vec<Arc<Kind>> = Vec::new();
    for line in include_str!("../data/kinds.tsv").lines() {
        if let Some(mut kind) = parse(line) {
            kind.preferred = !kinds.iter().any(|k| k.group == kind.group && k.version != kind.version);
            kinds.push(Arc::new(kind));
        }
    }
    kinds
});

/// Returns the kind that a line of the table describes, nothing for a comment.
fn parse(line: &'static str) -> Option<Kind> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = line.split('\t');
    let mut next = || fields.next();
    let (group, version, kind) = (next()?, next()?, next()?);
    let (plural, singular, scope, verbs) = (next()?, next()?, next()?, next()?);
    let (short_names, categories, subresources) = (next()?, next()?, next()?);
    Some(Kind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        plural: plural.into(),
        singular: singular.into(),
        namespaced: scope == "N",
        short_names: split(short_names).map(Cow::Borrowed).collect(),
        categories: split(categories).map(Cow::Borrowed).collect(),
        verbs: parse_verbs(verbs),
        subresources: split(subresources)
            .filter_map(|text| parse_subresource(text, (group, version, kind)))
            .collect(),
        preferred: true,
        stored_as: stored_as(group, version, plural),
    })
}

/// Two groups show events, two versions show autoscalers.
fn stored_as(group: &str, version: &str, plural: &str) -> Option<(Name, Name)> {
    match (group, version, plural) {
        ("events.k8s.io", _, "events") => Some((Cow::Borrowed(""), Cow::Borrowed("v1"))),
        ("autoscaling", "v1", _) => Some((Cow::Borrowed("autoscaling"), Cow::Borrowed("v2"))),
        _ => None,
    }
}

fn split(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(',').filter(|item| !item.is_empty())
}

fn parse_verbs(letters: &str) -> Vec<Verb> {
    letters.chars().filter_map(Verb::from_letter).collect()
}

fn parse_subresource(
    text: &'static str,
    owner: (&'static str, &'static str, &'static str),
) -> Option<Subresource> {
    let mut fields = text.split(':');
    let (name, verbs) = (fields.next()?, fields.next()?);
    let kind = fields.next().unwrap_or(owner.2);
    let (group, version) = fields.next().and_then(|gv| gv.split_once('/')).unwrap_or((owner.0, owner.1));
    Some(Subresource {
        name: name.into(),
        verbs: parse_verbs(verbs),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_kind() {
        let lines = include_str!("../data/kinds.tsv").lines().count();
        assert_eq!(builtin().len(), lines - 1);
        assert!(builtin().iter().all(|k| !k.verbs.is_empty()));
    }

    #[test]
    fn every_kind_of_the_table_has_a_type() {
        for kind in builtin() {
            assert!(objects::types::of_kind(&kind.group, &kind.version, &kind.kind).is_some(), "{kind:?}");
        }
    }

    #[test]
    fn a_kind_is_found_by_its_resource_and_by_its_name() {
        let deployment = find("apps", "v1", "deployments").unwrap();
        assert_eq!(deployment.api_version(), "apps/v1");
        assert_eq!(deployment.qualified_resource(), "deployments.apps");
        assert_eq!(deployment.list_kind, "DeploymentList");
        assert!(deployment.has_status() && deployment.namespaced && deployment.preferred);
        assert_eq!(find_kind("apps", "v1", "Deployment"), Some(deployment));
        let scale = deployment.subresource("scale").unwrap();
        assert_eq!((&*scale.group, &*scale.version, &*scale.kind), ("autoscaling", "v1", "Scale"));
        assert_eq!(find("", "v1", "deployments"), None);
    }

    #[test]
    fn the_first_version_of_a_group_is_preferred() {
        assert!(find("autoscaling", "v2", "horizontalpodautoscalers").unwrap().preferred);
        assert!(!find("autoscaling", "v1", "horizontalpodautoscalers").unwrap().preferred);
    }

    #[test]
    fn namespaces_have_no_deletion_of_many() {
        assert!(!find("", "v1", "namespaces").unwrap().allows(Verb::DeleteCollection));
    }
}

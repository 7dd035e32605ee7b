//! What the server serves at this moment: the built-in kinds and those of custom resource definitions.

mod definition;
pub(crate) mod version_order;

use std::collections::BTreeMap;
use std::sync::Arc;

use objects::selector::FieldPath;
use objects::types::{self, Shape};

use crate::kind::{self, Kind, join_group_version};
use crate::store::TableName;
pub(crate) use definition::{Definition, Version};

/// A kind as it is served.
#[derive(Debug)]
pub(crate) struct Resource {
    /// Names, scope, verbs and subresources.
    pub(crate) kind: Arc<Kind>,
    /// Where the objects are.
    pub(crate) table: TableName,
    /// `apiVersion` of this kind.
    pub(crate) api_version: String,
    /// `apiVersion` of the objects in the table.
    pub(crate) stored_version: String,
    /// What the fields of the objects are.
    pub(crate) shape: Shape,
    /// What objects can be selected by, besides name and namespace.
    pub(crate) fields: Vec<FieldPath>,
    /// The definition and the index of the version, for custom kinds.
    pub(crate) custom: Option<(Arc<Definition>, usize)>,
}

impl Resource {
    fn builtin(kind: &Arc<Kind>) -> Resource {
        let (group, version) = match &kind.stored_as {
            Some((group, version)) => (group.clone(), version.clone()),
            None => (kind.group.clone(), kind.version.clone()),
        };
        Resource {
            kind: Arc::clone(kind),
            table: table_name(&group, &kind.plural),
            api_version: kind.api_version(),
            stored_version: join_group_version(&group, &version),
            shape: types::name_of_kind(&kind.group, &kind.version, &kind.kind)
                .map_or(Shape::Any, Shape::Named),
            fields: fields_of(&group, &kind.plural),
            custom: None,
        }
    }

    fn custom(definition: &Arc<Definition>, index: usize) -> Option<Resource> {
        let version = definition.versions.get(index)?;
        Some(Resource {
            kind: Arc::clone(&version.kind),
            table: table_name(&definition.group, &version.kind.plural),
            api_version: version.kind.api_version(),
            stored_version: join_group_version(&definition.group, &definition.storage),
            shape: version.shape.clone(),
            fields: version.selectable.iter().map(|path| FieldPath::new(path)).collect(),
            custom: Some((Arc::clone(definition), index)),
        })
    }

    /// Returns the version of the definition that made the kind, nothing for built-in kinds.
    pub(crate) fn version(&self) -> Option<&Version> {
        let (definition, index) = self.custom.as_ref()?;
        definition.versions.get(*index)
    }

    /// Tells whether the kind is this built-in one.
    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.custom.is_none() && self.kind.group == group && self.kind.plural == plural
    }
}

/// Returns the name of the table of a resource.
pub(crate) fn table_name(group: &str, plural: &str) -> TableName {
    TableName::from(format!("{group}/{plural}"))
}

/// Returns what the objects of a built-in kind can be selected by.
fn fields_of(group: &str, plural: &str) -> Vec<FieldPath> {
    let names: &[&str] = match (group, plural) {
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("", "nodes") => &["spec.unschedulable"],
        ("", "namespaces") => &["status.phase"],
        ("", "secrets") => &["type"],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("", "replicationcontrollers") | ("apps", "replicasets") => &["status.replicas"],
        ("batch", "jobs") => &["status.successful"],
        ("certificates.k8s.io", "certificatesigningrequests") => &["spec.signerName"],
        _ => &[],
    };
    let absent = |name: &str| match name {
        "spec.hostNetwork" | "spec.unschedulable" => "false",
        "status.replicas" | "status.successful" => "0",
        _ => "",
    };
    // Who an event comes from is a property of its source, or whoever reports it.
    let places = |name: &str| match name {
        "source" => &["source.component", "reportingComponent"] as &[_],
        _ => &[],
    };
    let path =
        |name: &&str| FieldPath { name: (*name).to_owned(), absent: absent(name), places: places(name) };
    names.iter().map(path).collect()
}

/// Everything that is served, by group and version.
#[derive(Debug)]
pub(crate) struct Registry {
    /// `apps/v1` → `deployments` → resource.
    versions: BTreeMap<String, BTreeMap<String, Arc<Resource>>>,
    /// Groups with their versions, both in the order of discovery.
    groups: Vec<(String, Vec<String>)>,
    /// Grows with every change.
    pub(crate) generation: u64,
}

impl Registry {
    /// Returns the built-in kinds and those of `definitions`.
    pub(crate) fn new<'a>(
        definitions: impl Iterator<Item = &'a Arc<Definition>>,
        generation: u64,
    ) -> Registry {
        let mut registry = Registry { versions: BTreeMap::new(), groups: Vec::new(), generation };
        for kind in kind::builtin() {
            registry.add(Resource::builtin(kind));
        }
        let builtin = registry.groups.len();
        for definition in definitions {
            for (index, version) in definition.versions.iter().enumerate() {
                if !version.served {
                    continue;
                }
                if let Some(resource) = Resource::custom(definition, index) {
                    registry.add(resource);
                }
            }
        }
        if let Some(custom) = registry.groups.get_mut(builtin..) {
            custom.sort();
            for (_, versions) in custom {
                versions.sort_by(|a, b| crate::registry::version_order::compare(b, a));
            }
        }
        registry
    }

    fn add(&mut self, resource: Resource) {
        let (group, version) = (&resource.kind.group, &resource.kind.version);
        match self.groups.iter_mut().find(|(name, _)| name == group) {
            Some((_, versions)) => {
                if !versions.iter().any(|known| known == version) {
                    versions.push(version.to_string());
                }
            }
            None => self.groups.push((group.to_string(), vec![version.to_string()])),
        }
        let resources = self.versions.entry(resource.api_version.clone()).or_default();
        resources.entry(resource.kind.plural.to_string()).or_insert_with(|| Arc::new(resource));
    }

    /// Returns a resource by `group/version` and plural.
    pub(crate) fn find(&self, group_version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.versions.get(group_version)?.get(plural)
    }

    /// Returns a resource by `group/version` and kind.
    pub(crate) fn find_kind(&self, group_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.versions.get(group_version)?.values().find(|resource| resource.kind.kind == kind)
    }

    /// Returns the resource whose objects are in `table`, in the version they are stored in.
    pub(crate) fn of_table(&self, table: &str) -> Option<&Arc<Resource>> {
        let (group, plural) = table.rsplit_once('/')?;
        let (_, versions) = self.groups.iter().find(|(name, _)| name == group)?;
        let mut found = versions.iter().filter_map(|v| self.find(&join_group_version(group, v), plural));
        found
            .clone()
            .find(|resource| resource.api_version == resource.stored_version)
            .or_else(|| found.next())
    }

    /// Tells whether the group is served.
    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.groups.iter().any(|(name, _)| name == group)
    }

    /// Returns the groups with their versions, in the order of discovery; the core group is called "".
    pub(crate) fn groups(&self) -> &[(String, Vec<String>)] {
        &self.groups
    }

    /// Returns the resources of a `group/version` in the order of their names.
    pub(crate) fn resources(&self, group_version: &str) -> Option<impl Iterator<Item = &Arc<Resource>>> {
        Some(self.versions.get(group_version)?.values())
    }

    /// Returns every resource.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.versions.values().flat_map(BTreeMap::values)
    }
}

//! Everything that is served at one moment: the built-in kinds and those of custom resource definitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::definition::Definition;
use super::resource::Resource;
use crate::kind::{self, join_group_version};

/// Everything that is served at one moment, by group and version.
#[derive(Debug)]
pub(crate) struct Resources {
    /// `apps/v1` → `deployments` → resource.
    versions: BTreeMap<String, BTreeMap<String, Arc<Resource>>>,
    /// Groups with their versions, both in the order of discovery.
    groups: Vec<(String, Vec<String>)>,
    /// Grows with every change.
    pub(crate) generation: u64,
}

impl Resources {
    /// Returns the built-in kinds and those of `definitions`.
    pub(crate) fn new<'a>(
        definitions: impl Iterator<Item = &'a Arc<Definition>>,
        generation: u64,
    ) -> Resources {
        let mut resources = Resources { versions: BTreeMap::new(), groups: Vec::new(), generation };
        for kind in kind::builtin() {
            resources.add(Resource::builtin(kind));
        }
        let builtin = resources.groups.len();
        for definition in definitions {
            for (index, version) in definition.versions.iter().enumerate() {
                if !version.served {
                    continue;
                }
                if let Some(resource) = Resource::custom(definition, index) {
                    resources.add(resource);
                }
            }
        }
        if let Some(custom) = resources.groups.get_mut(builtin..) {
            custom.sort();
            for (_, versions) in custom {
                versions.sort_by(|a, b| super::version_order::compare(b, a));
            }
        }
        resources
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
        let kinds = self.versions.entry(resource.api_version.clone()).or_default();
        kinds.entry(resource.kind.plural.to_string()).or_insert_with(|| Arc::new(resource));
    }

    pub(crate) fn find(&self, group_version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.versions.get(group_version)?.get(plural)
    }

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
}

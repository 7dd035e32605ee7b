//! The registry of types: what the server serves, and the custom resource definitions that add to it.

mod definition;
mod resource;
mod resources;
mod version_order;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

pub(crate) use definition::{DEFINITIONS, Definition, Version};
pub(crate) use resource::Resource;
pub(crate) use resources::Resources;

use crate::store::TableName;
use crate::sync::lock;

/// The types that a cluster serves. A change makes a new [`Resources`]; requests keep the one they began with.
#[derive(Debug)]
pub(crate) struct Registry {
    resources: RwLock<Arc<Resources>>,
    definitions: Mutex<BTreeMap<String, Arc<Definition>>>,
}

impl Registry {
    /// Returns a registry of the built-in kinds.
    pub(crate) fn new() -> Registry {
        let resources = Resources::new(std::iter::empty(), 1);
        Registry { resources: RwLock::new(Arc::new(resources)), definitions: Mutex::default() }
    }

    /// Returns what is served at this moment.
    pub(crate) fn resources(&self) -> Arc<Resources> {
        Arc::clone(&self.resources.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the resource whose objects are in this table, in the version they are stored in.
    pub(crate) fn of_table(&self, table: &str) -> Option<Arc<Resource>> {
        self.resources().of_table(table).cloned()
    }

    /// Serves the kinds of a definition, unless it is served as it is. Returns the table of their objects, if those were served in
    /// another way before.
    pub(crate) fn define(&self, name: &str, definition: Definition) -> Option<TableName> {
        let mut definitions = lock(&self.definitions);
        if definitions.get(name).is_some_and(|known| **known == definition) {
            return None;
        }
        // One that is being deleted is served as it was, and its watches tell of the end of each object.
        let is_served_on = definition.terminating;
        let known = definitions.insert(name.to_owned(), Arc::new(definition));
        self.rebuild(&definitions);
        known.filter(|_| !is_served_on)?.table()
    }

    /// Returns whether a kind is served as it was when a request found it.
    pub(crate) fn serves(&self, resource: &Resource) -> bool {
        let Some((definition, _)) = &resource.custom else { return true };
        let now = self.of_table(&resource.table);
        now.is_some_and(|now| now.custom.as_ref().is_some_and(|(now, _)| now == definition))
    }

    /// Ends the service of a definition's kinds; returns the table of their objects.
    pub(crate) fn withdraw(&self, name: &str) -> Option<TableName> {
        let mut definitions = lock(&self.definitions);
        let definition = definitions.remove(name);
        self.rebuild(&definitions);
        definition?.table()
    }

    fn rebuild(&self, definitions: &BTreeMap<String, Arc<Definition>>) {
        let mut resources = self.resources.write().unwrap_or_else(PoisonError::into_inner);
        *resources = Arc::new(Resources::new(definitions.values(), resources.generation + 1));
    }
}

//! The modules whose flags may say something else than at the last discovery: the next one asks for those alone.

use std::collections::BTreeSet;

use crate::name::ModuleName;

/// The modules whose flags may say something else than at the last discovery.
#[derive(Debug, Default)]
pub(crate) struct Undecided {
    /// `None` for all.
    names: Option<BTreeSet<ModuleName>>,
    /// A number that grows with each change.
    edition: u64,
}

impl Undecided {
    /// Adds a module.
    pub(crate) fn add(&mut self, name: &ModuleName) {
        self.edition += 1;
        if let Some(names) = &mut self.names {
            names.insert(name.clone());
        }
    }

    /// Adds all modules.
    pub(crate) fn add_all(&mut self) {
        self.edition += 1;
        self.names = None;
    }

    /// Returns the modules; `None` for all.
    pub(crate) fn names(&self) -> Option<&BTreeSet<ModuleName>> {
        self.names.as_ref()
    }

    /// Returns a number that grows with each change.
    pub(crate) fn edition(&self) -> u64 {
        self.edition
    }

    /// Records that a discovery is complete that began at an edition. What was added since stays.
    pub(crate) fn decided(&mut self, edition: u64) {
        if self.edition == edition {
            self.names = Some(BTreeSet::new());
        }
    }
}

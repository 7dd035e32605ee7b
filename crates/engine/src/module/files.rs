//! The files that modules came with, as they run, and what differs when they are loaded again.
//!
//! Of thousands of modules a commit changes a few. Whoever loads files hands out the modules that did not change as they are, so
//! two lists are compared by pointers, and only what differs is looked at.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::catalog::Module;
use crate::name::ModuleName;

/// How many modules of two lists are compared at a time.
const PART: usize = 16;

/// The files that modules came with.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// As they were loaded, in the order in which they run.
    modules: Arc<Vec<Arc<Module>>>,
    /// The modules whose files are not in force as they are, with the number that those are ordered by: they are looked at each
    /// time.
    behind: BTreeMap<ModuleName, u32>,
    /// Those in force that have an enabled script.
    scripted: BTreeSet<ModuleName>,
    /// Those in force that have hooks which the API server may ask.
    asked: BTreeSet<ModuleName>,
    /// Those in force that have hooks which nobody has asked what they want, and none of a bundle before.
    unread: BTreeSet<ModuleName>,
    /// Those in force whose hooks are of a bundle before.
    lent: BTreeSet<ModuleName>,
    /// Those in force that have hooks which keep objects by a finalizer.
    finalizing: BTreeSet<ModuleName>,
    /// Those in force that require others.
    requiring: BTreeSet<ModuleName>,
    /// Those that are gone from the files and not from the cluster.
    orphans: BTreeSet<ModuleName>,
    looked_at: Cell<usize>,
}

/// What differs when files are loaded again.
#[derive(Debug, Default)]
pub(super) struct FileChanges {
    /// The modules that are gone.
    pub(super) gone: Vec<Arc<Module>>,
    /// The modules that came, or that are others, as they run.
    pub(super) came: Vec<Arc<Module>>,
}

impl Files {
    /// Returns these files, of which nothing is in force yet.
    pub(super) fn new(modules: &Arc<Vec<Arc<Module>>>) -> Self {
        Self { modules: Arc::clone(modules), ..Self::default() }
    }

    /// Replaces all files. Returns what differs.
    pub(super) fn replace(&mut self, new: Arc<Vec<Arc<Module>>>) -> FileChanges {
        let old = std::mem::replace(&mut self.modules, new);
        let new = Arc::clone(&self.modules);
        let (mut old, mut new) = (old.as_slice(), new.as_slice());
        let mut changes = FileChanges::default();
        loop {
            let same = shared(old, new);
            old = old.get(same..).unwrap_or_default();
            new = new.get(same..).unwrap_or_default();
            let order = match (old.first(), new.first()) {
                (None, None) => break,
                (Some(known), Some(module)) => place(known).cmp(&place(module)),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
            };
            if order == Ordering::Less {
                changes.gone.extend(old.first().cloned());
            } else {
                changes.came.extend(new.first().cloned());
                new = new.get(1..).unwrap_or_default();
            }
            if order != Ordering::Greater {
                old = old.get(1..).unwrap_or_default();
            }
        }
        if !changes.gone.is_empty() {
            // One that runs at another place is not gone.
            let came: BTreeSet<&ModuleName> = changes.came.iter().map(|module| &module.name).collect();
            changes.gone.retain(|module| !came.contains(&module.name));
        }
        for module in &changes.gone {
            self.behind.remove(&module.name);
        }
        self.look(changes.gone.len() + changes.came.len());
        changes
    }

    /// Returns the modules that came, and those whose files are not in force, as they run.
    pub(super) fn to_look_at(&self, mut came: Vec<Arc<Module>>) -> Vec<Arc<Module>> {
        if self.behind.is_empty() {
            return came;
        }
        let names: BTreeSet<&ModuleName> = came.iter().map(|module| &module.name).collect();
        let others = self.behind.iter().filter(|(name, _)| !names.contains(name));
        let others: Vec<usize> = others.filter_map(|(name, number)| self.place_of(name, *number)).collect();
        came.extend(others.into_iter().filter_map(|place| self.modules.get(place)).cloned());
        came.sort_by(|a, b| place(a).cmp(&place(b)));
        came
    }

    /// Iterates over the names of all modules, as they run.
    pub(super) fn names(&self) -> impl Iterator<Item = &ModuleName> {
        self.modules.iter().map(|module| &module.name)
    }

    /// Returns the name of the module at a place, if there is one.
    pub(super) fn name_at(&self, place: usize) -> Option<&ModuleName> {
        Some(&self.modules.get(place)?.name)
    }

    /// Returns the places of those of `names` that are there, and of all that have an enabled script, in ascending order.
    /// `number` returns the order number of one.
    pub(super) fn places(
        &self,
        names: &BTreeSet<ModuleName>,
        number: impl Fn(&ModuleName) -> Option<u32>,
    ) -> Vec<usize> {
        self.places_of(names.union(&self.scripted), number)
    }

    /// Returns the places of those that have hooks which the API server may ask, in ascending order.
    pub(super) fn places_of_asked(&self, number: impl Fn(&ModuleName) -> Option<u32>) -> Vec<usize> {
        self.places_of(self.asked.iter(), number)
    }

    fn places_of<'n>(
        &self,
        names: impl Iterator<Item = &'n ModuleName>,
        number: impl Fn(&ModuleName) -> Option<u32>,
    ) -> Vec<usize> {
        let mut places: Vec<usize> = names.filter_map(|name| self.place_of(name, number(name)?)).collect();
        places.sort_unstable();
        places
    }

    fn place_of(&self, name: &ModuleName, number: u32) -> Option<usize> {
        self.look(1);
        if self.orphans.contains(name) {
            return None;
        }
        let found = self.modules.binary_search_by(|module| place(module).cmp(&(number, name)));
        // The list may be in another order than numbers and names.
        found.ok().or_else(|| self.names().position(|other| other == name))
    }

    /// Returns whether all files are in force.
    pub(super) fn are_in_force(&self) -> bool {
        self.behind.is_empty()
    }

    /// Records that the files of a module are in force.
    pub(super) fn in_force(&mut self, name: &ModuleName) {
        self.behind.remove(name);
    }

    /// Records that the files of a module are not in force, which are ordered by this number.
    pub(super) fn not_in_force(&mut self, name: &ModuleName, number: u32) {
        self.behind.insert(name.clone(), number);
    }

    /// Records what is in force of a module.
    pub(super) fn adopted(&mut self, module: &Module) {
        let mark = |names: &mut BTreeSet<ModuleName>, is_one: bool| {
            if is_one {
                names.insert(module.name.clone());
            } else {
                names.remove(&module.name);
            }
        };
        mark(&mut self.scripted, module.enabled_script.is_some());
        mark(&mut self.asked, module.hooks.iter().any(|hook| hook.spec.has_webhooks()));
        mark(&mut self.unread, module.has_unread_hooks && module.hooks.is_empty());
        mark(&mut self.lent, module.has_unread_hooks && !module.hooks.is_empty());
        mark(&mut self.finalizing, module.hooks.iter().any(|hook| hook.spec.has_finalizers()));
        mark(&mut self.requiring, !module.settings.requires.is_empty());
        mark(&mut self.orphans, false);
    }

    /// Records that a module is gone from the files, and whether something of it stays.
    pub(super) fn orphaned(&mut self, name: &ModuleName, is_left: bool) {
        self.scripted.remove(name);
        self.asked.remove(name);
        self.unread.remove(name);
        self.lent.remove(name);
        self.finalizing.remove(name);
        self.requiring.remove(name);
        if is_left {
            self.orphans.insert(name.clone());
        }
    }

    /// Records that nothing is left of an orphan.
    pub(super) fn forget(&mut self, name: &ModuleName) {
        self.orphans.remove(name);
    }

    /// Iterates over the modules with hooks that nobody has asked what they want, and with none of a bundle before.
    pub(super) fn unread(&self) -> impl Iterator<Item = &ModuleName> {
        self.unread.iter()
    }

    /// Iterates over the modules whose hooks are of a bundle before.
    pub(super) fn lent(&self) -> impl Iterator<Item = &ModuleName> {
        self.lent.iter()
    }

    /// Iterates over the modules with hooks that keep objects by a finalizer.
    pub(super) fn finalizing(&self) -> impl Iterator<Item = &ModuleName> {
        self.finalizing.iter()
    }

    /// Iterates over the modules that require others.
    pub(super) fn requiring(&self) -> impl Iterator<Item = &ModuleName> {
        self.requiring.iter()
    }

    /// Iterates over the modules that are in force as they are in no files: orphans, and those whose files are not in force.
    pub(super) fn outdated(&self) -> impl Iterator<Item = &ModuleName> {
        self.orphans.iter().chain(self.behind.keys())
    }

    /// Records that modules are looked at.
    pub(super) fn look(&self, count: usize) {
        self.looked_at.set(self.looked_at.get().wrapping_add(count));
    }

    /// Returns how many modules were looked at so far because files changed, or to find out which are on.
    pub(super) fn looked_at(&self) -> usize {
        self.looked_at.get()
    }
}

/// Returns how many modules two lists begin with that are the same.
fn shared(one: &[Arc<Module>], other: &[Arc<Module>]) -> usize {
    // Parts are compared to their ends, which a processor does for several modules at a time.
    let is_same = |one: &[Arc<Module>], other: &[Arc<Module>]| {
        one.iter().zip(other).fold(true, |is_same, (one, other)| is_same & Arc::ptr_eq(one, other))
    };
    let parts = one.chunks_exact(PART).zip(other.chunks_exact(PART));
    let count = parts.take_while(|(one, other)| is_same(one, other)).count() * PART;
    let rest = one.iter().zip(other).skip(count);
    count + rest.take_while(|(one, other)| Arc::ptr_eq(one, other)).count()
}

fn place(module: &Module) -> (u32, &ModuleName) {
    (module.order, &module.name)
}

//! The modules that are on, in their order, as hooks and scripts read them.
//!
//! An enabled script reads those before its own module. A list for each of 1,000 modules would hold half a million names, so
//! all of them share the list that one expects, and each knows how much of it was found out before it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::name::ModuleName;

/// The beginning of a list of modules that are on. The rest of the list is what one expects; nobody reads it.
#[derive(Clone, Default)]
pub struct EnabledModules {
    names: Arc<[ModuleName]>,
    found: usize,
}

impl EnabledModules {
    /// Returns none, where `names` are expected.
    pub(crate) fn expecting(names: Arc<[ModuleName]>) -> Self {
        Self { names, found: 0 }
    }

    /// Records whether the next module was found enabled.
    pub(crate) fn find(&mut self, name: &ModuleName, is_on: bool) {
        let is_expected = self.names.get(self.found) == Some(name);
        if is_expected != is_on {
            let (before, after) = self.names.split_at(self.found);
            let after = after.iter().skip(usize::from(is_expected));
            self.names = before.iter().chain(is_on.then_some(name)).chain(after).cloned().collect();
        }
        self.found += usize::from(is_on);
    }

    /// Records that the next modules are on as expected, as long as `is_it` says so of them. It says so of the first ones.
    pub(crate) fn pass(&mut self, is_it: impl Fn(&ModuleName) -> bool) {
        let rest = self.names.get(self.found..).unwrap_or_default();
        self.found += rest.partition_point(is_it);
    }

    /// Returns the modules as a list of their own.
    pub(crate) fn into_names(self) -> Arc<[ModuleName]> {
        if self.found == self.names.len() { self.names } else { self.iter().cloned().collect() }
    }
}

impl From<Arc<[ModuleName]>> for EnabledModules {
    fn from(names: Arc<[ModuleName]>) -> Self {
        let found = names.len();
        Self { names, found }
    }
}

impl Deref for EnabledModules {
    type Target = [ModuleName];

    fn deref(&self) -> &[ModuleName] {
        self.names.get(..self.found).unwrap_or_default()
    }
}

impl PartialEq for EnabledModules {
    fn eq(&self, other: &Self) -> bool {
        self.found == other.found && (Arc::ptr_eq(&self.names, &other.names) || **self == **other)
    }
}

impl Eq for EnabledModules {}

impl Serialize for EnabledModules {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl fmt::Debug for EnabledModules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Arc<[ModuleName]> {
        names.iter().map(|name| ModuleName::from(*name)).collect()
    }

    #[test]
    fn what_is_as_expected_shares_one_list() {
        let expected = names(&["a", "c"]);
        let mut so_far = EnabledModules::expecting(Arc::clone(&expected));
        so_far.find(&"a".into(), true);
        so_far.find(&"b".into(), false);
        let before_c = so_far.clone();
        so_far.find(&"c".into(), true);
        assert_eq!((&*before_c, &*so_far), (&*names(&["a"]), &*names(&["a", "c"])));
        assert!(Arc::ptr_eq(&before_c.names, &expected) && Arc::ptr_eq(&so_far.into_names(), &expected));
    }

    #[test]
    fn what_is_passed_is_on_as_expected() {
        let mut so_far = EnabledModules::expecting(names(&["a", "c", "e"]));
        so_far.pass(|name| name.as_str() < "d");
        so_far.find(&"d".into(), true);
        assert_eq!(*so_far, *names(&["a", "c", "d"]));
        so_far.pass(|_| true);
        assert_eq!(*so_far.into_names(), *names(&["a", "c", "d", "e"]));
    }

    #[test]
    fn what_is_not_as_expected_changes_no_list_of_others() {
        let mut so_far = EnabledModules::expecting(names(&["a", "b", "d"]));
        so_far.find(&"a".into(), false);
        so_far.find(&"b".into(), true);
        let before_c = so_far.clone();
        so_far.find(&"c".into(), true);
        assert_eq!((&*before_c, &*so_far), (&*names(&["b"]), &*names(&["b", "c"])));
        assert_eq!(before_c, EnabledModules::from(names(&["b"])));
        assert_ne!(before_c, EnabledModules::from(names(&["c"])));
        so_far.find(&"d".into(), false);
        assert_eq!(*so_far.into_names(), *names(&["b", "c"]));
    }
}

//! The environment of programs: variables that all of them have, made ready once, and those of one run.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

/// The whole environment of a program. Copies share what was there from the beginning.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    shared: Arc<Shared>,
    /// Set later; `None` for those that the program does not have. The last one of a name counts.
    own: Vec<(&'static str, Option<OsString>)>,
}

/// Variables as they are told the system.
#[derive(Debug, Default)]
struct Shared {
    all: Vec<Entry>,
    /// Where each is in the list.
    places: BTreeMap<OsString, usize>,
}

#[derive(Debug)]
struct Entry {
    name: OsString,
    value: OsString,
    /// `NAME=value`; `None` if a zero is in it.
    text: Option<CString>,
}

impl Entry {
    fn new(name: OsString, value: OsString) -> Self {
        let text = CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok();
        Self { name, value, text }
    }
}

impl From<Vec<(OsString, OsString)>> for Variables {
    /// Returns these variables. The last one of a name counts.
    fn from(variables: Vec<(OsString, OsString)>) -> Self {
        let mut shared = Shared::default();
        for (name, value) in variables {
            let entry = Entry::new(name.clone(), value);
            if let Some(known) = shared.places.get(&name).and_then(|place| shared.all.get_mut(*place)) {
                *known = entry;
            } else {
                shared.places.insert(name, shared.all.len());
                shared.all.push(entry);
            }
        }
        Self { shared: Arc::new(shared), own: Vec::new() }
    }
}

impl Variables {
    /// Sets a variable, whatever it was before.
    pub fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.own.push((name, Some(value.into())));
    }

    /// Removes a variable.
    pub fn remove(&mut self, name: &'static str) {
        self.own.push((name, None));
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        if let Some((_, value)) = self.own.iter().rev().find(|(own, _)| *own == name) {
            return value.as_deref();
        }
        let place = self.shared.places.get(OsStr::new(name))?;
        self.shared.all.get(*place).map(|entry| &*entry.value)
    }

    /// Iterates over names and values, each name once.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let hidden = self.hidden();
        let shared = self.shared.all.iter().enumerate().filter(move |(place, _)| !hidden.contains(place));
        shared.map(|(_, entry)| (&*entry.name, &*entry.value)).chain(self.own())
    }

    /// Iterates over the texts of those that were there from the beginning and hold still. One with a zero in it is `None`.
    pub(super) fn shared(&self) -> impl Iterator<Item = Option<&CString>> {
        let hidden = self.hidden();
        let shared = self.shared.all.iter().enumerate().filter(move |(place, _)| !hidden.contains(place));
        shared.map(|(_, entry)| entry.text.as_ref())
    }

    /// Iterates over those that were set later.
    pub(super) fn own(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.own.iter().enumerate().filter_map(|(index, (name, value))| {
            let later = self.own.get(index + 1..).unwrap_or_default();
            let is_last = !later.iter().any(|(other, _)| other == name);
            value.as_deref().filter(|_| is_last).map(|value| (OsStr::new(*name), value))
        })
    }

    /// Returns the places of those that others were set over.
    fn hidden(&self) -> Vec<usize> {
        let place = |(name, _): &(&'static str, _)| self.shared.places.get(OsStr::new(*name)).copied();
        self.own.iter().filter_map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_name_counts_and_what_is_removed_is_not_there() {
        let pairs = [("A", "1"), ("B", "2"), ("A", "3"), ("C", "4")];
        let shared = pairs.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let mut variables = Variables::from(shared.to_vec());
        let before = variables.clone();
        variables.set("B", "5");
        variables.set("D", "6");
        variables.set("D", "7");
        variables.remove("C");
        variables.remove("E");
        let all: Vec<_> = variables.iter().map(|(name, value)| (name.to_str(), value.to_str())).collect();
        let expected = [("A", "3"), ("B", "5"), ("D", "7")];
        assert_eq!(all, expected.map(|(name, value)| (Some(name), Some(value))));
        let values = ["A", "B", "C", "D", "E"].map(|name| variables.get(name).and_then(OsStr::to_str));
        assert_eq!(values, [Some("3"), Some("5"), None, Some("7"), None]);
        let values = ["A", "B", "C", "D"].map(|name| before.get(name).and_then(OsStr::to_str));
        assert_eq!(values, [Some("3"), Some("2"), Some("4"), None], "a copy is not changed");
    }
}

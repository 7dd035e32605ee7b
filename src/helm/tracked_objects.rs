//! The objects of one release and their kinds, held in little memory: there are as many as in all charts. No I/O.

use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

use super::object::Key;
use crate::cluster::Resource;

/// The kinds of all tracked objects, each held once.
#[derive(Debug, Default)]
pub(super) struct SharedKinds(Vec<Arc<Resource>>);

impl SharedKinds {
    /// Returns the one copy of a kind. Kinds that nobody uses any more are forgotten.
    fn share(&mut self, kind: Resource) -> Arc<Resource> {
        if let Some(known) = self.0.iter().find(|known| ***known == kind) {
            return Arc::clone(known);
        }
        self.0.retain(|known| Arc::strong_count(known) > 1);
        let kind = Arc::new(kind);
        self.0.push(Arc::clone(&kind));
        kind
    }
}

/// The objects of one release, sorted by key.
#[derive(Debug, Default)]
pub(super) struct TrackedObjects(Box<[(Key, Arc<Resource>)]>);

impl TrackedObjects {
    /// Returns these objects. `kinds` holds their kinds.
    pub(super) fn new(objects: BTreeMap<Key, Resource>, kinds: &mut SharedKinds) -> Self {
        Self(objects.into_iter().map(|(key, kind)| (key, kinds.share(kind))).collect())
    }

    /// Returns the kind of an object, if it is one of these.
    pub(super) fn get(&self, key: &Key) -> Option<&Resource> {
        let at = self.0.binary_search_by(|(own, _)| own.cmp(key)).ok()?;
        self.0.get(at).map(|(_, kind)| &**kind)
    }

    /// Returns the objects, each with its kind.
    pub(super) fn iter(&self) -> Iter<'_> {
        self.into_iter()
    }
}

/// Objects, each with its kind.
type Iter<'o> = std::iter::Map<
    slice::Iter<'o, (Key, Arc<Resource>)>,
    fn(&'o (Key, Arc<Resource>)) -> (&'o Key, &'o Resource),
>;

impl<'o> IntoIterator for &'o TrackedObjects {
    type Item = (&'o Key, &'o Resource);
    type IntoIter = Iter<'o>;

    fn into_iter(self) -> Iter<'o> {
        self.0.iter().map(|(key, kind)| (key, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> Resource {
        Resource {
            group: String::new(),
            version: "v1".to_owned(),
            kind: name.to_owned(),
            plural: name.to_lowercase(),
            short_names: Vec::new(),
            namespaced: true,
            preferred: true,
            verbs: vec!["watch".to_owned()],
        }
    }

    fn key(kind: &str, name: &str) -> Key {
        Key { group: String::new(), kind: kind.into(), namespace: "ns".into(), name: name.into() }
    }

    #[test]
    fn a_kind_is_held_once_for_all_releases_and_no_longer_than_it_is_used() {
        let mut kinds = SharedKinds::default();
        let mut of = |name: &str| {
            let objects = ["a", "b"].map(|object| (key(name, object), kind(name))).into();
            TrackedObjects::new(objects, &mut kinds)
        };
        let (first, second, third) = (of("A"), of("A"), of("B"));
        assert!(std::ptr::eq(first.get(&key("A", "a")).unwrap(), second.get(&key("A", "b")).unwrap()));
        assert_eq!(first.get(&key("B", "a")), None);
        assert_eq!(third.iter().map(|(key, _)| key.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        drop((first, second));
        let _ = of("C");
        assert_eq!(kinds.0.len(), 2);
    }
}

//! Which finalizers of an object are those of a binding: the one that it names, and one that it named before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::observed::Metadata;

/// The annotation of an object that says which binding added which finalizer, as JSON: `{"module/hook/binding": "example.com/site"}`.
const RECORD: &str = "addon-operator.io/finalizers";
/// The annotation of an object that is being deleted and of which a hook said that it is finalized, as JSON: the finalizer, and the
/// identity of the object, which a copy of it does not have.
const FINALIZED: &str = "addon-operator.io/finalized";

/// The finalizer of the garbage collector on an object whose children are to stay.
const ORPHAN: &str = "orphan";

/// The bindings of a kind that are on.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Peers {
    /// How they are named.
    pub(super) marks: BTreeSet<Arc<str>>,
    /// What they name.
    pub(super) finalizers: BTreeSet<String>,
    /// How those are named that are not on, and whose finalizers are looked for all the same.
    pub(super) retired: BTreeSet<Arc<str>>,
}

/// A finalizer that nobody removes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Left {
    pub(super) finalizer: String,
    /// The binding that added it.
    pub(super) by: String,
}

/// The finalizers of an object, as a binding sees them.
#[derive(Debug)]
pub(super) struct Finalizers<'m> {
    mark: String,
    /// The one that the binding names.
    wanted: Option<&'m str>,
    metadata: &'m Metadata,
    peers: &'m Peers,
    record: BTreeMap<String, String>,
    /// Of which of them the hook said that nothing is left to do, and of which object.
    finalized: BTreeMap<String, String>,
}

impl<'m> Finalizers<'m> {
    /// Returns those of an object. A record that can't be read says nothing.
    pub(super) fn of(
        metadata: &'m Metadata,
        mark: String,
        wanted: Option<&'m str>,
        peers: &'m Peers,
    ) -> Self {
        let read = |name: &str| {
            let text = metadata.annotations.get(name);
            text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
        };
        Self { mark, wanted, metadata, peers, record: read(RECORD), finalized: read(FINALIZED) }
    }

    fn is_own(&self, finalizer: &str) -> bool {
        self.wanted == Some(finalizer)
            || self.record.get(&self.mark).is_some_and(|before| before == finalizer)
    }

    /// Returns whether the object has one of the binding.
    pub(super) fn are_held(&self) -> bool {
        self.held().next().is_some()
    }

    /// Returns those of the binding that the object has.
    fn held(&self) -> impl Iterator<Item = &'m str> + '_ {
        let names = self.metadata.finalizers.iter().map(String::as_str);
        names.filter(|finalizer| self.is_own(finalizer))
    }

    /// Returns whether the garbage collector takes the owner from its children, since somebody asked that they stay.
    pub(super) fn are_being_orphaned(&self) -> bool {
        self.metadata.has_finalizer(ORPHAN)
    }

    /// Returns whether its hook said of this very object that nothing is left to do.
    pub(super) fn is_finalized(&self) -> bool {
        self.held()
            .any(|finalizer| self.finalized.get(finalizer).is_some_and(|uid| **uid == *self.metadata.uid))
    }

    /// Returns the fields of the metadata that say so.
    pub(super) fn finalized(&self) -> Map<String, Value> {
        let mut finalized = self.finalized.clone();
        finalized.extend(self.held().map(|finalizer| (finalizer.to_owned(), self.metadata.uid.to_string())));
        Map::from_iter([(
            "annotations".to_owned(),
            Map::from_iter([(FINALIZED.to_owned(), json(&finalized))]).into(),
        )])
    }

    /// Returns whether the record says that another binding, which is not there, added what this one names: it is that of this one
    /// now, which may have had another name.
    fn is_inherited(&self, by: &str, finalizer: &str) -> bool {
        *by != self.mark && self.wanted == Some(finalizer) && !self.peers.marks.contains(by)
    }

    /// Returns whether the object has what the binding names, and nothing that it named before.
    pub(super) fn are_settled(&self) -> bool {
        self.held().eq(self.wanted)
            && !self.record.iter().any(|(by, finalizer)| self.is_inherited(by, finalizer))
    }

    /// Returns the fields of the metadata of an object that has this one of the binding, or none.
    pub(super) fn fields(&self, finalizer: Option<&str>) -> Map<String, Value> {
        let others = self.metadata.finalizers.iter().map(String::as_str).filter(|name| !self.is_own(name));
        let names: Vec<&str> = others.chain(finalizer).collect();
        let mut record = self.record.clone();
        record.retain(|by, finalizer| !self.is_inherited(by, finalizer));
        match finalizer {
            Some(finalizer) => record.insert(self.mark.clone(), finalizer.to_owned()),
            None => record.remove(&self.mark),
        };
        let mut ends = self.finalized.clone();
        ends.retain(|name, _| !self.is_own(name));
        let mut fields = Map::from_iter([("finalizers".to_owned(), names.into())]);
        let changed = [(RECORD, &record, &self.record), (FINALIZED, &ends, &self.finalized)];
        let changed = changed.into_iter().filter(|(_, new, old)| new != old);
        let annotations: Map<String, Value> =
            changed.map(|(name, new, _)| (name.to_owned(), json(new))).collect();
        if !annotations.is_empty() {
            fields.insert("annotations".to_owned(), annotations.into());
        }
        fields
    }

    /// Returns one on the object that a binding added which is not on, and that none names which is on. Of several that look for
    /// it, one finds it.
    pub(super) fn left(&self) -> Option<Left> {
        let is_left = |finalizer: &str| !self.peers.finalizers.contains(finalizer);
        if self.peers.retired.contains(self.mark.as_str()) {
            let mut own = self.metadata.finalizers.iter().filter(|finalizer| self.is_own(finalizer));
            let finalizer = own.find(|finalizer| is_left(finalizer))?;
            return Some(Left { finalizer: finalizer.clone(), by: self.mark.clone() });
        }
        let is_known = |by: &str| self.peers.marks.contains(by) || self.peers.retired.contains(by);
        let (by, finalizer) = self.record.iter().find(|(by, finalizer)| {
            self.metadata.has_finalizer(finalizer) && is_left(finalizer) && !is_known(by)
        })?;
        Some(Left { finalizer: finalizer.clone(), by: by.clone() })
    }
}

/// Returns the text of an annotation; null if there is nothing to say.
fn json(texts: &BTreeMap<String, String>) -> Value {
    let text = (!texts.is_empty()).then(|| serde_json::to_string(texts).unwrap_or_default());
    text.into()
}

/// Changes the metadata of an object as a merge patch of these fields does.
pub(super) fn applied(metadata: &mut Map<String, Value>, fields: &Map<String, Value>) {
    for (field, new) in fields {
        let mut value = new.clone();
        if let Value::Object(changes) = new {
            let mut merged = metadata.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
            for (key, text) in changes {
                if text.is_null() {
                    merged.remove(key);
                } else {
                    merged.insert(key.clone(), text.clone());
                }
            }
            value = merged.into();
        }
        // The API server leaves out what is empty.
        let is_empty =
            value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
        if is_empty {
            metadata.remove(field);
        } else {
            metadata.insert(field.clone(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hook::snapshot::Item;

    fn metadata(finalizers: &[&str], record: &Value) -> Metadata {
        let annotations = record.is_object().then(|| json!({RECORD: record.to_string()}));
        let object = json!({"metadata": {"finalizers": finalizers, "annotations": annotations}});
        Metadata::of(&Item::unfiltered(object.to_string().as_bytes().into(), true))
    }

    #[test]
    fn a_finalizer_is_that_of_the_binding_that_names_it_or_named_it_before() {
        let seen = metadata(&["x/old", "x/else"], &json!({"a/b": "x/old", "c/d": "x/else"}));
        let peers = Peers::default();
        let of = |mark: &str, wanted| Finalizers::of(&seen, mark.to_owned(), wanted, &peers);
        let renamed = of("a/b", Some("x/new"));
        assert!(renamed.are_held() && !renamed.are_settled());
        let record = json!({"a/b": "x/new", "c/d": "x/else"}).to_string();
        let fields = json!({"finalizers": ["x/else", "x/new"], "annotations": {RECORD: record}});
        assert_eq!(Value::Object(renamed.fields(Some("x/new"))), fields);
        assert!(of("a/b", Some("x/old")).are_settled());
        assert!(of("a/b", None).are_held() && !of("a/b", None).are_settled(), "it is dropped");
        let stranger = of("e/f", Some("x/f"));
        assert!(!stranger.are_held() && !stranger.are_settled() && of("e/f", None).are_settled());
    }

    #[test]
    fn the_record_goes_with_the_last_finalizer_and_is_not_written_for_what_it_says() {
        let (seen, peers) = (metadata(&["x/old"], &json!({"a/b": "x/old"})), Peers::default());
        let own = Finalizers::of(&seen, "a/b".to_owned(), Some("x/old"), &peers);
        let gone = json!({"finalizers": [], "annotations": {RECORD: null}});
        assert_eq!(Value::Object(own.fields(None)), gone);
        let mut living =
            json!({"name": "a", "finalizers": ["x/old"], "annotations": {RECORD: "{}", "x": "y"}});
        applied(living.as_object_mut().unwrap(), &own.fields(None));
        assert_eq!(living, json!({"name": "a", "annotations": {"x": "y"}}));
        // Who has it by a manifest has no record.
        let seen = metadata(&["x/old"], &Value::Null);
        let own = Finalizers::of(&seen, "a/b".to_owned(), Some("x/old"), &peers);
        assert_eq!(Value::Object(own.fields(None)), json!({"finalizers": []}));
        assert!(own.are_settled());
    }

    #[test]
    fn what_was_said_to_be_finalized_is_so_for_the_same_object_and_goes_with_the_finalizer() {
        let seen = |uid: &str, finalized: &Value| {
            let annotations = json!({FINALIZED: finalized.to_string()});
            let object =
                json!({"metadata": {"uid": uid, "finalizers": ["x/one"], "annotations": annotations}});
            Metadata::of(&Item::unfiltered(object.to_string().as_bytes().into(), true))
        };
        let peers = Peers::default();
        let of = |metadata: &Metadata, wanted| {
            Finalizers::of(metadata, "a/b".to_owned(), wanted, &peers).is_finalized()
        };
        let said = json!({"x/one": "1"});
        assert!(of(&seen("1", &said), Some("x/one")) && !of(&seen("1", &said), Some("x/two")));
        assert!(!of(&seen("2", &said), Some("x/one")), "it is a copy");
        assert!(!of(&seen("1", &json!([1])), Some("x/one")));
        let other = seen("1", &json!({"y/else": "1"}));
        let own = Finalizers::of(&other, "a/b".to_owned(), Some("x/one"), &peers);
        let both = json!({"x/one": "1", "y/else": "1"});
        assert_eq!(Value::Object(own.finalized()), json!({"annotations": {FINALIZED: both.to_string()}}));
        let both = seen("1", &both);
        let own = Finalizers::of(&both, "a/b".to_owned(), Some("x/one"), &peers);
        let left = json!({"y/else": "1"}).to_string();
        assert_eq!(
            Value::Object(own.fields(None)),
            json!({"finalizers": [], "annotations": {FINALIZED: left}})
        );
    }

    #[test]
    fn what_a_binding_added_that_is_not_there_is_left_unless_another_one_names_it_or_looks_for_it() {
        let seen = metadata(&["x/one", "x/two"], &json!({"a/b": "x/one", "c/d": "x/two", "e/f": "x/gone"}));
        let texts = |names: &[&str]| names.iter().copied().map(Arc::from).collect();
        let of = |mark: &str, marks: &[&str], finalizers: &[&str], retired: &[&str]| {
            let peers = Peers {
                marks: texts(marks),
                finalizers: finalizers.iter().map(|&name| name.to_owned()).collect(),
                retired: texts(retired),
            };
            Finalizers::of(&seen, mark.to_owned(), None, &peers).left().map(|left| left.finalizer)
        };
        let left = |marks: &[&str], finalizers: &[&str]| of("g/h", marks, finalizers, &[]);
        assert_eq!(left(&["c/d"], &[]).as_deref(), Some("x/one"));
        assert_eq!(left(&["a/b"], &[]).as_deref(), Some("x/two"));
        assert_eq!((left(&["a/b"], &["x/two"]), left(&["a/b", "c/d"], &[])), (None, None));
        // Who is not on looks for its own, and nobody else does.
        assert_eq!(of("c/d", &[], &[], &["c/d"]).as_deref(), Some("x/two"));
        assert_eq!(of("c/d", &[], &["x/two"], &["c/d"]), None, "somebody removes it");
        assert_eq!(of("g/h", &["a/b"], &[], &["c/d"]), None);
        let unreadable = json!({"metadata": {"finalizers": ["x/one"], "annotations": {RECORD: "[1"}}});
        let unreadable = Metadata::of(&Item::unfiltered(unreadable.to_string().as_bytes().into(), true));
        let peers = Peers::default();
        assert_eq!(Finalizers::of(&unreadable, "g/h".to_owned(), None, &peers).left(), None);
    }

    #[test]
    fn what_a_binding_names_that_one_added_which_is_not_there_becomes_its_own() {
        let record = json!({"a/old": "x/one", "c/d": "x/two"});
        let seen = metadata(&["x/one", "x/two"], &record);
        let gone = Peers { marks: ["a/new".into(), "c/d".into()].into(), ..Peers::default() };
        let renamed = Finalizers::of(&seen, "a/new".to_owned(), Some("x/one"), &gone);
        assert!(renamed.are_held() && !renamed.are_settled());
        let record = json!({"a/new": "x/one", "c/d": "x/two"}).to_string();
        let fields = json!({"finalizers": ["x/two", "x/one"], "annotations": {RECORD: record}});
        assert_eq!(Value::Object(renamed.fields(Some("x/one"))), fields);
        let record = json!({"c/d": "x/two"}).to_string();
        let fields = json!({"finalizers": ["x/two"], "annotations": {RECORD: record}});
        assert_eq!(Value::Object(renamed.fields(None)), fields);
        let both = Peers { marks: ["a/new".into(), "a/old".into()].into(), ..Peers::default() };
        assert!(Finalizers::of(&seen, "a/new".to_owned(), Some("x/one"), &both).are_settled());
    }
}

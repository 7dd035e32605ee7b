//! The history of stateful sets and daemon sets: one revision for each template, from which a roll-out is undone.

use std::sync::Arc;

use serde_json::{Value, json};

use super::ownership::{Wanted, claim, reference};
use super::status::{CONTROLLER, number, text};
use super::template::hash;
use crate::cluster::{Cluster, Edit};
use crate::store::ObjectRef;
use crate::write::loopback::{create, remove};

/// The label of pods that tells which template they are of.
pub(super) const HASH: &str = "controller-revision-hash";

const TABLE: &str = "apps/controllerrevisions";

/// One template of a set.
#[derive(Clone, Debug)]
pub(super) struct Revision {
    pub(super) name: String,
    /// The template, as the revision keeps it.
    pub(super) template: Value,
    number: i64,
}

/// The revisions of a set, the oldest first. The last one has the present template.
#[derive(Clone, Debug)]
pub(super) struct History(Vec<(ObjectRef, Revision)>);

impl History {
    /// Returns the revisions of a set; the present template gets one, or its old one becomes the newest.
    ///
    /// `label` is the label of a revision that bears its hash.
    pub(super) fn of(cluster: &Arc<Cluster>, set: &Value, label: &str) -> History {
        let mut known = kept(cluster, set);
        let template = set.pointer("/spec/template").cloned().unwrap_or_default();
        let hash = hash(&template);
        let name = format!("{}-{hash}", text(set, "/metadata/name"));
        let newest = known.last().map_or(0, |(_, revision)| revision.number);
        match known.iter().position(|(_, revision)| revision.name == name) {
            Some(index) if index + 1 == known.len() => {}
            Some(index) => {
                let (object_ref, mut revision) = known.remove(index);
                revision.number = newest + 1;
                renumber(cluster, &object_ref, revision.number);
                known.push((object_ref, revision));
            }
            None => {
                let namespace = text(set, "/metadata/namespace");
                let number = newest + 1;
                let new = new_revision(set, &name, (label, &hash), &template, number);
                create(cluster, "apps/v1", "controllerrevisions", Some(namespace), new);
                let key = format!("{namespace}/{name}");
                let object_ref = ObjectRef { table: TABLE.into(), key: key.into() };
                known.push((object_ref, Revision { name, template, number }));
            }
        }
        History(known)
    }

    /// Returns the revision of the present template.
    pub(super) fn update(&self) -> Option<&Revision> {
        self.0.last().map(|(_, revision)| revision)
    }

    /// Returns the revision of this name.
    pub(super) fn find(&self, name: &str) -> Option<&Revision> {
        self.0.iter().map(|(_, revision)| revision).find(|revision| revision.name == name)
    }

    /// Deletes the oldest revisions that no pod is of, beyond those that the set keeps.
    pub(super) fn trim(&self, cluster: &Arc<Cluster>, set: &Value, is_used: impl Fn(&Revision) -> bool) {
        let limit = usize::try_from(number(set, "/spec/revisionHistoryLimit", 10)).unwrap_or(0);
        let (_, old) = self.0.split_last().map_or((None, &[][..]), |(last, old)| (Some(last), old));
        let unused: Vec<&ObjectRef> =
            old.iter().filter(|(_, revision)| !is_used(revision)).map(|(object_ref, _)| object_ref).collect();
        for object_ref in unused.iter().take(unused.len().saturating_sub(limit)) {
            remove(cluster, object_ref, None);
        }
    }
}

fn kept(cluster: &Cluster, set: &Value) -> Vec<(ObjectRef, Revision)> {
    let own = claim(cluster, set, &Wanted::all(TABLE)).into_iter();
    let read = own.map(|(object_ref, revision)| {
        let read = Revision {
            name: text(&revision, "/metadata/name").to_owned(),
            template: revision.pointer("/data/spec/template").cloned().unwrap_or_default(),
            number: number(&revision, "/revision", 0),
        };
        (object_ref, read)
    });
    let mut found: Vec<(ObjectRef, Revision)> = read.collect();
    found.sort_by_key(|(_, revision)| revision.number);
    found
}

fn new_revision(
    set: &Value,
    name: &str,
    (label, hash): (&str, &str),
    template: &Value,
    number: i64,
) -> Value {
    let mut labels = template.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(label.into(), json!(hash));
    }
    let mut template = template.clone();
    // Laid over a set, the template takes the place of the present one.
    if let Some(fields) = template.as_object_mut() {
        fields.insert("$patch".into(), json!("replace"));
    }
    json!({
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": set.pointer("/metadata/annotations"),
            "ownerReferences": [reference(set)],
        },
        "data": {"spec": {"template": template}},
        "revision": number,
    })
}

fn renumber(cluster: &Cluster, object_ref: &ObjectRef, number: i64) {
    let Some(resource) = cluster.registry.of_table(&object_ref.table) else {
        return;
    };
    // A revision that is gone meanwhile is made again.
    let _ = cluster.modify(&resource, object_ref, CONTROLLER, |revision| {
        let Some(fields) = revision.as_object_mut() else {
            return Edit::Keep;
        };
        fields.insert("revision".into(), json!(number));
        Edit::Write
    });
}

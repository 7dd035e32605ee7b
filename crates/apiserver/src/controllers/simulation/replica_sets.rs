//! The replica sets of a deployment: one for each template, with the number of the roll-out.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::pods;
use super::status::{CONTROLLER, number, text};
use crate::cluster::{Cluster, Edit};
use crate::store::ObjectRef;
use crate::write::loopback::{create, remove};

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MOST: &str = "deployment.kubernetes.io/max-replicas";

/// Annotations that a replica set does not take over from its deployment.
const OWN: [&str; 5] = ["kubectl.kubernetes.io/last-applied-configuration", REVISION, HISTORY, DESIRED, MOST];

/// One replica set of a deployment.
#[derive(Clone, Debug)]
pub(super) struct ReplicaSet {
    pub(super) object_ref: ObjectRef,
    value: Value,
}

impl ReplicaSet {
    /// Returns how many pods it asks for.
    pub(super) fn wanted(&self) -> i64 {
        number(&self.value, "/spec/replicas", 0)
    }

    /// Returns how many of its pods are available. What it shall lose does not count.
    pub(super) fn available(&self) -> i64 {
        self.counted("availableReplicas").min(self.wanted())
    }

    /// Returns a number of its status.
    pub(super) fn counted(&self, field: &str) -> i64 {
        number(&self.value, &format!("/status/{field}"), 0)
    }

    pub(super) fn name(&self) -> &str {
        text(&self.value, "/metadata/name")
    }

    fn revision(&self) -> i64 {
        self.annotation(REVISION).parse().unwrap_or(0)
    }

    fn annotation(&self, name: &str) -> &str {
        let annotations = self.value.pointer("/metadata/annotations");
        annotations.and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or_default()
    }
}

/// All replica sets of a deployment.
#[derive(Clone, Debug)]
pub(super) struct ReplicaSets {
    /// That of the present template.
    pub(super) current: Option<ReplicaSet>,
    /// The others, the oldest first.
    pub(super) old: Vec<ReplicaSet>,
}

impl ReplicaSets {
    /// Returns the replica sets of a deployment; `name` is that of the one with the present template.
    pub(super) fn of(cluster: &Cluster, deployment: &Value, name: &str) -> ReplicaSets {
        let store = cluster.storage.read();
        let refs = store.dependents_of(text(deployment, "/metadata/uid"));
        let mut old: Vec<ReplicaSet> = refs
            .filter(|object_ref| &*object_ref.table == "apps/replicasets")
            .filter_map(|object_ref| {
                let value = store.get(&object_ref.table, &object_ref.key)?.value();
                Some(ReplicaSet { object_ref: object_ref.clone(), value })
            })
            .collect();
        drop(store);
        old.sort_by_key(ReplicaSet::revision);
        let index = old.iter().position(|set| set.name() == name);
        let current = index.map(|index| old.remove(index));
        ReplicaSets { current, old }
    }

    /// Returns all of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &ReplicaSet> {
        self.old.iter().chain(&self.current)
    }

    /// Returns the sum of a number in their statuses.
    pub(super) fn sum(&self, field: &str) -> i64 {
        self.all().map(|set| set.counted(field)).sum()
    }

    /// Returns how many pods they ask for together.
    pub(super) fn wanted(&self) -> i64 {
        self.all().map(ReplicaSet::wanted).sum()
    }

    /// Returns the number of the present roll-out: a template that comes back gets a new one.
    pub(super) fn revision(&self) -> i64 {
        let newest = self.old.iter().map(ReplicaSet::revision).max().unwrap_or(0);
        match &self.current {
            Some(set) if set.revision() > newest => set.revision(),
            Some(_) | None => newest + 1,
        }
    }

    /// Deletes the oldest replica sets that ask for nothing, beyond those that the deployment keeps.
    pub(super) fn trim(&self, cluster: &Arc<Cluster>, deployment: &Value) {
        let limit = usize::try_from(number(deployment, "/spec/revisionHistoryLimit", 10)).unwrap_or(0);
        let surplus = self.old.len().saturating_sub(limit);
        let is_empty = |set: &&ReplicaSet| set.wanted() == 0 && set.counted("replicas") == 0;
        for set in self.old.iter().take(surplus).filter(is_empty) {
            remove(cluster, &set.object_ref, None);
        }
    }
}

/// What a replica set is told by its deployment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orders<'a> {
    pub(super) deployment: &'a Value,
    pub(super) revision: i64,
    /// How many pods the deployment asks for, and how many there may be at a time.
    pub(super) desired: i64,
    pub(super) most: i64,
}

impl Orders<'_> {
    /// Creates the replica set of the present template.
    pub(super) fn create(&self, cluster: &Arc<Cluster>, name: &str, hash: &str, replicas: i64) {
        let deployment = self.deployment;
        let mut template = deployment.pointer("/spec/template").cloned().unwrap_or_default();
        let mut selector = deployment.pointer("/spec/selector").cloned().unwrap_or_default();
        let add = |labels: Option<&mut Value>| {
            if let Some(labels) = labels.and_then(Value::as_object_mut) {
                labels.insert("pod-template-hash".into(), json!(hash));
            }
        };
        add(template.pointer_mut("/metadata/labels"));
        let labels = selector.as_object_mut().map(|s| s.entry("matchLabels").or_insert_with(|| json!({})));
        add(labels);
        let mut annotations = Map::new();
        self.annotate(&mut annotations);
        let set = json!({
            "metadata": {
                "name": name,
                "labels": template.pointer("/metadata/labels"),
                "annotations": annotations,
                "ownerReferences": [pods::reference(deployment)],
            },
            "spec": {
                "replicas": replicas,
                "minReadySeconds": number(deployment, "/spec/minReadySeconds", 0),
                "selector": selector,
                "template": template,
            },
        });
        create(cluster, "apps/v1", "replicasets", Some(text(deployment, "/metadata/namespace")), set);
    }

    /// Tells the replica set of the present template how many pods it shall have, and the number of its roll-out.
    pub(super) fn adjust(&self, cluster: &Cluster, set: &ReplicaSet, replicas: i64) {
        scale(cluster, set, replicas, |annotations| self.annotate(annotations));
    }

    fn annotate(&self, annotations: &mut Map<String, Value>) {
        let given = self.deployment.pointer("/metadata/annotations").and_then(Value::as_object);
        let given = given.into_iter().flatten().filter(|(name, _)| !OWN.contains(&name.as_str()));
        annotations.extend(given.map(|(name, value)| (name.clone(), value.clone())));
        let was = annotations.get(REVISION).and_then(Value::as_str).unwrap_or_default().to_owned();
        let is = self.revision.to_string();
        if !was.is_empty() && was != is {
            let known = annotations.get(HISTORY).and_then(Value::as_str).filter(|known| !known.is_empty());
            let known = known.map_or_else(|| was.clone(), |known| format!("{known},{was}"));
            annotations.insert(HISTORY.into(), json!(known));
        }
        annotations.insert(REVISION.into(), json!(is));
        annotations.insert(DESIRED.into(), json!(self.desired.to_string()));
        annotations.insert(MOST.into(), json!(self.most.to_string()));
    }
}

/// Tells a replica set how many pods it shall have.
pub(super) fn scale(
    cluster: &Cluster,
    set: &ReplicaSet,
    replicas: i64,
    annotate: impl Fn(&mut Map<String, Value>),
) {
    let Some(resource) = cluster.registry.of_table(&set.object_ref.table) else {
        return;
    };
    // A set that is gone meanwhile needs no replicas.
    let _ = cluster.modify(&resource, &set.object_ref, CONTROLLER, |set| {
        let before = set.clone();
        if let Some(spec) = set.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("replicas".into(), json!(replicas));
        }
        if let Some(metadata) = set.get_mut("metadata").and_then(Value::as_object_mut) {
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            if let Some(annotations) = annotations.as_object_mut() {
                annotate(annotations);
            }
        }
        if before.get("spec") != set.get("spec")
            && let Some(metadata) = set.get_mut("metadata").and_then(Value::as_object_mut)
        {
            let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or(0);
            metadata.insert("generation".into(), json!(generation + 1));
        }
        if *set == before { Edit::Keep } else { Edit::Write }
    });
}

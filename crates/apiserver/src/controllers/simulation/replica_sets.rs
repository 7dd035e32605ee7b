//! The replica sets of a deployment: one for each template, with the number of the roll-out.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::ownership::{Wanted, claim, controller, reference};
use super::status::{CONTROLLER, number, set_status, text};
use super::template;
use crate::cluster::{Cluster, Edit};
use crate::store::ObjectRef;
use crate::write::loopback::{create, remove};

const TABLE: &str = "apps/replicasets";

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

    /// Returns the hash of its template.
    fn template_hash(&self) -> String {
        template::hash(self.value.pointer("/spec/template").unwrap_or(&Value::Null))
    }

    /// Returns how many pods the deployment asked for when it told this one its number.
    pub(super) fn told_desired(&self) -> Option<i64> {
        self.annotation(DESIRED).parse().ok()
    }

    /// Returns how many pods the deployment could have then.
    pub(super) fn told_most(&self) -> Option<i64> {
        self.annotation(MOST).parse().ok().filter(|most| *most != 0)
    }

    /// Compares two by their age, the oldest first.
    pub(super) fn by_age(&self, other: &ReplicaSet) -> Ordering {
        let age = |set: &ReplicaSet| text(&set.value, "/metadata/creationTimestamp").to_owned();
        age(self).cmp(&age(other)).then_with(|| self.name().cmp(other.name()))
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
    /// Returns the replica sets of a deployment; `hash` is that of its present template.
    pub(super) fn of(cluster: &Cluster, deployment: &Value, hash: &str) -> ReplicaSets {
        let own = claim(cluster, deployment, &Wanted::all(TABLE)).into_iter();
        let mut old: Vec<ReplicaSet> =
            own.map(|(object_ref, value)| ReplicaSet { object_ref, value }).collect();
        // Of several with the present template, the oldest is the one.
        old.sort_by(ReplicaSet::by_age);
        let index = old.iter().position(|set| set.template_hash() == hash);
        let current = index.map(|index| old.remove(index));
        old.sort_by_key(ReplicaSet::revision);
        ReplicaSets { current, old }
    }

    /// Returns all of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &ReplicaSet> {
        self.old.iter().chain(&self.current)
    }

    /// Returns those that ask for pods.
    pub(super) fn active(&self) -> impl Iterator<Item = &ReplicaSet> {
        self.all().filter(|set| set.wanted() > 0)
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
    /// Creates the replica set of the present template. If another one has its name, the next name is tried later.
    pub(super) fn create(&self, cluster: &Arc<Cluster>, name: &str, hash: &str, replicas: i64) {
        let deployment = self.deployment;
        let namespace = text(deployment, "/metadata/namespace");
        let object_ref = ObjectRef { table: TABLE.into(), key: format!("{namespace}/{name}").into() };
        if let Some(other) = cluster.storage.get(&object_ref) {
            if !self.has_made(&other.value()) {
                self.count_collision(cluster, namespace);
            }
            return;
        }
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
                "ownerReferences": [reference(deployment)],
            },
            "spec": {
                "replicas": replicas,
                "minReadySeconds": number(deployment, "/spec/minReadySeconds", 0),
                "selector": selector,
                "template": template,
            },
        });
        create(cluster, "apps/v1", "replicasets", Some(namespace), set);
    }

    /// Returns whether a replica set is the one of the present template.
    fn has_made(&self, set: &Value) -> bool {
        let hash = |object: &Value| template::hash(object.pointer("/spec/template").unwrap_or(&Value::Null));
        controller(set) == Some(text(self.deployment, "/metadata/uid")) && hash(set) == hash(self.deployment)
    }

    fn count_collision(&self, cluster: &Cluster, namespace: &str) {
        let name = text(self.deployment, "/metadata/name");
        let object_ref =
            ObjectRef { table: "apps/deployments".into(), key: format!("{namespace}/{name}").into() };
        let collisions = number(self.deployment, "/status/collisionCount", 0) + 1;
        set_status(cluster, &object_ref, &json!({ "collisionCount": collisions }));
    }

    /// Tells the replica set of the present template how many pods it shall have, and the number of its roll-out.
    pub(super) fn adjust(&self, cluster: &Cluster, set: &ReplicaSet, replicas: i64) {
        change(cluster, set, replicas, |annotations| self.annotate(annotations));
    }

    /// Tells another replica set how many pods it shall have.
    pub(super) fn scale(&self, cluster: &Cluster, set: &ReplicaSet, replicas: i64) {
        change(cluster, set, replicas, |annotations| self.count(annotations));
    }

    /// Writes down how many pods the deployment asks for and may have: a share is a part of these.
    fn count(&self, annotations: &mut Map<String, Value>) {
        annotations.insert(DESIRED.into(), json!(self.desired.to_string()));
        annotations.insert(MOST.into(), json!(self.most.to_string()));
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
        self.count(annotations);
    }
}

/// Changes how many pods a replica set asks for, and its annotations.
fn change(cluster: &Cluster, set: &ReplicaSet, replicas: i64, annotate: impl Fn(&mut Map<String, Value>)) {
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

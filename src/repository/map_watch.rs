//! Watches the maps in which charts are kept, by their metadata, and reports those that others removed, replaced or changed.
//!
//! What the operator itself removes is reported as well: the engine knows what is wanted.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use engine::hook::WatchEvent;
use engine::{ChartConfigMap, Event};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use objects::legal;
use serde::Deserialize;

use super::config_maps::{
    CHART, CONTENT, ConfigMaps, DIGEST, OF_CHART, OF_REPOSITORY, OF_VERSION, PACKAGE, REPO, TYPE,
    is_as_written, short,
};
use super::verified::Verified;
use crate::cluster::list::Collection;
use crate::cluster::request::Requests;
use crate::cluster::watch::{Reflector, Update, WatchError};
use crate::driver::Inbox;

/// How the names of labels and annotations begin that are ours.
const OURS: &str = "addon-operator.io/";
const OF_KINDS: &str = "yaho.soer3n.dev/";

/// Watches the maps of one namespace.
#[derive(Clone)]
pub(super) struct MapWatch {
    requests: Requests,
    maps: Arc<ConfigMaps>,
    verified: Arc<Verified>,
    namespace: String,
}

/// What is read of a map.
#[derive(Debug, Deserialize)]
struct Head {
    metadata: HeadMeta,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMeta {
    name: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource_version: String,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

/// A map as it was seen last.
struct Seen {
    uid: String,
    version: String,
    map: ChartConfigMap,
    /// What its labels and annotations come to that are ours, as they were when they were as they have to be.
    described: u64,
    /// Those that it belongs to, without the map of pins: that comes and goes with what modules want.
    owners: Vec<String>,
    /// Whether it belongs to nobody.
    is_ownerless: bool,
}

/// The maps that one watch has seen, by their names.
#[derive(Default)]
struct SeenMaps(BTreeMap<String, Seen>);

/// What a change may mean.
#[derive(Default)]
struct Suspicion {
    /// What is not what it was.
    lost: Vec<ChartConfigMap>,
    /// The lists of versions that were written, with the number of the write. It may have been ours.
    written: Vec<(String, String)>,
}

impl MapWatch {
    pub(super) fn new(client: Client, namespace: &str, verified: Arc<Verified>) -> Self {
        let maps = Arc::new(ConfigMaps::new(client.clone(), namespace));
        Self { requests: Requests::new(client), maps, verified, namespace: namespace.to_owned() }
    }

    /// Follows the maps for ever.
    pub(super) async fn follow(self, inbox: Inbox) {
        let path = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
        let start = |selector: &str| {
            let collection = Collection::new(&path).with_labels(selector).metadata_only();
            (Reflector::<Head>::new(self.requests.clone(), collection), SeenMaps::default())
        };
        let (mut packages, mut shown) = (start(PACKAGE), start(TYPE));
        let mut is_reported = false;
        loop {
            let suspicion = tokio::select! {
                update = packages.0.next() => self.take(&mut packages.1, update, &mut is_reported),
                update = shown.0.next() => self.take(&mut shown.1, update, &mut is_reported),
            };
            let mut maps = suspicion.lost;
            for (name, version) in suspicion.written {
                let seen = shown.1.0.get(&name).map(|seen| seen.map.clone());
                if !self.verified.has(&name, &version) && self.is_changed(&name).await {
                    maps.extend(seen);
                }
            }
            if !maps.is_empty() {
                inbox.event(Event::ChartMapsLost { maps }).await;
            }
        }
    }

    fn take(&self, seen: &mut SeenMaps, update: Update<Head>, is_reported: &mut bool) -> Suspicion {
        match update {
            Update::Listed(heads) => seen.compare(heads),
            Update::Changed(event, head) => seen.apply(event, head),
            Update::Failed(WatchError::Forbidden(error)) if !std::mem::replace(is_reported, true) => {
                tracing::warn!(
                    "the ConfigMaps with charts in {} may not be watched: what others remove there is written again with the next look at its Chart: {error}",
                    self.namespace
                );
                Suspicion::default()
            }
            Update::Failed(error) => {
                tracing::debug!("the watch of charts begins anew: {error}");
                Suspicion::default()
            }
            Update::Restored => Suspicion::default(),
        }
    }

    /// Returns whether somebody else wrote a list of versions. What can't be read now is looked at with its index.
    async fn is_changed(&self, name: &str) -> bool {
        matches!(self.maps.get(name).await, Ok(Some(map)) if !is_as_written(&map))
    }
}

impl SeenMaps {
    fn apply(&mut self, event: WatchEvent, head: Head) -> Suspicion {
        let mut suspicion = Suspicion::default();
        match event {
            WatchEvent::Deleted => {
                let known = self.0.remove(&head.metadata.name).map(|seen| seen.map);
                suspicion.lost.extend(known.or_else(|| head.kept()));
            }
            WatchEvent::Added | WatchEvent::Modified => self.see(head, &mut suspicion),
        }
        suspicion
    }

    /// Takes in all maps that there are.
    fn compare(&mut self, heads: Vec<Head>) -> Suspicion {
        let mut suspicion = Suspicion::default();
        let mut before = std::mem::take(&mut self.0);
        for head in heads {
            let name = head.metadata.name.clone();
            self.0.extend(before.remove(&name).map(|seen| (name, seen)));
            self.see(head, &mut suspicion);
        }
        suspicion.lost.extend(before.into_values().map(|seen| seen.map));
        suspicion
    }

    fn see(&mut self, head: Head, suspicion: &mut Suspicion) {
        let Some(map) = head.kept() else {
            // Somebody may have taken away what says that it is ours.
            suspicion.lost.extend(self.0.remove(&head.metadata.name).map(|before| before.map));
            return;
        };
        let (described, is_described) = (head.metadata.described(), head.metadata.is_described());
        let owners = head.metadata.owner_references.unwrap_or_default();
        let is_ownerless = owners.is_empty();
        let owners =
            owners.into_iter().filter(|owner| owner.kind != "ConfigMap").map(|owner| owner.uid).collect();
        let HeadMeta { name, uid, resource_version: version, .. } = head.metadata;
        let is_list = map.version.is_none();
        let mut seen = Seen { uid, version, map, described, owners, is_ownerless };
        let Some(before) = self.0.remove(&name) else { return drop(self.0.insert(name, seen)) };
        if before.uid != seen.uid {
            suspicion.lost.push(before.map);
        } else if before.is_changed_to(&seen) {
            suspicion.lost.push(before.map.clone());
            if !is_described {
                // What is put right is what it was.
                (seen.described, seen.map) = (before.described, before.map);
            }
        } else if is_list && before.version != seen.version {
            suspicion.written.push((name.clone(), seen.version.clone()));
        }
        self.0.insert(name, seen);
    }
}

impl Seen {
    /// Returns whether somebody may have changed what is written about the map, or to whom it belongs.
    ///
    /// Who owned it may be gone: then nobody wants it to be written back.
    fn is_changed_to(&self, now: &Self) -> bool {
        let has_lost_owner = self.owners.iter().any(|owner| !now.owners.contains(owner));
        self.described != now.described || has_lost_owner || (now.is_ownerless && !self.is_ownerless)
    }
}

impl HeadMeta {
    fn label(&self, name: &str) -> Option<&str> {
        self.labels.as_ref()?.get(name).map(String::as_str)
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(name).map(String::as_str)
    }

    /// Returns a number for the labels and annotations that are ours, without what changes with the content.
    fn described(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let is_ours = |name: &str| name != CONTENT && (name.starts_with(OURS) || name.starts_with(OF_KINDS));
        for entry in self.labels.iter().chain(&self.annotations).flatten().filter(|(name, _)| is_ours(name)) {
            entry.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Returns whether labels and annotations go together.
    fn is_described(&self) -> bool {
        if let Some(label) = self.label(PACKAGE) {
            return self
                .annotation(DIGEST)
                .and_then(|digest| digest.split_once(':'))
                .is_some_and(|(_, hex)| short(hex) == label);
        }
        let of = match self.annotation(OF_VERSION) {
            Some(version) => self.annotation(OF_CHART).map(|chart| format!("{chart}-{version}")),
            None => self.annotation(OF_CHART).map(str::to_owned),
        };
        let is = |label: &str, of: Option<&str>| {
            of.is_some_and(|of| self.label(label) == Some(&*legal::label(of)))
        };
        is(CHART, of.as_deref()) && is(REPO, self.annotation(OF_REPOSITORY))
    }
}

impl Head {
    /// Returns what is kept in the map, if it is one of ours.
    fn kept(&self) -> Option<ChartConfigMap> {
        let annotation = |name: &str| self.metadata.annotations.as_ref()?.get(name);
        Some(ChartConfigMap {
            repository: annotation(OF_REPOSITORY)?.as_str().into(),
            chart: annotation(OF_CHART)?.as_str().into(),
            version: annotation(OF_VERSION).map(|version| version.as_str().into()),
            digest: annotation(DIGEST).and_then(|digest| digest.parse().ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn head(name: &str, uid: &str, write: u32, version: Option<&str>) -> Head {
        let mut annotations = json!({OF_REPOSITORY: "corp", OF_CHART: "alpha"});
        if let Some(version) = version {
            annotations[OF_VERSION] = version.into();
        }
        let metadata = json!({"name": name, "uid": uid, "resourceVersion": write.to_string(), "annotations": annotations});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    fn lost(suspicion: &Suspicion) -> Vec<Option<&str>> {
        suspicion.lost.iter().map(|map| map.version.as_deref()).collect()
    }

    #[test]
    fn what_is_removed_or_replaced_is_lost_and_what_is_made_is_not() {
        let mut seen = SeenMaps::default();
        let first = seen.compare(vec![head("a", "1", 1, Some("0.1")), head("b", "2", 2, Some("0.2"))]);
        assert!(first.lost.is_empty(), "nobody knows what was there");
        assert!(seen.apply(WatchEvent::Added, head("c", "3", 3, Some("0.3"))).lost.is_empty());
        assert!(seen.apply(WatchEvent::Modified, head("a", "1", 4, Some("0.1"))).lost.is_empty());
        assert_eq!(lost(&seen.apply(WatchEvent::Deleted, head("a", "1", 5, Some("0.1")))), [Some("0.1")]);
        // While nobody watched, one was replaced and one removed.
        let listed = seen.compare(vec![head("b", "4", 6, Some("0.2"))]);
        assert_eq!(lost(&listed), [Some("0.2"), Some("0.3")]);
        assert!(seen.compare(vec![head("b", "4", 6, Some("0.2"))]).lost.is_empty());
    }

    /// Returns a part of a package, which `change` changes.
    fn part(write: u32, change: impl FnOnce(&mut serde_json::Value)) -> Head {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let mut metadata = json!({
            "name": "p", "uid": "1", "resourceVersion": write.to_string(),
            "labels": {PACKAGE: "ab".repeat(20)},
            "annotations": {OF_REPOSITORY: "corp", OF_CHART: "alpha", OF_VERSION: "1", DIGEST: digest},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Chart", "name": "c", "uid": "c"},
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "pins", "uid": "pins"},
            ],
        });
        change(&mut metadata);
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn what_is_written_about_a_map_and_to_whom_it_belongs_is_looked_after() {
        let change = |field: &'static str, value: serde_json::Value| {
            move |metadata: &mut serde_json::Value| *metadata.pointer_mut(field).unwrap() = value
        };
        let drop_owner = |place: usize| {
            move |metadata: &mut serde_json::Value| {
                metadata["ownerReferences"].as_array_mut().unwrap().remove(place);
            }
        };
        let no_owners = |metadata: &mut serde_json::Value| metadata["ownerReferences"] = json!(null);
        let no_repository = |metadata: &mut serde_json::Value| {
            drop(metadata["annotations"].as_object_mut().unwrap().remove(OF_REPOSITORY));
        };
        let other = |metadata: &mut serde_json::Value| metadata["labels"]["theirs"] = json!("x");
        let cases: [(&str, Head, bool); 8] = [
            ("a label", part(2, change("/labels/addon-operator.io~1package", json!("x"))), true),
            (
                "an annotation",
                part(2, change("/annotations/addon-operator.io~1digest", json!("sha256:00"))),
                true,
            ),
            ("what it is about", part(2, no_repository), true),
            ("an owner", part(2, drop_owner(0)), true),
            ("all owners", part(2, no_owners), true),
            ("the map of pins", part(2, drop_owner(1)), false),
            ("a label of somebody else", part(2, other), false),
            ("nothing", part(2, |_| ()), false),
        ];
        for (what, changed, is_lost) in cases {
            let mut seen = SeenMaps::default();
            seen.apply(WatchEvent::Added, part(1, |_| ()));
            let told = seen.apply(WatchEvent::Modified, changed);
            assert_eq!(lost(&told), vec![Some("1"); usize::from(is_lost)], "{what}");
            assert_eq!(
                lost(&seen.apply(WatchEvent::Modified, part(3, |_| ()))),
                [None; 0],
                "{what}: it is right again"
            );
        }
    }

    #[test]
    fn a_list_of_versions_that_is_written_may_be_somebody_elses() {
        let mut seen = SeenMaps::default();
        assert!(seen.apply(WatchEvent::Added, head("index", "1", 1, None)).written.is_empty());
        let written = seen.apply(WatchEvent::Modified, head("index", "1", 2, None)).written;
        assert_eq!(written, [("index".to_owned(), "2".to_owned())]);
        assert!(seen.compare(vec![head("index", "1", 2, None)]).written.is_empty());
        assert_eq!(lost(&seen.apply(WatchEvent::Deleted, head("index", "1", 3, None))), [None]);
    }

    #[test]
    fn maps_of_others_are_left_alone() {
        let mut seen = SeenMaps::default();
        let head = || serde_json::from_value(json!({"metadata": {"name": "theirs"}})).unwrap();
        assert!(seen.apply(WatchEvent::Added, head()).lost.is_empty());
        assert!(seen.apply(WatchEvent::Deleted, head()).lost.is_empty());
    }
}

//! Watches the maps in which charts are kept, by their metadata, and reports those that others removed, replaced or changed.
//!
//! What the operator itself removes is reported as well: the engine knows what is wanted.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::hook::WatchEvent;
use engine::{ChartConfigMap, Event};
use kube::Client;
use serde::Deserialize;

use super::config_maps::{
    ConfigMaps, DIGEST, OF_CHART, OF_REPOSITORY, OF_VERSION, PACKAGE, TYPE, is_as_written,
};
use super::verified::Verified;
use crate::cluster::list::Collection;
use crate::cluster::request::Requests;
use crate::cluster::watch::{Reflector, Update, WatchError};
use crate::driver::Inbox;

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
    annotations: Option<BTreeMap<String, String>>,
}

/// A map as it was seen last.
struct Seen {
    uid: String,
    version: String,
    map: ChartConfigMap,
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
        let Some(map) = head.kept() else { return };
        let HeadMeta { name, uid, resource_version: version, .. } = head.metadata;
        let is_list = map.version.is_none();
        let before = self.0.insert(name.clone(), Seen { uid: uid.clone(), version: version.clone(), map });
        match before {
            Some(before) if before.uid != uid => suspicion.lost.push(before.map),
            Some(before) if is_list && before.version != version => suspicion.written.push((name, version)),
            Some(_) | None => {}
        }
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

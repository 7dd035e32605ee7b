//! The ConfigMap that users edit.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::hook::WatchEvent;
use engine::{ConfigData, Event, Failure, FailureKind};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::cluster::list::Collection;
use crate::cluster::request::Requests;
use crate::cluster::watch::{Reflector, Update, WatchHealths};
use crate::cluster::{failure, is_conflict, is_not_found};
use crate::config::Parameters;
use crate::driver::Inbox;

/// How often a write is tried when somebody else creates or removes the ConfigMap at the same moment.
const ATTEMPTS: usize = 5;

/// One ConfigMap, read, watched and written.
#[derive(Clone)]
pub struct ConfigSource {
    api: Api<ConfigMap>,
    namespace: String,
    name: String,
    title: String,
}

impl ConfigSource {
    /// Returns the source for a ConfigMap that need not exist.
    pub fn new(client: Client, namespace: &str, name: &str) -> Self {
        let title = format!("ConfigMap {namespace}/{name}");
        Self {
            api: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            title,
        }
    }

    /// Reads the ConfigMap once.
    pub async fn read(&self) -> Result<Event, Failure> {
        let found = self.api.get_opt(&self.name).await;
        let found = found.map_err(|error| failure(&format!("can't read {}", self.title), &error))?;
        Ok(match found {
            Some(map) => changed(map),
            None => absent(),
        })
    }

    /// Reports each change to `inbox` until the driver ends.
    pub async fn watch(self, inbox: Inbox, health: WatchHealths, parameters: Parameters) {
        let path = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
        let collection = Collection::new(&path).with_fields(&format!("metadata.name={}", self.name));
        let requests = Requests::new(self.api.clone().into_client());
        let mut reflector = Reflector::<Value>::new(requests, collection);
        loop {
            let object = match reflector.next().await {
                Update::Listed(maps) => maps.into_iter().next(),
                Update::Changed(WatchEvent::Added | WatchEvent::Modified, map) => Some(map),
                Update::Changed(WatchEvent::Deleted, _) => None,
                Update::Failed(error) => {
                    let error = error.to_string();
                    tracing::warn!(error, "the watch of {} broke; it is opened again", self.title);
                    health.broke(&self.title, error, reflector.alive());
                    continue;
                }
            };
            health.works(&self.title);
            let event = match object.map(serde_json::from_value::<ConfigMap>) {
                Some(Ok(map)) => changed(map),
                None => absent(),
                Some(Err(error)) => {
                    tracing::warn!(%error, "{} can't be read; it stays as it was", self.title);
                    continue;
                }
            };
            if parameters.shows_events() {
                self.log(&event);
            }
            if !inbox.event(event).await {
                return;
            }
        }
    }

    /// Logs which keys there are and how long their texts are. The texts are values and stay out of logs.
    fn log(&self, event: &Event) {
        let Event::ConfigChanged { version, data } = event else { return };
        let keys = data.iter().flat_map(|data| &data.0);
        let keys: Vec<String> = keys.map(|(key, text)| format!("{key}: {} bytes", text.len())).collect();
        let (version, keys) = (version.as_str(), keys.join(", "));
        tracing::info!(version, keys, "{} changed", self.title);
    }

    /// Sets one key, or removes it. Other keys are left as they are. Returns the new resource version.
    pub async fn save(&self, key: &str, text: Option<&str>) -> Result<String, Failure> {
        let what = format!("can't write key {key} of {}", self.title);
        for _ in 0..ATTEMPTS {
            let patch = Patch::Merge(json!({ "data": { key: text } }));
            match self.api.patch(&self.name, &PatchParams::default(), &patch).await {
                Ok(map) => return Ok(map.metadata.resource_version.unwrap_or_default()),
                Err(error) if is_not_found(&error) => {}
                Err(error) if is_conflict(&error) => continue,
                Err(error) => return Err(failure(&what, &error)),
            }
            let Some(text) = text else { return Ok(String::new()) };
            let map = ConfigMap {
                metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
                data: Some(BTreeMap::from([(key.to_owned(), text.to_owned())])),
                ..ConfigMap::default()
            };
            match self.api.create(&PostParams::default(), &map).await {
                Ok(map) => return Ok(map.metadata.resource_version.unwrap_or_default()),
                // Somebody else created it in between: patch that one.
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(failure(&what, &error)),
            }
        }
        Err(Failure::new(FailureKind::Cluster, format!("{what}: it is created and removed all the time")))
    }
}

fn changed(map: ConfigMap) -> Event {
    Event::ConfigChanged {
        version: map.metadata.resource_version.unwrap_or_default(),
        data: Some(Arc::new(ConfigData(map.data.unwrap_or_default()))),
    }
}

fn absent() -> Event {
    Event::ConfigChanged { version: String::new(), data: None }
}

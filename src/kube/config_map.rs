//! The ConfigMap that users edit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use engine::hook::WatchEvent;
use engine::{Basis, ConfigData, Event, Failure, FailureKind};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::cluster::list::Collection;
use crate::cluster::request::Requests;
use crate::cluster::watch::{Reflector, Update, WatchReports};
use crate::cluster::{failure, is_conflict, is_not_found};
use crate::config::Parameters;
use crate::driver::Inbox;

/// How often a write is tried when somebody else changes the ConfigMap at the same moment.
const ATTEMPTS: usize = 5;

/// One ConfigMap, read, watched and written.
#[derive(Clone)]
pub struct ConfigSource {
    api: Api<ConfigMap>,
    namespace: String,
    name: String,
    title: String,
    /// What is known of it. A write that this fits needs no question before; its version makes the server refuse a
    /// write that it does not fit any more.
    known: Arc<Mutex<Option<Known>>>,
}

/// A state of the ConfigMap.
#[derive(Clone, Debug)]
struct Known {
    /// The resource version; empty when there is no ConfigMap.
    version: String,
    data: Arc<ConfigData>,
}

impl Known {
    fn of(map: Option<ConfigMap>) -> Self {
        let Some(map) = map else { return Self { version: String::new(), data: Arc::default() } };
        Self {
            version: map.metadata.resource_version.unwrap_or_default(),
            data: Arc::new(ConfigData(map.data.unwrap_or_default())),
        }
    }

    fn event(self) -> Event {
        let data = (!self.version.is_empty()).then_some(self.data);
        Event::ConfigChanged { version: self.version, data }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.data.0.get(key).map(String::as_str)
    }

    /// Returns whether the key says what the new text was made from.
    fn fits(&self, key: &str, basis: &Basis) -> bool {
        match basis {
            Basis::Nothing => true,
            Basis::Text(was) => self.text(key) == was.as_ref().map(|was| was.0.as_str()),
        }
    }

    /// Returns whether this is older than `other`, as far as versions tell.
    fn is_older(&self, other: &Self) -> bool {
        let number = |known: &Self| known.version.parse::<u64>().ok();
        number(self).zip(number(other)).is_some_and(|(this, other)| this < other)
    }
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
            known: Arc::default(),
        }
    }

    /// Returns what people call it: `ConfigMap namespace/name`.
    pub fn title(&self) -> &str {
        &self.title
    }

    fn with_known<T>(&self, work: impl FnOnce(&mut Option<Known>) -> T) -> T {
        work(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks the API server for it.
    async fn ask(&self) -> Result<Known, kube::Error> {
        self.api.get_opt(&self.name).await.map(Known::of)
    }

    /// Reads the ConfigMap once.
    pub async fn read(&self) -> Result<Event, Failure> {
        let known = self.ask().await;
        let known = known.map_err(|error| failure(&format!("can't read {}", self.title), &error))?;
        self.with_known(|last| *last = Some(known.clone()));
        Ok(known.event())
    }

    /// Reports each change to `inbox` until the driver ends, and to `reports` whether the watch works.
    pub async fn watch(self, inbox: Inbox, reports: WatchReports, parameters: Parameters) {
        let path = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
        let collection = Collection::new(&path).with_fields(&format!("metadata.name={}", self.name));
        let requests = Requests::new(self.api.clone().into_client());
        let report = reports.of(&self.title);
        let mut reflector = Reflector::<Value>::reporting(requests, collection, report);
        loop {
            let object = match reflector.next().await {
                Update::Listed(maps) => maps.into_iter().next(),
                Update::Changed(WatchEvent::Added | WatchEvent::Modified, map) => Some(map),
                Update::Changed(WatchEvent::Deleted, _) => None,
                Update::Failed(error) => {
                    tracing::debug!(%error, "the watch of {} broke; it is opened again", self.title);
                    continue;
                }
                Update::Restored => continue,
            };
            let known = match object.map(serde_json::from_value::<ConfigMap>).transpose() {
                Ok(map) => Known::of(map),
                Err(error) => {
                    tracing::warn!(%error, "{} can't be read; it stays as it was", self.title);
                    continue;
                }
            };
            // A watch may be behind what was written.
            self.with_known(|last| {
                if last.as_ref().is_none_or(|last| !known.is_older(last)) {
                    *last = Some(known.clone());
                }
            });
            let event = known.event();
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

    /// Sets one key, or removes it. Other keys are left as they are. Returns the resource version with the key.
    ///
    /// Nothing is written when the key says so already.
    ///
    /// # Errors
    ///
    /// When the key does not say any more what the new text was made from, or when it can't be written.
    pub async fn save(&self, key: &str, text: Option<&str>, basis: &Basis) -> Result<String, Failure> {
        let what = format!("can't write key {key} of {}", self.title);
        for _ in 0..ATTEMPTS {
            // What is known is believed once, and only for a write: that is refused if it was not true any more.
            let believed = self.with_known(Option::take);
            let believed = believed.filter(|known| known.text(key) != text && known.fits(key, basis));
            let known = match believed {
                Some(known) => known,
                None => self.ask().await.map_err(|error| failure(&what, &error))?,
            };
            if known.text(key) == text {
                return Ok(known.version);
            }
            if !known.fits(key, basis) {
                let message = format!("{what}: somebody else changed it meanwhile");
                let advice = "it is not overwritten; the hook runs again by itself, and sees the change";
                return Err(Failure::new(FailureKind::Cluster, message).advise(advice));
            }
            let written = match (known.version.as_str(), text) {
                ("", Some(text)) => self.api.create(&PostParams::default(), &self.with(key, text)).await,
                ("", None) => return Ok(String::new()),
                // The version makes the server refuse the write when anything was changed in between.
                (version, _) => {
                    let patch = json!({ "metadata": { "resourceVersion": version }, "data": { key: text } });
                    self.api.patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await
                }
            };
            match written {
                Ok(map) => {
                    let written = Known::of(Some(map));
                    let version = written.version.clone();
                    self.with_known(|last| *last = Some(written));
                    return Ok(version);
                }
                // It was changed, created or removed in between.
                Err(error) if is_conflict(&error) || is_not_found(&error) => {}
                Err(error) => return Err(failure(&what, &error)),
            }
        }
        let message = format!("{what}: it is changed all the time, {ATTEMPTS} tries met another change");
        Err(Failure::new(FailureKind::Cluster, message).advise("it is tried again by itself"))
    }

    /// Returns a new ConfigMap with one key.
    fn with(&self, key: &str, text: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
            data: Some(BTreeMap::from([(key.to_owned(), text.to_owned())])),
            ..ConfigMap::default()
        }
    }
}

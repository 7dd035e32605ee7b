//! The ConfigMap that users edit, and the Secret over it.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::hook::WatchEvent;
use engine::{Basis, ConfigData, ConfigObject, Event, Failure, FailureKind};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::cluster::list::Collection;
use crate::cluster::request::{PATIENCE, Requests};
use crate::cluster::watch::{Reflector, Update, WatchError, WatchReports};
use crate::cluster::{failure, is_conflict, is_not_found, request_failure};
use crate::config::Parameters;
use crate::driver::Inbox;

/// How often a write is tried when somebody else changes the ConfigMap at the same moment.
const ATTEMPTS: usize = 5;

/// The ConfigMap and the Secret over it.
#[derive(Clone)]
pub struct ConfigSources {
    /// The ConfigMap.
    pub config_map: ConfigSource,
    /// The Secret.
    pub secret: ConfigSource,
}

impl ConfigSources {
    /// Returns the sources for two objects in one namespace, which need not exist.
    pub fn new(client: &Client, namespace: &str, config_map: &str, secret: &str) -> Self {
        let source = |object, name| ConfigSource::new(object, client.clone(), namespace, name);
        Self {
            config_map: source(ConfigObject::ConfigMap, config_map),
            secret: source(ConfigObject::Secret, secret),
        }
    }

    /// Returns one of the two.
    pub fn of(&self, object: ConfigObject) -> &ConfigSource {
        match object {
            ConfigObject::ConfigMap => &self.config_map,
            ConfigObject::Secret => &self.secret,
        }
    }
}

/// A ConfigMap or a Secret of the same format, read, watched and written.
#[derive(Clone)]
pub struct ConfigSource {
    object: ConfigObject,
    api: Api<DynamicObject>,
    namespace: String,
    name: String,
    title: String,
    /// What is known of it. A write that this fits needs no question before; its version makes the server refuse a
    /// write that it does not fit any more.
    known: Arc<Mutex<Option<Known>>>,
}

/// A state of the object.
#[derive(Clone, Debug)]
struct Known {
    /// The resource version; empty when there is no such object.
    version: String,
    data: Arc<ConfigData>,
}

impl Known {
    /// Reads an object as the API server sends it. `None` is that there is none.
    fn of(object: ConfigObject, found: Option<Value>) -> Result<Self, serde_json::Error> {
        let Some(found) = found else { return Ok(Self { version: String::new(), data: Arc::default() }) };
        let (metadata, texts) = match object {
            ConfigObject::ConfigMap => {
                let map: ConfigMap = serde_json::from_value(found)?;
                (map.metadata, map.data.unwrap_or_default())
            }
            ConfigObject::Secret => {
                let secret: Secret = serde_json::from_value(found)?;
                // What is no text is no YAML either, which is said when the key is read.
                let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
                let texts = secret.data.unwrap_or_default().into_iter();
                (secret.metadata, texts.map(|(key, bytes)| (key, text(bytes.0))).collect())
            }
        };
        let version = metadata.resource_version.unwrap_or_default();
        Ok(Self { version, data: Arc::new(ConfigData(texts)) })
    }

    fn event(self, object: ConfigObject) -> Event {
        let data = (!self.version.is_empty()).then_some(self.data);
        Event::ConfigChanged { object, version: self.version, data }
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
    /// Returns the source for an object that need not exist.
    pub fn new(object: ConfigObject, client: Client, namespace: &str, name: &str) -> Self {
        let title = format!("{object} {namespace}/{name}");
        let kind = match object {
            ConfigObject::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
            ConfigObject::Secret => ApiResource::erase::<Secret>(&()),
        };
        Self {
            object,
            api: Api::namespaced_with(client, namespace, &kind),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            title,
            known: Arc::default(),
        }
    }

    /// Returns which of the two it is.
    pub fn object(&self) -> ConfigObject {
        self.object
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
        let found = self.api.get_opt(&self.name).await?;
        self.known(found)
    }

    fn known(&self, found: Option<DynamicObject>) -> Result<Known, kube::Error> {
        let found = found.map(serde_json::to_value).transpose();
        found.and_then(|found| Known::of(self.object, found)).map_err(kube::Error::SerdeError)
    }

    /// Reads the object once. Returns what it says and the version behind which [`Self::feed_behind`] follows it: it is
    /// read by the list that a watch begins with, so that following costs no second one.
    pub async fn read(&self) -> Result<(Event, String), Failure> {
        let what = format!("can't read {}", self.title);
        let mut found = None;
        let mut pages = self.collection().pages(&self.requests(), PATIENCE);
        while let Some(items) = pages.next().await.map_err(|error| request_failure(&what, &error))? {
            found = found.or(items.into_iter().next());
        }
        let found = found.map(|item| serde_json::from_slice(&item)).transpose();
        let known = found.and_then(|found| Known::of(self.object, found));
        let known = known.map_err(|error| {
            Failure::new(FailureKind::Cluster, format!("{what}: it is no {}: {error}", self.object))
        })?;
        self.with_known(|last| *last = Some(known.clone()));
        Ok((known.event(self.object), pages.into_version()))
    }

    /// Begins to follow the object. Whether that works is told to `reports`.
    pub fn feed(&self, reports: &WatchReports) -> ConfigFeed {
        let report = reports.of(&self.title);
        let reflector = Reflector::<Value>::reporting(self.requests(), self.collection(), report);
        ConfigFeed { source: self.clone(), reflector }
    }

    /// Begins to follow the object behind `version`, at which it was read. Whether that works is told to `reports`.
    pub fn feed_behind(&self, version: String, reports: &WatchReports) -> ConfigFeed {
        let report = reports.of(&self.title);
        let reflector =
            Reflector::<Value>::reporting_behind(self.requests(), self.collection(), version, report);
        ConfigFeed { source: self.clone(), reflector }
    }

    /// Returns the collection that holds at most this object.
    fn collection(&self) -> Collection {
        let kind = match self.object {
            ConfigObject::ConfigMap => "configmaps",
            ConfigObject::Secret => "secrets",
        };
        let path = format!("/api/v1/namespaces/{}/{kind}", self.namespace);
        Collection::new(&path).with_fields(&format!("metadata.name={}", self.name))
    }

    fn requests(&self) -> Requests {
        Requests::new(self.api.clone().into_client())
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
                    let patch = json!({ "metadata": { "resourceVersion": version }, "data": { key: text.map(|text| self.encoded(text)) } });
                    self.api.patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await
                }
            };
            match written {
                Ok(object) => {
                    let written = self.known(Some(object)).map_err(|error| failure(&what, &error))?;
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

    /// Returns a new object with one key.
    fn with(&self, key: &str, text: &str) -> DynamicObject {
        DynamicObject {
            types: None,
            metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
            data: json!({ "data": { key: self.encoded(text) } }),
        }
    }

    /// Returns a text as the object holds it.
    fn encoded(&self, text: &str) -> String {
        match self.object {
            ConfigObject::ConfigMap => text.to_owned(),
            ConfigObject::Secret => STANDARD.encode(text),
        }
    }
}

/// The states of the ConfigMap or of the Secret over it, one after the other.
pub struct ConfigFeed {
    source: ConfigSource,
    reflector: Reflector<Value>,
}

impl ConfigFeed {
    /// Returns the first state. It is that of the list that a watch begins with, so it costs no request of its own.
    ///
    /// An object that may not be read says nothing, which is told. Whatever else is in the way is waited out.
    pub async fn first(&mut self) -> Event {
        loop {
            match self.next().await {
                Ok(event) => return event,
                Err(WatchError::Forbidden(why)) => {
                    let message = format!("can't read {}: {why}", self.source.title);
                    let failure = Failure::new(FailureKind::Forbidden, message).advise(
                        "allow the operator to get, list and watch it; values that it holds are not in force",
                    );
                    return Event::ConfigRejected { object: self.source.object, failure };
                }
                Err(_) => {}
            }
        }
    }

    /// Reports each state to `inbox` until the driver ends.
    pub async fn follow(mut self, inbox: Inbox, parameters: Parameters) {
        loop {
            let Ok(event) = self.next().await else { continue };
            if parameters.shows_events() {
                self.log(&event);
            }
            if !inbox.event(event).await {
                return;
            }
        }
    }

    /// Returns the next state, or why the watch has to be opened again.
    async fn next(&mut self) -> Result<Event, WatchError> {
        let ConfigSource { object: kind, title, .. } = &self.source;
        loop {
            let object = match self.reflector.next().await {
                Update::Listed(objects) => objects.into_iter().next(),
                Update::Changed(WatchEvent::Added | WatchEvent::Modified, object) => Some(object),
                Update::Changed(WatchEvent::Deleted, _) => None,
                Update::Failed(error) => {
                    tracing::debug!(%error, "the watch of {title} broke; it is opened again");
                    return Err(error);
                }
                Update::Restored => continue,
            };
            let known = match Known::of(*kind, object) {
                Ok(known) => known,
                Err(error) => {
                    tracing::warn!(%error, "{title} can't be read; it stays as it was");
                    continue;
                }
            };
            // A watch may be behind what was written.
            self.source.with_known(|last| {
                if last.as_ref().is_none_or(|last| !known.is_older(last)) {
                    *last = Some(known.clone());
                }
            });
            return Ok(known.event(*kind));
        }
    }

    /// Logs which keys there are and how long their texts are. The texts are values and stay out of logs.
    fn log(&self, event: &Event) {
        let Event::ConfigChanged { version, data, .. } = event else { return };
        let keys = data.iter().flat_map(|data| &data.0);
        let keys: Vec<String> = keys.map(|(key, text)| format!("{key}: {} bytes", text.len())).collect();
        let (version, keys) = (version.as_str(), keys.join(", "));
        tracing::info!(version, keys, "{} changed", self.source.title);
    }
}

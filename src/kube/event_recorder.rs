//! Kubernetes Events. Those about modules and converges hang on the operator's ConfigMap, since modules are no objects;
//! those about configurations of module sources hang on their objects.
//!
//! They are written when nothing new has come for a second, or when the operator ends: then it waits for them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use engine::{Announcement, SourceKey, SourceReference};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::{Mutex, mpsc, watch};

use crate::lasting_task::lasting;

/// Who writes the Events.
const COMPONENT: &str = "addon-operator";

/// How many Events wait while the API server is slow or away; more are lost.
const WAITING: usize = 1024;

/// How long there has to be no new Event before those that wait are written.
///
/// Each write moves the revision of the whole cluster on, and an API server that answers lists from its cache then waits for
/// that revision: Events that are written in the middle of a converge slow down the look-ups of its releases.
const QUIET: Duration = Duration::from_secs(1);

/// Where Events about objects of no namespace are.
const CLUSTER_NAMESPACE: &str = "default";

/// The longest message that the API server takes.
const LONGEST: usize = 1024;

/// Writes Events, one after the other, without anybody waiting for them.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    waiting: mpsc::Sender<Announcement>,
    written: Written,
}

/// Tells when the last Event of a recorder is written.
#[derive(Clone, Debug)]
pub struct Written(watch::Receiver<()>);

impl Written {
    /// Waits until no clone of the recorder is left and all of its Events are written, or could not be.
    pub async fn all(mut self) {
        // Nothing is ever sent: the writer drops its end.
        while self.0.changed().await.is_ok() {}
    }
}

struct Writer {
    client: Client,
    maps: Api<ConfigMap>,
    namespace: String,
    config_map: String,
    /// The identity of the ConfigMap, once it is known: `kubectl describe` looks for it.
    uid: Option<String>,
    /// The namespaces of which it was logged that Events can't be written there.
    complained: BTreeSet<String>,
    /// Those that are written next.
    held: VecDeque<(Timestamp, Announcement)>,
}

impl EventRecorder {
    /// Starts to write Events about the ConfigMap `config_map`.
    ///
    /// Has to be called within a runtime; ends with the last clone of what it returns.
    pub fn start(client: Client, namespace: &str, config_map: &str) -> Self {
        let (waiting, announcements) = mpsc::channel(WAITING);
        let (end, written) = watch::channel(());
        let writer = Writer {
            maps: Api::namespaced(client.clone(), namespace),
            client,
            namespace: namespace.to_owned(),
            config_map: config_map.to_owned(),
            uid: None,
            complained: BTreeSet::new(),
            held: VecDeque::new(),
        };
        let state = Arc::new(Mutex::new((writer, announcements)));
        tokio::spawn(async move {
            let _end = end;
            lasting("the recorder of Events", || {
                let state = Arc::clone(&state);
                async move {
                    let (writer, announcements) = &mut *state.lock().await;
                    writer.write_all(announcements).await;
                }
            })
            .await;
        });
        Self { waiting, written: Written(written) }
    }

    /// Returns what tells when the last Event is written.
    pub fn written(&self) -> Written {
        self.written.clone()
    }

    /// Queues an Event, which is written later. When too many wait, it is lost.
    pub fn record(&self, announcement: Announcement) {
        if self.waiting.try_send(announcement).is_err() {
            tracing::debug!("an Event is lost: too many wait to be written");
        }
    }
}

impl Writer {
    /// Writes what is announced until nobody can announce anything any more.
    async fn write_all(&mut self, announcements: &mut mpsc::Receiver<Announcement>) {
        loop {
            // What a panic left comes first, but for the one that it met.
            self.write_held().await;
            let Some(first) = announcements.recv().await else { return };
            self.held.push_back((Timestamp::now(), first));
            while self.held.len() < WAITING {
                match tokio::time::timeout(QUIET, announcements.recv()).await {
                    Ok(Some(next)) => self.held.push_back((Timestamp::now(), next)),
                    Ok(None) | Err(_) => break,
                }
            }
        }
    }

    async fn write_held(&mut self) {
        if self
            .held
            .iter()
            .any(|(_, announcement)| announcement.source.is_none() && announcement.object.is_none())
        {
            self.identify().await;
        }
        while let Some((at, announcement)) = self.held.pop_front() {
            self.write(at, &announcement).await;
        }
    }

    /// Reads the identity of the ConfigMap, unless it is known: once for all Events that wait, since there may be no ConfigMap.
    async fn identify(&mut self) {
        if self.uid.is_none() {
            let map = self.maps.get_opt(&self.config_map).await.ok().flatten();
            self.uid = map.and_then(|map| map.metadata.uid);
        }
    }

    async fn write(&mut self, at: Timestamp, announcement: &Announcement) {
        let event = self.event(at, announcement);
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let events: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        match events.create(&PostParams::default(), &event).await {
            Ok(_) => drop(self.complained.remove(&namespace)),
            Err(error) if self.complained.contains(&namespace) => {
                tracing::debug!(%error, "an Event can't be written");
            }
            Err(error) => {
                tracing::warn!(
                    %error,
                    "Kubernetes Events can't be written in namespace {namespace}; nothing else depends on them (the operator may need the verb create for events)"
                );
                self.complained.insert(namespace);
            }
        }
    }

    fn event(&self, at: Timestamp, announcement: &Announcement) -> Event {
        let now = Time(at);
        let message: String = announcement.message.chars().take(LONGEST / 4).collect();
        let (object, name) = match (&announcement.source, &announcement.object, &announcement.module) {
            (_, Some(object), _) => (controlled_object(object), object.key.name.to_string()),
            (Some(source), _, _) => (source_object(source), source.key.name.to_string()),
            (None, None, Some(module)) => (self.config_map(), format!("{}.{module}", self.config_map)),
            (None, None, None) => (self.config_map(), self.config_map.clone()),
        };
        Event {
            metadata: ObjectMeta {
                generate_name: Some(format!("{name}.")),
                namespace: Some(object.namespace.clone().unwrap_or_else(|| CLUSTER_NAMESPACE.to_owned())),
                ..ObjectMeta::default()
            },
            involved_object: object,
            type_: Some(if announcement.warning { "Warning" } else { "Normal" }.to_owned()),
            reason: Some(announcement.reason.to_owned()),
            message: Some(message),
            source: Some(EventSource { component: Some(COMPONENT.to_owned()), host: None }),
            first_timestamp: Some(now.clone()),
            last_timestamp: Some(now),
            count: Some(1),
            ..Event::default()
        }
    }

    fn config_map(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("ConfigMap".to_owned()),
            namespace: Some(self.namespace.clone()),
            name: Some(self.config_map.clone()),
            uid: self.uid.clone(),
            ..ObjectReference::default()
        }
    }
}

fn controlled_object(object: &engine::ObjectReference) -> ObjectReference {
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    ObjectReference {
        api_version: given(&object.api_version),
        kind: given(&object.kind),
        namespace: given(&object.key.namespace),
        name: given(&object.key.name),
        uid: given(&object.uid),
        ..ObjectReference::default()
    }
}

fn source_object(source: &SourceReference) -> ObjectReference {
    let SourceReference { key, uid } = source;
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    ObjectReference {
        api_version: given(SourceKey::API_VERSION),
        kind: given(key.kind.as_str()),
        namespace: given(&key.namespace),
        name: given(&key.name),
        uid: given(uid),
        ..ObjectReference::default()
    }
}

//! Monitors of the embedded API server, and what each of them told.

#![expect(clippy::wildcard_enum_match_arm, reason = "watches tell few of all events")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_operator::cluster::Discovery;
use addon_operator::driver::{self, Channels, Inbox};
use addon_operator::kube::Monitors;
use apiserver::ApiServer;
use engine::hook::selection::{LabelSelector, MonitorSpec, Namespaces, Selection};
use engine::snapshot::{Change, Snapshot};
use engine::{Event, FailureKind, MonitorId};
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::server;

/// What one monitor told.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) snapshot: Snapshot,
    pub(crate) listed: bool,
    pub(crate) changes: Vec<String>,
    pub(crate) failures: Vec<String>,
    /// Whether it was told last that the watch does not work.
    pub(crate) is_broken: bool,
    /// Whether the last reason was that a right is missing.
    pub(crate) is_forbidden: bool,
    pub(crate) kinds: Vec<String>,
}

impl Seen {
    pub(crate) fn note(&mut self, change: Option<Change>) {
        self.changes.extend(change.map(|change| format!("{} {}", change.event, change.key)));
    }

    pub(crate) fn take(&mut self, event: Event) {
        match event {
            Event::Listed { lists } => {
                for (_, list) in lists {
                    for change in self.snapshot.replace(list.into_iter().collect()) {
                        if self.listed {
                            self.note(Some(change));
                        }
                    }
                }
                self.listed = true;
            }
            Event::ObjectChanged { key, is_gone: true, items } => {
                for (_, item) in items {
                    let change = self.snapshot.remove(&key, Some(item));
                    self.note(change);
                }
            }
            Event::ObjectChanged { key, is_gone: false, items } => {
                for (_, item) in items {
                    let change = self.snapshot.put(key.clone(), item);
                    self.note(change);
                }
            }
            Event::NamespaceListed { namespace, objects, .. } => {
                self.snapshot.replace_namespace(&namespace, objects);
            }
            Event::WatchFailed { failure, .. } => {
                // A filter that fails breaks no watch.
                self.is_broken |= failure.kind != FailureKind::HookOutput;
                self.is_forbidden = failure.kind == FailureKind::Forbidden;
                self.failures.push(failure.to_string());
            }
            Event::WatchRestored { .. } => self.is_broken = false,
            Event::KindVanished { kind, .. } => self.kinds.push(format!("no {kind}")),
            Event::KindIsClusterWide { .. } => {}
            Event::KindAppeared { .. } => self.kinds.push("there".to_owned()),
            other => panic!("watches do not tell {other:?}"),
        }
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.snapshot.iter().map(|(key, _)| key.to_string()).collect()
    }
}

/// Returns what each monitor hears of an event.
pub(crate) fn heard(event: Event) -> Vec<(MonitorId, Event)> {
    match event {
        Event::Listed { lists } => {
            let alone = |list: (MonitorId, _)| (list.0, Event::Listed { lists: vec![list] });
            lists.into_iter().map(alone).collect()
        }
        Event::ObjectChanged { key, is_gone, items } => {
            let alone = |item: (MonitorId, _)| {
                (item.0, Event::ObjectChanged { key: key.clone(), is_gone, items: vec![item] })
            };
            items.into_iter().map(alone).collect()
        }
        Event::NamespaceListed { monitor, .. }
        | Event::WatchFailed { monitor, .. }
        | Event::WatchRestored { monitor }
        | Event::KindVanished { monitor, .. }
        | Event::KindAppeared { monitor }
        | Event::KindIsClusterWide { monitor } => vec![(monitor, event)],
        other => panic!("watches do not tell {other:?}"),
    }
}

pub(crate) struct Fixture {
    pub(crate) server: ApiServer,
    pub(crate) monitors: Monitors,
    pub(crate) inbox: Inbox,
    pub(crate) channels: Channels,
    pub(crate) seen: BTreeMap<MonitorId, Seen>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(|server| Client::new(server.service(), "default"))
    }

    /// Returns one whose monitors use the client that `connect` makes.
    pub(crate) fn with(connect: impl FnOnce(&ApiServer) -> Client) -> Self {
        let server = ApiServer::builder().seed(1).simulate(Duration::ZERO).build().unwrap();
        let client = connect(&server);
        Self::on(server, client)
    }

    /// Returns one whose monitors use `client`, and in which people use `server`.
    pub(crate) fn on(server: ApiServer, client: Client) -> Self {
        let monitors = Monitors::new(client.clone(), Discovery::new(client));
        let (inbox, _, channels) = driver::channels();
        Self { server, monitors, inbox, channels, seen: BTreeMap::new() }
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        server::send(&self.server, method, path, body).await
    }

    pub(crate) async fn ok(&self, method: Method, path: &str, body: &Value) -> Value {
        server::ok(&self.server, method, path, body).await
    }

    pub(crate) async fn namespace(&self, name: &str, labels: &Value) {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        self.ok(Method::POST, "/api/v1/namespaces", &object).await;
    }

    pub(crate) async fn label(&self, namespace: &str, labels: &Value) {
        let patch = json!({"metadata": {"labels": labels}});
        self.ok(Method::PATCH, &format!("/api/v1/namespaces/{namespace}"), &patch).await;
    }

    pub(crate) async fn put(&self, namespace: &str, name: &str, data: &str) {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"of": "test"}}, "data": {"is": data}});
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        if self.send(Method::POST, &path, &object).await.0 == 409 {
            self.ok(Method::PUT, &format!("{path}/{name}"), &object).await;
        }
    }

    pub(crate) async fn delete(&self, namespace: &str, name: &str) {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
        self.ok(Method::DELETE, &path, &Value::Null).await;
    }

    pub(crate) fn start(&mut self, monitor: u64, selection: Selection, filter: Option<&str>) -> MonitorId {
        let spec = MonitorSpec { selection, jq_filter: filter.map(ToOwned::to_owned), keep_objects: false };
        let monitor = MonitorId::new(monitor);
        self.monitors.start(monitor, &spec, &self.inbox);
        self.seen.insert(monitor, Seen::default());
        monitor
    }

    /// Starts a monitor and waits for its first list.
    pub(crate) async fn listed(
        &mut self,
        monitor: u64,
        selection: Selection,
        filter: Option<&str>,
    ) -> MonitorId {
        let monitor = self.start(monitor, selection, filter);
        self.until("the first list", |seen| seen[&monitor].listed).await;
        monitor
    }

    /// Takes in what comes until `wanted` holds.
    pub(crate) async fn until(&mut self, what: &str, wanted: impl Fn(&BTreeMap<MonitorId, Seen>) -> bool) {
        let waiting = async {
            while !wanted(&self.seen) {
                let event = self.channels.next_event().await.unwrap();
                for (monitor, event) in heard(event) {
                    self.seen.entry(monitor).or_default().take(event);
                }
            }
        };
        let outcome = tokio::time::timeout(Duration::from_secs(90), waiting).await;
        if outcome.is_err() {
            let all: Vec<_> =
                self.seen.values().map(|s| (s.keys(), &s.changes, &s.failures, &s.kinds)).collect();
            panic!("{what} did not come; seen {all:?}");
        }
    }

    /// Takes in all that comes before a new object `default/sync-<n>` is seen by `monitor`, and forgets that object.
    pub(crate) async fn sync(&mut self, monitor: MonitorId, namespace: &str, name: &str) {
        self.put(namespace, name, "1").await;
        let key = format!("{namespace}/{name}");
        self.until(&key, |seen| seen[&monitor].keys().contains(&key)).await;
        self.delete(namespace, name).await;
        self.until("its end", |seen| !seen[&monitor].keys().contains(&key)).await;
        if let Some(seen) = self.seen.get_mut(&monitor) {
            seen.changes.retain(|change| !change.ends_with(&key));
        }
    }

    /// Takes in what comes within `time`.
    pub(crate) async fn during(&mut self, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while let Ok(event) = tokio::time::timeout_at(end, self.channels.next_event()).await {
            for (monitor, event) in heard(event.unwrap()) {
                self.seen.entry(monitor).or_default().take(event);
            }
        }
    }

    pub(crate) fn changes(&mut self, monitor: MonitorId) -> Vec<String> {
        std::mem::take(&mut self.seen.get_mut(&monitor).unwrap().changes)
    }
}

pub(crate) fn config_maps() -> Selection {
    // The server makes ConfigMaps of its own.
    let labels = LabelSelector {
        match_labels: BTreeMap::from([("of".to_owned(), "test".to_owned())]),
        match_expressions: Vec::new(),
    };
    Selection { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned(), labels, ..Selection::default() }
}

pub(crate) fn labelled(key: &str, value: &str) -> Selection {
    let labels = LabelSelector {
        match_labels: BTreeMap::from([(key.to_owned(), value.to_owned())]),
        match_expressions: Vec::new(),
    };
    Selection { namespaces: Namespaces::Labelled(labels), ..config_maps() }
}

/// A client that notes the paths of its requests.
pub(crate) fn noting(server: &ApiServer, paths: &Arc<Mutex<Vec<String>>>) -> Client {
    let paths = Arc::clone(paths);
    let service = server.service().map_request(move |request: Request<Body>| {
        paths.lock().unwrap().push(request.uri().to_string());
        request
    });
    Client::new(service, "default")
}

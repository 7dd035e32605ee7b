//! Kinds that come and go with their CRDs: whoever depends on one is woken when a CRD changes.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use engine::hook::WatchEvent;
use kube::Client;
use serde_json::Value;
use tokio::sync::watch;

use super::super::discovery::{Discovery, ResolveError, Resource};
use super::reflector::{Feed, News};
use super::stream::Source;

/// The groups whose kinds every API server has or has not from its start on.
const BUILT_IN: [&str; 24] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Resolves kinds and tells when it is worth to try again.
pub(crate) struct Kinds {
    discovery: Discovery,
    client: Client,
    changes: Mutex<Option<watch::Sender<u64>>>,
}

/// Returns whether a kind can come and go while the API server runs.
pub(crate) fn is_custom(resource: &Resource) -> bool {
    !BUILT_IN.contains(&resource.group.as_str())
}

impl Kinds {
    pub(crate) fn new(client: Client, discovery: Discovery) -> Self {
        Self { discovery, client, changes: Mutex::default() }
    }

    /// Returns the kind, or why it is not there.
    pub(crate) async fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ResolveError> {
        self.discovery.resolve(api_version, kind).await
    }

    /// Forgets what is known of kinds; the next question asks the API server.
    pub(crate) fn refresh(&self) {
        self.discovery.refresh();
    }

    /// Returns a receiver that changes whenever a CRD was established, changed or removed.
    ///
    /// The CRDs are watched for as long as there is such a receiver: most operators need none.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = changes.as_ref().filter(|sender| !sender.is_closed()) {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(0);
        *changes = Some(sender.clone());
        tokio::spawn(watch_crds(self.client.clone(), self.discovery.clone(), sender));
        receiver
    }
}

async fn watch_crds(client: Client, discovery: Discovery, changes: watch::Sender<u64>) {
    let source = Source::new("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "");
    let mut feed = Feed::new(client, source);
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    loop {
        let news = tokio::select! {
            news = feed.next() => news,
            () = changes.closed() => return,
        };
        let is_news = match news {
            News::Listed(crds) => {
                let first = known.is_empty();
                let now = crds.iter().map(|crd| (name(crd), is_established(crd))).collect();
                // The kinds were asked for before the first list came; what happened in between is found now.
                std::mem::replace(&mut known, now) != known || first
            }
            News::Changed(WatchEvent::Added | WatchEvent::Modified, crd) => {
                let established = is_established(&crd);
                known.insert(name(&crd), established) != Some(established)
            }
            News::Changed(WatchEvent::Deleted, crd) => known.remove(&name(&crd)).is_some(),
            News::Broken(_) => false,
        };
        if is_news {
            discovery.refresh();
            changes.send_modify(|count| *count += 1);
        }
    }
}

fn name(crd: &Value) -> String {
    crd.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn is_established(crd: &Value) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|conditions| {
        conditions.iter().any(|condition| {
            condition.get("type").and_then(Value::as_str) == Some("Established")
                && condition.get("status").and_then(Value::as_str) == Some("True")
        })
    })
}

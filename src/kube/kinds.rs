//! Kinds that come and go with their CRDs: whoever waits for one is woken when a CRD changes.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::StreamExt;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use tokio::sync::watch;

use crate::cluster::{Discovery, ResolveError, Resource};

/// Resolves kinds and tells when it is worth to try again.
pub(super) struct Kinds {
    discovery: Discovery,
    client: Client,
    changes: tokio::sync::OnceCell<watch::Receiver<u64>>,
}

impl Kinds {
    pub(super) fn new(client: Client, discovery: Discovery) -> Self {
        Self { discovery, client, changes: tokio::sync::OnceCell::new() }
    }

    /// Returns the kind, or why it is not there.
    pub(super) async fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ResolveError> {
        self.discovery.resolve(api_version, kind).await
    }

    /// Returns a receiver that changes whenever a CRD was established, changed or removed.
    ///
    /// The CRDs are watched from the first call on.
    pub(super) async fn changes(&self) -> watch::Receiver<u64> {
        let start = || async {
            let (sender, receiver) = watch::channel(0);
            tokio::spawn(watch_crds(self.client.clone(), self.discovery.clone(), sender));
            receiver
        };
        self.changes.get_or_init(start).await.clone()
    }
}

async fn watch_crds(client: Client, discovery: Discovery, changes: watch::Sender<u64>) {
    let resource = ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    };
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff());
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    while let Some(event) = events.next().await {
        let is_news = match event {
            Ok(watcher::Event::Apply(crd) | watcher::Event::InitApply(crd)) => {
                let name = crd.metadata.name.clone().unwrap_or_default();
                let established = is_established(&crd);
                known.insert(name, established) != Some(established)
            }
            Ok(watcher::Event::Delete(crd)) => known.remove(&crd.metadata.name.unwrap_or_default()).is_some(),
            // What went while the watch was broken is found by trying again.
            Ok(watcher::Event::InitDone) => true,
            Ok(watcher::Event::Init) | Err(_) => false,
        };
        if is_news {
            discovery.refresh();
            changes.send_modify(|count| *count += 1);
        }
        if changes.is_closed() {
            return;
        }
    }
}

fn is_established(crd: &DynamicObject) -> bool {
    let conditions = crd.data.pointer("/status/conditions").and_then(serde_json::Value::as_array);
    conditions.is_some_and(|conditions| {
        conditions.iter().any(|condition| {
            condition.get("type").and_then(serde_json::Value::as_str) == Some("Established")
                && condition.get("status").and_then(serde_json::Value::as_str) == Some("True")
        })
    })
}

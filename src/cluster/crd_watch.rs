//! The watch of CRDs: whoever depends on a kind that can come and go is woken by it.

use std::collections::BTreeMap;

use engine::hook::WatchEvent;
use serde::Deserialize;
use tokio::sync::watch;

use super::list::Collection;
use super::request::Requests;
use super::watch::{Reflector, Update, WatchReports};

/// As much of a CRD as is read.
#[derive(Deserialize)]
struct Crd {
    metadata: Name,
    status: Option<Status>,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
struct Status {
    /// `null` until the API server has looked at the CRD.
    conditions: Option<Vec<Condition>>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl Crd {
    fn is_established(&self) -> bool {
        let conditions = self.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|found| found.kind == "Established" && found.status == "True")
    }
}

/// Watches the CRDs for as long as `changes` has receivers.
///
/// Calls `refresh` after any change, because it may have changed the kinds that there are, and counts `changes` up
/// when a CRD was established, removed, or is not established any more. What it calls is told whether there are CRDs.
pub(super) async fn watch_crds(
    requests: &Requests,
    reports: &WatchReports,
    changes: &watch::Sender<u64>,
    refresh: impl Fn(bool),
) {
    let collection = Collection::new("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
    let report = reports.of("CustomResourceDefinitions");
    let mut reflector = Reflector::<Crd>::reporting(requests.clone(), collection, report);
    let mut established: BTreeMap<String, bool> = BTreeMap::new();
    loop {
        let update = tokio::select! {
            update = reflector.next() => update,
            () = changes.closed() => return,
        };
        let is_news = match update {
            Update::Listed(crds) => {
                let is_first = established.is_empty();
                let now = crds.into_iter().map(|crd| (crd.is_established(), crd.metadata.name));
                let now = now.map(|(established, name)| (name, established)).collect();
                // The kinds were asked for before the first list came; what happened in between is found now.
                let is_news = std::mem::replace(&mut established, now) != established || is_first;
                if is_news {
                    refresh(!established.is_empty());
                }
                is_news
            }
            Update::Changed(WatchEvent::Added | WatchEvent::Modified, crd) => {
                refresh(true);
                let now = crd.is_established();
                established.insert(crd.metadata.name, now) != Some(now)
            }
            Update::Changed(WatchEvent::Deleted, crd) => {
                refresh(true);
                established.remove(&crd.metadata.name).is_some()
            }
            Update::Failed(error) => {
                tracing::debug!("the watch of CRDs begins anew: {error}");
                false
            }
        };
        if is_news {
            changes.send_modify(|count| *count += 1);
        }
    }
}

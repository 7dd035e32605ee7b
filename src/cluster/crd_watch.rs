//! The watch of CRDs: whoever depends on a kind that can come and go is woken by it.

use std::collections::BTreeMap;

use engine::hook::WatchEvent;
use serde::Deserialize;
use tokio::sync::watch;

use super::list::Collection;
use super::request::Requests;
use super::watch::{Reflector, Update, WatchReports};

/// The CRDs, as far as whoever depends on them has to know.
#[derive(Debug, Default)]
pub(crate) struct Crds {
    /// Whether each is established, by its name: `widgets.example.com`.
    established: BTreeMap<String, bool>,
}

impl Crds {
    /// Returns whether there is a CRD with this name, and it is established.
    pub(crate) fn is_established(&self, name: &str) -> bool {
        self.established.get(name).is_some_and(|is_established| *is_established)
    }
}

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

/// Watches the CRDs for as long as `crds` has receivers.
///
/// Calls `refresh` after any change, because it may have changed the kinds that there are, and wakes the receivers
/// when a CRD was established, removed, or is not established any more. What it calls is told whether there are CRDs.
pub(super) async fn watch_crds(
    requests: &Requests,
    reports: &WatchReports,
    crds: &watch::Sender<Crds>,
    refresh: impl Fn(bool),
) {
    let collection = Collection::new("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
    let report = reports.of("CustomResourceDefinitions");
    let mut reflector = Reflector::<Crd>::reporting(requests.clone(), collection, report);
    loop {
        let update = tokio::select! {
            update = reflector.next() => update,
            () = crds.closed() => return,
        };
        match update {
            Update::Listed(listed) => {
                let now = listed.into_iter().map(|crd| (crd.is_established(), crd.metadata.name));
                let now: BTreeMap<String, bool> =
                    now.map(|(is_established, name)| (name, is_established)).collect();
                // The kinds were asked for before the first list came; what happened in between is found now.
                let is_news = { crds.borrow().established.is_empty() || crds.borrow().established != now };
                if is_news {
                    refresh(!now.is_empty());
                    crds.send_modify(|crds| crds.established = now);
                }
            }
            Update::Changed(WatchEvent::Added | WatchEvent::Modified, crd) => {
                refresh(true);
                let now = crd.is_established();
                crds.send_if_modified(|crds| crds.established.insert(crd.metadata.name, now) != Some(now));
            }
            Update::Changed(WatchEvent::Deleted, crd) => {
                refresh(true);
                crds.send_if_modified(|crds| crds.established.remove(&crd.metadata.name).is_some());
            }
            Update::Failed(error) => tracing::debug!("the watch of CRDs begins anew: {error}"),
            Update::Restored => {}
        }
    }
}

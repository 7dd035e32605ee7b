//! What says who is asked about a write: configurations of webhooks, policies and their bindings.

use serde_json::Value;

use super::webhook::Asked;
use crate::cluster::Cluster;
use crate::request::RequestContext;
use crate::store::{Range, Stored};

pub(super) const MUTATING: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
pub(super) const VALIDATING: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";
pub(super) const POLICIES: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
pub(super) const BINDINGS: &str = "admissionregistration.k8s.io/validatingadmissionpolicybindings";

/// Returns whether there is any webhook or policy.
pub(crate) fn are_configured(cluster: &Cluster) -> bool {
    let store = cluster.storage.read();
    store.count(MUTATING) + store.count(VALIDATING) + store.count(BINDINGS) > 0
}

/// Returns whether somebody may be asked about what a request writes.
pub(crate) fn is_reviewed(request: &RequestContext) -> bool {
    !request.is_internal
        && &*request.resource.kind.group != "admissionregistration.k8s.io"
        && are_configured(&request.cluster)
}

/// Returns the objects of a table that say who is asked about a write, by name.
pub(super) fn items(asked: Asked<'_>, table: &str) -> Vec<Value> {
    let resource = &asked.request.resource;
    // A webhook that is broken must not keep itself from being repaired.
    if asked.request.is_internal || &*resource.kind.group == "admissionregistration.k8s.io" {
        return Vec::new();
    }
    let store = asked.request.cluster.storage.read();
    if store.count(table) == 0 {
        return Vec::new();
    }
    let page = store.list(table, &Range::default(), None, &|_: &Stored| true);
    let items = page.map(|page| page.items).unwrap_or_default();
    drop(store);
    items.iter().map(|item| item.value()).collect()
}

//! Which kinds the API server has: asked once, asked again when a kind is missing.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use kube::core::discovery::v2::{APIGroupDiscoveryList, APIResourceDiscovery};
use kube::discovery::ApiResource;
use thiserror::Error;
use tokio::sync::watch;

use super::crd_watch::watch_crds;
use super::request::{Requests, encode_segment};

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

/// The kinds of one API server. Its clones share what is known.
#[derive(Clone)]
pub struct Discovery {
    client: Client,
    known: Arc<Mutex<Option<Arc<[Resource]>>>>,
    /// Where the watch of CRDs, once somebody needed it, counts its changes.
    crd_changes: Arc<Mutex<Option<watch::Sender<u64>>>>,
}

impl fmt::Debug for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovery").finish_non_exhaustive()
    }
}

/// A kind that the API server has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resource {
    /// The group, such as `apps`; empty for the core group.
    pub group: String,
    /// The version within the group, such as `v1`.
    pub version: String,
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// Its plural name, as in paths.
    pub plural: String,
    /// Its short names.
    pub short_names: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether this is the preferred version of its group.
    pub preferred: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

/// Why a kind was not found.
#[derive(Debug, Error)]
pub enum ResolveError {
    /// The API server does not answer.
    #[error("can't ask the API server for its kinds")]
    Cluster(#[source] Box<kube::Error>),
    /// It has no such kind.
    #[error("{0}")]
    Unknown(String),
}

impl Resource {
    /// Returns `apps/v1` or `v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the form that the client's dynamic types take.
    pub fn api_resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version: self.api_version(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
        }
    }

    /// Returns the path of the collection: `/apis/apps/v1/namespaces/web/deployments`.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let api_version = self.api_version();
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/{api_version}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{api_version}/{}", self.plural),
        }
    }

    /// Returns the path of an object: `/apis/apps/v1/namespaces/web/deployments/site`.
    pub(crate) fn object_path(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}/{}", self.path(namespace), encode_segment(name))
    }

    /// Returns whether the kind can come and go while the API server runs.
    pub(crate) fn is_custom(&self) -> bool {
        !BUILT_IN.contains(&self.group.as_str())
    }

    /// Returns whether people who write `kind` mean this one: by kind, plural or short name, in any case.
    fn is_called(&self, kind: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind)
            || self.plural.eq_ignore_ascii_case(kind)
            || self.short_names.iter().any(|name| name.eq_ignore_ascii_case(kind))
    }
}

impl Discovery {
    /// Returns a picture that is taken when it is needed first.
    pub fn new(client: Client) -> Self {
        Self { client, known: Arc::default(), crd_changes: Arc::default() }
    }

    /// Forgets what is known; the next question asks the API server.
    pub fn refresh(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns a receiver that changes whenever a CRD was established, changed or removed.
    ///
    /// The CRDs are watched, once for all, for as long as there is such a receiver: most operators need none.
    pub(crate) fn crd_changes(&self) -> watch::Receiver<u64> {
        let mut changes = self.crd_changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = changes.as_ref().filter(|sender| !sender.is_closed()) {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(0);
        *changes = Some(sender.clone());
        let discovery = self.clone();
        let refresh = move || discovery.refresh();
        tokio::spawn(watch_crds(Requests::new(self.client.clone()), sender, refresh));
        receiver
    }

    /// Returns all kinds.
    pub async fn all(&self) -> Result<Arc<[Resource]>, ResolveError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let cluster = |error| ResolveError::Cluster(Box::new(error));
        let (core, groups) = tokio::try_join!(
            self.client.list_core_api_versions_aggregated(),
            self.client.list_api_groups_aggregated()
        )
        .map_err(cluster)?;
        let mut all = resources(core);
        all.extend(resources(groups));
        let all: Arc<[Resource]> = all.into();
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&all));
        Ok(all)
    }

    /// Returns the kind that `api_version` (may be empty) and `kind` mean.
    ///
    /// A kind that is missing is looked for once more with a new picture.
    pub async fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ResolveError> {
        if let Some(found) = find(&self.all().await?, api_version, kind) {
            return Ok(found.clone());
        }
        self.refresh();
        let all = self.all().await?;
        find(&all, api_version, kind)
            .cloned()
            .ok_or_else(|| ResolveError::Unknown(explain(&all, api_version, kind)))
    }
}

fn find<'a>(all: &'a [Resource], api_version: &str, kind: &str) -> Option<&'a Resource> {
    all.iter().find(|resource| {
        let fits =
            if api_version.is_empty() { resource.preferred } else { resource.api_version() == api_version };
        fits && resource.is_called(kind)
    })
}

fn explain(all: &[Resource], api_version: &str, kind: &str) -> String {
    if api_version.is_empty() {
        return format!(
            "kind '{kind}' is not supported by cluster: no API group has it; is its CRD installed?"
        );
    }
    if all.iter().any(|resource| resource.api_version() == api_version) {
        return format!(
            "apiVersion '{api_version}', kind '{kind}' is not supported by cluster: the version has other kinds only"
        );
    }
    format!(
        "apiVersion '{api_version}' has no supported resources in cluster; is the CRD of kind '{kind}' installed?"
    )
}

fn resources(list: APIGroupDiscoveryList) -> Vec<Resource> {
    let mut found = Vec::new();
    for group in list.items {
        let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
        for (place, version) in group.versions.into_iter().enumerate() {
            let version_name = version.version.unwrap_or_default();
            let kinds = version.resources.into_iter();
            found.extend(kinds.filter_map(|kind| resource(&name, &version_name, place == 0, kind)));
        }
    }
    found
}

fn resource(group: &str, version: &str, preferred: bool, found: APIResourceDiscovery) -> Option<Resource> {
    let kind = found.response_kind?.kind?;
    Some(Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind,
        plural: found.resource?,
        short_names: found.short_names,
        namespaced: found.scope.as_deref() == Some("Namespaced"),
        preferred,
        verbs: found.verbs,
    })
}

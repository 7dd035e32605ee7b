//! Which kinds the API server has: asked once for all, asked again when a kind is missing or CRDs change.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use kube::core::discovery::v2::{APIGroupDiscoveryList, APIResourceDiscovery};
use kube::discovery::ApiResource;
use thiserror::Error;
use tokio::sync::watch;

use super::crd_watch::{Crds, watch_crds};
use super::request::{PATIENCE, Requests, encode_segment};
use super::watch::WatchReports;
use crate::lasting_task::lasting;

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
    known: Arc<Mutex<Known>>,
    /// Held by who asks the API server: all others wait for the same answer.
    asking: Arc<tokio::sync::Mutex<()>>,
    /// Where the watch of CRDs, once somebody needed it, says which there are.
    crd_changes: Arc<Mutex<Option<watch::Sender<Crds>>>>,
    reports: WatchReports,
}

/// What is known of the kinds. Answers have numbers, in the order in which they were asked for.
#[derive(Default)]
struct Known {
    /// The number of the last question.
    asked: u64,
    /// Answers up to this number are out of date.
    stale: u64,
    /// The newest answer that is not, with its number.
    answer: Option<(u64, Arc<[Resource]>)>,
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
    /// Whether this is the version in which its group prefers this kind: the first that has it.
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

impl ResolveError {
    /// Returns whether the operator may not ask.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Cluster(error) if matches!(&**error, kube::Error::Api(status) if status.code == 403))
    }
}

impl Resource {
    /// Returns `apps/v1` or `v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns whether this is its version: `apps/v1` or `v1`.
    fn has_api_version(&self, text: &str) -> bool {
        if self.group.is_empty() {
            return text == self.version;
        }
        let version = text.strip_prefix(&*self.group).and_then(|rest| rest.strip_prefix('/'));
        version == Some(&*self.version)
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
        Self {
            client,
            known: Arc::default(),
            asking: Arc::default(),
            crd_changes: Arc::default(),
            reports: WatchReports::default(),
        }
    }

    /// Returns where the operator's own watches of this API server report whether they work.
    pub fn watch_reports(&self) -> WatchReports {
        self.reports.clone()
    }

    /// Forgets what is known; the next question asks the API server.
    pub fn refresh(&self) {
        self.with_known(|known| {
            known.stale = known.asked;
            known.answer = None;
        });
    }

    fn knows_custom_kinds(&self) -> bool {
        self.with_known(|known| {
            known.answer.as_ref().is_none_or(|(_, kinds)| kinds.iter().any(Resource::is_custom))
        })
    }

    fn with_known<T>(&self, work: impl FnOnce(&mut Known) -> T) -> T {
        work(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a receiver that changes whenever a CRD was established, changed or removed.
    ///
    /// The CRDs are watched, once for all, for as long as there is such a receiver: most operators need none.
    pub(crate) fn crd_changes(&self) -> watch::Receiver<Crds> {
        let mut changes = self.crd_changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = changes.as_ref().filter(|sender| !sender.is_closed()) {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(Crds::default());
        *changes = Some(sender.clone());
        let discovery = self.clone();
        let (requests, reports) = (Requests::new(self.client.clone()), self.watch_reports());
        tokio::spawn(async move {
            // Without CRDs there is no kind to be found, and usually none that is gone.
            let refresh = |has_crds: bool| {
                if has_crds || discovery.knows_custom_kinds() {
                    discovery.refresh();
                }
            };
            lasting("the watch of CRDs", || watch_crds(&requests, &reports, &sender, refresh)).await;
        });
        receiver
    }

    /// Returns all kinds.
    pub async fn all(&self) -> Result<Arc<[Resource]>, ResolveError> {
        self.asked_after(0).await
    }

    /// Returns all kinds as of a question behind number `after`.
    async fn asked_after(&self, after: u64) -> Result<Arc<[Resource]>, ResolveError> {
        let newest = |known: &mut Known| {
            known.answer.as_ref().filter(|(number, _)| *number > after).map(|(_, kinds)| Arc::clone(kinds))
        };
        if let Some(kinds) = self.with_known(newest) {
            return Ok(kinds);
        }
        let _turn = self.asking.lock().await;
        if let Some(kinds) = self.with_known(newest) {
            return Ok(kinds);
        }
        let number = self.with_known(|known| {
            known.asked += 1;
            known.asked
        });
        let kinds = self.ask().await.map_err(|error| ResolveError::Cluster(Box::new(error)))?;
        self.with_known(|known| {
            if number > known.stale {
                known.answer = Some((number, Arc::clone(&kinds)));
            }
        });
        Ok(kinds)
    }

    async fn ask(&self) -> Result<Arc<[Resource]>, kube::Error> {
        let asking = async {
            tokio::try_join!(
                self.client.list_core_api_versions_aggregated(),
                self.client.list_api_groups_aggregated()
            )
        };
        let late = |_| {
            let text = format!("no answer within {} s", PATIENCE.as_secs());
            kube::Error::Service(text.into())
        };
        let (core, groups) = tokio::time::timeout(PATIENCE, asking).await.map_err(late)??;
        let mut all = resources(core);
        all.extend(resources(groups));
        Ok(all.into())
    }

    /// Returns whether the API server serves any of these kinds, by the newest picture that there is: nothing is asked for them
    /// alone.
    ///
    /// # Errors
    ///
    /// When there is no picture yet and the API server can't be asked.
    pub async fn serves_any(&self, api_version: &str, kinds: &[&str]) -> Result<bool, ResolveError> {
        let all = self.all().await?;
        Ok(kinds.iter().any(|kind| find(&all, api_version, kind).is_some()))
    }

    /// Returns the kind that `api_version` and `kind` mean. Without a version it is found as client-go's `RESTMapper` finds it:
    /// the groups in their order, each in the first of its versions that has the kind.
    ///
    /// A kind that is missing is looked for once more with a new picture.
    pub async fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ResolveError> {
        let asked = self.with_known(|known| known.asked);
        if let Some(found) = find(&self.all().await?, api_version, kind) {
            return Ok(found.clone());
        }
        let all = self.asked_after(asked).await?;
        find(&all, api_version, kind)
            .cloned()
            .ok_or_else(|| ResolveError::Unknown(explain(&all, api_version, kind)))
    }
}

fn find<'a>(all: &'a [Resource], api_version: &str, kind: &str) -> Option<&'a Resource> {
    all.iter().find(|resource| {
        let fits =
            if api_version.is_empty() { resource.preferred } else { resource.has_api_version(api_version) };
        fits && resource.is_called(kind)
    })
}

fn explain(all: &[Resource], api_version: &str, kind: &str) -> String {
    if api_version.is_empty() {
        return format!(
            "kind '{kind}' is not supported by cluster: no API group has it; is its CRD installed?"
        );
    }
    if all.iter().any(|resource| resource.has_api_version(api_version)) {
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
        // The versions come with the preferred one first, which need not have all kinds.
        let mut known = BTreeSet::new();
        for version in group.versions {
            let version_name = version.version.unwrap_or_default();
            let kinds = version.resources.into_iter();
            found.extend(kinds.filter_map(|kind| resource(&name, &version_name, &mut known, kind)));
        }
    }
    found
}

/// Returns a kind of this group and version; `known` are the kinds that versions before it have.
fn resource(
    group: &str,
    version: &str,
    known: &mut BTreeSet<String>,
    found: APIResourceDiscovery,
) -> Option<Resource> {
    let kind = found.response_kind?.kind?;
    let plural = found.resource?;
    Some(Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind,
        preferred: known.insert(plural.clone()),
        plural,
        short_names: found.short_names,
        namespaced: found.scope.as_deref() == Some("Namespaced"),
        verbs: found.verbs,
    })
}

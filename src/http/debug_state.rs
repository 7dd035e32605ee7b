//! What the answers of the debugging socket are made of: the engine, the releases, and charts that are kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::FromRef;
use engine::view::charts::MeantChart;
use engine::{Failure, Module, Package, ReleaseTarget, RepositoryAccess, ValuesInput};
use futures::future::BoxFuture;
use serde_json::Value;

use super::response::is_true;
use super::source_plans::SourcePlans;
use crate::config::Parameters;
use crate::driver::Questions;

/// The state of the socket's router.
#[derive(Clone)]
pub struct DebugState {
    /// The engine.
    pub questions: Questions,
    /// The releases.
    pub releases: Arc<dyn Releases>,
    /// What fetches module sources that were not applied.
    pub sources: Arc<dyn SourcePlans>,
    /// The charts that are kept.
    pub charts: Arc<dyn ChartArchives>,
    /// What can be changed while the operator runs.
    pub parameters: Parameters,
    /// Whether values of the Secret over the ConfigMap are shown to who asks for them: not over TCP.
    pub shows_secrets: bool,
}

impl DebugState {
    /// Returns whether the answer to a query shows the values of the Secret.
    pub(super) fn may_show(&self, query: &BTreeMap<String, String>) -> bool {
        self.shows_secrets && is_true(query.get("showSecrets"))
    }
}

impl FromRef<DebugState> for Parameters {
    fn from_ref(state: &DebugState) -> Self {
        state.parameters.clone()
    }
}

/// What the socket answers about releases.
pub trait Releases: Send + Sync {
    /// Returns the names of our releases, a line each.
    fn list(&self, targets: Vec<ReleaseTarget>) -> BoxFuture<'_, Result<String, Failure>>;
    /// Returns the revisions of a release, a line each.
    fn history(&self, release: String, target: ReleaseTarget) -> BoxFuture<'_, Result<String, Failure>>;
    /// Returns the objects that are watched for each release, as `namespace/Kind/name`, sorted.
    fn watched(&self) -> BTreeMap<String, Vec<String>>;
    /// Returns what the chart of a module renders to; empty for a module without chart.
    fn render(
        &self,
        module: (Arc<Module>, ReleaseTarget),
        values: ValuesInput,
    ) -> BoxFuture<'_, Result<String, Failure>>;
    /// Returns how the cluster differs from what the chart of a module renders to. Without `shows_secrets`, data of Secrets are masked,
    /// and secret values of before.
    fn diff(
        &self,
        module: (Arc<Module>, ReleaseTarget),
        values: ValuesInput,
        shows_secrets: bool,
    ) -> BoxFuture<'_, Result<String, Failure>>;
}

/// Knows the charts that are kept.
pub trait ChartArchives: Send + Sync {
    /// Returns the versions of a chart of a Repository, as its index has them, the highest first.
    fn versions(&self, meant: MeantChart) -> BoxFuture<'_, Result<Vec<Value>, Failure>>;
    /// Returns the default values of a version that is kept, as YAML.
    fn values(&self, meant: MeantChart) -> BoxFuture<'_, Result<String, Failure>>;
    /// Returns a version that is kept, and its archive.
    fn archive(&self, meant: MeantChart) -> BoxFuture<'_, Result<(Package, Vec<u8>), Failure>>;
    /// Returns a version whether it is kept or not, so that a module can be rendered from it. Nothing is written.
    fn look_at(
        &self,
        repository: RepositoryAccess,
        meant: MeantChart,
    ) -> BoxFuture<'_, Result<Package, Failure>>;
}

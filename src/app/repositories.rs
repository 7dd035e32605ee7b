//! Chart repositories at the start of the operator: what fetches and keeps charts, and which modules stay with which.

use std::sync::Arc;

use engine::view::charts::MeantChart;
use engine::{Catalog, Failure, FailureKind, Package, Pins, RepositoryAccess, RepositoryKey, RepositoryKind};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;

use super::sources::allowed;
use super::surroundings::{Outcome, Surroundings};
use super::waiting::{Wanted, answered};
use crate::cluster::Discovery;
use crate::driver::Channels;
use crate::helm::Archives;
use crate::http::ChartArchives;
use crate::repository::{Options, Repositories};
use crate::source::Sources;

/// How many objects are decided on or written at a time. What takes long is not counted.
const WORKERS: usize = 2;

/// Hands out the archives that are kept in the cluster.
pub(super) struct PackageArchives(pub(super) Arc<Repositories>);

impl Archives for PackageArchives {
    fn archive<'a>(&'a self, package: &'a Package) -> BoxFuture<'a, Result<Vec<u8>, Failure>> {
        async move { self.0.archive(package).await }.boxed()
    }
}

/// Answers what people ask about charts that are kept.
pub(super) struct ChartsOfCluster(pub(super) Arc<Repositories>);

impl ChartArchives for ChartsOfCluster {
    fn versions(&self, meant: MeantChart) -> BoxFuture<'_, Result<Vec<Value>, Failure>> {
        async move { self.0.versions(&meant.repository, &meant.chart).await }.boxed()
    }

    fn values(&self, meant: MeantChart) -> BoxFuture<'_, Result<String, Failure>> {
        async move {
            let (_, bytes) = self.archive(meant).await?;
            crate::repository::default_values(bytes).await
        }
        .boxed()
    }

    fn archive(&self, meant: MeantChart) -> BoxFuture<'_, Result<(Package, Vec<u8>), Failure>> {
        async move {
            let version = meant.version.unwrap_or_default();
            self.0.kept_package(&meant.repository, &meant.chart, &version).await
        }
        .boxed()
    }

    fn look_at(
        &self,
        repository: RepositoryAccess,
        meant: MeantChart,
    ) -> BoxFuture<'_, Result<Package, Failure>> {
        async move {
            let version = meant.version.unwrap_or_default();
            self.0.look_at(&repository, &meant.chart, &version).await
        }
        .boxed()
    }
}

/// Returns what fetches charts and keeps them. Its requests count with those of module sources.
pub(crate) fn of(around: &Surroundings, sources: &Sources) -> anyhow::Result<Repositories> {
    let settings = &around.settings;
    let options = Options {
        namespace: settings.charts.namespace.clone(),
        config_map: settings.config_map.clone(),
        directory: settings.sources.dir.clone(),
        index_max: settings.charts.index_max,
        index_bytes: settings.charts.index_bytes,
        allowed: allowed(settings)?,
    };
    Ok(Repositories::new(around.client.clone(), sources.http(), options))
}

/// Returns how many objects of chart repositories are worked on at a time; 0 if nobody looks after them.
pub(super) fn workers(around: &Surroundings, are_served: bool) -> usize {
    if around.once && !are_served { 0 } else { WORKERS }
}

/// Returns whether there are the kinds of chart repositories, and the packages that modules stay with. An API server that is
/// away is waited for, except with `--once`. Without the kinds, and without a module that names a chart, nothing more is asked.
pub(super) async fn restore(
    (discovery, repositories): (&Discovery, &Repositories),
    catalog: &Catalog,
    around: &Surroundings,
    channels: &Channels,
) -> Result<(bool, Pins), Outcome> {
    let kinds = RepositoryKind::ALL.map(RepositoryKind::as_str);
    let complaint = "the API server does not say which kinds there are";
    let wanted = Wanted { what: "the kinds of the API server", complaint };
    let are_served = answered(&wanted, around, channels, || async {
        let served = discovery.serves_any(RepositoryKey::API_VERSION, &kinds).await;
        served.map_err(|error| Failure::of(FailureKind::Cluster, &error))
    })
    .await?;
    let has_named = catalog.modules.iter().any(|module| module.names_charts());
    if !are_served && !has_named {
        return Ok((false, Pins::new()));
    }
    let complaint = "the packages of modules can't be read";
    let wanted = Wanted { what: "the packages of modules", complaint };
    let pins = answered(&wanted, around, channels, || repositories.pins()).await?;
    Ok((are_served, pins))
}

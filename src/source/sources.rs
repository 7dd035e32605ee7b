//! What the effects of module sources come to: fetch, keep, drop, link, restore.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::source::mirror::Mirrors;
use engine::{Approvals, Digest, Failure, Fetched, ModuleLink, Registry, SourceKey, SourceSpec, StoreError};
use futures::stream::{self, StreamExt as _};
use kube::Client;
use tokio::sync::Semaphore;

use super::cache::Cache;
use super::disk_error::DiskError;
use super::fetch::Fetcher;
use super::git::Pass;
use super::secrets::Secrets;
use super::store::Store;
use super::turns::{Turns, blocking};
use crate::remote::http::HttpClient;
use crate::remote::{AuthoritiesError, Connector, FetchMetrics, Trust};

/// How many bundles are read from the cluster at a time.
const RESTORED_AT_A_TIME: usize = 4;

/// How many commits of git repositories are read at a time.
const COMMITS_AT_A_TIME: usize = 2;

/// How sources are fetched and kept.
#[derive(Clone)]
pub struct Options {
    /// The store directory.
    pub directory: PathBuf,
    /// The namespace of the operator: there are the Secrets with bundles.
    pub namespace: String,
    /// The name of the operator's ConfigMap; names of Secrets begin with it.
    pub config_map: String,
    /// The namespaces whose Secrets a configuration of the cluster may name.
    pub secret_namespaces: Vec<String>,
    /// What stands in for repositories.
    pub mirrors: Mirrors,
    /// What the connector trusts, and which hosts and URLs are allowed.
    pub trust: Trust,
    /// How many requests are in flight.
    pub in_flight: usize,
    /// How long a request may take.
    pub timeout: Duration,
}

/// What a start finds.
#[derive(Debug)]
pub struct Restored {
    /// What is registered.
    pub registry: Registry,
    /// The bundles that could not be restored: their modules are not in the catalog.
    pub problems: Vec<(Digest, Failure)>,
}

/// Fetches bundles, and keeps them on the disk and in the cluster.
pub struct Sources {
    fetcher: Fetcher,
    store: Arc<Store>,
    secrets: Arc<Secrets>,
    metrics: FetchMetrics,
}

impl Sources {
    /// Returns sources that keep bundles in the cluster of `client`. Nothing is sent or made yet.
    ///
    /// # Errors
    ///
    /// When the file with authorities can't be used.
    pub fn new(client: Client, options: Options) -> Result<Self, AuthoritiesError> {
        let allowed = options.trust.allowed.clone();
        let connector = Connector::new(options.trust)?;
        let store = Arc::new(Store::new(options.directory));
        let secrets = Arc::new(Secrets::new(client, &options.namespace, &options.config_map));
        let metrics = FetchMetrics::default();
        let fetcher = Fetcher {
            http: Arc::new(HttpClient::new(connector, options.in_flight, options.timeout, allowed.protocols)),
            store: Arc::clone(&store),
            secrets: Arc::clone(&secrets),
            allowed,
            mirrors: options.mirrors,
            secret_namespaces: options.secret_namespaces,
            cache: Cache::default(),
            metrics: metrics.clone(),
            turns: Turns::default(),
            commits: Arc::new(Semaphore::new(COMMITS_AT_A_TIME)),
        };
        Ok(Self { fetcher, store, secrets, metrics })
    }

    /// Checks that nobody else can replace what is in the directory for bundles, as far as it is there.
    ///
    /// # Errors
    ///
    /// If somebody can, or something else stands in its place.
    pub fn check_directory(&self) -> Result<(), Failure> {
        self.store.look().map_err(|error| error.failure())
    }

    /// Returns what sends requests to repositories, with the limits for all of them.
    pub(crate) fn http(&self) -> Arc<HttpClient> {
        Arc::clone(&self.fetcher.http)
    }

    /// Returns what measures the requests to repositories.
    pub fn metrics(&self) -> &FetchMetrics {
        &self.metrics
    }

    /// Returns the directory in which the loader finds the modules. Without sources it is not there.
    pub fn active(&self) -> PathBuf {
        self.store.active()
    }

    /// Fetches what the repositories of a configuration offer. See docs/sources.md.
    ///
    /// # Errors
    ///
    /// Those of the API server and of our own disk. What is wrong with a repository or a bundle is in the result.
    pub async fn fetch(&self, key: &SourceKey, spec: &SourceSpec) -> Result<Fetched, Failure> {
        self.fetch_with(key, spec, (false, &Approvals::default())).await
    }

    /// Does the same, with the versions that people have approved beside those that are wanted. `is_refresh` is for who
    /// [looks again](Self::refresh).
    ///
    /// # Errors
    ///
    /// Those of [`Sources::fetch`].
    pub async fn fetch_with(
        &self,
        key: &SourceKey,
        spec: &SourceSpec,
        (is_refresh, approvals): (bool, &Approvals),
    ) -> Result<Fetched, Failure> {
        // The blobs stay fresh when the pins go: the engine hears of them a moment later.
        self.fetcher.fetch(key, spec, Pass::new(is_refresh, approvals)).await.map(|(fetched, _pins)| fetched)
    }

    /// Fetches what a configuration asks for that was not applied. The bundles stay in the store directory as long as what comes with
    /// them.
    ///
    /// # Errors
    ///
    /// Those of [`Sources::fetch`].
    pub async fn look_at(
        &self,
        key: &SourceKey,
        spec: &SourceSpec,
        approvals: &Approvals,
    ) -> Result<(Fetched, Box<dyn Send + Sync>), Failure> {
        let (fetched, pins) = self.fetcher.fetch(key, spec, Pass::new(false, approvals)).await?;
        Ok((fetched, Box::new(pins)))
    }

    /// Returns the directory of a bundle in the store directory; `None` if it is not there.
    ///
    /// # Errors
    ///
    /// Those of the disk.
    pub async fn bundle(&self, digest: &Digest) -> Result<Option<PathBuf>, Failure> {
        let (store, digest) = (Arc::clone(&self.store), digest.clone());
        blocking(move || store.bundle(&digest)).await?.map_err(|error| error.failure())
    }

    /// Does the same for who looks again without being asked: while an index did not change, bundles that were fetched before
    /// are not asked for.
    ///
    /// # Errors
    ///
    /// Those of [`Sources::fetch`].
    pub async fn refresh(&self, key: &SourceKey, spec: &SourceSpec) -> Result<Fetched, Failure> {
        self.fetch_with(key, spec, (true, &Approvals::default())).await
    }

    /// Writes the bundles that are missing in the cluster, then the registry. Those that are `lost` can't be written.
    pub async fn keep(&self, registry: &Registry, lost: &[Digest]) -> Result<(), StoreError> {
        let mut digests = registry.digests();
        digests.retain(|digest| !lost.contains(digest));
        let packed = |digest: Digest| {
            let store = Arc::clone(&self.store);
            async move {
                let packed = blocking(move || store.packed(&digest)).await?;
                packed.map_err(|error| error.failure())
            }
        };
        let problems = if digests.is_empty() {
            Vec::new()
        } else {
            self.secrets.write_bundles(&digests, packed).await.map_err(StoreError::Registry)?
        };
        if !problems.is_empty() {
            return Err(StoreError::Bundles(problems));
        }
        self.prepare(registry, lost).await?;
        self.secrets.write_registry(registry).await.map_err(StoreError::Registry)?;
        self.store.named(digests.iter());
        Ok(())
    }

    /// Makes what the next commit needs of the disk, before anything is registered.
    async fn prepare(&self, registry: &Registry, lost: &[Digest]) -> Result<(), StoreError> {
        let links = registry.links(&lost.iter().cloned().collect());
        let store = Arc::clone(&self.store);
        let problems = blocking(move || store.prepare(&links)).await.map_err(StoreError::Registry)?;
        if problems.is_empty() {
            return Ok(());
        }
        let place = self.store.path().display();
        let told = |error: DiskError| {
            let Failure { kind, message, .. } = error.failure();
            Failure::new(kind, format!("the link to the bundle can't be kept in {place}: {message}"))
        };
        Err(StoreError::Bundles(problems.into_iter().map(|(digest, error)| (digest, told(error))).collect()))
    }

    /// Removes all bundles but those of the registry and `others`, from the cluster and from the store directory.
    pub async fn drop_bundles(&self, registry: &Registry, others: &[Digest]) -> Result<(), Failure> {
        let mut keep = registry.digests();
        keep.extend(others.iter().cloned());
        self.secrets.drop_all_but(&keep).await?;
        let store = Arc::clone(&self.store);
        blocking(move || store.drop_all_but(&keep)).await?.map_err(|error| error.failure())
    }

    /// Makes the directory of modules say exactly this.
    pub async fn link(&self, links: Vec<ModuleLink>) -> Result<(), Failure> {
        let store = Arc::clone(&self.store);
        blocking(move || store.link(&links)).await?.map_err(|error| error.failure())
    }

    /// Reads the registry, restores bundles that are not on the disk, and makes the links. Nobody outside is asked.
    ///
    /// # Errors
    ///
    /// When the registry can't be read, or the store directory can't be used.
    pub async fn restore(&self) -> Result<Restored, Failure> {
        let registry = self.secrets.read_registry().await?;
        self.note_held(&registry);
        let problems = self.restore_bundles(registry.digests()).await;
        let lost = problems.iter().map(|(digest, _)| digest.clone()).collect();
        self.link(registry.links(&lost)).await?;
        Ok(Restored { registry, problems })
    }

    /// Records who has which bundles, so that an index with digests is enough for who had them before a restart.
    fn note_held(&self, registry: &Registry) {
        for addon in registry.addons.iter() {
            addon.digests().for_each(|digest| self.fetcher.cache.put_held(&addon.source, digest));
        }
    }

    /// Puts bundles into the store directory that the cluster has. Returns those that can't be had, and why.
    pub async fn restore_bundles(&self, digests: impl IntoIterator<Item = Digest>) -> Vec<(Digest, Failure)> {
        let restoring = digests.into_iter().map(|digest| async move {
            let outcome = self.restore_bundle(&digest).await;
            (digest, outcome)
        });
        let outcomes: Vec<_> = stream::iter(restoring).buffered(RESTORED_AT_A_TIME).collect().await;
        outcomes.into_iter().filter_map(|(digest, outcome)| Some((digest, outcome.err()?))).collect()
    }

    async fn restore_bundle(&self, digest: &Digest) -> Result<(), Failure> {
        let (store, of) = (Arc::clone(&self.store), digest.clone());
        let found = blocking(move || store.bundle(&of)).await?.map_err(|error| error.failure())?;
        if found.is_some() {
            return Ok(());
        }
        let store = Arc::clone(&self.store);
        let mut download = blocking(move || store.download()).await?.map_err(|error| error.failure())?;
        self.secrets.read_bundle(digest, &mut download).await?;
        let (store, of) = (Arc::clone(&self.store), digest.clone());
        blocking(move || {
            let (staged, found) = download.finish()?;
            if found != of {
                let text = format!(
                    "the bundle {of} can't be used: what its Secrets hold has the digest {found}; a part is missing, or was \
                     changed"
                );
                return Err(Failure::new(engine::FailureKind::Cluster, text));
            }
            staged.unpack().map_err(|error| Failure::of(engine::FailureKind::Files, &error))?;
            store.put(staged, &of).map(|_| ()).map_err(|error| error.failure())
        })
        .await?
    }
}

//! What the effects of chart repositories come to.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use ::source::allow::AllowList;
use ::source::chart_repository::location;
use ::source::registry::reference::{RegistryUrl, is_registry};
use ::source::template::SecretData;
use ::source::url::{HttpUrl, IndexUrl};
use engine::{
    Digest, Failure, FetchedIndex, IndexRequest, ModuleName, Package, Pin, Pins, RepositoryAccess,
    ResolveRequest, ResolvedChart, StoreRequest, StoredPackage,
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::config_maps::ConfigMaps;
use super::map_watch::MapWatch;
use super::stop::{Stop, outcome};
use super::verified::Verified;
use crate::driver::Inbox;
use crate::lasting_task::lasting;
use crate::remote::http::{Answer, HttpClient, HttpError};
use crate::remote::{FetchMetrics, FetchObservation};

/// How charts are fetched and kept.
#[derive(Clone)]
pub struct Options {
    /// The namespace of the `ConfigMaps` and of the Secrets with passwords.
    pub namespace: String,
    /// The name of the operator's `ConfigMap`: that of the pins begins with it.
    pub config_map: String,
    /// A directory for what is read once.
    pub directory: PathBuf,
    /// How many charts of a repository are kept that lists none.
    pub index_max: usize,
    /// How many bytes an index may have.
    pub index_bytes: u64,
    /// Which hosts and URLs are allowed.
    pub allowed: AllowList,
}

/// By Repository, chart and version, what lets one at a time keep it.
type Turns = BTreeMap<[Arc<str>; 3], Weak<tokio::sync::Mutex<()>>>;

/// Fetches charts, and keeps them in the cluster.
pub struct Repositories {
    pub(super) options: Options,
    pub(super) http: Arc<HttpClient>,
    pub(super) maps: ConfigMaps,
    client: Client,
    pub(super) verified: Arc<Verified>,
    /// Parsing and unpacking take memory, so they are done one at a time.
    pub(super) turns: Semaphore,
    /// Hears of requests: the scheme is what was asked for.
    pub(super) metrics: FetchMetrics,
    /// The archive that somebody looked at last.
    pub(super) looked_at: Mutex<Option<(Digest, Arc<Vec<u8>>)>>,
    /// Who writes pins reads them first.
    pub(super) pinning: tokio::sync::Mutex<()>,
    /// Whose turn it is to keep a version.
    keeping: Mutex<Turns>,
    /// The watch of the maps. It ends with the repositories.
    watch: Mutex<JoinSet<()>>,
}

impl Repositories {
    /// Returns repositories that keep charts in the cluster of `client`. Nothing is sent yet.
    pub(crate) fn new(client: Client, http: Arc<HttpClient>, options: Options) -> Self {
        Self {
            maps: ConfigMaps::new(client.clone(), &options.namespace),
            options,
            http,
            client,
            verified: Arc::default(),
            turns: Semaphore::new(1),
            metrics: FetchMetrics::default(),
            looked_at: Mutex::default(),
            pinning: tokio::sync::Mutex::default(),
            keeping: Mutex::default(),
            watch: Mutex::default(),
        }
    }

    /// Begins to report maps that others removed or changed. Has to be called within a runtime.
    pub fn watch_maps(&self, inbox: &Inbox) {
        let watch = MapWatch::new(self.client.clone(), &self.options.namespace, Arc::clone(&self.verified));
        let inbox = inbox.clone();
        let mut task = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        *task = JoinSet::new();
        task.spawn(
            async move { lasting("the watch of charts", || watch.clone().follow(inbox.clone())).await },
        );
    }

    /// Returns what requests are reported to; `scheme` says what was asked for, `index` or `archive`.
    pub fn metrics(&self) -> &FetchMetrics {
        &self.metrics
    }

    /// Returns what lets one at a time keep a version.
    pub(super) fn turn_of(&self, request: &StoreRequest) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.keeping.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that nobody holds or waits for are forgotten.
        turns.retain(|_, turn| turn.strong_count() > 0);
        let key = [&request.repository.name, &request.chart, &request.version.version].map(Arc::clone);
        turns.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let turn = Arc::default();
            turns.insert(key, Arc::downgrade(&turn));
            turn
        })
    }

    /// Reports what came of a request.
    pub(super) async fn observed<T>(
        &self,
        what: &'static str,
        request: impl Future<Output = Result<Answer<T>, HttpError>>,
    ) -> Result<Answer<T>, HttpError> {
        let begun = Instant::now();
        let answer = request.await;
        let outcome = match &answer {
            Ok(Answer::New(..)) => "fetched",
            Ok(Answer::Unchanged) => "unchanged",
            Err(_) => "failed",
        };
        self.metrics.observe(FetchObservation { scheme: what, outcome, took: begun.elapsed() });
        answer
    }

    /// Fetches an index and writes what is kept of it. See docs/charts.md.
    ///
    /// # Errors
    ///
    /// Those of the API server and of our own disk. What is wrong with the repository is in the result.
    pub async fn fetch_index(&self, request: &IndexRequest) -> Result<Result<FetchedIndex, String>, Failure> {
        outcome(self.index(request).await)
    }

    /// Looks for versions of a chart in what is kept of the index.
    ///
    /// # Errors
    ///
    /// Those of the API server. What is wrong with the chart is in the result.
    pub async fn resolve(&self, request: &ResolveRequest) -> Result<Result<ResolvedChart, String>, Failure> {
        outcome(self.chart(request).await)
    }

    /// Keeps a version of a chart.
    ///
    /// # Errors
    ///
    /// Those of the API server. What is wrong with the archive is in the result.
    pub async fn store(&self, request: &StoreRequest) -> Result<Result<StoredPackage, String>, Failure> {
        outcome(self.package(request).await)
    }

    /// Writes which package a module stays with.
    ///
    /// # Errors
    ///
    /// When that can't be written.
    pub async fn pin(&self, module: &ModuleName, pin: Option<&Pin>) -> Result<(), Failure> {
        self.write_pin(module, pin).await
    }

    /// Returns which packages modules stay with. One request.
    ///
    /// # Errors
    ///
    /// When that can't be read.
    pub async fn pins(&self) -> Result<Pins, Failure> {
        self.read_pins().await
    }

    /// Returns the archive of a package as it was downloaded.
    ///
    /// # Errors
    ///
    /// When it is not there, or not whole.
    pub async fn archive(&self, package: &Package) -> Result<Vec<u8>, Failure> {
        match self.archive_looked_at(package) {
            Some(archive) => Ok(archive),
            None => self.read_archive(package).await,
        }
    }

    /// Returns the URL of a repository, of a registry that of its server, with user and password if it has some.
    pub(super) async fn base(&self, repository: &RepositoryAccess) -> Result<HttpUrl, Stop> {
        let url = if is_registry(&repository.url) {
            let registry = RegistryUrl::parse(&repository.url);
            registry.map_err(|error| Stop::Rejected(format!("spec.url: {error}")))?.server().clone()
        } else {
            let url = location::repository(&repository.url, self.options.allowed.protocols);
            url.map_err(|error| Stop::Rejected(format!("spec.url: {error}")))?
        };
        let allowed = self.options.allowed.check_index(&IndexUrl::Http(url.clone()));
        allowed.map_err(|error| Stop::Rejected(format!("spec.url: {error}")))?;
        let Some(name) = &repository.secret else { return Ok(url) };
        let data = self.secret(name).await?;
        let text = |key: &str| data.get(key).map(Vec::as_slice);
        let user = text("user").or_else(|| text("username"));
        let (Some(user), Some(password)) = (user, text("password")) else {
            return Err(Stop::Rejected(format!(
                "Secret {}/{name} of spec.authSecret has to have the keys user (or username) and password",
                self.options.namespace
            )));
        };
        Ok(url.with_credentials(user.trim_ascii_end(), password.trim_ascii_end()))
    }

    async fn secret(&self, name: &str) -> Result<SecretData, Stop> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.options.namespace);
        let what = format!("can't read Secret {}/{name} of spec.authSecret", self.options.namespace);
        let secret = api.get_opt(name).await.map_err(|error| Stop::of(&what, &error))?;
        let Some(secret) = secret else {
            return Err(Stop::Rejected(format!("{what}: there is none")));
        };
        Ok(secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect())
    }
}

//! Fetches what the repositories of a configuration offer. Everything is tried, also after something failed.
//!
//! It is long because what an index, a line of it and its bundle come to is decided in one place.

use std::fmt::Write as _;
use std::sync::Arc;

use ::source::allow::AllowList;
use ::source::bundle::{Kind, Problem, check_listed};
use ::source::chunk::MAX_PACKED_BYTES;
use ::source::index::{Entry, Index, Line, MAX_INDEX_BYTES};
use ::source::redact::Redactor;
use ::source::template::{self, FilledUrl, SecretData};
use ::source::url::{BundleUrl, HttpUrl, IndexUrl};
use ::source::versions::{Include, Selection};
use engine::{
    AddonProblem, AddonReason, Bundle, BundleKind, Digest, Failure, FailureKind, Fetched, FetchedAddon,
    FetchedRepository, RepositoryProblem, RepositoryReason, RepositorySpec, SecretName, SourceKey,
    SourceKind, SourceSpec,
};
use futures::stream::{self, StreamExt as _};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::archive::ArchiveError;
use super::cache::{Cache, UrlHash, Verdict, verdict};
use super::git::{Checkout, Pass};
use super::secrets::Secrets;
use super::store::{Download, Pin, Store};
use super::tree;
use crate::remote::http::{Answer, Get, HttpClient, HttpError};
use crate::remote::{FetchMetrics, FetchObservation};

/// How many bundles of one repository are taken: as many as a status lists.
const MOST_BUNDLES: usize = 500;

/// How many bundles of one repository are waited for at a time. How many are in flight is limited elsewhere.
const AT_A_TIME: usize = 4;

/// The order number of a module whose bundle names no weight.
const DEFAULT_ORDER: u32 = 1;

/// Fetches for all configurations.
pub(super) struct Fetcher {
    pub(super) http: Arc<HttpClient>,
    pub(super) store: Arc<Store>,
    pub(super) secrets: Arc<Secrets>,
    pub(super) allowed: AllowList,
    /// The namespaces whose Secrets a configuration of the cluster may name.
    pub(super) secret_namespaces: Vec<String>,
    pub(super) cache: Cache,
    pub(super) metrics: FetchMetrics,
    /// Parsing, unpacking and linting take memory, so they are done one at a time.
    pub(super) turns: Arc<Semaphore>,
    /// Commits of git repositories whose objects are held.
    pub(super) commits: Arc<Semaphore>,
}

/// Why an addon was not fetched: what is wrong with it, or with us.
pub(super) enum Stop {
    Addon(AddonReason, String),
    Ours(Failure),
}

/// Why a repository was not read.
pub(super) enum RepositoryStop {
    Repository(RepositoryReason, String),
    Ours(Failure),
}

/// One line of an index that is wanted, without what it was chosen from.
struct Wanted {
    line: Line,
    is_chosen: bool,
    digest: Option<::source::digest::Digest>,
}

type Outcome = Result<(Bundle, Vec<String>, Pin), Stop>;

impl Fetcher {
    /// Returns what each repository offers, with what keeps the blobs until the engine knows of them.
    pub(super) async fn fetch(
        &self,
        key: &SourceKey,
        spec: &SourceSpec,
    ) -> Result<(Fetched, Vec<Pin>), Failure> {
        let pass = Pass::default();
        let repositories = spec.repositories.iter().map(|repository| self.repository(&pass, key, repository));
        let (mut fetched, mut pins) = (Fetched::default(), Vec::new());
        for outcome in futures::future::join_all(repositories).await {
            let (repository, of_repository) = outcome?;
            fetched.repositories.push(repository);
            pins.extend(of_repository);
        }
        Ok((fetched, pins))
    }

    async fn repository(
        &self,
        pass: &Pass,
        key: &SourceKey,
        spec: &RepositorySpec,
    ) -> Result<(FetchedRepository, Vec<Pin>), Failure> {
        let mut redactor = Redactor::default();
        match self.addons(pass, key, spec, &mut redactor).await {
            Ok((addons, pins)) => Ok((FetchedRepository { outcome: Ok(addons) }, pins)),
            Err(RepositoryStop::Ours(failure)) if failure.kind == FailureKind::Files => {
                let message = redactor.clean(&format!("the index could not be kept: {failure}"));
                let problem = RepositoryProblem { reason: RepositoryReason::RegisteringError, message };
                Ok((FetchedRepository { outcome: Err(problem) }, Vec::new()))
            }
            Err(RepositoryStop::Ours(failure)) => Err(failure),
            Err(RepositoryStop::Repository(reason, message)) => {
                let problem = RepositoryProblem { reason, message: redactor.clean(&message) };
                Ok((FetchedRepository { outcome: Err(problem) }, Vec::new()))
            }
        }
    }

    async fn addons(
        &self,
        pass: &Pass,
        key: &SourceKey,
        spec: &RepositorySpec,
        redactor: &mut Redactor,
    ) -> Result<(Vec<FetchedAddon>, Vec<Pin>), RepositoryStop> {
        let fetching =
            |message: String| RepositoryStop::Repository(RepositoryReason::FetchingIndexError, message);
        if spec.url.trim().is_empty() {
            let message = "the repository has no URL: set spec.repositories[].url".to_owned();
            return Err(RepositoryStop::Repository(RepositoryReason::EmptyURLError, message));
        }
        let secret = self.secret(key, spec).await?;
        let filled = template::fill(&spec.url, secret.as_ref());
        let FilledUrl { url, secrets } = filled.map_err(|error| templating(error.to_string()))?;
        *redactor = Redactor::new(secrets.iter().map(String::as_str));
        let index_url = IndexUrl::parse(&url, self.allowed.protocols);
        let index_url = index_url.map_err(|error| fetching(error.to_string()))?;
        *redactor = redactor.clone().with_credentials(index_url.credentials());
        self.allowed.check_index(&index_url).map_err(|error| fetching(error.to_string()))?;
        let checkout = match &index_url {
            IndexUrl::Http(_) => None,
            IndexUrl::Git(url) => Some(pass.checkout(url)),
        };
        let index = match (&index_url, &checkout) {
            (IndexUrl::Git(url), Some(checkout)) => self.index_in(checkout, url.path()).await?,
            (IndexUrl::Http(url), _) => self.index(url).await?,
            (IndexUrl::Git(_), None) => return Err(fetching("the repository is not there".to_owned())),
        };
        let include: Vec<Include> = spec.include.iter().map(include).collect();
        let selection = Selection::new(&index, &include);
        if selection.choices.len() > MOST_BUNDLES {
            let message = format!(
                "the index offers {} bundles, {MOST_BUNDLES} are taken: name those that are wanted in \
                 spec.repositories[].include",
                selection.choices.len()
            );
            return Err(fetching(message));
        }
        let wanted: Vec<Wanted> = selection
            .choices
            .iter()
            .map(|choice| Wanted {
                line: choice.line.clone(),
                is_chosen: choice.is_chosen,
                digest: choice.digest.cloned(),
            })
            .collect();
        let missing = selection.missing.iter().map(|include| absent(include));
        let mut addons: Vec<FetchedAddon> = Vec::with_capacity(wanted.len());
        let mut pins = Vec::new();
        let asking: Vec<_> =
            wanted.iter().map(|wanted| self.addon(&index_url, checkout.as_deref(), wanted)).collect();
        let outcomes: Vec<Outcome> = stream::iter(asking).buffered(AT_A_TIME).collect().await;
        for (wanted, outcome) in wanted.iter().zip(outcomes) {
            let mut privileged = Vec::new();
            let outcome = match outcome {
                Ok((bundle, its, pin)) => {
                    privileged = its;
                    pins.push(pin);
                    Ok(bundle)
                }
                // Whoever looks at the object sees what the disk said, and all the rest.
                Err(Stop::Ours(failure)) if failure.kind == FailureKind::Files => {
                    let message = redactor.clean(&format!("the bundle could not be kept: {failure}"));
                    Err(AddonProblem { reason: AddonReason::RegisteringError, message })
                }
                Err(Stop::Ours(failure)) => return Err(RepositoryStop::Ours(failure)),
                Err(Stop::Addon(reason, message)) => {
                    Err(AddonProblem { reason, message: redactor.clean(&message) })
                }
            };
            let Line { name, version, .. } = wanted.line.clone();
            addons.push(FetchedAddon { name, version, is_chosen: wanted.is_chosen, privileged, outcome });
        }
        addons.extend(missing);
        Ok((addons, pins))
    }

    /// Reads the Secret that fills the placeholders of a URL, if it has some.
    async fn secret(
        &self,
        key: &SourceKey,
        spec: &RepositorySpec,
    ) -> Result<Option<SecretData>, RepositoryStop> {
        let Some(SecretName { namespace, name }) =
            spec.secret.as_ref().filter(|_| template::has_placeholder(&spec.url))
        else {
            return Ok(None);
        };
        if namespace.is_empty() || name.is_empty() {
            return Err(templating("secretRef needs a name and a namespace".to_owned()));
        }
        let is_allowed = match key.kind {
            SourceKind::Cluster => self.secret_namespaces.contains(namespace),
            SourceKind::Namespaced => **namespace == *key.namespace,
        };
        if !is_allowed {
            let allowed = match key.kind {
                SourceKind::Cluster => self.secret_namespaces.join(", "),
                SourceKind::Namespaced => key.namespace.to_string(),
            };
            let flag = match key.kind {
                SourceKind::Cluster => " (--source-secret-namespaces)",
                SourceKind::Namespaced => "",
            };
            let message =
                format!("secretRef names namespace {namespace}; Secrets may be in {allowed} only{flag}");
            return Err(templating(message));
        }
        match self.secrets.data(namespace, name).await {
            Ok(Some(data)) => Ok(Some(data)),
            Ok(None) => Err(templating(format!("there is no Secret {namespace}/{name}: make it"))),
            Err(kube::Error::Api(status)) if status.code == 403 => Err(templating(format!(
                "the operator may not read Secret {namespace}/{name}: give its ServiceAccount a role with the verb get \
                 on secrets in namespace {namespace}"
            ))),
            Err(error) => {
                let what = format!("can't read Secret {namespace}/{name}");
                Err(RepositoryStop::Ours(crate::cluster::failure(&what, &error)))
            }
        }
    }

    async fn index(&self, url: &HttpUrl) -> Result<Arc<Index>, RepositoryStop> {
        let fetching =
            |message: String| RepositoryStop::Repository(RepositoryReason::FetchingIndexError, message);
        let hash = UrlHash::of(url);
        let known = self.cache.index(hash);
        let limit = MAX_INDEX_BYTES as u64;
        let get = Get { url, known: known.as_ref().map(|(validator, _)| validator), limit };
        let store = Arc::clone(&self.store);
        let spool = blocking(move || store.spool()).await.map_err(RepositoryStop::Ours)?;
        let spool = spool.map_err(|error| RepositoryStop::Ours(error.failure()))?;
        let answer = self.observed(url, self.http.get(get, spool)).await;
        let (spool, validator) = match (answer, known) {
            (Ok(Answer::Unchanged), Some((_, index))) => return Ok(index),
            (Ok(Answer::Unchanged), None) => return Err(fetching("the index is not there".to_owned())),
            (Ok(Answer::New(spool, validator)), _) => (spool, validator),
            (Err(error), _) if error.is_ours() => {
                return Err(RepositoryStop::Ours(Failure::of(FailureKind::Files, &error)));
            }
            (Err(error), _) => return Err(fetching(format!("the index can't be fetched: {error}"))),
        };
        // The one before takes memory, too.
        self.cache.forget_index(hash);
        let parse = move || -> Result<_, Failure> {
            let text = spool.into_reader().map_err(|error| Failure::of(FailureKind::Files, &error))?;
            Ok(text.map_or_else(|| Index::parse(b""), Index::read))
        };
        let parsed = self.in_turn(parse).await.and_then(|parsed| parsed).map_err(RepositoryStop::Ours)?;
        let index = Arc::new(parsed.map_err(|error| fetching(error.to_string()))?);
        self.cache.put_index(hash, validator, &index);
        Ok(index)
    }

    async fn addon(&self, index: &IndexUrl, checkout: Option<&Checkout>, wanted: &Wanted) -> Outcome {
        let loading = |message: String| Stop::Addon(AddonReason::LoadingError, message);
        let fetching = |message: String| Stop::Addon(AddonReason::FetchingError, message);
        let line = &wanted.line;
        let entry = line.outcome.as_ref().map_err(|problem| loading(problem.clone()))?;
        let given = entry.urls.first().map(String::as_str);
        let url = index.bundle(&line.name, entry.version.original(), given, self.allowed.protocols);
        let url = url.map_err(|error| fetching(format!("the URL of the bundle can't be used: {error}")))?;
        self.allowed.check_bundle(&url).map_err(|error| fetching(error.to_string()))?;
        let expected = wanted.digest.as_ref().map(|digest| digest.to_string().parse::<Digest>());
        let expected = expected.transpose().map_err(|error| fetching(error.to_string()))?;
        let (digest, pin, verdict) = match (url, checkout, expected) {
            (BundleUrl::Http(url), _, Some(digest)) => self.pinned_bundle(&url, digest).await?,
            (BundleUrl::Http(url), _, None) => self.any_bundle(&url).await?,
            (BundleUrl::Directory(path), Some(checkout), expected) => {
                self.bundle_in(checkout, &path, expected.as_ref()).await?
            }
            (BundleUrl::Directory(_), None, _) => {
                return Err(fetching("its index lies in no repository".to_owned()));
            }
        };
        finish(line, entry, digest, pin, &verdict)
    }

    /// Returns the bundle that has this digest: that of the store, or else what is fetched.
    async fn pinned_bundle(&self, url: &HttpUrl, digest: Digest) -> Result<(Digest, Pin, Verdict), Stop> {
        let pin = self.store.pin(&digest);
        if let Some(verdict) = self.stored(&digest).await? {
            return Ok((digest, pin, verdict));
        }
        let get = Get { url, known: None, limit: MAX_PACKED_BYTES as u64 };
        let (download, _) = self.download(url, get).await?.ok_or_else(gone)?;
        self.take(download, Some(&digest)).await
    }

    /// Returns the bundle that is at this URL now.
    async fn any_bundle(&self, url: &HttpUrl) -> Result<(Digest, Pin, Verdict), Stop> {
        let hash = UrlHash::of(url);
        let mut known = None;
        if let Some((validator, digest)) = self.cache.bundle(hash) {
            let pin = self.store.pin(&digest);
            known = self.stored(&digest).await?.map(|verdict| (validator, (digest, pin, verdict)));
        }
        let limit = MAX_PACKED_BYTES as u64;
        let get = Get { url, known: known.as_ref().map(|(validator, _)| validator), limit };
        match (self.download(url, get).await?, known) {
            (None, Some((_, bundle))) => Ok(bundle),
            (None, None) => Err(gone()),
            (Some((download, validator)), _) => {
                let taken = self.take(download, None).await?;
                self.cache.put_bundle(hash, validator, &taken.0);
                Ok(taken)
            }
        }
    }

    /// Returns what the lint says of a bundle that was here before; `None` if it has to be fetched.
    pub(super) async fn stored(&self, digest: &Digest) -> Result<Option<Verdict>, Stop> {
        let known = self.cache.verdict(digest);
        if let Some(Err(_)) = &known {
            return Ok(known);
        }
        let (store, digest_of) = (Arc::clone(&self.store), digest.clone());
        let found = self
            .in_turn(move || {
                let Some(bundle) = store.bundle(&digest_of).map_err(|error| error.failure())? else {
                    return Ok(None);
                };
                match known {
                    Some(known) => Ok(Some(known)),
                    None => Ok(tree::read(&bundle).ok().map(|tree| verdict(&tree))),
                }
            })
            .await
            .and_then(|found| found)
            .map_err(Stop::Ours)?;
        if let Some(verdict) = &found {
            self.cache.put_verdict(digest, verdict);
        }
        Ok(found)
    }

    /// Fetches an archive into the store directory; `None` if it did not change.
    async fn download(
        &self,
        url: &HttpUrl,
        get: Get<'_>,
    ) -> Result<Option<(Download, crate::remote::http::Validator)>, Stop> {
        let store = Arc::clone(&self.store);
        let download = blocking(move || store.download()).await.map_err(Stop::Ours)?;
        let download = download.map_err(|error| Stop::Ours(error.failure()))?;
        match self.observed(url, self.http.get(get, download)).await {
            Ok(Answer::New(download, validator)) => Ok(Some((download, validator))),
            Ok(Answer::Unchanged) => Ok(None),
            Err(error) if error.is_ours() => Err(Stop::Ours(Failure::of(FailureKind::Files, &error))),
            Err(error) => {
                let message = format!("the bundle can't be fetched: {error}");
                Err(Stop::Addon(AddonReason::FetchingError, message))
            }
        }
    }

    /// Unpacks an archive, lints it and puts it into the store.
    pub(super) async fn take(
        &self,
        download: Download,
        expected: Option<&Digest>,
    ) -> Result<(Digest, Pin, Verdict), Stop> {
        let (staged, digest) = download.finish().map_err(Stop::Ours)?;
        if let Some(expected) = expected.filter(|expected| **expected != digest) {
            let message = format!("the digest of the bundle is {digest}, {expected} is expected");
            return Err(Stop::Addon(AddonReason::FetchingError, message));
        }
        let pin = self.store.pin(&digest);
        let (store, of) = (Arc::clone(&self.store), digest.clone());
        let known = self.cache.verdict(&digest);
        let work = move || -> Result<Verdict, Failure> {
            let write = |source| ArchiveError::Write(source);
            let linted = staged.unpack().and_then(|bundle| tree::read(&bundle).map_err(write));
            let linted = match linted {
                Ok(tree) => known.unwrap_or_else(|| verdict(&tree)),
                Err(error) if error.is_ours() => return Err(Failure::of(FailureKind::Files, &error)),
                Err(error) => Err([Problem { path: String::new(), message: error.to_string() }].into()),
            };
            if linted.is_ok() {
                store.put(staged, &of).map_err(|error| error.failure())?;
            }
            Ok(linted)
        };
        let verdict = self.in_turn(work).await.and_then(|verdict| verdict).map_err(Stop::Ours)?;
        self.cache.put_verdict(&digest, &verdict);
        Ok((digest, pin, verdict))
    }

    /// Does what takes memory or time on a thread of its own, when it is its turn.
    pub(super) async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        // It goes into the thread, which goes on when nobody waits for it any more.
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        blocking(move || {
            let _turn = turn;
            work()
        })
        .await
    }

    async fn observed<S>(
        &self,
        url: &HttpUrl,
        asking: impl Future<Output = Result<Answer<S>, HttpError>>,
    ) -> Result<Answer<S>, HttpError> {
        let begun = Instant::now();
        let answer = asking.await;
        let outcome = match &answer {
            Ok(Answer::New(..)) => "fetched",
            Ok(Answer::Unchanged) => "unchanged",
            Err(_) => "failed",
        };
        self.metrics.observe(FetchObservation {
            scheme: url.scheme().name(),
            outcome,
            took: begun.elapsed(),
        });
        answer
    }
}

fn templating(message: String) -> RepositoryStop {
    RepositoryStop::Repository(RepositoryReason::TemplatingURLError, message)
}

fn gone() -> Stop {
    Stop::Addon(AddonReason::FetchingError, "the server says that the bundle did not change".to_owned())
}

fn include(engine::Include { name, version, digest }: &engine::Include) -> Include {
    // Both read the same texts.
    let digest = digest.as_ref().and_then(|digest| ::source::digest::Digest::parse(digest.as_str()).ok());
    Include { name: name.clone(), version: version.clone(), digest }
}

/// Returns the line of an addon that is wanted and not in the index.
fn absent(include: &Include) -> FetchedAddon {
    let version = include.version.clone().unwrap_or_default();
    let what = if version.is_empty() { include.name.clone() } else { format!("{} {version}", include.name) };
    let problem = AddonProblem {
        reason: AddonReason::FetchingError,
        message: format!("the index has no {what}: correct spec.repositories[].include, or publish it"),
    };
    FetchedAddon {
        name: include.name.clone(),
        version,
        is_chosen: false,
        privileged: Vec::new(),
        outcome: Err(problem),
    }
}

/// Returns the bundle for the engine with what in it would act with our rights, or everything that is wrong with it.
fn finish(line: &Line, entry: &Entry, digest: Digest, pin: Pin, verdict: &Verdict) -> Outcome {
    let bundle = match verdict {
        Ok(bundle) => bundle,
        Err(problems) => {
            let mut message = String::from("the bundle can't be used: ");
            for (number, problem) in problems.iter().enumerate() {
                let separator = if number == 0 { "" } else { "; " };
                // Writing to a String can't fail.
                let _ = write!(message, "{separator}{problem}");
            }
            return Err(Stop::Addon(AddonReason::LoadingError, message));
        }
    };
    if let Some(problem) = check_listed(bundle, &line.name, entry) {
        let message = format!("the bundle can't be used: {problem}");
        return Err(Stop::Addon(AddonReason::LoadingError, message));
    }
    let privileged = bundle.privileged.clone();
    let bundle = Bundle {
        id: bundle.id.clone(),
        name: bundle.name.as_str().into(),
        version: bundle.version.to_string(),
        digest,
        order: bundle.weight.unwrap_or(DEFAULT_ORDER),
        kind: match bundle.kind {
            Kind::Chart => BundleKind::Chart,
            Kind::Module => BundleKind::Module,
        },
        namespace: bundle.namespace.as_deref().map(Arc::from),
    };
    Ok((bundle, privileged, pin))
}

/// Does what waits for the disk on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Failure::new(FailureKind::Bug, format!("a defect of the operator, in module sources: {error}"))
    })
}

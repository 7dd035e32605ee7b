//! Fetches what the repositories of a configuration offer. Everything is tried, also after something failed.
//!
//! It is long because what an index, a line of it and its bundle come to is decided in one place.

use std::fmt::Write as _;
use std::sync::Arc;

use ::source::allow::AllowList;
use ::source::bundle::{Kind, Problem, check_listed};
use ::source::chunk::MAX_PACKED_BYTES;
use ::source::index::{Entry, Index, Line, MAX_INDEX_BYTES};
use ::source::mirror::Mirrors;
use ::source::redact::Redactor;
use ::source::registry::reference::is_registry;
use ::source::template::{self, FilledUrl, SecretData};
use ::source::url::{BundleUrl, HttpUrl, IndexUrl};
use ::source::versions::{Choice, Include, Selection};
use engine::{
    AddonProblem, AddonReason, Bundle, BundleKind, Digest, Failure, FailureKind, Fetched, FetchedAddon,
    FetchedRepository, RepositoryProblem, RepositoryReason, RepositorySpec, SecretName, SourceKey,
    SourceKind, SourceSpec,
};
use futures::stream::{self, StreamExt as _};
use http::StatusCode;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::archive::ArchiveError;
use super::cache::{Cache, Refusal, UrlHash, Verdict, verdict};
use super::disk_error::disk_failure;
use super::git::{Checkout, Pass};
use super::keys::Keys;
use super::secrets::Secrets;
use super::store::{Download, Pin, Store};
use super::tree;
use super::turns::{MemoryTurn, Turns, blocking};
use crate::remote::http::{Answer, Get, HttpClient, HttpError};
use crate::remote::{FetchMetrics, FetchObservation};

/// How many bundles of one repository are taken: as many as a status lists.
const MOST_BUNDLES: usize = 500;

/// How many bundles of one repository are waited for at a time. How many are in flight is limited elsewhere.
pub(super) const AT_A_TIME: usize = 4;

/// The order number of a module whose bundle names no weight.
const DEFAULT_ORDER: u32 = 1;

/// Fetches for all configurations.
pub(super) struct Fetcher {
    pub(super) http: Arc<HttpClient>,
    pub(super) store: Arc<Store>,
    pub(super) secrets: Arc<Secrets>,
    pub(super) allowed: AllowList,
    /// What is asked instead of what configurations name.
    pub(super) mirrors: Mirrors,
    /// The namespaces whose Secrets a configuration of the cluster may name.
    pub(super) secret_namespaces: Vec<String>,
    pub(super) cache: Cache,
    pub(super) metrics: FetchMetrics,
    pub(super) turns: Turns,
    /// Commits of git repositories whose objects are held.
    pub(super) commits: Arc<Semaphore>,
}

/// Why an addon was not fetched: what is wrong with it, or with us.
pub(super) enum Stop {
    Addon(AddonReason, String),
    /// The bundle can't be used, and has this that would act with our rights.
    Bundle(String, Arc<[String]>),
    Ours(Failure),
}

/// Why a repository was not read.
pub(super) enum RepositoryStop {
    Repository(RepositoryReason, String),
    Ours(Failure),
}

/// What is known of a repository for what is said of it.
#[derive(Default)]
pub(super) struct Saying {
    /// Its secrets.
    pub(super) redactor: Redactor,
    /// Those that fill its URL.
    pub(super) filled: Redactor,
    /// What stands in for it.
    pub(super) mirror: Option<String>,
}

impl Saying {
    /// Returns a message as it is shown. A mirror may be to blame for what can't be fetched.
    pub(super) fn clean(&self, is_unfetched: bool, message: &str) -> String {
        let mirror = self.mirror.as_ref().filter(|_| is_unfetched);
        let mirror = mirror.map(|mirror| {
            let what = match (is_refusal(message), is_registry(mirror)) {
                (false, _) => ": fill it with `addon-operator source mirror`",
                (true, false) => {
                    ", and is not shown the user and password of the source: let the operator read it without"
                }
                // How to log in there is said already.
                (true, true) => "",
            };
            format!("; {mirror} stands in for it (--source-mirror){what}")
        });
        self.redactor.clean(&format!("{message}{}", mirror.unwrap_or_default()))
    }
}

/// Returns whether a message says that a server wants to know who asks, or does not let them.
fn is_refusal(message: &str) -> bool {
    [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN]
        .iter()
        .any(|status| message.contains(&format!(" answered {status}")))
}

/// One line of an index that is wanted, without what it was chosen from.
pub(super) struct Wanted {
    pub(super) line: Line,
    is_chosen: bool,
    pub(super) digest: Option<::source::digest::Digest>,
}

impl Wanted {
    pub(super) fn of(choice: &Choice<'_>) -> Self {
        let Choice { line, is_chosen, digest, .. } = choice;
        Self { line: (*line).clone(), is_chosen: *is_chosen, digest: digest.cloned() }
    }
}

/// Who reads a repository, and which keys have to have signed what is used.
#[derive(Clone, Copy)]
pub(super) struct Reader<'r> {
    pub(super) source: &'r SourceKey,
    pub(super) keys: Option<&'r Keys>,
}

pub(super) type Outcome = Result<(Bundle, Vec<String>, Pin), Stop>;

impl Fetcher {
    /// Returns what each repository offers, with what keeps the blobs until the engine knows of them.
    pub(super) async fn fetch(
        &self,
        key: &SourceKey,
        spec: &SourceSpec,
        pass: Pass,
    ) -> Result<(Fetched, Vec<Pin>), Failure> {
        let keys = match &spec.verify {
            Some(verification) => self.keys(key, verification).await.map(Some),
            None => Ok(None),
        };
        let keys = match keys {
            Err(RepositoryStop::Ours(failure)) => return Err(failure),
            Err(RepositoryStop::Repository(reason, message)) => {
                let problem = RepositoryProblem { reason, message };
                let refused = |_| FetchedRepository { outcome: Err(problem.clone()) };
                let repositories = spec.repositories.iter().map(refused).collect();
                return Ok((Fetched { repositories }, Vec::new()));
            }
            Ok(keys) => keys,
        };
        let reader = Reader { source: key, keys: keys.as_ref() };
        let asking = |repository| self.repository(&pass, reader, repository);
        let repositories = spec.repositories.iter().map(asking);
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
        reader: Reader<'_>,
        spec: &RepositorySpec,
    ) -> Result<(FetchedRepository, Vec<Pin>), Failure> {
        let mut saying = Saying::default();
        match self.addons(pass, reader, spec, &mut saying).await {
            Ok((addons, pins)) => Ok((FetchedRepository { outcome: Ok(addons) }, pins)),
            Err(RepositoryStop::Ours(failure)) if failure.kind == FailureKind::Storage => {
                let message = saying.clean(false, &not_kept("the index", &self.store, &failure));
                let problem = RepositoryProblem { reason: RepositoryReason::RegisteringError, message };
                Ok((FetchedRepository { outcome: Err(problem) }, Vec::new()))
            }
            Err(RepositoryStop::Ours(failure)) => Err(failure),
            Err(RepositoryStop::Repository(reason, message)) => {
                let is_unfetched = reason == RepositoryReason::FetchingIndexError;
                let problem = RepositoryProblem { reason, message: saying.clean(is_unfetched, &message) };
                Ok((FetchedRepository { outcome: Err(problem) }, Vec::new()))
            }
        }
    }

    async fn addons(
        &self,
        pass: &Pass,
        reader: Reader<'_>,
        spec: &RepositorySpec,
        saying: &mut Saying,
    ) -> Result<(Vec<FetchedAddon>, Vec<Pin>), RepositoryStop> {
        let fetching =
            |message: String| RepositoryStop::Repository(RepositoryReason::FetchingIndexError, message);
        if spec.url.trim().is_empty() {
            let message = "the repository has no URL: set spec.repositories[].url".to_owned();
            return Err(RepositoryStop::Repository(RepositoryReason::EmptyURLError, message));
        }
        let is_in_registry = is_registry(&spec.url);
        // Without a placeholder, too: a name that is wrong is told before somebody needs what it names.
        let secret = match &spec.secret {
            Some(name) => Some(self.secret(reader.source, name).await?),
            None => None,
        };
        let filled = template::fill(&spec.url, secret.as_ref());
        let FilledUrl { url, secrets } = filled.map_err(|error| templating(error.to_string()))?;
        saying.filled = Redactor::new(secrets.iter().map(String::as_str));
        saying.redactor = saying.filled.clone();
        if is_in_registry {
            let secret = secret.as_ref();
            return self.addons_in_registry(&url, (spec, reader), secret, pass, saying).await;
        }
        let index_url = IndexUrl::parse(&url, self.allowed.protocols);
        let index_url = index_url.map_err(|error| fetching(error.to_string()))?;
        saying.redactor = std::mem::take(&mut saying.redactor).with_credentials(index_url.credentials());
        let mirror = self.mirrors.index(&index_url, self.allowed.protocols);
        let mirror = mirror.map_err(|error| fetching(format!("--source-mirror: {error}")))?;
        saying.mirror = mirror.as_ref().map(ToString::to_string);
        let asked = mirror.as_ref().unwrap_or(&index_url);
        self.allowed.check_index(asked).map_err(|error| fetching(error.to_string()))?;
        if let (IndexUrl::Git(_), Some(_)) = (&index_url, reader.keys) {
            let text = "spec.verify wants signatures, and bundles in a repository of git have none that are checked: offer them \
                        over https with NAME-VERSION.tgz.sig beside each, or in a registry with cosign";
            return Err(RepositoryStop::Repository(RepositoryReason::LoadingError, text.to_owned()));
        }
        let checkout = match asked {
            IndexUrl::Http(_) => None,
            IndexUrl::Git(url) => Some(pass.checkout(url)),
        };
        let (index, is_unchanged) = match (asked, &checkout) {
            (IndexUrl::Git(url), Some(checkout)) => (self.index_in(checkout, url.path()).await?, false),
            (IndexUrl::Http(url), _) => self.index(url).await?,
            (IndexUrl::Git(_), None) => return Err(fetching("the repository is not there".to_owned())),
        };
        let include: Vec<Include> = spec.include.iter().map(include).collect();
        let selection = Selection::with(&index, &include, |line| pass.calls_for(line));
        if selection.choices.len() > MOST_BUNDLES {
            let message = format!(
                "the index offers {} bundles, {MOST_BUNDLES} are taken: name those that are wanted in \
                 spec.repositories[].include",
                selection.choices.len()
            );
            return Err(fetching(message));
        }
        let wanted: Vec<Wanted> = selection.choices.iter().map(Wanted::of).collect();
        let missing = selection.missing.iter().map(|include| absent(include));
        let is_known = pass.is_refresh && is_unchanged;
        let asking = wanted
            .iter()
            .map(|wanted| self.addon(&index_url, checkout.as_deref(), reader, (wanted, is_known)));
        let asking: Vec<_> = asking.collect();
        let outcomes: Vec<Outcome> = stream::iter(asking).buffered(AT_A_TIME).collect().await;
        let (mut addons, pins) = collect(wanted.iter().zip(outcomes), saying, &self.store)?;
        addons.extend(missing);
        Ok((addons, pins))
    }

    /// Reads a Secret that a configuration names.
    pub(super) async fn secret(
        &self,
        key: &SourceKey,
        SecretName { namespace, name }: &SecretName,
    ) -> Result<SecretData, RepositoryStop> {
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
            Ok(Some(data)) => Ok(data),
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

    /// Returns an index, and whether it is the one that was fetched before.
    async fn index(&self, url: &HttpUrl) -> Result<(Arc<Index>, bool), RepositoryStop> {
        let fetching =
            |message: String| RepositoryStop::Repository(RepositoryReason::FetchingIndexError, message);
        let hash = UrlHash::of(url);
        let known = self.cache.index(hash);
        let limit = MAX_INDEX_BYTES as u64;
        let get = Get { url, known: known.as_ref().map(|(validator, _)| validator), limit };
        let store = Arc::clone(&self.store);
        let spool = if store.is_open() {
            store.spool()
        } else {
            blocking(move || store.spool()).await.map_err(RepositoryStop::Ours)?
        };
        let spool = spool.map_err(|error| RepositoryStop::Ours(error.failure()))?;
        let answer = self.observed(url, self.http.get(get, spool)).await;
        let (spool, validator) = match (answer, known) {
            (Ok(Answer::Unchanged), Some((_, index))) => return Ok((index, true)),
            (Ok(Answer::Unchanged), None) => return Err(fetching("the index is not there".to_owned())),
            (Ok(Answer::New(spool, validator)), _) => (spool, validator),
            (Err(error), _) if error.is_ours() => {
                return Err(RepositoryStop::Ours(disk_failure(&error)));
            }
            (Err(error), _) => return Err(fetching(format!("the index can't be fetched: {error}"))),
        };
        // The one before takes memory, too.
        self.cache.forget_index(hash);
        let parse = move || -> Result<_, Failure> {
            let text = spool.into_reader().map_err(|error| disk_failure(&error))?;
            Ok(text.map_or_else(|| Index::parse(b""), Index::read))
        };
        let parsed =
            self.turns.in_memory(parse).await.and_then(|parsed| parsed).map_err(RepositoryStop::Ours)?;
        let index = Arc::new(parsed.map_err(|error| fetching(error.to_string()))?);
        self.cache.put_index(hash, validator, &index);
        Ok((index, false))
    }

    /// Returns the bundle of a line. `is_known` says that one which was fetched before is not asked for.
    async fn addon(
        &self,
        index: &IndexUrl,
        checkout: Option<&Checkout>,
        reader: Reader<'_>,
        (wanted, is_known): (&Wanted, bool),
    ) -> Outcome {
        let loading = |message: String| Stop::Addon(AddonReason::LoadingError, message);
        let fetching = |message: String| Stop::Addon(AddonReason::FetchingError, message);
        let line = &wanted.line;
        let entry = line.outcome.as_ref().map_err(|problem| loading(problem.clone()))?;
        let given = entry.urls.first().map(String::as_str);
        let url = index.bundle(&line.name, entry.version.original(), given, self.allowed.protocols);
        let url = url.map_err(|error| fetching(format!("the URL of the bundle can't be used: {error}")))?;
        let url = match url {
            BundleUrl::Http(url) => {
                let mirror = self.mirrors.file(&url, self.allowed.protocols);
                let mirror = mirror.map_err(|error| fetching(format!("--source-mirror: {error}")))?;
                BundleUrl::Http(mirror.unwrap_or(url))
            }
            BundleUrl::Directory(path) => BundleUrl::Directory(path),
        };
        self.allowed.check_bundle(&url).map_err(|error| fetching(error.to_string()))?;
        let expected = wanted.digest.as_ref().map(|digest| digest.to_string().parse::<Digest>());
        let expected = expected.transpose().map_err(|error| fetching(error.to_string()))?;
        let (digest, pin, verdict) = match (url, checkout, expected) {
            (BundleUrl::Http(url), _, Some(digest)) => self.pinned_bundle(&url, reader, digest).await?,
            (BundleUrl::Http(url), _, None) => self.any_bundle(&url, reader, is_known).await?,
            (BundleUrl::Directory(path), Some(checkout), expected) => {
                self.bundle_in(checkout, &path, (reader.source, expected.as_ref())).await?
            }
            (BundleUrl::Directory(_), None, _) => {
                return Err(fetching("its index lies in no repository".to_owned()));
            }
        };
        self.cache.put_held(reader.source, &digest);
        finish(line, entry, digest, pin, &verdict)
    }

    /// Returns the bundle that has this digest: that of the store, or else what is fetched.
    async fn pinned_bundle(
        &self,
        url: &HttpUrl,
        Reader { source, keys }: Reader<'_>,
        digest: Digest,
    ) -> Result<(Digest, Pin, Verdict), Stop> {
        let pin = self.store.pin(&digest);
        if let Some(verdict) = self.named(source, &digest).await? {
            self.verify_kept(url, keys, &digest, &verdict).await?;
            return Ok((digest, pin, verdict));
        }
        let get = Get { url, known: None, limit: MAX_PACKED_BYTES as u64 };
        let (download, _) = self.download(url, get).await?.ok_or_else(gone)?;
        let download = self.signed(url, keys, download, Some(&digest)).await?;
        self.take(source, download, Some(&digest)).await
    }

    /// Checks the signature of a bundle that was here before. Of one that the lint refused nothing is kept, and nothing is used.
    async fn verify_kept(
        &self,
        url: &HttpUrl,
        keys: Option<&Keys>,
        digest: &Digest,
        verdict: &Verdict,
    ) -> Result<(), Stop> {
        if verdict.is_err() {
            return Ok(());
        }
        self.verify_once(keys, url, digest, self.kept(digest)).await
    }

    /// Returns a download once its signature was checked. Nothing of it was unpacked. One with a wrong digest is left to who
    /// takes it.
    async fn signed(
        &self,
        url: &HttpUrl,
        keys: Option<&Keys>,
        download: Download,
        expected: Option<&Digest>,
    ) -> Result<Download, Stop> {
        if keys.is_none() {
            return Ok(download);
        }
        let digest = download.digest().map_err(Stop::Ours)?;
        if expected.is_none_or(|expected| *expected == digest) {
            let packed = download.packed();
            self.verify_once(keys, url, &digest, packed).await?;
        }
        Ok(download)
    }

    /// Returns the bundle that is at this URL now.
    async fn any_bundle(
        &self,
        url: &HttpUrl,
        Reader { source, keys }: Reader<'_>,
        is_known: bool,
    ) -> Result<(Digest, Pin, Verdict), Stop> {
        let hash = UrlHash::of(url);
        let mut known = None;
        if let Some((validator, digest)) = self.cache.bundle(hash) {
            let pin = self.store.pin(&digest);
            known = self.stored(source, &digest).await?.map(|verdict| (validator, (digest, pin, verdict)));
        }
        if let Some((_, (digest, pin, verdict))) = known.take_if(|_| is_known) {
            self.verify_kept(url, keys, &digest, &verdict).await?;
            return Ok((digest, pin, verdict));
        }
        let limit = MAX_PACKED_BYTES as u64;
        let get = Get { url, known: known.as_ref().map(|(validator, _)| validator), limit };
        match (self.download(url, get).await?, known) {
            (None, Some((_, (digest, pin, verdict)))) => {
                self.verify_kept(url, keys, &digest, &verdict).await?;
                Ok((digest, pin, verdict))
            }
            (None, None) => Err(gone()),
            (Some((download, validator)), _) => {
                let download = self.signed(url, keys, download, None).await?;
                let taken = self.take(source, download, None).await?;
                self.cache.put_bundle(hash, validator, &taken.0);
                Ok(taken)
            }
        }
    }

    /// Returns what the lint says of a bundle that was here before, if it is enough to name it: it has to be fetched otherwise. What
    /// a digest says is public, so nobody in a namespace has a bundle by it that nobody there ever had.
    pub(super) async fn named(&self, source: &SourceKey, digest: &Digest) -> Result<Option<Verdict>, Stop> {
        if self.cache.is_held(source, digest) { self.stored(source, digest).await } else { Ok(None) }
    }

    /// Returns what the lint says of a bundle that was here before; `None` if it has to be fetched.
    pub(super) async fn stored(&self, source: &SourceKey, digest: &Digest) -> Result<Option<Verdict>, Stop> {
        let known = self.cache.verdict(digest);
        if let Some(Err(_)) = &known {
            return Ok(known);
        }
        // Nothing but that it is there still has to be looked at: that takes no thread of its own.
        if known.is_some() && self.store.has_verified(digest) {
            return Ok(known);
        }
        let (store, digest_of) = (Arc::clone(&self.store), digest.clone());
        let found = self
            .turns
            .on_disk(source, move |memory| {
                let Some(bundle) = store.bundle(&digest_of).map_err(|error| error.failure())? else {
                    return Ok(None);
                };
                if known.is_some() {
                    return Ok(known);
                }
                let _turn = memory.wait()?;
                Ok(tree::read(&bundle).ok().map(|tree| verdict(&tree)))
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
            Err(error) if error.is_ours() => Err(Stop::Ours(disk_failure(&error))),
            Err(error) => {
                let message = format!("the bundle can't be fetched: {error}");
                Err(Stop::Addon(AddonReason::FetchingError, message))
            }
        }
    }

    /// Unpacks an archive, lints it and puts it into the store.
    pub(super) async fn take(
        &self,
        source: &SourceKey,
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
        let work = move |memory: &MemoryTurn| -> Result<Verdict, Failure> {
            let write = |source| ArchiveError::Write(source);
            let linted = match (staged.unpack(), known) {
                (Ok(_), Some(known)) => Ok(known),
                (Ok(bundle), None) => {
                    let _turn = memory.wait()?;
                    tree::read(&bundle).map_err(write).map(|tree| verdict(&tree))
                }
                (Err(error), _) => Err(error),
            };
            let linted = match linted {
                Ok(verdict) => verdict,
                Err(error) if error.is_ours() => return Err(disk_failure(&error)),
                Err(error) => Err(Refusal {
                    problems: [Problem { path: String::new(), message: error.to_string() }].into(),
                    privileged: Arc::default(),
                }),
            };
            if linted.is_ok() {
                store.put(staged, &of).map_err(|error| error.failure())?;
            }
            Ok(linted)
        };
        let verdict =
            self.turns.on_disk(source, work).await.and_then(|verdict| verdict).map_err(Stop::Ours)?;
        self.cache.put_verdict(&digest, &verdict);
        Ok((digest, pin, verdict))
    }

    pub(super) async fn observed<S>(
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

/// Returns what became of all lines, and what keeps their blobs.
pub(super) fn collect<'w>(
    outcomes: impl Iterator<Item = (&'w Wanted, Outcome)>,
    saying: &Saying,
    store: &Store,
) -> Result<(Vec<FetchedAddon>, Vec<Pin>), RepositoryStop> {
    let (mut addons, mut pins) = (Vec::new(), Vec::new());
    for (wanted, outcome) in outcomes {
        let mut privileged = Vec::new();
        let outcome = match outcome {
            Ok((bundle, its, pin)) => {
                privileged = its;
                pins.push(pin);
                Ok(bundle)
            }
            // Who looks at the object sees what the disk said, and all the rest.
            Err(Stop::Ours(failure)) if failure.kind == FailureKind::Storage => {
                let message = saying.clean(false, &not_kept("the bundle", store, &failure));
                Err(AddonProblem { reason: AddonReason::RegisteringError, message })
            }
            Err(Stop::Ours(failure)) => return Err(RepositoryStop::Ours(failure)),
            Err(Stop::Addon(reason, message)) => {
                let is_unfetched = reason == AddonReason::FetchingError;
                Err(AddonProblem { reason, message: saying.clean(is_unfetched, &message) })
            }
            Err(Stop::Bundle(message, its)) => {
                privileged = its.to_vec();
                let message = saying.clean(false, &message);
                Err(AddonProblem { reason: AddonReason::LoadingError, message })
            }
        };
        let Line { mut name, mut version, .. } = wanted.line.clone();
        let outcome = if [&name, &version].iter().any(|text| saying.filled.is_secret(text)) {
            // The status shows both, and nothing of the Secret.
            for text in [&mut name, &mut version] {
                *text = saying.clean(false, text);
            }
            let message = "its name or its version is a value of the Secret that fills the URL: publish it under another one".to_owned();
            Err(AddonProblem { reason: AddonReason::LoadingError, message })
        } else {
            outcome
        };
        addons.push(FetchedAddon { name, version, is_chosen: wanted.is_chosen, privileged, outcome });
    }
    Ok((addons, pins))
}

/// Returns what the status says of what our own disk did not take.
fn not_kept(what: &str, store: &Store, failure: &Failure) -> String {
    format!("{what} can't be kept in {}: {failure}", store.path().display())
}

pub(super) fn templating(message: String) -> RepositoryStop {
    RepositoryStop::Repository(RepositoryReason::TemplatingURLError, message)
}

fn gone() -> Stop {
    Stop::Addon(AddonReason::FetchingError, "the server says that the bundle did not change".to_owned())
}

pub(super) fn include(engine::Include { name, version, digest }: &engine::Include) -> Include {
    // Both read the same texts.
    let digest = digest.as_ref().and_then(|digest| ::source::digest::Digest::parse(digest.as_str()).ok());
    Include { name: name.clone(), version: version.clone(), digest }
}

/// Returns the line of an addon that is wanted and not in the index.
fn absent(include: &Include) -> FetchedAddon {
    let version = include.version.as_deref().unwrap_or_default();
    let gap = if version.is_empty() { "" } else { " " };
    let what = format!("{}{gap}{version}", include.name);
    let missing = || format!("the index has no {what}: correct spec.repositories[].include, or publish it");
    not_there(include, unreadable(include).unwrap_or_else(missing))
}

/// Returns what is wrong with the version that is wanted, if it is none.
pub(super) fn unreadable(include: &Include) -> Option<String> {
    let problem = include.problem()?;
    Some(format!("the version of {}: {problem}: correct spec.repositories[].include", include.name))
}

/// Returns the line of an addon that is wanted and was not found.
pub(super) fn not_there(include: &Include, message: String) -> FetchedAddon {
    let problem = AddonProblem { reason: AddonReason::FetchingError, message };
    FetchedAddon {
        name: include.name.clone(),
        version: include.version.clone().unwrap_or_default(),
        is_chosen: false,
        privileged: Vec::new(),
        outcome: Err(problem),
    }
}

/// Returns the bundle for the engine with what in it would act with our rights, or everything that is wrong with it.
pub(super) fn finish(line: &Line, entry: &Entry, digest: Digest, pin: Pin, verdict: &Verdict) -> Outcome {
    let bundle = match verdict {
        Ok(bundle) => bundle,
        Err(Refusal { problems, privileged }) => {
            let mut message = String::from("the bundle can't be used: ");
            for (number, problem) in problems.iter().enumerate() {
                let separator = if number == 0 { "" } else { "; " };
                // Writing to a String can't fail.
                let _ = write!(message, "{separator}{problem}");
            }
            return Err(Stop::Bundle(message, Arc::clone(privileged)));
        }
    };
    let privileged = bundle.privileged.clone();
    if let Some(problem) = check_listed(bundle, &line.name, entry) {
        return Err(Stop::Bundle(format!("the bundle can't be used: {problem}"), privileged.into()));
    }
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

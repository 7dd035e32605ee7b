//! Indexes and bundles in repositories of git: which commit it is, and what of it has to be read.

use std::io::BufReader;
use std::io::{Seek as _, SeekFrom};
use std::sync::Arc;

use ::source::bundle::Problem;
use ::source::git::{ObjectId, Objects, Reference};
use ::source::index::Index;
use engine::{AddonReason, Digest, Failure, FailureKind, RepositoryReason, SourceKey};
use tokio::time::Instant;

use super::bundle;
use super::checkout::{Checkout, Unpacked};
use super::remote::{GitError, Remote};
use super::spool::FileSpool;
use crate::remote::FetchObservation;
use crate::source::cache::{InCommit, Refusal, Verdict};
use crate::source::disk_error::disk_failure;
use crate::source::fetch::{Fetcher, RepositoryStop, Stop};
use crate::source::store::Pin;
use crate::source::turns::blocking;

/// How git is named among the ways to speak to a server.
const SCHEME: &str = "git";

impl GitError {
    /// Returns the failure, if it is ours and not that of the repository.
    fn ours(&self) -> Option<Failure> {
        match self {
            Self::Ours(failure) => Some(failure.clone()),
            Self::Http(error) if error.is_ours() => Some(disk_failure(error)),
            Self::Pack(error) if error.is_ours() => Some(disk_failure(error)),
            Self::Http(_) | Self::Pack(_) | Self::Protocol { .. } | Self::NoReference(_) | Self::Empty => {
                None
            }
        }
    }
}

impl Fetcher {
    /// Returns the index at the path that the URL of a checkout names.
    pub(in crate::source) async fn index_in(
        &self,
        checkout: &Checkout,
        path: &str,
    ) -> Result<Arc<Index>, RepositoryStop> {
        let fetching =
            |message: String| RepositoryStop::Repository(RepositoryReason::FetchingIndexError, message);
        let stopped = |error: &GitError| match error.ours() {
            Some(failure) => RepositoryStop::Ours(failure),
            None => fetching(format!("the index can't be fetched: {error}")),
        };
        let commit = self.commit(checkout).await.map_err(|error| stopped(&error))?;
        let hash = checkout.hash_of(path);
        match self.cache.in_commit(hash, commit) {
            Some(InCommit::Index(index)) => return Ok(index),
            Some(InCommit::Problem(_, message)) => return Err(fetching(message.to_string())),
            Some(InCommit::Bundle { .. }) | None => {}
        }
        let Unpacked { objects, .. } =
            self.objects(checkout, commit).await.map_err(|error| stopped(&error))?;
        let path = path.to_owned();
        let read = self.turns.in_memory(move || bundle::index(&objects, commit, &path)).await;
        let outcome = read.map_err(RepositoryStop::Ours)?;
        match outcome {
            Ok(index) => {
                let index = Arc::new(index);
                self.cache.put_in_commit(hash, commit, InCommit::Index(Arc::clone(&index)));
                Ok(index)
            }
            Err(error) if error.is_ours() => Err(RepositoryStop::Ours(disk_failure(&error))),
            Err(error) => {
                let message = error.of_index();
                let problem = InCommit::Problem(AddonReason::FetchingError, message.as_str().into());
                if error.is_lasting() {
                    self.cache.put_in_commit(hash, commit, problem);
                }
                Err(fetching(message))
            }
        }
    }

    /// Returns the bundle at a path: that of the store, if it is known which one it is, or else what is fetched.
    pub(in crate::source) async fn bundle_in(
        &self,
        checkout: &Checkout,
        path: &str,
        (source, expected): (&SourceKey, Option<&Digest>),
    ) -> Result<(Digest, Pin, Verdict), Stop> {
        let stopped = |error: &GitError| match error.ours() {
            Some(failure) => Stop::Ours(failure),
            None => Stop::Addon(AddonReason::FetchingError, format!("the bundle can't be fetched: {error}")),
        };
        if let Some(digest) = expected {
            let pin = self.store.pin(digest);
            if let Some(verdict) = self.named(source, digest).await? {
                return Ok((digest.clone(), pin, verdict));
            }
        }
        let commit = self.commit(checkout).await.map_err(|error| stopped(&error))?;
        let hash = checkout.hash_of(path);
        match self.cache.in_commit(hash, commit) {
            Some(InCommit::Problem(reason, message)) => {
                return Err(Stop::Addon(reason, message.to_string()));
            }
            Some(InCommit::Bundle { digest, submodules }) if expected.is_none_or(|of| *of == digest) => {
                let pin = self.store.pin(&digest);
                if let Some(verdict) = self.stored(source, &digest).await? {
                    return Ok((digest, pin, noted(verdict, &submodules)));
                }
            }
            Some(InCommit::Bundle { .. } | InCommit::Index(_)) | None => {}
        }
        let Unpacked { objects, .. } =
            self.objects(checkout, commit).await.map_err(|error| stopped(&error))?;
        let store = Arc::clone(&self.store);
        let of = path.to_owned();
        let packed = self
            .turns
            .in_memory(move || {
                let mut download = store.download().map_err(|error| error.failure())?;
                Ok(bundle::pack(&objects, commit, &of, &mut download).map(|left_out| (download, left_out)))
            })
            .await
            .and_then(|packed| packed)
            .map_err(Stop::Ours)?;
        let (download, left_out) = match packed {
            Ok(packed) => packed,
            Err(error) if error.is_ours() => {
                return Err(Stop::Ours(disk_failure(&error)));
            }
            Err(error) => {
                let message = error.of_bundle(path);
                let problem = InCommit::Problem(error.reason(), message.as_str().into());
                if error.is_lasting() {
                    self.cache.put_in_commit(hash, commit, problem);
                }
                return Err(Stop::Addon(error.reason(), message));
            }
        };
        let (digest, pin, verdict) = self.take(source, download, expected).await?;
        let submodules: Arc<[String]> = left_out.into();
        let known = InCommit::Bundle { digest: digest.clone(), submodules: Arc::clone(&submodules) };
        self.cache.put_in_commit(hash, commit, known);
        Ok((digest, pin, noted(verdict, &submodules)))
    }

    /// Returns the commit that a checkout is about. It is asked for once in a pass.
    async fn commit(&self, checkout: &Checkout) -> Result<ObjectId, Arc<GitError>> {
        let asking = || async { self.resolve(checkout).await.map_err(Arc::new) };
        checkout.commit.get_or_init(asking).await.clone()
    }

    async fn resolve(&self, checkout: &Checkout) -> Result<ObjectId, GitError> {
        let reference = Reference::new(checkout.url.reference());
        if let Reference::Commit(id) = reference {
            return Ok(id);
        }
        let begun = Instant::now();
        let outcome = self.ask_reference(checkout, &reference).await;
        let seen = match &outcome {
            Ok(Some(commit)) if self.cache.commit(checkout.hash) == Some(*commit) => "unchanged",
            Ok(_) => "fetched",
            Err(_) => "failed",
        };
        self.observe(seen, begun);
        match (outcome?, reference) {
            (Some(commit), _) => {
                self.cache.put_commit(checkout.hash, commit);
                Ok(commit)
            }
            (None, Reference::Name(name)) => Err(GitError::NoReference(name)),
            (None, _) => Err(GitError::Empty),
        }
    }

    /// Returns the commit of a reference. What the server can do is asked once, and again when it answers otherwise.
    async fn ask_reference(
        &self,
        checkout: &Checkout,
        reference: &Reference,
    ) -> Result<Option<ObjectId>, GitError> {
        if let Some(remote) = self.cache.remote(checkout.hash).filter(Remote::has_version_2) {
            match remote.resolve(&self.http, reference).await {
                Err(GitError::Protocol { .. } | GitError::Http(_)) => self.cache.forget_remote(checkout.hash),
                answered => return answered,
            }
        }
        let (remote, found) = Remote::discover(&self.http, &checkout.url, reference).await?;
        self.cache.put_remote(checkout.hash, &remote);
        if remote.has_version_2() { remote.resolve(&self.http, reference).await } else { Ok(found) }
    }

    /// Returns the objects of a commit. They are fetched once in a pass.
    async fn objects(&self, checkout: &Checkout, commit: ObjectId) -> Result<Unpacked, Arc<GitError>> {
        let fetching = || async {
            let begun = Instant::now();
            let outcome = self.fetch_objects(checkout, commit).await;
            self.observe(if outcome.is_ok() { "fetched" } else { "failed" }, begun);
            outcome.map_err(Arc::new)
        };
        checkout.objects.get_or_init(fetching).await.clone()
    }

    async fn fetch_objects(&self, checkout: &Checkout, commit: ObjectId) -> Result<Unpacked, GitError> {
        let remote = if let Some(remote) = self.cache.remote(checkout.hash) {
            remote
        } else {
            let reference = Reference::Commit(commit);
            let (remote, _) = Remote::discover(&self.http, &checkout.url, &reference).await?;
            self.cache.put_remote(checkout.hash, &remote);
            remote
        };
        let store = Arc::clone(&self.store);
        let files = blocking(move || Ok((store.scratch_file()?, store.scratch_file()?)))
            .await
            .map_err(GitError::Ours)?;
        let (pack, spool) =
            files.map_err(|error: crate::source::disk_error::DiskError| GitError::Ours(error.failure()))?;
        let fetched = remote.fetch(&self.http, commit, checkout.url.depth(), pack).await;
        let mut pack = fetched.inspect_err(|_| self.cache.forget_remote(checkout.hash))?;
        // The table of objects is in memory, so only few commits are read at a time. Who waits for a server is not one of them.
        let permit = Arc::clone(&self.commits).acquire_owned().await;
        let bug = |error| GitError::Ours(Failure::of(FailureKind::Bug, &error));
        let permit = Arc::new(permit.map_err(bug)?);
        let unpacked = self.turns.in_memory(move || {
            pack.seek(SeekFrom::Start(0))?;
            Objects::unpack(BufReader::with_capacity(64 << 10, pack), FileSpool::new(spool))
        });
        let objects = Arc::new(unpacked.await.map_err(GitError::Ours)??);
        Ok(Unpacked { objects, _permit: permit })
    }

    fn observe(&self, outcome: &'static str, begun: Instant) {
        let took = begun.elapsed();
        self.metrics.observe(FetchObservation { scheme: SCHEME, outcome, took });
    }
}

/// Returns what is wrong with a bundle, with what may be the cause.
fn noted(verdict: Verdict, submodules: &[String]) -> Verdict {
    let Err(Refusal { problems, privileged }) = &verdict else { return verdict };
    let note = |path: &String| Problem {
        path: path.clone(),
        message: "it is a submodule, which is not fetched: put its files into the repository".to_owned(),
    };
    if submodules.is_empty() {
        return verdict;
    }
    let problems = problems.iter().cloned().chain(submodules.iter().map(note)).collect();
    Err(Refusal { problems, privileged: Arc::clone(privileged) })
}

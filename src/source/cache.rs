//! What was fetched before, so that a source that did not change costs one small request.
//!
//! It is in memory only. URLs can hold credentials, so they are known by their hash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use ::source::bundle::{self, Bundle, Problem, Report};
use ::source::git::ObjectId;
use ::source::index::Index;
use ::source::url::HttpUrl;
use engine::{AddonReason, Digest, SourceKey, SourceKind};
use sha2::{Digest as _, Sha256};

use super::git::Remote;
use super::lint::lint;
use crate::remote::http::Validator;

/// How much memory the indexes take together that are remembered, in bytes.
const MOST_MEMORY: usize = 8 << 20;

/// How many indexes and how many bundles are remembered.
const MOST_INDEXES: usize = 1_000;
const MOST_BUNDLES: usize = 20_000;

/// A URL, as nobody can read it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct UrlHash([u8; 32]);

impl UrlHash {
    /// Returns the hash of a URL with its credentials: others may see something else there.
    pub(super) fn of(url: &HttpUrl) -> Self {
        let credentials = url.credentials().map(::source::url::Credentials::authorization);
        let mut hash = Sha256::new();
        hash.update(credentials.unwrap_or_default());
        hash.update([0]);
        hash.update(url.to_string());
        Self(hash.finalize().into())
    }

    /// Returns the hash of this and of something in it.
    pub(super) fn with(self, name: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(name);
        Self(hash.finalize().into())
    }
}

/// What a path of a repository is at a commit. It is that for ever.
#[derive(Clone, Debug)]
pub(super) enum InCommit {
    /// An index.
    Index(Arc<Index>),
    /// A bundle.
    Bundle {
        /// The digest of its archive.
        digest: Digest,
        /// What was left out of it.
        submodules: Arc<[String]>,
    },
    /// Nothing that can be used.
    Problem(AddonReason, Arc<str>),
}

/// What the lint says of a bundle.
pub(super) type Verdict = Result<Arc<Bundle>, Refusal>;

/// Why a bundle can't be used.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    /// All that is wrong with it.
    pub(super) problems: Arc<[Problem]>,
    /// What in it would act with our rights.
    pub(super) privileged: Arc<[String]>,
}

/// Remembers answers. When there are too many, all are forgotten: that costs a few requests.
#[derive(Default)]
pub(super) struct Cache(Mutex<Answers>);

#[derive(Default)]
struct Answers {
    indexes: BTreeMap<UrlHash, (Validator, Arc<Index>)>,
    bundles: BTreeMap<UrlHash, (Validator, Digest)>,
    verdicts: BTreeMap<Digest, Verdict>,
    remotes: BTreeMap<UrlHash, Remote>,
    commits: BTreeMap<UrlHash, ObjectId>,
    in_commits: BTreeMap<UrlHash, (ObjectId, InCommit)>,
    manifests: BTreeMap<UrlHash, Tagged>,
    /// Bundles, each with what stands for the keys of which one signed it.
    verified: BTreeSet<(Digest, [u8; 32])>,
    /// The bundles that were fetched or registered for configurations of each namespace.
    held: BTreeSet<(Arc<str>, Digest)>,
}

/// What a tag of a registry named when it was read.
#[derive(Clone, Debug)]
pub(super) struct Tagged {
    /// The digest of the manifest.
    pub(super) manifest: ::source::digest::Digest,
    /// That of the bundle that it names.
    pub(super) bundle: Digest,
}

impl Answers {
    /// Makes room for what an index has.
    fn make_room(&mut self, index: &Index) {
        let in_commits = self.in_commits.values().filter_map(|(_, found)| match found {
            InCommit::Index(index) => Some(index),
            InCommit::Bundle { .. } | InCommit::Problem(..) => None,
        });
        let known = self.indexes.values().map(|(_, index)| index).chain(in_commits);
        let memory = known.map(|index| index.memory()).sum::<usize>();
        if memory + index.memory() > MOST_MEMORY || self.indexes.len() >= MOST_INDEXES {
            self.indexes.clear();
            self.in_commits.clear();
        }
    }
}

impl Cache {
    fn with<T>(&self, work: impl FnOnce(&mut Answers) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn index(&self, url: UrlHash) -> Option<(Validator, Arc<Index>)> {
        self.with(|answers| answers.indexes.get(&url).cloned())
    }

    pub(super) fn put_index(&self, url: UrlHash, validator: Validator, index: &Arc<Index>) {
        self.with(|answers| {
            answers.indexes.remove(&url);
            answers.make_room(index);
            answers.indexes.insert(url, (validator, Arc::clone(index)));
        });
    }

    /// Forgets what was at a URL: something else is there now.
    pub(super) fn forget_index(&self, url: UrlHash) {
        self.with(|answers| answers.indexes.remove(&url));
    }

    pub(super) fn bundle(&self, url: UrlHash) -> Option<(Validator, Digest)> {
        self.with(|answers| answers.bundles.get(&url).cloned())
    }

    pub(super) fn put_bundle(&self, url: UrlHash, validator: Validator, digest: &Digest) {
        self.with(|answers| {
            if answers.bundles.len() >= MOST_BUNDLES {
                answers.bundles.clear();
            }
            answers.bundles.insert(url, (validator, digest.clone()));
        });
    }

    /// Returns the git server of a repository, if it answered before.
    pub(super) fn remote(&self, repository: UrlHash) -> Option<Remote> {
        self.with(|answers| answers.remotes.get(&repository).cloned())
    }

    pub(super) fn put_remote(&self, repository: UrlHash, remote: &Remote) {
        self.with(|answers| {
            if answers.remotes.len() >= MOST_INDEXES {
                answers.remotes.clear();
            }
            answers.remotes.insert(repository, remote.clone());
        });
    }

    pub(super) fn forget_remote(&self, repository: UrlHash) {
        self.with(|answers| answers.remotes.remove(&repository));
    }

    /// Returns the commit that a repository had at its reference.
    pub(super) fn commit(&self, repository: UrlHash) -> Option<ObjectId> {
        self.with(|answers| answers.commits.get(&repository).copied())
    }

    pub(super) fn put_commit(&self, repository: UrlHash, commit: ObjectId) {
        self.with(|answers| {
            if answers.commits.len() >= MOST_INDEXES {
                answers.commits.clear();
            }
            answers.commits.insert(repository, commit);
        });
    }

    /// Returns what a path of a repository is at this commit, if it was read.
    pub(super) fn in_commit(&self, path: UrlHash, commit: ObjectId) -> Option<InCommit> {
        self.with(|answers| {
            let (of, found) = answers.in_commits.get(&path)?;
            (*of == commit).then(|| found.clone())
        })
    }

    pub(super) fn put_in_commit(&self, path: UrlHash, commit: ObjectId, found: InCommit) {
        self.with(|answers| {
            answers.in_commits.remove(&path);
            if let InCommit::Index(index) = &found {
                answers.make_room(index);
            }
            if answers.in_commits.len() >= MOST_BUNDLES {
                answers.in_commits.clear();
            }
            answers.in_commits.insert(path, (commit, found));
        });
    }

    /// Returns what a tag of a registry named.
    pub(super) fn manifest(&self, tag: UrlHash) -> Option<Tagged> {
        self.with(|answers| answers.manifests.get(&tag).cloned())
    }

    pub(super) fn put_manifest(&self, tag: UrlHash, tagged: Tagged) {
        self.with(|answers| {
            if answers.manifests.len() >= MOST_BUNDLES {
                answers.manifests.clear();
            }
            answers.manifests.insert(tag, tagged);
        });
    }

    /// Returns whether one of these keys signed a bundle.
    pub(super) fn is_verified(&self, digest: &Digest, keys: [u8; 32]) -> bool {
        self.with(|answers| answers.verified.contains(&(digest.clone(), keys)))
    }

    pub(super) fn put_verified(&self, digest: &Digest, keys: [u8; 32]) {
        self.with(|answers| {
            if answers.verified.len() >= MOST_BUNDLES {
                answers.verified.clear();
            }
            answers.verified.insert((digest.clone(), keys));
        });
    }

    /// Returns whether a configuration may have a bundle that is here: one of the cluster, or one that its namespace had before.
    pub(super) fn is_held(&self, source: &SourceKey, digest: &Digest) -> bool {
        source.kind == SourceKind::Cluster
            || self.with(|answers| answers.held.contains(&(Arc::clone(&source.namespace), digest.clone())))
    }

    /// Records that a configuration has a bundle.
    pub(super) fn put_held(&self, source: &SourceKey, digest: &Digest) {
        if source.kind == SourceKind::Cluster {
            return;
        }
        self.with(|answers| {
            if answers.held.len() >= MOST_BUNDLES {
                answers.held.clear();
            }
            answers.held.insert((Arc::clone(&source.namespace), digest.clone()));
        });
    }

    pub(super) fn verdict(&self, digest: &Digest) -> Option<Verdict> {
        self.with(|answers| answers.verdicts.get(digest).cloned())
    }

    pub(super) fn put_verdict(&self, digest: &Digest, verdict: &Verdict) {
        self.with(|answers| {
            if answers.verdicts.len() >= MOST_BUNDLES {
                answers.verdicts.clear();
            }
            answers.verdicts.insert(digest.clone(), verdict.clone());
        });
    }
}

/// Returns what the lint says of a bundle.
pub(super) fn verdict(tree: &bundle::Tree) -> Verdict {
    let Report { outcome, privileged, .. } = lint(tree);
    outcome
        .map(Arc::new)
        .map_err(|problems| Refusal { problems: problems.into(), privileged: privileged.into() })
}

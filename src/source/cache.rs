//! What was fetched before, so that a source that did not change costs one small request.
//!
//! It is in memory only. URLs can hold credentials, so they are known by their hash.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ::source::bundle::{self, Bundle, Problem};
use ::source::index::Index;
use ::source::url::HttpUrl;
use engine::Digest;
use sha2::{Digest as _, Sha256};

use super::http::Validator;

/// How many lines the indexes have together that are remembered.
const MOST_LINES: usize = 50_000;

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
}

/// What the lint says of a bundle.
pub(super) type Verdict = Result<Arc<Bundle>, Arc<[Problem]>>;

/// Remembers answers. When there are too many, all are forgotten: that costs a few requests.
#[derive(Default)]
pub(super) struct Cache(Mutex<Answers>);

#[derive(Default)]
struct Answers {
    indexes: BTreeMap<UrlHash, (Validator, Arc<Index>)>,
    bundles: BTreeMap<UrlHash, (Validator, Digest)>,
    verdicts: BTreeMap<Digest, Verdict>,
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
            let lines = answers.indexes.values().map(|(_, index)| index.lines().len()).sum::<usize>();
            if lines + index.lines().len() > MOST_LINES || answers.indexes.len() >= MOST_INDEXES {
                answers.indexes.clear();
            }
            answers.indexes.insert(url, (validator, Arc::clone(index)));
        });
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
    bundle::lint(tree).outcome.map(Arc::new).map_err(Arc::from)
}

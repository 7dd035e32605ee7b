//! What one pass of a configuration reads of a repository: all who name the same reference share one request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ::source::git::{ObjectId, Objects};
use ::source::index::Line;
use ::source::url::GitUrl;
use engine::{Approvals, Digest};
use tokio::sync::{OnceCell, OwnedSemaphorePermit};

use super::remote::GitError;
use super::spool::FileSpool;
use crate::source::cache::UrlHash;

/// A repository at a reference. Nothing is asked before it is needed, and nothing twice.
#[derive(Debug)]
pub(in crate::source) struct Checkout {
    pub(super) url: GitUrl,
    /// The name of the repository and the reference, as nobody can read it.
    pub(super) hash: UrlHash,
    pub(super) commit: OnceCell<Result<ObjectId, Arc<GitError>>>,
    pub(super) objects: OnceCell<Result<Unpacked, Arc<GitError>>>,
}

/// The objects of a commit, with the right to hold them.
#[derive(Clone, Debug)]
pub(super) struct Unpacked {
    pub(super) objects: Arc<Objects<FileSpool>>,
    pub(super) _permit: Arc<OwnedSemaphorePermit>,
}

impl Checkout {
    /// Returns the name of a path in the repository at the reference.
    pub(super) fn hash_of(&self, path: &str) -> UrlHash {
        self.hash.with(path)
    }
}

/// The checkouts of one pass. Each is gone when nobody in the pass needs it any more.
#[derive(Debug)]
pub(in crate::source) struct Pass {
    checkouts: Mutex<BTreeMap<UrlHash, Weak<Checkout>>>,
    /// Whether bundles that were fetched before are not asked for while their index did not change.
    pub(in crate::source) is_refresh: bool,
    /// The versions that people have approved.
    approvals: Approvals,
}

impl Pass {
    /// Returns a pass that has fetched nothing yet.
    pub(in crate::source) fn new(is_refresh: bool, approvals: &Approvals) -> Self {
        Self { checkouts: Mutex::default(), is_refresh, approvals: approvals.clone() }
    }

    /// Returns whether a line of an index is a version that may come although a higher one is there.
    pub(in crate::source) fn calls_for(&self, line: &Line) -> bool {
        let digest = line.outcome.as_ref().ok().and_then(|entry| entry.digest.as_ref());
        let digest: Option<Digest> = digest.and_then(|digest| digest.to_string().parse().ok());
        self.approvals.call_for(&line.name, &line.version, digest.as_ref())
    }

    /// Returns the checkout that a URL names.
    pub(in crate::source) fn checkout(&self, url: &GitUrl) -> Arc<Checkout> {
        let depth = url.depth().map(|depth| depth.to_string()).unwrap_or_default();
        let hash = UrlHash::of(url.repository()).with(url.reference().unwrap_or_default());
        let mut known = self.checkouts.lock().unwrap_or_else(PoisonError::into_inner);
        let place = known.entry(hash.with(&depth)).or_default();
        if let Some(checkout) = place.upgrade() {
            return checkout;
        }
        let (commit, objects) = (OnceCell::new(), OnceCell::new());
        let checkout = Arc::new(Checkout { url: url.clone(), hash, commit, objects });
        *place = Arc::downgrade(&checkout);
        checkout
    }
}

//! Where the archives of charts come from that modules name: somebody else keeps them.

use std::sync::{Arc, OnceLock};

use engine::{Failure, FailureKind, Package};
use futures::future::BoxFuture;

/// Hands out the archives of packages.
pub trait Archives: Send + Sync {
    /// Returns the archive of a package, byte for byte as it was published.
    fn archive<'a>(&'a self, package: &'a Package) -> BoxFuture<'a, Result<Vec<u8>, Failure>>;
}

/// The archives, once somebody hands them out.
#[derive(Clone, Default)]
pub(super) struct ArchiveSource(Arc<OnceLock<Arc<dyn Archives>>>);

impl ArchiveSource {
    /// Sets who hands them out; a second one is ignored.
    pub(super) fn set(&self, archives: Arc<dyn Archives>) {
        let _ = self.0.set(archives);
    }

    pub(super) async fn archive(&self, package: &Package) -> Result<Vec<u8>, Failure> {
        match self.0.get() {
            Some(archives) => archives.archive(package).await,
            None => Err(Failure::new(FailureKind::Files, "charts from repositories are not available here")),
        }
    }
}

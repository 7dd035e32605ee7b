//! How much the charts of namespaces may use: whoever may write one object in a namespace must not be able to end the operator.

use std::sync::Arc;

use chart::render::Rendered;
use chart::template::Limits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many of their charts are rendered at the same time.
const RENDERS: usize = 2;

/// How many bytes a chart renders to that counts as large: in memory it is many times that, until its run ends.
const LARGE: usize = 2 << 20;

/// How many runs of large charts are under way at the same time.
const LARGE_RUNS: usize = 2;

/// What one of their charts may use. No object of Kubernetes is larger than 3 MiB.
pub(super) fn limits() -> Limits {
    Limits { bytes: 64 << 20, file: 4 << 20, text: 16 << 20, ..Limits::default() }
}

/// The places of their charts, which all adapters of an operator share.
#[derive(Clone, Debug)]
pub(super) struct GuestPlaces {
    renders: Arc<Semaphore>,
    large_runs: Arc<Semaphore>,
}

impl Default for GuestPlaces {
    fn default() -> Self {
        Self { renders: Arc::new(Semaphore::new(RENDERS)), large_runs: Arc::new(Semaphore::new(LARGE_RUNS)) }
    }
}

impl GuestPlaces {
    /// Waits for a place among those that are rendered.
    pub(super) async fn render(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.renders).acquire_owned().await.ok()
    }

    /// Waits for a place among the runs of large charts, if this is one.
    pub(super) async fn run(&self, rendered: &Rendered) -> Option<OwnedSemaphorePermit> {
        let manifests: usize = rendered.manifests.iter().map(|manifest| manifest.content.len()).sum();
        let hooks: usize = rendered.hooks.iter().map(|hook| hook.manifest.len()).sum();
        if manifests + hooks < LARGE {
            return None;
        }
        Arc::clone(&self.large_runs).acquire_owned().await.ok()
    }
}

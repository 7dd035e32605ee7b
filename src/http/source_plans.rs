//! How the socket asks for what configurations of module sources would fetch that were not applied.

use std::sync::Arc;

use engine::{Approvals, Bundle, Failure, Fetched, Module, SourceKey, SourceKind, SourceSpec};
use futures::future::BoxFuture;
use serde_json::Value;

/// What was fetched, with what keeps it in the store directory.
pub type PinnedFetch = (Fetched, Box<dyn Send + Sync>);

/// Fetches what was not applied, and reads modules of it.
pub trait SourcePlans: Send + Sync {
    /// Fetches and checks what a configuration asks for, and which versions beside that people have approved. The result lasts as
    /// long as what comes with it.
    fn fetch(
        &self,
        source: SourceKey,
        spec: SourceSpec,
        approvals: Approvals,
    ) -> BoxFuture<'_, Result<PinnedFetch, Failure>>;
    /// Returns the paths of what an object has that its kind does not know.
    fn unknown_fields(&self, kind: SourceKind, object: &Value) -> Vec<String>;
    /// Returns the module that a bundle is, which was fetched. Nothing of it is run.
    fn module(&self, bundle: Bundle) -> BoxFuture<'_, Result<Arc<Module>, Failure>>;
}

//! Whether the account of a guest may read everything that its release names, before anything of it is written.
//!
//! A release is removed by reading what it holds, because what others have taken over stays. What was never readable could not
//! be removed, and nobody could say whether it was ever there. So a release that names such an object is not begun.

use chart::manifest::{Hook, HookEvent};
use futures::{FutureExt as _, StreamExt as _, stream};

use super::Helm;
use super::apply::AT_ONCE;
use super::error::ReleaseError;
use super::object::{self, Key, Object};
use crate::cluster::ResolveError;

impl Helm {
    /// Asks for every object of a guest's release that no revision `before` held: its own, and those of its hooks. What the
    /// operator releases with its own rights costs no request.
    ///
    /// # Errors
    ///
    /// If one of them may not be read, or the API server does not answer. All are named.
    pub(super) async fn check_readable(
        &self,
        name: &str,
        objects: &[Object],
        hooks: &[Hook],
        before: &[Object],
    ) -> Result<(), ReleaseError> {
        if self.guest.is_none() {
            return Ok(());
        }
        let known: Vec<Key> = before.iter().map(|object| object.key(&self.settings.namespace)).collect();
        let mut of_hooks = Vec::new();
        for hook in hooks.iter().filter(|hook| hook.events.iter().any(|event| *event != HookEvent::Test)) {
            of_hooks.extend(object::of_hook(&hook.path, &hook.manifest)?);
        }
        let is_new = |object: &&Object| !known.contains(&object.key(&self.settings.namespace));
        // Boxed and collected, so that the whole can be sent to another thread.
        let looks: Vec<_> = objects
            .iter()
            .filter(is_new)
            .chain(&of_hooks)
            .map(|object| self.check_one(name, object).boxed())
            .collect();
        let outcomes: Vec<_> = stream::iter(looks).buffered(AT_ONCE).collect().await;
        let problems: Vec<String> = outcomes.into_iter().flatten().collect();
        if problems.is_empty() { Ok(()) } else { Err(ReleaseError::Objects(problems)) }
    }

    /// Returns why an object can't be read, if that is so. It need not be there.
    async fn check_one(&self, name: &str, object: &Object) -> Option<String> {
        let problem = |why: String| Some(format!("{}: {} {}: {why}", object.path, object.kind, object.name));
        let resource = match self.discovery.resolve(&object.api_version, &object.kind).await {
            Ok(resource) => resource,
            // Another object of the release brings it.
            Err(ResolveError::Unknown(_)) => return None,
            Err(error @ ResolveError::Cluster(_)) => return problem(error.to_string()),
        };
        let (_, path) = self.applier(name).paths(object, &resource);
        match self.requests.get(&path).await {
            Ok(_) => None,
            // Nobody can read such a kind, such as a review of access.
            Err(error) if error.code() == 405 => None,
            Err(error) => problem(error.to_string()),
        }
    }
}

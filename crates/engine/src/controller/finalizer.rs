//! The finalizer of an object: added before its hook runs, removed when that says so.

use serde_json::Value;

use super::key_state::{Answer, Pass};
use super::observed::{checksum, value};
use super::patches;
use super::progress::{Go, failed};
use super::single::Controller;
use crate::context::Context;
use crate::hook::snapshot::Key;
use crate::reconcile::Step;

impl Controller {
    /// Adds the finalizer, if that was not done to the object as it is seen.
    pub(super) fn add_finalizer(&mut self, cx: &mut Context, key: &Key) -> Go {
        let finalizer = self.binding.finalizer.as_deref().unwrap_or_default();
        let (Some(parent), Some(state)) = (self.parent(key), self.keys.get(key)) else {
            return Go::Stop(Pass::Idle, Step::Done);
        };
        let version = parent.metadata.resource_version.clone();
        if state.finalizer_added_to.as_ref() == Some(&version) {
            return Go::Stop(Pass::Idle, unseen(finalizer));
        }
        let patch = patches::set_finalizer(&parent.kind, key, parent.metadata, (finalizer, true));
        let expected = self.item(key).map(|item| {
            let mut object = value(item);
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                let names = patches::finalizers(parent.metadata, (finalizer, true));
                metadata.insert("finalizers".to_owned(), names.into());
            }
            checksum(&object, true)
        });
        let step = self.write(cx, vec![patch]);
        if let Some(state) = self.keys.get_mut(key) {
            (state.expected, state.finalizer_added_to) = (expected, Some(version));
        }
        Go::Stop(Pass::Finalizing, step)
    }

    /// Goes on after the finalizer was added.
    pub(super) fn finalizer_added(&mut self, key: &Key, answer: Option<Answer>) -> Go {
        if let Some(failure) = failed(answer) {
            return self.refused(key, failure);
        }
        let finalizer = self.binding.finalizer.as_deref().unwrap_or_default();
        if self.parent(key).is_none_or(|parent| parent.metadata.has_finalizer(finalizer)) {
            return Go::On(Pass::Idle);
        }
        // The hook is shown the object with it.
        Go::Stop(Pass::Idle, unseen(finalizer))
    }

    /// Goes on after the finalizer was removed.
    pub(super) fn finalizer_removed(&mut self, key: &Key, answer: Option<Answer>) -> Go {
        if let Some(failure) = failed(answer) {
            return self.refused(key, failure);
        }
        if let Some(state) = self.keys.get_mut(key) {
            state.is_released = true;
        }
        Go::Stop(Pass::Idle, Step::Done)
    }
}

/// Waits for what was written to be shown by the watch.
fn unseen(finalizer: &str) -> Step {
    Step::Wait(format!("its finalizer {finalizer} to be seen"))
}

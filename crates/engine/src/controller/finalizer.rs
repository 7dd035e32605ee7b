//! The finalizer of an object: added before its hook runs, removed when that says so.
//!
//! An object says which binding added which finalizer. So one that its binding names no more goes by itself, and one of a binding
//! that is not there is told.

use serde_json::Value;

use super::finalizer_record::{Finalizers, applied};
use super::key_state::{Answer, Pass};
use super::observed::{Metadata, checksum, value};
use super::patches;
use super::progress::{Go, failed};
use super::remark::OVERDUE;
use super::single::Controller;
use crate::context::Context;
use crate::hook::snapshot::Key;
use crate::reconcile::{Rest, Step};

impl Controller {
    /// Returns the finalizers of an object, as the binding sees them.
    pub(super) fn finalizers<'m>(&'m self, metadata: &'m Metadata) -> Finalizers<'m> {
        Finalizers::of(metadata, self.id.mark(), self.binding.finalizer.as_deref(), &self.peers)
    }

    /// Gives the object the finalizer that the binding names, for one that it named before, if that was not done to the object as
    /// it is seen.
    pub(super) fn settle_finalizer(&mut self, cx: &mut Context, key: &Key) -> Go {
        let wanted = self.binding.finalizer.as_deref();
        let (Some(parent), Some(state)) = (self.parent(key), self.keys.get(key)) else {
            return Go::Stop(Pass::Idle, Step::Done);
        };
        let version = parent.metadata.resource_version.clone();
        if state.finalizer_added_to.as_ref() == Some(&version) {
            return Go::Stop(Pass::Idle, self.unseen());
        }
        let fields = self.finalizers(parent.metadata).fields(wanted);
        let patch = patches::set_finalizers(parent.kind, key, parent.metadata, &fields);
        let expected = self.item(key).map(|item| {
            let mut object = value(item);
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                applied(metadata, &fields);
            }
            checksum(&object, true)
        });
        let step = self.write(cx, vec![patch]);
        if let Some(state) = self.keys.get_mut(key) {
            (state.expected, state.written_to) = (expected, Some(version.clone()));
            state.finalizer_added_to = Some(version);
        }
        Go::Stop(Pass::Finalizing, step)
    }

    /// Goes on after the finalizer was added.
    pub(super) fn finalizer_added(&mut self, key: &Key, answer: Option<Answer>) -> Go {
        if let Some(failure) = failed(answer) {
            return self.refused(key, failure);
        }
        if self.parent(key).is_none_or(|parent| self.finalizers(parent.metadata).are_settled()) {
            return Go::On(Pass::Idle);
        }
        // The hook is shown the object with it.
        Go::Stop(Pass::Idle, self.unseen())
    }

    /// Waits for what was written to be shown by the watch.
    fn unseen(&self) -> Step {
        let finalizer = self.binding.finalizer.as_deref();
        Step::Wait(match finalizer {
            Some(finalizer) => format!("its finalizer {finalizer} to be seen"),
            None => "the end of its finalizer to be seen".to_owned(),
        })
    }

    /// Takes the finalizers of the binding from the object.
    pub(super) fn release(&mut self, cx: &mut Context, key: &Key) -> Go {
        let Some(parent) = self.parent(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        let version = parent.metadata.resource_version.clone();
        let fields = self.finalizers(parent.metadata).fields(None);
        let patch = patches::set_finalizers(parent.kind, key, parent.metadata, &fields);
        if let Some(state) = self.keys.get_mut(key) {
            state.written_to = Some(version);
        }
        Go::Stop(Pass::Unfinalizing, self.write(cx, vec![patch]))
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

    /// Ends the work on an object that is being deleted and has no finalizer of the binding. It may stay all the same: by one of a
    /// binding that is not there.
    pub(super) fn let_go(&mut self, cx: &Context, key: &Key) -> Go {
        let left = self.metadata_of(key).and_then(|metadata| self.finalizers(metadata).left());
        let Some(state) = self.keys.get_mut(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        state.left.clone_from(&left);
        let Some(left) = left else { return Go::Stop(Pass::Idle, Step::Done) };
        if state.stays_since.is_none() {
            state.stays_since = Some(cx.now);
            self.overdue.insert((cx.now + OVERDUE, key.clone()));
        }
        let reason = format!(
            "its finalizer {} to be removed, which binding {} added that is not there",
            left.finalizer, left.by
        );
        Go::Stop(Pass::Idle, Step::Rest(Rest { reason, after: None, is_end: true }))
    }
}

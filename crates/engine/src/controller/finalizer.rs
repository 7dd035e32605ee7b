//! The finalizer of an object: added before its hook runs, removed when that says so.
//!
//! An object says which binding added which finalizer. So one that its binding names no more goes by itself, and one of a binding
//! that is not there is told.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::finalizer_record::{Finalizers, applied};
use super::key_state::{Answer, End, Pass, Pruning, Wanted};
use super::observed::{Metadata, checksum, value};
use super::patches;
use super::progress::{Go, failed};
use super::remark::OVERDUE;
use super::single::Controller;
use crate::context::Context;
use crate::hook::reconcile::ReconcileResult;
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
        let step = self.write_metadata(cx, key, &fields);
        if let Some(state) = self.keys.get_mut(key) {
            state.finalizer_added_to = Some(version);
        }
        Go::Stop(Pass::Finalizing, step)
    }

    /// Writes fields of the metadata of an object. That it has them then is no news.
    fn write_metadata(&mut self, cx: &mut Context, key: &Key, fields: &Map<String, Value>) -> Step {
        let Some(parent) = self.parent(key) else { return Step::Done };
        let version = parent.metadata.resource_version.clone();
        let patch = patches::set_finalizers(parent.kind, key, parent.metadata, fields);
        let expected = self.item(key).map(|item| {
            let mut object = value(item);
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                applied(metadata, fields);
            }
            checksum(&object, true)
        });
        let step = self.write(cx, vec![patch]);
        if let Some(state) = self.keys.get_mut(key) {
            (state.expected, state.written_to) = (expected, Some(version));
        }
        step
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

    /// Goes on with an object whose hook said that nothing is left to do: its children go, and then its finalizer. The hook is not
    /// asked again. What it was shown then is not what there is any more, and what it said would undo what was done since.
    pub(super) fn go_on_with_end(&mut self, key: &Key) -> Go {
        let Some(parent) = self.parent(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        let wanted = Wanted {
            result: ReconcileResult { finalized: true, ..ReconcileResult::default() },
            is_finalize: true,
            uid: Arc::clone(&parent.metadata.uid),
            generation: parent.metadata.generation,
        };
        if let Some(state) = self.keys.get_mut(key) {
            state.is_stale = false;
        }
        Go::On(Pass::Pruning(wanted, Pruning::default()))
    }

    /// Notes that the hook said that nothing is left to do.
    pub(super) fn note_end(&mut self, key: &Key) {
        let Some(state) = self.keys.get_mut(key) else { return };
        state.unfinished_since = None;
        if state.end == End::Open {
            state.end = End::Said;
        }
    }

    /// Returns whether the object says so as well.
    pub(super) fn is_end_recorded(&self, key: &Key) -> bool {
        let is_written = self.keys.get(key).is_some_and(|state| state.end == End::Recorded);
        is_written || self.metadata_of(key).is_some_and(|metadata| self.finalizers(metadata).is_finalized())
    }

    /// Writes on the object that the hook said so, before anything goes that the hook was shown: another process has to know it.
    pub(super) fn record_end(&mut self, cx: &mut Context, key: &Key, wanted: Wanted) -> Go {
        let Some(parent) = self.parent(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        let fields = self.finalizers(parent.metadata).finalized();
        let step = self.write_metadata(cx, key, &fields);
        Go::Stop(Pass::Recording(wanted), step)
    }

    /// Goes on after that was written.
    pub(super) fn end_recorded(&mut self, key: &Key, wanted: Wanted, answer: Option<Answer>) -> Go {
        if let Some(failure) = failed(answer) {
            return self.refused(key, failure);
        }
        if let Some(state) = self.keys.get_mut(key) {
            state.end = End::Recorded;
        }
        Go::On(Pass::Pruning(wanted, Pruning::default()))
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
            state.end = End::Released;
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

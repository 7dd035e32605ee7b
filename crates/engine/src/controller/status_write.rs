//! Writes what a hook says of an object into its status.

use values::Checksum;

use super::key_state::{Answer, Pass, Pruning, Wanted};
use super::observed::{checksum, value};
use super::progress::{Go, failed};
use super::single::Controller;
use super::step::Surroundings;
use super::{patches, status};
use crate::failure::FailureKind;
use crate::hook::snapshot::Key;
use crate::reconcile::Step;

impl Controller {
    /// Writes the status, if it differs, and goes on to pruning.
    pub(super) fn status(&mut self, around: &mut Surroundings<'_, '_>, key: &Key, wanted: Wanted) -> Go {
        let says = wanted.result.says_status();
        // What is on its way out is not observed any more.
        let may_move = !says
            && !wanted.is_finalize
            && self.item(key).and_then(|item| item.object()).is_some_and(status::may_be_observed);
        let Some(state) = self.keys.get_mut(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        let awaits = state.expected.is_some();
        if !says {
            state.dropped = None;
        }
        if !(says || awaits || may_move) {
            return Go::On(Pass::Pruning(wanted, Pruning::default()));
        }
        let now = around.config.time_of_day(around.lower.cx.now);
        let (Some(item), Some(parent)) = (self.item(key), self.parent(key)) else {
            return Go::Stop(Pass::Idle, Step::Done);
        };
        let mut object = value(item);
        let (kind, generation) = (parent.kind, wanted.generation);
        let change_at = |now: &str| {
            let is_said = says || may_move;
            is_said.then(|| status::change(kind, &object, &wanted.result, (generation, now))).flatten()
        };
        let change = change_at(&now);
        if change.is_none() && !awaits {
            return Go::On(Pass::Pruning(wanted, Pruning::default()));
        }
        let before = checksum(&object, true);
        // The time of day says nothing about what is written.
        let without_time = change_at("");
        let patched = Checksum::of(&without_time.map(|change| change.patch));
        let patch = change
            .as_ref()
            .map(|change| patches::set_status(parent.kind, key, parent.metadata, &change.patch));
        let version = parent.metadata.resource_version.clone();
        let Some(state) = self.keys.get_mut(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        if change.is_none() {
            state.dropped = None;
        }
        // The API server may make something else of it: that was tried before, and changed nothing.
        let is_tried = state.written == Some((patched, before));
        let (Some(change), Some(patch), false) = (change, patch, is_tried) else {
            // What was written before and is not seen yet is not what is wanted now.
            state.expected = state.expected.filter(|expected| *expected == before);
            return Go::On(Pass::Pruning(wanted, Pruning::default()));
        };
        if let Some(fields) = object.as_object_mut() {
            fields.insert("status".to_owned(), change.status);
        }
        state.expected = Some(checksum(&object, true));
        state.written_to = Some(version);
        let step = self.write(around.lower.cx, vec![patch]);
        Go::Stop(Pass::Status(wanted, (patched, before)), step)
    }

    /// Goes on after the status was written.
    pub(super) fn status_written(
        &mut self,
        around: &mut Surroundings<'_, '_>,
        key: &Key,
        wanted: Wanted,
        written: (Checksum, Checksum),
        answer: Option<Answer>,
    ) -> Go {
        let mut dropped = None;
        match failed(answer) {
            // The rest is written.
            Some(failure) if failure.kind == FailureKind::Dropped => dropped = Some(failure.message),
            Some(failure) => {
                let failure = around.lower.configuration.told(failure, self.id.hook.scope.module(), None);
                return self.refused(key, failure);
            }
            None => {}
        }
        if let Some(state) = self.keys.get_mut(key) {
            (state.written, state.dropped) = (Some(written), dropped);
        }
        Go::On(Pass::Pruning(wanted, Pruning::default()))
    }
}

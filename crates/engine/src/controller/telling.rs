//! Tells of objects on themselves, in the log and among problems.

use std::sync::Arc;

use super::identity::ReconcileKey;
use super::key_state::{KeyState, Pass};
use super::plan::shown;
use super::remark::{LONGEST_MESSAGE, OVERDUE, Remark};
use super::single::Controller;
use super::turns::What;
use crate::context::Context;
use crate::effect::{Announcement, Effect, ObjectReference};
use crate::hook::snapshot::Key;
use crate::module::Lower;
use crate::name::ModuleName;
use crate::notice::Notice;
use crate::reconcile::{Rest, Step};
use crate::time::Time;
use crate::view::RemarkView;

/// Announces on an object why it is not as it should be, and when it is again.
pub(super) fn announce(cx: &mut Context, controller: &mut Controller, key: &ReconcileKey, step: &Step) {
    let may_tell = match step {
        Step::Failed(_) | Step::Again(_) | Step::Done => true,
        Step::Rest(rest) => rest.is_end,
        Step::Fetch(..) | Step::Later(_) | Step::Wait(_) | Step::Write(..) => false,
    };
    if !may_tell || controller.metadata_of(&key.object).is_none() {
        return;
    }
    let Some(state) = controller.keys.get_mut(&key.object) else { return };
    let is_idle = matches!(state.pass, Pass::Idle);
    let (warning, reason, message) = match step {
        Step::Failed(failure) => {
            let message: String = failure.for_everybody().to_string().chars().take(LONGEST_MESSAGE).collect();
            if state.announced.as_ref() == Some(&message) {
                return;
            }
            state.announced = Some(message.clone());
            (true, "ReconcileFailed", message)
        }
        Step::Again(_) | Step::Done | Step::Rest(Rest { is_end: true, .. })
            if is_idle && state.announced.take().is_some() =>
        {
            (false, "ReconcileRecovered", "it is as it should be again".to_owned())
        }
        Step::Again(_)
        | Step::Done
        | Step::Fetch(..)
        | Step::Later(_)
        | Step::Rest(_)
        | Step::Wait(_)
        | Step::Write(..) => return,
    };
    let (module, object) = (key.controller.hook.scope.module().cloned(), controller.reference(&key.object));
    cx.push(Effect::Announce(Announcement { module, source: None, object, warning, reason, message }));
}

/// Returns a step whose failure says what everybody may read of it.
pub(super) fn told(lower: &Lower<'_>, key: &ReconcileKey, step: Step) -> Step {
    match step {
        Step::Failed(failure) if failure.masked.is_none() => {
            let module: Option<&ModuleName> = key.controller.hook.scope.module();
            Step::Failed(lower.configuration.told(failure, module, None))
        }
        Step::Failed(_)
        | Step::Again(_)
        | Step::Done
        | Step::Later(_)
        | Step::Rest(_)
        | Step::Fetch(..)
        | Step::Wait(_)
        | Step::Write(..) => step,
    }
}

/// Returns whether it is so now.
fn applies(remark: Remark, state: &KeyState, now: Time) -> bool {
    match remark {
        Remark::Loop => state.turns.circle().is_some(),
        Remark::Unfinished => state.unfinished_since.is_some_and(|since| now.since(since) >= OVERDUE),
        Remark::Early => state.is_finalized_early,
        Remark::Left => {
            state.left.is_some() && state.stays_since.is_some_and(|since| now.since(since) >= OVERDUE)
        }
        Remark::Dropped => state.dropped.is_some(),
    }
}

/// Returns it in words.
fn what(remark: Remark, controller: &Controller, state: &KeyState) -> String {
    let text = match remark {
        Remark::Loop => {
            let circle = state.turns.circle().map(|what| controller.circle(what)).unwrap_or_default();
            format!(
                "its hook asks for something else each time it runs, so it runs less and less often: {circle}"
            )
        }
        Remark::Unfinished => format!(
            "it is being deleted, and for {} minutes its hook ends well and does not say that it is finalized",
            OVERDUE.as_secs() / 60
        ),
        Remark::Early => {
            "its hook wrote finalized: true, which has no effect: the object is not being deleted".to_owned()
        }
        Remark::Left => {
            let left = state.left.as_ref();
            let (finalizer, by) = left.map(|left| (&*left.finalizer, &*left.by)).unwrap_or_default();
            format!(
                "it is being deleted, and for {} minutes it stays by its finalizer {finalizer}, which binding {by} added that is not there",
                OVERDUE.as_secs() / 60
            )
        }
        Remark::Dropped => state.dropped.clone().unwrap_or_default(),
    };
    text.chars().take(LONGEST_MESSAGE).collect()
}

impl Controller {
    /// Returns what goes round in circles in words.
    pub(super) fn circle(&self, what: &What) -> String {
        let name = |child| shown(&self.binding, child);
        match what {
            What::Place(child, place) => format!("{} differs at {place}", name(child)),
            What::Again(child) => format!("{} is made and removed again and again", name(child)),
            What::Swap(made, removed) => {
                format!("{} is made and {} is removed, others the next time", name(made), name(removed))
            }
        }
    }

    /// Tells of what is so now, and was not before.
    pub(super) fn tell_remarks(&mut self, cx: &mut Context, key: &ReconcileKey) {
        let Some(state) = self.keys.get(&key.object) else { return };
        let is_new = |remark: &Remark| applies(*remark, state, cx.now) != state.told.contains(remark);
        let news: Vec<Remark> = Remark::ALL.into_iter().filter(is_new).collect();
        for remark in news {
            self.tell(cx, key, remark);
        }
    }

    fn tell(&mut self, cx: &mut Context, key: &ReconcileKey, remark: Remark) {
        let (object, scope) = (self.reference(&key.object), self.id.hook.scope.clone());
        let Some(what) = self.keys.get(&key.object).map(|state| what(remark, self, state)) else { return };
        let Some(state) = self.keys.get_mut(&key.object) else { return };
        let module = scope.module().cloned();
        if state.told.remove(&remark) {
            if remark == Remark::Loop {
                let message = "its hook says the same again".to_owned();
                let (warning, reason) = (false, "ReconcileRecovered");
                cx.push(Effect::Announce(Announcement {
                    module,
                    source: None,
                    object,
                    warning,
                    reason,
                    message,
                }));
            }
            return;
        }
        state.told.insert(remark);
        cx.notify(Notice::Warned { scope, message: format!("{key}: {what}; {}", remark.advice()) });
        let (warning, reason, message) = (true, remark.reason(), what);
        cx.push(Effect::Announce(Announcement { module, source: None, object, warning, reason, message }));
    }

    /// Tells of deleted objects whose hook did not say for too long that they are finalized.
    pub(super) fn tell_overdue(&mut self, cx: &mut Context) {
        while let Some((at, _)) = self.overdue.first()
            && *at <= cx.now
            && let Some((_, object)) = self.overdue.pop_first()
        {
            let controller = Arc::clone(&self.id);
            self.tell_remarks(cx, &ReconcileKey { controller, object });
        }
    }

    /// Returns how an Event refers to an object, if it is still there.
    pub(super) fn reference(&self, key: &Key) -> Option<ObjectReference> {
        let parent = self.parent(key)?;
        Some(ObjectReference {
            api_version: parent.kind.api_version.clone(),
            kind: parent.kind.kind.clone(),
            key: key.clone(),
            uid: parent.metadata.uid.to_string(),
        })
    }

    /// Adds all remarks, for people.
    pub(super) fn add_remarks(&self, all: &mut Vec<RemarkView>, now: Time) {
        for (key, state) in &self.keys {
            let remarks = Remark::ALL.into_iter().filter(|remark| applies(*remark, state, now));
            all.extend(remarks.map(|remark| RemarkView {
                about: format!("{} {key}", self.id.kind),
                what: what(remark, self, state),
                advice: remark.advice().to_owned(),
                module: self.id.hook.scope.module().cloned(),
            }));
        }
    }
}

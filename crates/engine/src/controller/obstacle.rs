//! Tells on an object that its hook can't run, since a kind that the binding names does not exist, or may not be listed.

use std::sync::Arc;

use super::key_state::{Answer, Obstacle, Pass};
use super::observed::{Metadata, value};
use super::progress::{Go, UNTIL_SEEN, failed};
use super::single::Controller;
use super::{patches, status};
use crate::config::Config;
use crate::context::Context;
use crate::effect::{Announcement, Effect};
use crate::failure::FailureKind;
use crate::hook::snapshot::{Item, Key};
use crate::queue::Reason;
use crate::reconcile::Step;
use crate::time::Time;

impl Controller {
    /// Returns how the work on a key goes on that can't begin, or that could not until now; nothing if it begins.
    pub(super) fn held_up(
        &mut self,
        config: &Config,
        cx: &mut Context,
        key: &Key,
        obstacle: Option<Reason>,
    ) -> Option<Go> {
        match obstacle {
            Some(reason) => Some(self.obstructed(config, cx, key, &reason)),
            None => self.unobstructed(cx, key),
        }
    }

    /// Ends the work on a key that can't begin. What a person may have to do something about is an Event and a condition of the
    /// object, if it lasts: while modules start, their kinds come one after the other.
    fn obstructed(&mut self, config: &Config, cx: &mut Context, key: &Key, reason: &Reason) -> Go {
        let wait = Step::Wait(reason.to_string());
        let (why, message) = match reason {
            Reason::Kind(kind) => (status::KIND_MISSING, format!("kind {kind} does not exist yet")),
            Reason::Right(kind) => {
                (status::RIGHT_MISSING, format!("the operator may not list and watch {kind}"))
            }
            Reason::BrokenVersion(_)
            | Reason::EarlierRun
            | Reason::Finalizing { .. }
            | Reason::Hooks
            | Reason::LateList(_)
            | Reason::List(_)
            | Reason::Modules(_)
            | Reason::Parked(_)
            | Reason::Rate { .. }
            | Reason::Slot
            | Reason::Registry
            | Reason::Synchronization(_) => return Go::Stop(Pass::Idle, wait),
        };
        let told_at = *self.obstructed_since.get_or_insert(cx.now) + reason.patience();
        if cx.now < told_at {
            self.look_at = Some(self.look_at.map_or(told_at, |at| at.min(told_at)));
            return Go::Stop(Pass::Idle, wait);
        }
        let Some(state) = self.keys.get_mut(key) else { return Go::Stop(Pass::Idle, wait) };
        if state.obstacle.announced.as_ref() != Some(&message) {
            let written_to = state.obstacle.written_to.take();
            state.obstacle = Obstacle { announced: Some(message.clone()), is_marked: false, written_to };
            self.announce(cx, key, (true, "ReconcileWaiting"), message.clone());
        }
        let now = config.time_of_day(cx.now);
        self.marked(cx, key, Some((why, &message)), &now).unwrap_or(Go::Stop(Pass::Idle, wait))
    }

    /// Takes back what was told of an obstacle that is none any more. Returns how the work goes on if that has to be written.
    fn unobstructed(&mut self, cx: &mut Context, key: &Key) -> Option<Go> {
        if self.obstacle(false).is_none() {
            (self.obstructed_since, self.look_at) = (None, None);
        }
        let state = self.keys.get_mut(key)?;
        if state.obstacle.announced.take().is_some() {
            state.obstacle.is_marked = false;
            let message = "what it waited for is there".to_owned();
            self.announce(cx, key, (false, "ReconcileRecovered"), message);
        }
        self.marked(cx, key, None, "")
    }

    /// Writes the condition, or removes it. Returns nothing if there is nothing to write.
    fn marked(&mut self, cx: &mut Context, key: &Key, why: Option<(&str, &str)>, now: &str) -> Option<Go> {
        let obstacle = &self.keys.get(key)?.obstacle;
        if obstacle.is_marked {
            return None;
        }
        let written_to = obstacle.written_to.clone();
        let differs = |item: &Arc<Item>| {
            let is_clean = why.is_none() && !may_be_stalled(item);
            if is_clean { None } else { status::stalled(&value(item), why, now) }
        };
        let change = self.item(key).and_then(differs);
        let version = |metadata: &Metadata| metadata.resource_version.clone();
        let Some((change, parent)) = change.and_then(|change| Some((change, self.parent(key)?))) else {
            // One that is not seen yet has to go as soon as it is.
            let is_marked = written_to.is_none() || written_to != self.metadata_of(key).map(version);
            self.keys.get_mut(key)?.obstacle.is_marked = is_marked;
            return None;
        };
        let version = Some(version(parent.metadata));
        let patch = patches::set_status(parent.kind, key, parent.metadata, &change);
        let step = self.write(cx, vec![patch]);
        self.keys.get_mut(key)?.obstacle.written_to = version;
        Some(Go::Stop(Pass::Stalling, step))
    }

    /// Goes on after the condition was written, or removed. A kind may have no conditions, so one that is refused is not tried
    /// again; but one that is there has to go when it is true no more.
    pub(super) fn stalled(&mut self, key: &Key, answer: Option<Answer>) -> Go {
        let failure = failed(answer);
        let is_conflict = failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Conflict);
        let is_there = self.item(key).is_some_and(|item| may_be_stalled(item));
        let Some(state) = self.keys.get_mut(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        let is_left = state.obstacle.announced.is_none() && is_there;
        if let Some(failure) = failure.filter(|_| is_left && !is_conflict) {
            return Go::Stop(Pass::Idle, Step::Failed(failure));
        }
        state.obstacle.is_marked |= !is_conflict;
        // What is written is seen soon; the hook is to be shown that.
        Go::Stop(Pass::Idle, Step::Later(UNTIL_SEEN))
    }

    /// Returns whether its keys have to look now, which is said once.
    pub(super) fn is_look_due(&mut self, now: Time) -> bool {
        self.look_at.take_if(|at| *at <= now).is_some()
    }

    fn announce(
        &self,
        cx: &mut Context,
        key: &Key,
        (warning, reason): (bool, &'static str),
        message: String,
    ) {
        let Some(object) = self.reference(key) else { return };
        let (module, object) = (self.id.hook.scope.module().cloned(), Some(object));
        cx.push(Effect::Announce(Announcement { module, source: None, object, warning, reason, message }));
    }
}

/// Returns whether an object may have the condition.
fn may_be_stalled(item: &Item) -> bool {
    status::may_be_stalled(item.object().unwrap_or_default())
}

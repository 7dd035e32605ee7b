//! Watches that do not work: they are recorded and reported, and after a minute announced to people.

use super::watch_events::look_again;
use super::{Lower, Modules};
use crate::binding::Restored;
use crate::failure::{Failure, FailureKind};
use crate::name::{HookId, MonitorId};
use crate::notice::Notice;
use crate::view::span;

impl Modules {
    /// Records and reports that a watch broke. The adapter goes on trying.
    pub(crate) fn watch_failed(&mut self, lower: &mut Lower<'_>, id: MonitorId, mut failure: Failure) {
        failure = lower.configuration.told(failure, None, None);
        let Some(users) = lower.bindings.users(id) else { return };
        let described = self.described(users.iter());
        if failure.kind == FailureKind::HookOutput {
            failure = failure.prefaced(&described);
            failure.advice.get_or_insert_with(|| {
                "correct the jqFilter of the binding, or the object that it does not work on".to_owned()
            });
        }
        let hooks = users.iter().map(|key| key.hook.clone()).collect();
        let obstacle = lower.bindings.obstacle(id);
        let lasting = lower.bindings.watch_failed(id, failure.clone(), lower.cx.now);
        if lower.bindings.obstacle(id) != obstacle {
            look_again(lower, &hooks);
        }
        if let Some((kind, broken_for)) = lasting {
            let message = format!(
                "the watch of {kind} is broken for {}, so that its hooks see no changes ({described}): {}",
                span(broken_for),
                failure.for_everybody()
            );
            let message = without_values(lower, &message);
            if self.announcements.watch_broke(lower.cx, message) {
                lower.bindings.watch_announced(id);
            }
        }
        lower.cx.notify(Notice::WatchFailed { monitor: Some(id), failure });
    }

    /// Records and reports that a watch that had failed works.
    pub(crate) fn watch_restored(&mut self, lower: &mut Lower<'_>, id: MonitorId) {
        if let Some((kind, restored)) = lower.bindings.watch_restored(id, lower.cx.now) {
            self.report_restored(lower, kind, restored);
        }
    }

    /// Records and reports that a watch of the operator itself broke, or works again.
    pub(crate) fn own_watch_changed(
        &mut self,
        lower: &mut Lower<'_>,
        watch: String,
        failure: Option<Failure>,
    ) {
        let now = lower.cx.now;
        let Some(failure) = failure else {
            if let Some(restored) = lower.bindings.own_watch_restored(&watch, now) {
                self.report_restored(lower, watch, restored);
            }
            return;
        };
        let failure = lower.configuration.told(failure, None, None);
        if let Some(broken_for) = lower.bindings.own_watch_failed(&watch, failure.clone(), now) {
            let message = format!(
                "the watch of {watch} is broken for {}: {}",
                span(broken_for),
                failure.for_everybody()
            );
            let message = without_values(lower, &message);
            if self.announcements.watch_broke(lower.cx, message) {
                lower.bindings.own_watch_announced(&watch);
            }
        }
        let failure = failure.prefaced(&format!("watch of {watch}"));
        lower.cx.notify(Notice::WatchFailed { monitor: None, failure });
    }

    /// Writes a Kubernetes Event about a webhook that fails or denies everything, or does not any more.
    pub(crate) fn webhook_changed(
        &mut self,
        lower: &mut Lower<'_>,
        hook: &HookId,
        (is_warning, message): (bool, &str),
    ) {
        let message = without_values(lower, message);
        self.announcements.webhook_changed(lower.cx, hook.scope.module(), (is_warning, message));
    }

    fn report_restored(&mut self, lower: &mut Lower<'_>, watch: String, restored: Restored) {
        let Restored { broken_for, was_announced } = restored;
        if was_announced {
            let message = format!("the watch of {watch} works again; it was broken for {}", span(broken_for));
            let message = without_values(lower, &message);
            self.announcements.watch_restored(lower.cx, message);
        }
        lower.cx.notify(Notice::WatchRestored { watch, broken_for });
    }
}

fn without_values(lower: &Lower<'_>, message: &str) -> String {
    lower.configuration.secrets(None).hide(message).into_owned()
}

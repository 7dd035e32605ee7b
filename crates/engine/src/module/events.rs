//! Kubernetes Events: changes that mean something to a person, few enough to be read.
//!
//! What stays as it was leads to none, so that a start that changes nothing writes nothing.

use std::collections::VecDeque;
use std::time::Duration;

use crate::cause::Cause;
use crate::context::Context;
use crate::effect::{Announcement, Effect};
use crate::name::ModuleName;
use crate::time::Time;

/// How many Events a module may cause within [`WINDOW`], and how many all broken watches together.
const LIMIT: usize = 10;
/// How many Events there may be within [`WINDOW`] that are no warnings.
const LIMIT_OF_ALL: usize = 50;
/// How many warnings there may be within [`WINDOW`].
const LIMIT_OF_WARNINGS: usize = 200;
/// The time in which they are counted.
const WINDOW: Duration = Duration::from_mins(10);

/// A change of a module that a person wants to hear of.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, strum::EnumCount)]
pub(super) enum Change {
    /// Its release was installed.
    Installed,
    /// Its release was upgraded.
    Upgraded,
    /// A run of it failed.
    Failed,
    /// A run of it succeeded after one that failed.
    Recovered,
    /// It was switched on.
    Enabled,
    /// It was switched off and is removed.
    Disabled,
    /// Its release is left alone from now on.
    Parked,
    /// Its release is no longer left alone.
    Resumed,
    /// Its directory is gone.
    Orphaned,
    /// Its release took over objects of another one, or fields of another writer.
    TookOver,
}

impl Change {
    /// Every change, in the order in which an Event of a converge counts them.
    const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [
        Self::Installed,
        Self::Upgraded,
        Self::Enabled,
        Self::Disabled,
        Self::Failed,
        Self::Recovered,
        Self::Parked,
        Self::Resumed,
        Self::Orphaned,
        Self::TookOver,
    ];

    /// Returns the reason of its Event if it has one of its own, the word that a converge counts it by, and whether it is a warning.
    fn words(self) -> (Option<&'static str>, &'static str, bool) {
        match self {
            // A first start installs all modules: the Event of its converge says how many.
            Self::Installed => (None, "installed", false),
            Self::Upgraded => (Some("ModuleUpgraded"), "upgraded", false),
            Self::Failed => (Some("ModuleFailed"), "failed", true),
            Self::Recovered => (Some("ModuleRecovered"), "recovered", false),
            Self::Enabled => (Some("ModuleEnabled"), "switched on", false),
            Self::Disabled => (Some("ModuleDisabled"), "switched off", false),
            Self::Parked => (Some("ModuleParked"), "parked", true),
            Self::Resumed => (Some("ModuleResumed"), "resumed", false),
            Self::Orphaned => (Some("ModuleOrphaned"), "orphaned", true),
            Self::TookOver => (Some("ObjectsTakenOver"), "took objects over", true),
        }
    }
}

/// Which Events there were lately.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    /// When, in the last [`WINDOW`].
    times: VecDeque<Time>,
}

impl Recent {
    /// Returns whether there is room for an Event at `now`.
    fn has_room(&mut self, limit: usize, now: Time) -> bool {
        while self.times.front().is_some_and(|at| now.since(*at) >= WINDOW) {
            self.times.pop_front();
        }
        self.times.len() < limit
    }
}

/// How many Events of one sort there were lately, and how many there may be.
#[derive(Clone, Debug)]
struct Sort {
    recent: Recent,
    limit: usize,
}

impl Sort {
    fn new(limit: usize) -> Self {
        Self { recent: Recent::default(), limit }
    }

    /// Takes note of an Event of `own` at `now`, if there is room for one here and there.
    fn admit(&mut self, own: &mut Recent, now: Time) -> bool {
        // Both are asked before one of them counts: who has had too many takes no room from others.
        let has_room = self.recent.has_room(self.limit, now) && own.has_room(LIMIT, now);
        if has_room {
            self.recent.times.push_back(now);
            own.times.push_back(now);
        }
        has_room
    }
}

/// Which Events about one module were written.
#[derive(Clone, Debug, Default)]
pub(super) struct Announced {
    recent: Recent,
    /// What was written last.
    last: String,
    /// How many changes led to no Event since.
    left_out: usize,
}

/// Which Events were written, and what a converge changed.
#[derive(Clone, Debug)]
pub(super) struct Announcements {
    news: Sort,
    warnings: Sort,
    broken_watches: Recent,
    restored_watches: Recent,
    webhooks: Recent,
    /// How many changes there were in the converge that is under way, by what they were.
    changes: [usize; <Change as strum::EnumCount>::COUNT],
}

impl Default for Announcements {
    fn default() -> Self {
        Self {
            news: Sort::new(LIMIT_OF_ALL),
            warnings: Sort::new(LIMIT_OF_WARNINGS),
            broken_watches: Recent::default(),
            restored_watches: Recent::default(),
            webhooks: Recent::default(),
            changes: Default::default(),
        }
    }
}

impl Announcements {
    /// Announces a change of a module, unless there were too many lately.
    pub(super) fn announce(
        &mut self,
        cx: &mut Context,
        (module, announced): (&ModuleName, &mut Announced),
        change: Change,
        message: String,
    ) {
        if message == announced.last {
            return;
        }
        if let Some(count) = self.changes.get_mut(change as usize) {
            *count += 1;
        }
        let (Some(reason), _, warning) = change.words() else { return };
        let sort = if warning { &mut self.warnings } else { &mut self.news };
        if !sort.admit(&mut announced.recent, cx.now) {
            announced.left_out += 1;
            return;
        }
        announced.last.clone_from(&message);
        let message = match std::mem::take(&mut announced.left_out) {
            0 => message,
            left_out => format!("{message} ({left_out} changes before it have no Event)"),
        };
        let module = Some(module.clone());
        cx.push(Effect::Announce(Announcement {
            module,
            source: None,
            object: None,
            warning,
            reason,
            message,
        }));
    }

    /// Announces that a watch is broken. Returns whether it did: many break together, and status has all of them.
    pub(super) fn watch_broke(&mut self, cx: &mut Context, message: String) -> bool {
        let is_admitted = self.warnings.admit(&mut self.broken_watches, cx.now);
        if is_admitted {
            announce(cx, true, "WatchBroken", message);
        }
        is_admitted
    }

    /// Announces that a watch works again of which was announced that it did not, unless there were too many lately.
    pub(super) fn watch_restored(&mut self, cx: &mut Context, message: String) {
        if self.news.admit(&mut self.restored_watches, cx.now) {
            announce(cx, false, "WatchRestored", message);
        }
    }

    /// Announces that a webhook fails or denies everything, or does not any more, unless there were too many lately.
    pub(super) fn webhook_changed(
        &mut self,
        cx: &mut Context,
        module: Option<&ModuleName>,
        (warning, message): (bool, String),
    ) {
        let sort = if warning { &mut self.warnings } else { &mut self.news };
        if sort.admit(&mut self.webhooks, cx.now) {
            let reason = if warning { "WebhookFailed" } else { "WebhookRecovered" };
            let (module, source, object) = (module.cloned(), None, None);
            cx.push(Effect::Announce(Announcement { module, source, object, warning, reason, message }));
        }
    }

    /// Forgets what changed while no converge was under way.
    pub(super) fn forget_changes(&mut self) {
        self.changes = Default::default();
    }

    /// Announces the end of a converge that took this long, if anything changed.
    pub(super) fn converge_ended(
        &mut self,
        cx: &mut Context,
        generation: u64,
        took: Duration,
        cause: &Cause,
    ) {
        let counts = std::mem::take(&mut self.changes);
        let changed = |change: &Change| counts.get(*change as usize).copied().filter(|count| *count > 0);
        let words = |change: Change| Some(format!("{} {}", changed(&change)?, change.words().1));
        let words: Vec<String> = Change::ALL.into_iter().filter_map(words).collect();
        if words.is_empty() {
            return;
        }
        let message = format!(
            "converge {generation} ended after {:.1} s, modules: {}; because: {}",
            took.as_secs_f64(),
            words.join(", "),
            cause.links().first().copied().unwrap_or_default()
        );
        announce(cx, false, "ConvergeFinished", message);
    }
}

/// Announces what is about no single module.
fn announce(cx: &mut Context, warning: bool, reason: &'static str, message: String) {
    cx.push(Effect::Announce(Announcement {
        module: None,
        source: None,
        object: None,
        warning,
        reason,
        message,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(times: impl IntoIterator<Item = (u64, usize)>, change: Change) -> Vec<String> {
        let (mut cx, mut all) = (Context::default(), Announcements::default());
        let mut of_modules: Vec<Announced> = vec![Announced::default(); 1_000];
        for (n, (seconds, module)) in times.into_iter().enumerate() {
            cx.now = Time::from_start(Duration::from_secs(seconds));
            let about = (&ModuleName::from("web"), &mut of_modules[module]);
            all.announce(&mut cx, about, change, format!("change {n}"));
        }
        let message = |effect| if let Effect::Announce(told) = effect { Some(told.message) } else { None };
        cx.out.take().into_iter().filter_map(message).collect()
    }

    #[test]
    fn a_module_that_flaps_has_ten_events_in_ten_minutes() {
        let told = announced((0..30).map(|n| (n, 0)).chain([(700, 0)]), Change::Recovered);
        assert_eq!(told.len(), LIMIT + 1);
        assert_eq!(told.last().unwrap(), "change 30 (20 changes before it have no Event)");
    }

    #[test]
    fn a_thousand_modules_have_few_events_together() {
        let at_once = || (0..1_000).map(|n| (0, n));
        assert_eq!(announced(at_once(), Change::Upgraded).len(), LIMIT_OF_ALL);
        assert_eq!(announced(at_once(), Change::Failed).len(), LIMIT_OF_WARNINGS);
    }

    #[test]
    fn a_module_that_flaps_takes_no_room_from_others() {
        let flaps = (0..1_000).map(|_| (0, 0));
        let told = announced(flaps.chain((1..=20).map(|n| (0, n))), Change::Upgraded);
        assert_eq!(told.len(), LIMIT + 20);
    }

    #[test]
    fn broken_watches_count_with_the_warnings_of_modules_and_have_a_limit_of_their_own() {
        let (mut cx, mut all) = (Context::default(), Announcements::default());
        let broke = |all: &mut Announcements, cx: &mut Context| {
            (0..LIMIT_OF_WARNINGS).filter(|n| all.watch_broke(cx, n.to_string())).count()
        };
        assert_eq!(broke(&mut all, &mut cx), LIMIT);
        let mut of_modules = vec![Announced::default(); LIMIT_OF_WARNINGS];
        for module in &mut of_modules {
            all.announce(&mut cx, (&ModuleName::from("web"), module), Change::Failed, "failed".to_owned());
        }
        assert_eq!(cx.out.take().len(), LIMIT_OF_WARNINGS);
        cx.now = Time::from_start(WINDOW);
        assert_eq!(broke(&mut all, &mut cx), LIMIT);
    }

    #[test]
    fn every_change_is_counted_once() {
        let mut places = Change::ALL.map(|change| change as usize);
        places.sort_unstable();
        assert!(places.iter().enumerate().all(|(n, place)| n == *place), "{places:?}");
    }
}

//! How webhooks do: which of them fail, and which deny everything. Who asks them sees it; this is for those who look after them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::failure::Failure;
use crate::name::HookId;
use crate::time::Time;
use crate::view::WebhookStreakView;

/// How many requests in a row a webhook denies until a person should look at it.
const DENIALS: u32 = 10;

/// The webhooks whose last answers were not the usual ones.
#[derive(Debug, Default)]
pub(super) struct Health {
    streaks: BTreeMap<Arc<str>, Streak>,
    news: Vec<WebhookChange>,
}

/// Answers in a row that let nothing pass.
#[derive(Debug)]
struct Streak {
    hook: HookId,
    count: u32,
    since: Time,
    /// Why there was no answer of the hook; `None` if it denied the requests.
    failure: Option<Arc<Failure>>,
    /// Whether objects are converted.
    is_conversion: bool,
}

/// What is to be told of a webhook.
#[derive(Debug)]
pub(crate) struct WebhookChange {
    pub(crate) hook: HookId,
    pub(crate) is_warning: bool,
    /// One line for people. It quotes no values.
    pub(crate) message: String,
}

impl Health {
    /// Records that a request passed.
    pub(super) fn passed(&mut self, webhook: &str) {
        let Some(Streak { hook, count, failure, .. }) = self.streaks.remove(webhook) else { return };
        if failure.is_some() || count >= DENIALS {
            let message = format!("webhook {webhook} of hook {hook} lets requests pass again");
            self.news.push(WebhookChange { hook, is_warning: false, message });
        }
    }

    /// Records that a hook denied a request.
    pub(super) fn denied(&mut self, webhook: &Arc<str>, hook: &HookId, now: Time) {
        let streak = self.streak(webhook, hook, now, false);
        streak.count = streak.count.saturating_add(1);
        if streak.count == DENIALS {
            let message = format!("webhook {webhook} of hook {hook} denied {DENIALS} requests in a row");
            self.news.push(WebhookChange { hook: hook.clone(), is_warning: true, message });
        }
    }

    /// Records why a hook has no answer, for an admission or for a conversion.
    pub(super) fn failed(
        &mut self,
        (webhook, is_conversion): (&Arc<str>, bool),
        hook: &HookId,
        now: Time,
        failure: Arc<Failure>,
    ) {
        let streak = self.streak(webhook, hook, now, true);
        streak.is_conversion = is_conversion;
        streak.count = streak.count.saturating_add(1);
        let is_known = streak.failure.as_ref().is_some_and(|known| known.repeats(&failure));
        let message = (!is_known)
            .then(|| format!("webhook {webhook} of hook {hook} has no answer: {}", failure.for_everybody()));
        streak.failure = Some(failure);
        self.news.extend(message.map(|message| WebhookChange {
            hook: hook.clone(),
            is_warning: true,
            message,
        }));
    }

    /// Returns the streak of a webhook. Failures and denials are different ones.
    fn streak(&mut self, webhook: &Arc<str>, hook: &HookId, now: Time, is_failing: bool) -> &mut Streak {
        let begin =
            || Streak { hook: hook.clone(), count: 0, since: now, failure: None, is_conversion: false };
        let streak = self.streaks.entry(Arc::clone(webhook)).or_insert_with(begin);
        if streak.count > 0 && streak.failure.is_some() != is_failing {
            *streak = begin();
        }
        streak
    }

    /// Forgets all webhooks that are not served any more.
    pub(super) fn retain(&mut self, is_served: impl Fn(&str) -> bool) {
        self.streaks.retain(|webhook, _| is_served(webhook));
    }

    /// Takes out what is to be told.
    pub(super) fn take_news(&mut self) -> Vec<WebhookChange> {
        std::mem::take(&mut self.news)
    }

    /// Returns the webhooks that a person should look at.
    pub(super) fn views(&self, now: Time) -> Vec<WebhookStreakView> {
        let is_long = |streak: &&Streak| streak.failure.is_some() || streak.count >= DENIALS;
        let of = |(webhook, streak): (&Arc<str>, &Streak)| WebhookStreakView {
            webhook: Arc::clone(webhook),
            hook: streak.hook.clone(),
            count: streak.count,
            since: now.since(streak.since),
            failure: streak.failure.clone(),
            is_conversion: streak.is_conversion,
        };
        self.streaks.iter().filter(|(_, streak)| is_long(streak)).map(of).collect()
    }

    /// Returns how many webhooks are kept.
    pub(super) fn entries(&self) -> usize {
        self.streaks.len() + self.news.len()
    }
}

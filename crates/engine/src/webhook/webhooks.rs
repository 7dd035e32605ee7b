//! All webhooks: what is served, what the API server knows of it, and the reviews that it asks for.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::health::WebhookChange;
use super::index::{Target, WebhookIndex};
use super::registrar::{Registered, Registrar, Wanted};
use super::response::Response;
use super::review::{Answer, Review};
use super::reviews::{Answered, Reviews, Running, Stage, refuse};
use crate::config::Config;
use crate::configuration::Prepared;
use crate::context::Context;
use crate::effect::{Effect, RefusalReason, ReviewRefusal};
use crate::event::{HookOutput, WebhookCertificate};
use crate::failure::Failure;
use crate::hook::context::required_bindings;
use crate::hook::snapshot::{Item, Key, Objects};
use crate::module::{Lower, Modules, Standing};
use crate::name::{HookId, MonitorId, ReviewId, RunId, Scope};
use crate::notice::{Notice, ReviewEnd};
use crate::queue::Reason;
use crate::time::Time;
use crate::view::{NOT_FOLLOWED, QueueView, WebhooksView};

/// How long the API server waits for a conversion.
const CONVERSION: Duration = Duration::from_secs(30);

/// What of the API server's time the answer's way back takes at most.
const WAY_BACK: Duration = Duration::from_millis(100);

/// Where the operator is in its life, as far as webhooks are concerned.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum WebhookStage {
    /// Another operator leads. Reviews are answered, and the API server is told nothing.
    #[default]
    Standby,
    /// It leads, and is not ready.
    Starting,
    /// It is ready.
    Ready,
    /// It led, and ends.
    Ending,
    /// It ends and never led.
    Leaving,
}

impl WebhookStage {
    fn is_ending(self) -> bool {
        matches!(self, Self::Ending | Self::Leaving)
    }

    fn leads(self) -> bool {
        matches!(self, Self::Starting | Self::Ready | Self::Ending)
    }
}

/// All webhooks.
#[derive(Debug, Default)]
pub(crate) struct Webhooks {
    config: Arc<Config>,
    index: WebhookIndex,
    /// The definitions for which any module has a conversion, also one that is off, as far as all have said that. Once the operator is
    /// ready those count that are on.
    converted: Option<BTreeSet<String>>,
    /// Which hooks the index is of, and at what stage.
    indexed: Option<(u64, WebhookStage)>,
    /// What was told that can't be served.
    told_problems: Vec<(HookId, String)>,
    /// At what stage the registrar was asked last.
    asked: Option<WebhookStage>,
    registrar: Registrar,
    reviews: Reviews,
    /// When the certificate is not valid any more.
    certificate_ends: Option<Time>,
    /// Why our own certificate can't be followed in its Secret.
    certificate_failure: Option<Arc<Failure>>,
}

impl Webhooks {
    /// Returns no webhooks.
    pub(crate) fn new(config: Arc<Config>) -> Self {
        Self { config, ..Self::default() }
    }

    /// Has everything follow from the hooks in service. It costs nothing while they are the same.
    ///
    /// Until the operator is ready and when it ends, a webhook that does not answer holds up nobody.
    pub(crate) fn advance(&mut self, modules: &Modules, lower: &mut Lower<'_>, stage: WebhookStage) {
        let config = Arc::clone(&self.config);
        let Some(webhooks) = &config.webhooks else { return };
        let (is_standby, is_ending) = (stage == WebhookStage::Standby, stage.is_ending());
        let wanted = (modules.in_service(), stage);
        if self.indexed != Some(wanted) && !is_ending {
            self.indexed = Some(wanted);
            self.index = WebhookIndex::default();
            for (hook, standing) in modules.webhooks() {
                let is_in_service = standing == Standing::InService;
                // Once the operator is ready, those are wanted that are in service.
                if is_in_service || stage != WebhookStage::Ready {
                    self.index.add_admissions(hook, is_in_service && !is_standby);
                }
                self.index.add_conversions(hook, standing != Standing::Unknown);
            }
            self.index.is_partial = modules.has_unread_hooks();
            self.converted = (stage == WebhookStage::Starting).then(|| modules.converted()).flatten();
            self.tell_problems(lower.cx);
            self.reviews.health.retain(|webhook| self.index.has_name(webhook));
            self.registrar.mark_dirty();
        }
        let is_ignoring = stage != WebhookStage::Ready;
        let are_complete = || modules.are_complete(lower.configuration);
        if self.asked.replace(stage) != Some(stage) {
            self.registrar.mark_dirty();
            if is_ending {
                self.registrar.try_now();
            }
        }
        let wanted = Wanted {
            webhooks,
            index: &self.index,
            is_ignoring,
            is_ending,
            registers: stage.leads(),
            keeps_others: self.index.is_partial && stage == WebhookStage::Starting,
            may_sweep: stage == WebhookStage::Ready && !self.index.is_partial && are_complete(),
            converted: self.converted.as_ref().filter(|_| stage == WebhookStage::Starting && are_complete()),
        };
        self.registrar.advance(lower.cx, lower.bindings, &config, wanted);
        self.reviews.expire(lower.cx);
        if is_ending {
            self.reviews.refuse_waiting(lower.cx);
        } else {
            self.start_hooks(modules, lower, webhooks.concurrency, is_standby);
        }
    }

    /// Tells what can't be served, once: other hooks come and go.
    fn tell_problems(&mut self, cx: &mut Context) {
        if self.index.to_come().next().is_some() {
            return;
        }
        let problems = self.index.problems();
        for (hook, problem) in problems.iter().filter(|new| !self.told_problems.contains(new)) {
            let scope = hook.scope.clone();
            cx.notify(Notice::Warned { scope, message: problem.clone() });
        }
        self.told_problems = problems.to_vec();
    }

    /// Starts the hooks of reviews, as many as may run at a time.
    fn start_hooks(&mut self, modules: &Modules, lower: &mut Lower<'_>, most: usize, is_standby: bool) {
        let mut passed: Option<(Time, ReviewId)> = None;
        self.reviews.due = None;
        while self.reviews.running.len() < most {
            let from = passed.map_or(Bound::Unbounded, Bound::Excluded);
            let next = self.reviews.waiting.range((from, Bound::Unbounded)).next();
            let Some(key) = next.map(|(key, _)| *key) else { return };
            passed = Some(key);
            let Some(review) = self.reviews.waiting.get(&key) else { return };
            let Some((hook, context, binding_type)) = review.next(&self.index, modules) else {
                if let Some(review) = self.reviews.waiting.remove(&key) {
                    refuse(lower.cx, &review, ReviewEnd::Refused, unknown(&review.webhook));
                }
                continue;
            };
            if (is_standby || review.is_early(&self.index))
                && !required_bindings(&hook.spec, std::slice::from_ref(&context)).is_empty()
            {
                if let Some(review) = self.reviews.waiting.remove(&key) {
                    let refusal = needs_snapshots(&review.webhook, is_standby);
                    refuse(lower.cx, &review, ReviewEnd::Refused, refusal);
                }
                continue;
            }
            let patience = review.deadline.since(lower.cx.now);
            // A hook that can't run yet does not hold up others.
            let task = review.task;
            let started = modules.review_run(lower, &hook, (context, binding_type), (task, patience));
            let (run, effect) = match started {
                Ok(started) => started,
                Err(reason) => {
                    let due = if let Reason::Rate { until } = reason { Some(until) } else { None };
                    self.reviews.due = self.reviews.due.into_iter().chain(due).min();
                    continue;
                }
            };
            let (webhook, times) = (Arc::clone(&review.webhook), (review.begun, lower.cx.now));
            let review = self.reviews.waiting.remove(&key);
            let running = Running {
                hook,
                binding: binding_type.as_str(),
                webhook,
                task,
                times,
                stage: Stage::Process,
                review,
                deadline: key.0,
            };
            self.reviews.running.insert(run, running);
            lower.cx.push(effect);
        }
    }

    /// Takes a review of the API server, or refuses it.
    pub(crate) fn requested(
        &mut self,
        cx: &mut Context,
        (id, path): (ReviewId, String),
        body: &Value,
        timeout: Option<Duration>,
        may_work: bool,
    ) {
        let reviewed = self.read(cx, (id, path), body, timeout, may_work);
        match reviewed {
            Err((reason, message)) => {
                cx.push(Effect::AnswerReview { id, outcome: Err(ReviewRefusal { reason, message }) });
            }
            Ok((review, problem)) => match review.answer_now(problem.as_deref()) {
                Some(answer) => self.reviews.answer(cx, &review, None, answer),
                None => self.reviews.wait(review),
            },
        }
    }

    fn read(
        &self,
        cx: &mut Context,
        (id, path): (ReviewId, String),
        body: &Value,
        timeout: Option<Duration>,
        may_work: bool,
    ) -> Result<(Review, Option<String>), (RefusalReason, String)> {
        let most = self.config.webhooks.as_ref().map_or(0, |webhooks| webhooks.waiting);
        if !may_work {
            return Err((RefusalReason::Busy, "the operator does not run".to_owned()));
        }
        let Some(target) = self.index.find(&path) else {
            return Err((RefusalReason::Unknown, format!("no hook answers reviews of {path:?}")));
        };
        if self.reviews.waiting.len() >= most {
            return Err((RefusalReason::Busy, format!("{most} reviews wait already")));
        }
        let configured = match &target {
            Target::Admission(admission) => admission.binding().map_or(CONVERSION, |binding| {
                Duration::from_secs(u64::try_from(binding.timeout_seconds).unwrap_or_default())
            }),
            Target::Conversion(_) => CONVERSION,
        };
        let patience = timeout.unwrap_or(configured).min(configured).saturating_sub(WAY_BACK);
        let (now, task) = (cx.now, cx.ids.task());
        Review::read((id, task, path), body, &target, &self.index, (now, now + patience))
    }

    /// Forgets a review that nobody waits for any more.
    pub(crate) fn abandoned(&mut self, cx: &mut Context, id: ReviewId) {
        self.reviews.abandon(cx, id);
    }

    /// Returns the review that a run is for, if it is for one.
    pub(crate) fn finish(&mut self, run: RunId) -> Option<Answered> {
        self.reviews.finish(run)
    }

    /// Takes the response out of what a hook wrote. What it wrote beside takes no effect if the request is a dry run, if this
    /// operator does not lead, or if its module has not run.
    pub(crate) fn take_response(&self, answered: &Answered, output: &mut HookOutput) -> Response {
        let response = Response::take(output);
        let leads = self.asked.is_some_and(WebhookStage::leads);
        if answered.changes_nothing() || !leads || answered.is_early(&self.index) {
            *output = HookOutput::default();
        }
        response
    }

    /// Goes on when the changes of a hook are carried out.
    pub(crate) fn patching(
        &mut self,
        run: RunId,
        answered: Answered,
        prepared: Prepared,
        response: Response,
    ) {
        self.reviews.go_on(run, answered, Stage::Patching(Box::new((prepared, response))));
    }

    /// Goes on when the change of the ConfigMap of a hook is written.
    pub(crate) fn saving(&mut self, run: RunId, answered: Answered, prepared: Prepared, response: Response) {
        self.reviews.go_on(run, answered, Stage::Saving(Box::new((prepared, response))));
    }

    /// Answers a review whose hook failed.
    pub(crate) fn failed(&mut self, cx: &mut Context, answered: Answered, failure: Failure) {
        let is_early = self.is_not_ready() && answered.is_early(&self.index);
        self.reviews.failed(cx, answered, failure, is_early);
    }

    /// Returns whether the operator leads and has not run all modules yet.
    fn is_not_ready(&self) -> bool {
        self.asked == Some(WebhookStage::Starting)
    }

    /// Answers a review whose hook is through, or has the next hook asked.
    pub(crate) fn succeeded(&mut self, cx: &mut Context, answered: Answered, response: Response) {
        let hook = Arc::clone(&answered.hook);
        let Some(mut review) = answered.into_review() else { return };
        match review.respond(&hook, response) {
            None => self.reviews.wait(review),
            Some(Answer { problem: Some(problem), .. })
                if self.is_not_ready() && review.is_early(&self.index) =>
            {
                self.reviews.unanswered(cx, &review, &hook.id, problem);
            }
            Some(answer) => self.reviews.answer(cx, &review, Some(&hook), answer),
        }
    }

    /// Records that reviews are taken, or why not.
    pub(crate) fn served(
        &mut self,
        cx: &mut Context,
        run: RunId,
        outcome: Result<WebhookCertificate, Failure>,
    ) {
        let config = Arc::clone(&self.config);
        let outcome = outcome.map(|certificate| self.certified(cx, certificate));
        self.registrar.served(cx, &config, run, outcome);
    }

    /// Records that the API server has to trust other certificates.
    pub(crate) fn certificate_renewed(&mut self, cx: &mut Context, certificate: WebhookCertificate) {
        let ca_bundle = self.certified(cx, certificate);
        self.registrar.certificate_renewed(ca_bundle);
    }

    /// Records whether our own certificate is followed in its Secret.
    pub(crate) fn certificate_kept(&mut self, lower: &mut Lower<'_>, outcome: Result<(), Failure>) {
        let Err(failure) = outcome else {
            self.certificate_failure = None;
            return;
        };
        let failure = lower.configuration.told(failure, None, None);
        let message = format!("the certificate of webhooks {NOT_FOLLOWED}: {}", failure.for_everybody());
        lower.cx.notify(Notice::Warned { scope: Scope::Global, message });
        self.certificate_failure = Some(Arc::new(failure));
    }

    /// Records how long the certificate is valid. Returns what the API server has to trust.
    fn certified(&mut self, cx: &mut Context, certificate: WebhookCertificate) -> Arc<str> {
        let WebhookCertificate { ca_bundle, valid_for } = certificate;
        self.certificate_ends = Some(cx.now + valid_for);
        cx.notify(Notice::WebhookCertificateChanged { valid_for });
        ca_bundle
    }

    /// Records that the API server was told, or why not.
    pub(crate) fn registered(&mut self, cx: &mut Context, run: RunId, registered: Registered<'_>) {
        let config = Arc::clone(&self.config);
        self.registrar.registered(cx, &config, run, registered, &self.index);
    }

    /// Returns whether a watch is ours.
    pub(crate) fn owns(&self, monitor: MonitorId) -> bool {
        self.registrar.owns(monitor)
    }

    /// Returns what a watch of ours is about, in words.
    pub(crate) fn watch_title(&self, monitor: MonitorId) -> String {
        self.registrar.watch_title(monitor).to_owned()
    }

    /// Records all objects of a watch of ours.
    pub(crate) fn listed(&mut self, monitor: MonitorId, objects: Objects) {
        self.registrar.listed(monitor, objects);
    }

    /// Records how an object of a watch of ours is now.
    pub(crate) fn object_changed(&mut self, monitor: MonitorId, key: &Key, is_gone: bool, item: &Item) {
        self.registrar.object_changed(monitor, key, is_gone, item);
    }

    /// Returns whether a hook runs that is not in force any more as it was when it began.
    pub(crate) fn runs_replaced_hooks(&self, modules: &Modules) -> bool {
        let processes =
            self.reviews.running.values().filter(|running| matches!(running.stage, Stage::Process));
        let mut hooks = processes.map(|running| &running.hook);
        hooks.any(|hook| modules.loaded_hook(&hook.id).is_none_or(|now| !Arc::ptr_eq(now, hook)))
    }

    /// Ends the processes that still run.
    pub(crate) fn cancel_late_runs(&self, cx: &mut Context) {
        for (run, running) in &self.reviews.running {
            if let Stage::Process = running.stage {
                cx.push(Effect::CancelRun { run: *run });
            }
        }
    }

    /// Returns when something is due.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        let of_reviews = self.reviews.next_deadline();
        of_reviews.into_iter().chain(self.registrar.next_wakeup()).min()
    }

    /// Returns whether nothing is in flight.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.reviews.running.is_empty() && self.registrar.is_at_rest()
    }

    /// Takes out what is to be told of webhooks.
    pub(crate) fn take_news(&mut self) -> Vec<WebhookChange> {
        let mut news = self.reviews.health.take_news();
        news.extend(self.registrar.take_news());
        news
    }

    /// Adds the reviews that are under way, as a queue of their own.
    pub(crate) fn add_queue_view(&self, queues: &mut Vec<QueueView>, now: Time) {
        self.reviews.add_view(queues, now);
    }

    /// Returns a picture.
    pub(crate) fn view(&self, now: Time) -> WebhooksView {
        WebhooksView {
            unserved: self.index.unserved().chain(self.registrar.refused()).collect(),
            failure: self.registrar.last_failure().cloned(),
            running: self.reviews.running.len(),
            waiting: self.reviews.waiting.len(),
            streaks: self.reviews.health.views(now),
            certificate_failure: self.certificate_failure.clone(),
            certificate_ends_in: self.certificate_ends.map(|end| end.since(now)),
        }
    }

    /// Returns how many things are kept by name or number.
    pub(crate) fn entries(&self) -> usize {
        let reviews = self.reviews.waiting.len() + self.reviews.running.len();
        reviews + self.reviews.health.entries() + self.registrar.entries()
    }
}

/// A hook that is to see objects must not be told that there are none.
fn needs_snapshots(webhook: &str, is_standby: bool) -> ReviewRefusal {
    let why = if is_standby { "which a standby does not have" } else { "and its module has not run yet" };
    let message = format!("webhook {webhook} reads snapshots, {why}");
    ReviewRefusal { reason: RefusalReason::Busy, message }
}

fn unknown(webhook: &str) -> ReviewRefusal {
    let message = format!("no hook answers reviews of webhook {webhook} any more");
    ReviewRefusal { reason: RefusalReason::Unknown, message }
}

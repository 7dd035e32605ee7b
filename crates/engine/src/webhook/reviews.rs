//! Reviews that wait for a hook, and those whose hook runs. Those whose time ends first come first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::health::Health;
use super::index::WebhookIndex;
use super::response::Response;
use super::review::{Answer, Review};
use crate::catalog::Hook;
use crate::cause::Cause;
use crate::configuration::Prepared;
use crate::context::Context;
use crate::effect::{Effect, RefusalReason, ReviewRefusal};
use crate::failure::{Failure, FailureKind};
use crate::name::{HookId, ReviewId, RunId, TaskId};
use crate::notice::{Notice, ReviewEnd, TaskType};
use crate::time::Time;
use crate::view::{QueueView, TaskView};

/// The queue in which people see reviews.
const QUEUE: &str = "webhooks";

/// Reviews that wait for a hook, and those whose hook runs.
#[derive(Debug, Default)]
pub(super) struct Reviews {
    pub(super) waiting: BTreeMap<(Time, ReviewId), Review>,
    pub(super) running: BTreeMap<RunId, Running>,
    /// When the first hook may run that may not run now.
    pub(super) due: Option<Time>,
    pub(super) health: Health,
}

/// A review whose hook runs, or whose output is carried out.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) hook: Arc<Hook>,
    pub(super) binding: &'static str,
    pub(super) webhook: Arc<str>,
    pub(super) task: TaskId,
    /// When the review came, and when the hook was started.
    pub(super) times: (Time, Time),
    pub(super) stage: Stage,
    /// The review; `None` when nobody waits for its answer any more.
    pub(super) review: Option<Review>,
    pub(super) deadline: Time,
}

/// How far a run of a hook is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Its process runs.
    Process,
    /// Its changes of objects are carried out.
    Patching(Box<(Prepared, Response)>),
    /// Its change of the ConfigMap is written.
    Saving(Box<(Prepared, Response)>),
}

/// A run of a hook for a review that has come to an end of a stage.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) hook: Arc<Hook>,
    pub(crate) stage: Stage,
    running: Running,
}

impl Reviews {
    /// Puts a review behind those whose time ends before.
    pub(super) fn wait(&mut self, review: Review) {
        self.waiting.insert((review.deadline, review.id), review);
    }

    /// Returns when the time of a review is over.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let running = self.running.values().filter(|running| running.review.is_some());
        let waiting = self.waiting.keys().next().map(|(deadline, _)| *deadline);
        waiting.into_iter().chain(running.map(|running| running.deadline)).chain(self.due).min()
    }

    /// Takes the review out that a run is for.
    pub(super) fn finish(&mut self, run: RunId) -> Option<Answered> {
        let mut running = self.running.remove(&run)?;
        let stage = std::mem::replace(&mut running.stage, Stage::Process);
        Some(Answered { hook: Arc::clone(&running.hook), stage, running })
    }

    /// Goes on with the next stage of a run.
    pub(super) fn go_on(&mut self, run: RunId, answered: Answered, stage: Stage) {
        self.running.insert(run, Running { stage, ..answered.running });
    }

    /// Ends the wait of those whose time is over.
    pub(super) fn expire(&mut self, cx: &mut Context) {
        while let Some(((deadline, _), _)) = self.waiting.first_key_value()
            && *deadline <= cx.now
            && let Some((_, review)) = self.waiting.pop_first()
        {
            self.health.late(&review, cx.now);
            refuse(cx, &review, ReviewEnd::Expired, late(&review.webhook));
        }
        let now = cx.now;
        for (run, running) in &mut self.running {
            if running.deadline <= now
                && let Some(review) = running.review.take()
            {
                if let Stage::Process = running.stage {
                    cx.push(Effect::CancelRun { run: *run });
                }
                self.health.late(&review, now);
                refuse(cx, &review, ReviewEnd::Expired, late(&review.webhook));
            }
        }
    }

    /// Forgets a review that nobody waits for any more; its process is ended.
    pub(super) fn abandon(&mut self, cx: &mut Context, id: ReviewId) {
        let waiting = self.waiting.iter().find(|((_, known), _)| *known == id).map(|(key, _)| *key);
        if let Some(review) = waiting.and_then(|key| self.waiting.remove(&key)) {
            told(cx, &review, ReviewEnd::Abandoned);
        }
        for (run, running) in &mut self.running {
            if running.review.as_ref().is_some_and(|review| review.id == id)
                && let Some(review) = running.review.take()
            {
                if let Stage::Process = running.stage {
                    cx.push(Effect::CancelRun { run: *run });
                }
                told(cx, &review, ReviewEnd::Abandoned);
            }
        }
    }

    /// Answers a review.
    pub(super) fn answer(&mut self, cx: &mut Context, review: &Review, hook: Option<&Hook>, answer: Answer) {
        let Answer { review: answered, end, problem } = answer;
        if let Some(Hook { id, .. }) = hook {
            match (end, problem) {
                (ReviewEnd::Allowed, _) => self.health.passed(&review.webhook),
                (ReviewEnd::Denied, _) => self.health.denied(&review.webhook, id, cx.now),
                (_, Some(failure)) => self.fail(cx, review, id, failure),
                (_, None) => {}
            }
        }
        told(cx, review, end);
        cx.push(Effect::AnswerReview { id: review.id, outcome: Ok(answered) });
    }

    fn fail(&mut self, cx: &mut Context, review: &Review, hook: &HookId, failure: Failure) {
        let webhook = Arc::clone(&review.webhook);
        self.health.failed((&webhook, review.is_conversion()), hook, cx.now, Arc::new(failure.clone()));
        cx.notify(Notice::ReviewFailed { hook: hook.clone(), webhook, failure });
    }

    /// Answers a review whose hook failed. That of a module that has not run yet may lack what that brings: it refuses nothing.
    pub(super) fn failed(&mut self, cx: &mut Context, answered: Answered, failure: Failure, is_early: bool) {
        let Running { hook, review, .. } = answered.running;
        let Some(review) = review else { return };
        if is_early {
            return self.unanswered(cx, &review, &hook.id, failure);
        }
        self.fail(cx, &review, &hook.id, failure);
        let answer = Answer::new(review.fail(&hook), ReviewEnd::Failed);
        self.answer(cx, &review, None, answer);
    }

    /// Gives a review no answer, so that the failure policy decides.
    pub(super) fn unanswered(&mut self, cx: &mut Context, review: &Review, hook: &HookId, failure: Failure) {
        self.fail(cx, review, hook, failure);
        let message = format!("hook {hook} failed, and its module has not run yet");
        refuse(cx, review, ReviewEnd::Failed, ReviewRefusal { reason: RefusalReason::Busy, message });
    }

    /// Adds the reviews that are under way to what waits in queues, as a queue of their own.
    pub(super) fn add_view(&self, queues: &mut Vec<QueueView>, now: Time) {
        let running = self.running.values().map(|running| {
            let Running { hook, binding, webhook, task, times: (begun, started), .. } = running;
            view(*task, (binding, webhook), Some(&hook.id), now.since(*begun), Some(now.since(*started)))
        });
        let waiting = self.waiting.values().map(|review| {
            let title = (review.binding(), &*review.webhook);
            view(review.task, title, review.asked(), now.since(review.begun), None)
        });
        QueueView::add(queues, QUEUE, running.chain(waiting).collect());
    }

    /// Refuses all that wait: the operator ends.
    pub(super) fn refuse_waiting(&mut self, cx: &mut Context) {
        self.due = None;
        for (_, review) in std::mem::take(&mut self.waiting) {
            let refusal =
                ReviewRefusal { reason: RefusalReason::Busy, message: "the operator ends".to_owned() };
            refuse(cx, &review, ReviewEnd::Refused, refusal);
        }
    }
}

impl Answered {
    /// Returns the type of binding.
    pub(crate) fn binding(&self) -> &'static str {
        self.running.binding
    }

    /// Returns whether its hook is not in service, and may come to be.
    pub(super) fn is_early(&self, index: &WebhookIndex) -> bool {
        self.running.review.as_ref().is_some_and(|review| review.is_early(index))
    }

    /// Returns whether nothing is to be changed by what the hook wrote: the request is a dry run, or nobody waits any more.
    pub(super) fn changes_nothing(&self) -> bool {
        self.running.review.as_ref().is_none_or(Review::is_dry_run)
    }

    /// Takes the review out, if anybody waits for its answer.
    pub(super) fn into_review(self) -> Option<Review> {
        self.running.review
    }
}

impl Health {
    /// Records that the time of a review was over.
    fn late(&mut self, review: &Review, now: Time) {
        let Some(hook) = review.asked() else { return };
        let message = late(&review.webhook).message;
        let failure = Arc::new(Failure::new(FailureKind::HookTimeout, message));
        self.failed((&review.webhook, review.is_conversion()), hook, now, failure);
    }
}

/// Returns what people see of a review.
fn view(
    id: TaskId,
    (binding, webhook): (&str, &str),
    hook: Option<&HookId>,
    age: Duration,
    running: Option<Duration>,
) -> TaskView {
    let chain = Cause::outside("the API server asks");
    let module = hook.and_then(|hook| hook.scope.module().cloned());
    let kind = if module.is_some() { TaskType::ModuleHookRun } else { TaskType::GlobalHookRun };
    let name = hook.map(ToString::to_string).unwrap_or_default();
    let description = format!("{kind}:{QUEUE}:{name}:{binding} {webhook}");
    TaskView {
        module,
        hook: hook.cloned(),
        ..TaskView::outside(id, kind, description, chain, (age, running))
    }
}

/// Answers a review without a response.
pub(super) fn refuse(cx: &mut Context, review: &Review, end: ReviewEnd, refusal: ReviewRefusal) {
    told(cx, review, end);
    cx.push(Effect::AnswerReview { id: review.id, outcome: Err(refusal) });
}

fn told(cx: &mut Context, review: &Review, outcome: ReviewEnd) {
    let took = cx.now.since(review.begun);
    let webhook = Arc::clone(&review.webhook);
    cx.notify(Notice::ReviewAnswered { binding: review.binding(), webhook, outcome, took });
}

fn late(webhook: &str) -> ReviewRefusal {
    let message = format!("no hook answered webhook {webhook} in time");
    ReviewRefusal { reason: RefusalReason::Expired, message }
}

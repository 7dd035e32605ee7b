//! Reviews that wait for a hook, and those whose hook runs. Those whose time ends first come first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::conversion::{Rule, difference, text};
use super::index::{Admission, Target, WebhookIndex};
use super::request::{AdmissionReview, ConversionReview};
use crate::catalog::Hook;
use crate::configuration::Prepared;
use crate::context::Context;
use crate::effect::{Effect, RefusalReason, ReviewRefusal};
use crate::event::HookOutput;
use crate::failure::Failure;
use crate::hook::response::{AdmissionResponse, ConversionResponse};
use crate::hook::{AdmissionKind, BindingContext};
use crate::module::Modules;
use crate::name::{ReviewId, RunId};
use crate::notice::{Notice, ReviewEnd};
use crate::task::BindingType;
use crate::time::Time;

/// Reviews that wait for a hook, and those whose hook runs.
#[derive(Debug, Default)]
pub(super) struct Reviews {
    pub(super) waiting: BTreeMap<(Time, ReviewId), Review>,
    pub(super) running: BTreeMap<RunId, Running>,
}

/// A review that has no answer yet.
#[derive(Debug)]
pub(super) struct Review {
    pub(super) id: ReviewId,
    /// The name of the webhook or of the definition.
    pub(super) webhook: Arc<str>,
    pub(super) begun: Time,
    pub(super) deadline: Time,
    pub(super) question: Question,
}

/// What a review asks.
#[derive(Debug)]
pub(super) enum Question {
    Admission { kind: AdmissionKind, path: String, review: AdmissionReview },
    Conversion { review: ConversionReview, steps: VecDeque<Step> },
}

/// One step of a conversion: a hook leads some of the objects into the next version.
#[derive(Debug)]
pub(super) struct Step {
    rule: Rule,
    /// The places of the objects in the review.
    places: Arc<[usize]>,
}

/// A review whose hook runs, or whose output is carried out.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) hook: Arc<Hook>,
    pub(super) binding: &'static str,
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

/// What a hook answered.
#[derive(Debug, Default)]
pub(crate) struct Response {
    admission: Option<Box<AdmissionResponse>>,
    conversion: Option<Box<ConversionResponse>>,
}

/// A run of a hook for a review that has come to an end of a stage.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) hook: Arc<Hook>,
    pub(crate) stage: Stage,
    running: Running,
}

impl Response {
    /// Takes the response out of what a hook wrote.
    pub(super) fn take(output: &mut HookOutput) -> Self {
        Self { admission: output.admission.take(), conversion: output.conversion.take() }
    }
}

impl Review {
    /// Reads a review that was asked for at a path. Returns why no hook can answer it, too, if that is so.
    pub(super) fn read(
        (id, path): (ReviewId, String),
        body: &Value,
        target: &Target,
        index: &WebhookIndex,
        (begun, deadline): (Time, Time),
    ) -> Result<(Self, Option<String>), (RefusalReason, String)> {
        let malformed = |problem| (RefusalReason::Malformed, problem);
        let (webhook, question) = match target {
            Target::Admission(admission) => {
                let review = AdmissionReview::read(body).map_err(malformed)?;
                let kind = admission.kind;
                (Arc::clone(&admission.name), Question::Admission { kind, path, review })
            }
            Target::Conversion(crd) => {
                let review = ConversionReview::read(body).map_err(malformed)?;
                (Arc::clone(crd), Question::Conversion { review, steps: VecDeque::new() })
            }
        };
        let mut review = Self { id, webhook, begun, deadline, question };
        let problem = review.plan(index);
        Ok((review, problem))
    }

    /// Finds the steps of a conversion. Returns why there is no way.
    fn plan(&mut self, index: &WebhookIndex) -> Option<String> {
        let Question::Conversion { review, steps } = &mut self.question else { return None };
        let mut versions: Vec<(&str, Vec<usize>)> = Vec::new();
        for (place, object) in review.objects.iter().enumerate() {
            let version = text(object, "/apiVersion");
            match versions.iter_mut().find(|(known, _)| *known == version) {
                Some((_, places)) => places.push(place),
                None => versions.push((version, vec![place])),
            }
        }
        for (version, places) in versions.iter().filter(|(version, _)| *version != &*review.desired) {
            let way = index.rules(&self.webhook).and_then(|rules| rules.path(version, &review.desired));
            let Some(way) = way else {
                return Some(format!(
                    "no hook converts {} from {version} to {}",
                    self.webhook, review.desired
                ));
            };
            let places: Arc<[usize]> = places.as_slice().into();
            steps
                .extend(way.into_iter().map(|rule| Step { rule: rule.clone(), places: Arc::clone(&places) }));
        }
        None
    }

    /// Returns the hook that is asked next, with its context. `None` if it is not in service any more.
    pub(super) fn next(
        &self,
        index: &WebhookIndex,
        modules: &Modules,
    ) -> Option<(Arc<Hook>, BindingContext, BindingType)> {
        match &self.question {
            Question::Admission { kind, path, review } => {
                let Target::Admission(admission) = index.find(path)? else { return None };
                let Admission { hook, .. } = &*admission;
                let shown = Arc::clone(&review.shown);
                let context = BindingContext::review(admission.binding()?, *kind, shown);
                let binding_type = match kind {
                    AdmissionKind::Mutating => BindingType::Mutating,
                    AdmissionKind::Validating => BindingType::Validating,
                };
                Some((Arc::clone(hook), context, binding_type))
            }
            Question::Conversion { review, steps } => {
                let Step { rule, places } = steps.front()?;
                let hook = modules.runnable_hook(&rule.hook)?;
                let binding = hook.spec.conversions.get(rule.binding)?;
                let shown = review.shown(&of(&review.objects, places));
                let context = BindingContext::conversion(binding, (&rule.from, &rule.to), shown);
                Some((Arc::clone(hook), context, BindingType::Conversion))
            }
        }
    }

    /// Returns whether nothing is to be changed by what the hook writes.
    pub(super) fn is_dry_run(&self) -> bool {
        matches!(&self.question, Question::Admission { review, .. } if review.is_dry_run)
    }

    /// Returns the type of binding that answers it.
    pub(super) fn binding(&self) -> &'static str {
        match &self.question {
            Question::Admission { kind: AdmissionKind::Mutating, .. } => BindingType::Mutating.as_str(),
            Question::Admission { kind: AdmissionKind::Validating, .. } => BindingType::Validating.as_str(),
            Question::Conversion { .. } => BindingType::Conversion.as_str(),
        }
    }

    /// Puts in what a hook answered. Returns the answer, unless another hook has to be asked.
    pub(super) fn respond(&mut self, hook: &Hook, response: Response) -> Option<(Arc<Value>, ReviewEnd)> {
        match &mut self.question {
            Question::Admission { kind, review, .. } => {
                let Some(response) = response.admission else {
                    let message = format!("Hook failed: hook {} wrote no response", hook.id);
                    return Some((review.refuse(500, &message), ReviewEnd::Failed));
                };
                let end = if response.allowed { ReviewEnd::Allowed } else { ReviewEnd::Denied };
                Some((review.answer(&response, *kind == AdmissionKind::Mutating), end))
            }
            Question::Conversion { review, steps } => {
                let Some(Step { rule, places }) = steps.pop_front() else {
                    return Some((review.answer(), ReviewEnd::Allowed));
                };
                let before = of(&review.objects, &places);
                let problem = match &response.conversion {
                    None => Some(format!("hook {} wrote no response", hook.id)),
                    Some(response) if !response.failed_message.is_empty() => {
                        return Some((review.refuse(&response.failed_message), ReviewEnd::Denied));
                    }
                    Some(response) => difference(&before, &response.objects, &rule.to)
                        .map(|problem| format!("hook {} can't be used: {problem}", hook.id)),
                };
                if let Some(problem) = problem {
                    let message =
                        format!("Conversion of {} to {} failed: {problem}", self.webhook, review.desired);
                    return Some((review.refuse(&message), ReviewEnd::Failed));
                }
                let converted = response.conversion.unwrap_or_default().objects;
                for (place, object) in places.iter().zip(converted) {
                    if let Some(old) = review.objects.get_mut(*place) {
                        *old = object;
                    }
                }
                if !steps.is_empty() {
                    return None;
                }
                let is_wrong = |object: &Value| text(object, "/apiVersion") != &*review.desired;
                if let Some(place) = review.objects.iter().position(is_wrong) {
                    let message =
                        format!("object {place} of {} is not in version {}", self.webhook, review.desired);
                    return Some((review.refuse(&message), ReviewEnd::Failed));
                }
                Some((review.answer(), ReviewEnd::Allowed))
            }
        }
    }

    /// Returns the answer when a hook failed.
    pub(super) fn fail(&self, hook: &Hook) -> Arc<Value> {
        let Self { webhook, question, .. } = self;
        match question {
            Question::Admission { review, .. } => {
                let message = format!(
                    "Hook failed: hook {} of webhook {webhook}; the log of the operator says why",
                    hook.id
                );
                review.refuse(403, &message)
            }
            Question::Conversion { review, .. } => review.refuse(&format!(
                "Hook failed to convert to {}: hook {}; the log of the operator says why",
                review.desired, hook.id
            )),
        }
    }

    /// Returns the answer without any hook: the objects as they are, or why they can't be converted.
    pub(super) fn answer_now(&self, problem: Option<&str>) -> Option<(Arc<Value>, ReviewEnd)> {
        let Question::Conversion { review, steps } = &self.question else { return None };
        match problem {
            Some(problem) => Some((review.refuse(problem), ReviewEnd::Refused)),
            None if steps.is_empty() => Some((review.answer(), ReviewEnd::Allowed)),
            None => None,
        }
    }
}

fn of(objects: &[Value], places: &[usize]) -> Vec<Value> {
    places.iter().filter_map(|place| objects.get(*place)).cloned().collect()
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
        waiting.into_iter().chain(running.map(|running| running.deadline)).min()
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

    /// Refuses all that wait: the operator ends.
    pub(super) fn refuse_waiting(&mut self, cx: &mut Context) {
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

    /// Returns whether nothing is to be changed by what the hook wrote.
    pub(super) fn is_dry_run(&self) -> bool {
        self.running.review.as_ref().is_some_and(Review::is_dry_run)
    }

    /// Takes the review out, if anybody waits for its answer.
    pub(super) fn into_review(self) -> Option<Review> {
        self.running.review
    }

    /// Reports that the hook failed, and answers the review.
    pub(super) fn fail(self, cx: &mut Context, failure: Failure) {
        let Running { hook, review, .. } = self.running;
        let Some(review) = review else { return };
        let answer = review.fail(&hook);
        let webhook = Arc::clone(&review.webhook);
        cx.notify(Notice::ReviewFailed { hook: hook.id.clone(), webhook, failure });
        answer_with(cx, &review, answer, ReviewEnd::Failed);
    }
}

/// Answers a review.
pub(super) fn answer_with(cx: &mut Context, review: &Review, answer: Arc<Value>, end: ReviewEnd) {
    told(cx, review, end);
    cx.push(Effect::AnswerReview { id: review.id, outcome: Ok(answer) });
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

//! A review: which hook is asked next, and what its answer makes of it.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

use super::conversion::{Rule, difference, text};
use super::index::{Admission, Target, WebhookIndex};
use super::request::{AdmissionReview, ConversionReview};
use super::response::Response;
use crate::catalog::Hook;
use crate::effect::RefusalReason;
use crate::failure::{Failure, FailureKind};
use crate::hook::{AdmissionKind, BindingContext};
use crate::module::Modules;
use crate::name::{HookId, ReviewId, TaskId};
use crate::notice::ReviewEnd;
use crate::task::BindingType;
use crate::time::Time;

/// A review that has no answer yet.
#[derive(Debug)]
pub(super) struct Review {
    pub(super) id: ReviewId,
    /// Its number among tasks, for people.
    pub(super) task: TaskId,
    /// The name of the webhook or of the definition.
    pub(super) webhook: Arc<str>,
    pub(super) begun: Time,
    pub(super) deadline: Time,
    pub(super) question: Question,
}

/// What a review asks.
#[derive(Debug)]
pub(super) enum Question {
    Admission { kind: AdmissionKind, path: String, hook: HookId, review: AdmissionReview },
    Conversion { review: ConversionReview, steps: VecDeque<Step> },
}

/// One step of a conversion: a hook leads some of the objects into the next version.
#[derive(Debug)]
pub(super) struct Step {
    rule: Rule,
    /// The places of the objects in the review.
    places: Arc<[usize]>,
}

/// The answer to a review, and how the review ends with it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) review: Arc<Value>,
    pub(super) end: ReviewEnd,
    /// Why what the hook wrote can't be used.
    pub(super) problem: Option<Failure>,
}

impl Answer {
    pub(super) fn new(review: Arc<Value>, end: ReviewEnd) -> Self {
        Self { review, end, problem: None }
    }

    fn unusable(review: Arc<Value>, problem: &str) -> Self {
        let problem = Some(Failure::new(FailureKind::HookOutput, problem));
        Self { review, end: ReviewEnd::Failed, problem }
    }
}

impl Review {
    /// Reads a review that was asked for at a path. Returns why no hook can answer it, too, if that is so.
    pub(super) fn read(
        (id, task, path): (ReviewId, TaskId, String),
        body: &Value,
        target: &Target,
        index: &WebhookIndex,
        (begun, deadline): (Time, Time),
    ) -> Result<(Self, Option<String>), (RefusalReason, String)> {
        let malformed = |problem| (RefusalReason::Malformed, problem);
        let (webhook, question) = match target {
            Target::Admission(admission) => {
                let review = AdmissionReview::read(body).map_err(malformed)?;
                let (kind, hook) = (admission.kind, admission.hook.id.clone());
                (Arc::clone(&admission.name), Question::Admission { kind, path, hook, review })
            }
            Target::Conversion(crd) => {
                let review = ConversionReview::read(body).map_err(malformed)?;
                (Arc::clone(crd), Question::Conversion { review, steps: VecDeque::new() })
            }
        };
        let mut review = Self { id, task, webhook, begun, deadline, question };
        let problem = review.plan(index);
        Ok((review, problem))
    }

    /// Returns whether objects are to be converted.
    pub(super) fn is_conversion(&self) -> bool {
        matches!(self.question, Question::Conversion { .. })
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
            Question::Admission { kind, path, review, .. } => {
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
                // Who does not know yet which modules are on, as a standby, answers what was registered by who knew.
                let hook = modules.hook_to_come(&rule.hook)?;
                let binding = hook.spec.conversions.get(rule.binding)?;
                let shown = review.shown(&of(&review.objects, places));
                let context = BindingContext::conversion(binding, (&rule.from, &rule.to), shown);
                Some((Arc::clone(hook), context, BindingType::Conversion))
            }
        }
    }

    /// Returns whether it asks a hook that is not in service, and may come to be.
    pub(super) fn is_early(&self, index: &WebhookIndex) -> bool {
        let Question::Admission { path, .. } = &self.question else { return false };
        matches!(index.find(path), Some(Target::Admission(admission)) if !admission.is_in_service)
    }

    /// Returns the hook that is asked now, or was asked last.
    pub(super) fn asked(&self) -> Option<&HookId> {
        match &self.question {
            Question::Admission { hook, .. } => Some(hook),
            Question::Conversion { steps, .. } => steps.front().map(|step| &step.rule.hook),
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

    /// Puts in what a hook answered. Returns the answer, unless another hook has to be asked, and why the hook's can't be used.
    pub(super) fn respond(&mut self, hook: &Hook, response: Response) -> Option<Answer> {
        match &mut self.question {
            Question::Admission { kind, review, .. } => {
                let Some(response) = response.admission else {
                    let message = format!("Hook failed: hook {} wrote no response", hook.id);
                    return Some(Answer::unusable(review.refuse(500, &message), &message));
                };
                let may_patch = *kind == AdmissionKind::Mutating;
                if may_patch
                    && response.allowed
                    && let Err(error) = review.check(&response.operations)
                {
                    let message =
                        format!("Hook failed: the patch of hook {} can't be applied: {error}", hook.id);
                    return Some(Answer::unusable(review.refuse(500, &message), &message));
                }
                let end = if response.allowed { ReviewEnd::Allowed } else { ReviewEnd::Denied };
                Some(Answer::new(review.answer(&response, may_patch), end))
            }
            Question::Conversion { review, steps } => {
                let Some(Step { rule, places }) = steps.pop_front() else {
                    return Some(Answer::new(review.answer(), ReviewEnd::Allowed));
                };
                let before = of(&review.objects, &places);
                let problem = match &response.conversion {
                    None => Some(format!("hook {} wrote no response", hook.id)),
                    Some(response) if !response.failed_message.is_empty() => {
                        return Some(Answer::new(review.refuse(&response.failed_message), ReviewEnd::Denied));
                    }
                    Some(response) => difference(&before, &response.objects, &rule.to)
                        .map(|problem| format!("hook {} can't be used: {problem}", hook.id)),
                };
                if let Some(problem) = problem {
                    let message =
                        format!("Conversion of {} to {} failed: {problem}", self.webhook, review.desired);
                    return Some(Answer::unusable(review.refuse(&message), &message));
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
                    return Some(Answer::unusable(review.refuse(&message), &message));
                }
                Some(Answer::new(review.answer(), ReviewEnd::Allowed))
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
    pub(super) fn answer_now(&self, problem: Option<&str>) -> Option<Answer> {
        let Question::Conversion { review, steps } = &self.question else { return None };
        match problem {
            Some(problem) => Some(Answer::new(review.refuse(problem), ReviewEnd::Refused)),
            None if steps.is_empty() => Some(Answer::new(review.answer(), ReviewEnd::Allowed)),
            None => None,
        }
    }
}

fn of(objects: &[Value], places: &[usize]) -> Vec<Value> {
    places.iter().filter_map(|place| objects.get(*place)).cloned().collect()
}

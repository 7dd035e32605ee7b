//! Webhooks that the API server refused. They are left out, since it refuses all webhooks for one that is wrong.

use std::collections::BTreeMap;

use super::health::WebhookChange;
use super::index::{Admission, WebhookIndex};
use crate::context::Context;
use crate::event::WebhookRefusal;
use crate::hook::AdmissionKind;
use crate::hook::spec::AdmissionBinding;
use crate::name::HookId;
use crate::notice::Notice;
use crate::view::UnservedWebhook;

/// What to do about a webhook that was refused.
const CORRECTED: &str =
    "correct that binding in the configuration of the hook; all other webhooks are registered meanwhile";

/// The webhooks that the API server refused.
#[derive(Debug, Default)]
pub(super) struct Refused {
    webhooks: BTreeMap<(AdmissionKind, String), RefusedWebhook>,
    news: Vec<WebhookChange>,
}

#[derive(Debug)]
struct RefusedWebhook {
    hook: HookId,
    /// What was refused.
    binding: AdmissionBinding,
    /// Why, in words.
    problem: String,
}

impl Refused {
    /// Records what the API server refused, and tells it. Returns whether it named a webhook that is left out now and was not before.
    pub(super) fn add(&mut self, cx: &mut Context, refusal: &WebhookRefusal, index: &WebhookIndex) -> bool {
        let before = self.webhooks.len();
        for (name, why) in &refusal.webhooks {
            let Some(admission) = index.admission(refusal.kind, name) else { continue };
            let Some(binding) = admission.binding() else { continue };
            let hook = admission.hook.id.clone();
            let problem = format!(
                "webhook {name} of hook {hook} is not registered, and nobody asks it: the API server refuses it: {why}"
            );
            cx.notify(Notice::Warned { scope: hook.scope.clone(), message: problem.clone() });
            self.news.push(WebhookChange { hook: hook.clone(), is_warning: true, message: problem.clone() });
            let refused = RefusedWebhook { hook, binding: binding.clone(), problem };
            self.webhooks.insert((refusal.kind, name.clone()), refused);
        }
        self.webhooks.len() > before
    }

    /// Returns whether a webhook was refused as it is.
    pub(super) fn has(&self, admission: &Admission) -> bool {
        let refused = self.webhooks.get(&(admission.kind, admission.name.to_string()));
        refused.is_some_and(|refused| Some(&refused.binding) == admission.binding())
    }

    /// Forgets webhooks that are other ones now, or not wanted any more.
    pub(super) fn retain(&mut self, index: &WebhookIndex) {
        self.webhooks.retain(|(kind, name), refused| {
            let binding = index.admission(*kind, name).and_then(Admission::binding);
            binding == Some(&refused.binding)
        });
    }

    /// Takes out what is to be told.
    pub(super) fn take_news(&mut self) -> Vec<WebhookChange> {
        std::mem::take(&mut self.news)
    }

    /// Returns the webhooks in the form of a picture.
    pub(super) fn views(&self) -> impl Iterator<Item = UnservedWebhook> {
        self.webhooks.values().map(|RefusedWebhook { hook, problem, .. }| UnservedWebhook {
            hook: hook.clone(),
            what: problem.clone(),
            advice: CORRECTED,
        })
    }

    /// Returns how many things are kept by name.
    pub(super) fn entries(&self) -> usize {
        self.webhooks.len() + self.news.len()
    }
}

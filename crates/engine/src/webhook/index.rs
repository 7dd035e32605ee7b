//! Which hook answers what.
//!
//! At the start of an operator it is not known which hooks will be in service. What the API server knows of one before this stays until
//! then, and is answered as far as it can be. Conversions begin before that, too: objects that nobody converts are read and written in
//! a wrong form.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::conversion::Rules;
use crate::catalog::Hook;
use crate::hook::AdmissionKind;
use crate::hook::spec::AdmissionBinding;
use crate::name::HookId;
use crate::view::UnservedWebhook;

/// How the paths begin that the API server asks at.
const VALIDATE: &str = "/validate/";
const MUTATE: &str = "/mutate/";
const CONVERT: &str = "/convert/";

/// What to do about two webhooks with one name.
const RENAMED: &str = "give one of them another name; all else is served";

/// Which hook answers what.
#[derive(Debug, Default)]
pub(super) struct WebhookIndex {
    /// The admission webhooks in the order of hooks and bindings.
    admissions: Vec<Arc<Admission>>,
    /// Where each of them is in the list, by its path.
    by_path: BTreeMap<String, usize>,
    /// The conversions by definition.
    conversions: BTreeMap<Arc<str>, Rules>,
    /// The definitions of which a hook is known to be wanted. Others are left as they are.
    certain: BTreeSet<Arc<str>>,
    /// Whether there may be more: hooks that may be wanted have not said yet what they want.
    pub(super) is_partial: bool,
    /// What can't be served, and why.
    problems: Vec<(HookId, String)>,
}

/// An admission webhook.
#[derive(Clone, Debug)]
pub(super) struct Admission {
    pub(super) kind: AdmissionKind,
    /// Its full name.
    pub(super) name: Arc<str>,
    pub(super) hook: Arc<Hook>,
    /// The index of its binding in the hook's configuration.
    pub(super) index: usize,
    /// Whether its hook is in service. Otherwise it may come to be.
    pub(super) is_in_service: bool,
}

/// What a path leads to.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Admission(Arc<Admission>),
    /// The definition whose objects are converted.
    Conversion(Arc<str>),
}

impl Admission {
    /// Returns its binding.
    pub(super) fn binding(&self) -> Option<&AdmissionBinding> {
        self.hook.spec.admissions(self.kind).get(self.index)
    }

    /// Returns the path at which the API server asks it.
    pub(super) fn path(&self) -> String {
        let prefix = match self.kind {
            AdmissionKind::Mutating => MUTATE,
            AdmissionKind::Validating => VALIDATE,
        };
        format!("{prefix}{}", self.name)
    }
}

impl WebhookIndex {
    /// Adds the admission webhooks of a hook. Of two with one name the first is served.
    pub(super) fn add_admissions(&mut self, hook: &Arc<Hook>, is_in_service: bool) {
        for kind in [AdmissionKind::Validating, AdmissionKind::Mutating] {
            for (index, binding) in hook.spec.admissions(kind).iter().enumerate() {
                let name = binding.webhook_name(&hook.id.scope).into();
                self.add(Admission { kind, name, hook: Arc::clone(hook), index, is_in_service });
            }
        }
    }

    /// Adds the conversions of a hook, which is `certain` to be wanted, or may be.
    pub(super) fn add_conversions(&mut self, hook: &Hook, certain: bool) {
        for (place, binding) in hook.spec.conversions.iter().enumerate() {
            let crd: Arc<str> = binding.crd_name.as_str().into();
            if certain {
                self.certain.insert(Arc::clone(&crd));
            }
            self.conversions.entry(crd).or_default().add(hook, place, binding);
        }
    }

    fn add(&mut self, admission: Admission) {
        let path = admission.path();
        if let Some(first) = self.by_path.get(&path).and_then(|place| self.admissions.get(*place)) {
            let problem = format!(
                "webhook {} of hook {} is not served: hook {} has one of this name; give one of them another name",
                admission.name, admission.hook.id, first.hook.id
            );
            self.problems.push((admission.hook.id.clone(), problem));
            return;
        }
        self.by_path.insert(path, self.admissions.len());
        self.admissions.push(Arc::new(admission));
    }

    /// Returns what a path leads to.
    pub(super) fn find(&self, path: &str) -> Option<Target> {
        if let Some(crd) = path.strip_prefix(CONVERT) {
            return self.conversions.get_key_value(crd).map(|(crd, _)| Target::Conversion(Arc::clone(crd)));
        }
        let admission = self.admissions.get(*self.by_path.get(path)?)?;
        Some(Target::Admission(Arc::clone(admission)))
    }

    /// Returns the rules for the objects of a definition.
    pub(super) fn rules(&self, crd: &str) -> Option<&Rules> {
        self.conversions.get(crd)
    }

    /// Iterates over the admission webhooks of a kind, in the order of hooks and bindings.
    pub(super) fn admissions(&self, kind: AdmissionKind) -> impl Iterator<Item = &Admission> {
        self.admissions.iter().map(|admission| &**admission).filter(move |admission| admission.kind == kind)
    }

    /// Iterates over the admission webhooks whose hooks are not in service, and may come to be.
    pub(super) fn to_come(&self) -> impl Iterator<Item = &Admission> {
        self.admissions.iter().map(|admission| &**admission).filter(|admission| !admission.is_in_service)
    }

    /// Iterates over the definitions whose objects are converted.
    pub(super) fn definitions(&self) -> impl Iterator<Item = &Arc<str>> {
        self.conversions.keys()
    }

    /// Returns whether a hook is known to be wanted that converts the objects of a definition.
    pub(super) fn is_certain(&self, crd: &str) -> bool {
        self.certain.contains(crd)
    }

    /// Returns what can't be served, and why.
    pub(super) fn problems(&self) -> &[(HookId, String)] {
        &self.problems
    }

    /// Returns what can't be served, in the form of a picture.
    pub(super) fn unserved(&self) -> impl Iterator<Item = UnservedWebhook> {
        self.problems.iter().map(|(hook, what)| UnservedWebhook {
            hook: hook.clone(),
            what: what.clone(),
            advice: RENAMED,
        })
    }

    /// Returns the admission webhook of a kind with this name.
    pub(super) fn admission(&self, kind: AdmissionKind, name: &str) -> Option<&Admission> {
        self.admissions(kind).find(|admission| &*admission.name == name)
    }

    /// Returns whether an admission webhook or a conversion has this name.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.conversions.contains_key(name) || self.admissions.iter().any(|known| &*known.name == name)
    }

    /// Returns whether nothing is served.
    pub(super) fn is_empty(&self) -> bool {
        self.admissions.is_empty() && self.conversions.is_empty()
    }
}

/// Returns the path at which the API server asks for conversions of the objects of a definition.
pub(super) fn conversion_path(crd: &str) -> String {
    format!("{CONVERT}{crd}")
}

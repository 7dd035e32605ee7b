//! Which hook answers what: an index of the hooks in service.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::conversion::Rules;
use crate::catalog::Hook;
use crate::hook::AdmissionKind;
use crate::hook::spec::AdmissionBinding;
use crate::name::HookId;

/// How the paths begin that the API server asks at.
const VALIDATE: &str = "/validate/";
const MUTATE: &str = "/mutate/";
const CONVERT: &str = "/convert/";

/// Which hook answers what.
#[derive(Debug, Default)]
pub(super) struct WebhookIndex {
    /// The admission webhooks in the order of hooks and bindings.
    admissions: Vec<Arc<Admission>>,
    /// Where each of them is in the list, by its path.
    by_path: BTreeMap<String, usize>,
    /// The conversions by definition.
    conversions: BTreeMap<Arc<str>, Rules>,
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
    /// Returns the index of `hooks`. Of two webhooks with one name the first is served.
    pub(super) fn new<'h>(hooks: impl Iterator<Item = &'h Arc<Hook>>) -> Self {
        let mut index = Self::default();
        for hook in hooks {
            for kind in [AdmissionKind::Validating, AdmissionKind::Mutating] {
                for (place, binding) in hook.spec.admissions(kind).iter().enumerate() {
                    let name = binding.webhook_name(&hook.id.scope).into();
                    index.add(Admission { kind, name, hook: Arc::clone(hook), index: place });
                }
            }
            for (place, binding) in hook.spec.conversions.iter().enumerate() {
                let rules = index.conversions.entry(binding.crd_name.as_str().into()).or_default();
                rules.add(hook, place, binding);
            }
        }
        index
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

    /// Iterates over the definitions whose objects are converted.
    pub(super) fn definitions(&self) -> impl Iterator<Item = &Arc<str>> {
        self.conversions.keys()
    }

    /// Returns what can't be served, and why.
    pub(super) fn problems(&self) -> &[(HookId, String)] {
        &self.problems
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

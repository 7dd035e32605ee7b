//! What a configuration would bring about if its object were as a file says. Nothing is changed.

use std::collections::{BTreeMap, BTreeSet};

use super::assessment::{Assessment, Taken};
use super::guest::in_namespace;
use super::sources::Sources;
use crate::addon::{
    Approval, Approvals, Bundle, FailurePolicy, Fetched, PlannedChange, PlannedModule, RegisteredAddon,
    SourceKey, SourceKind, SourcePlan, SourceSpec,
};
use crate::module::Modules;
use crate::name::ModuleName;
use crate::time::Time;

impl Sources {
    /// Returns what a configuration would bring about with this spec, when this was fetched for it. `approved` is its annotation
    /// with the versions that may come; that of its object counts if there is none.
    pub(crate) fn plan(
        &self,
        modules: &Modules,
        now: Time,
        (key, approved): (&SourceKey, Option<&str>),
        spec: &SourceSpec,
        fetched: Fetched,
    ) -> SourcePlan {
        let fetched = match key.kind {
            SourceKind::Cluster => fetched,
            SourceKind::Namespaced => in_namespace(key, fetched),
        };
        let mut assessment = self.assess(modules, key, spec, &fetched);
        let problems = assessment.problems();
        let before: BTreeMap<&ModuleName, &RegisteredAddon> =
            self.registration.of(key).iter().filter(|addon| addon.is_active).map(by_name).collect();
        if !problems.is_empty() {
            let goes = spec.failure_policy == FailurePolicy::Remove && !assessment.is_unknown();
            let gone = before.values().filter(|_| goes).map(|old| planned(modules, Some(old), None));
            return SourcePlan { source: key.clone(), problems, modules: gone.collect() };
        }
        let approved = approved.or_else(|| self.approved(key)).unwrap_or_default();
        let approvals = Approvals::parse(approved, &key.namespace);
        self.choose_versions(modules, now, (key, &approvals), spec, &mut assessment.addons);
        let after: BTreeMap<&ModuleName, &RegisteredAddon> =
            assessment.addons.iter().filter(|addon| addon.is_active).map(by_name).collect();
        let names: BTreeSet<&ModuleName> = before.keys().chain(after.keys()).copied().collect();
        let all = names.into_iter().map(|name| {
            let (old, new) = (before.get(name).copied(), after.get(name).copied());
            let held_back = new.and_then(|new| Some(self.held_text(now, new, new.held_back.as_ref()?)));
            PlannedModule { held_back, ..planned(modules, old, new) }
        });
        let is_told =
            |module: &PlannedModule| module.change != PlannedChange::Stay || module.held_back.is_some();
        SourcePlan { source: key.clone(), problems, modules: all.filter(is_told).collect() }
    }

    /// Returns the annotation of the object of a configuration that names the versions which may come.
    pub(super) fn approved(&self, key: &SourceKey) -> Option<&str> {
        Some(&self.known.get(key)?.object.as_ref()?.approved)
    }

    /// Returns the versions that may come with a spec, if they wait for that.
    pub(super) fn approvals(&self, key: &SourceKey, spec: &SourceSpec) -> Approvals {
        if spec.approval == Approval::Auto {
            return Approvals::default();
        }
        let active = self.registration.of(key).iter().filter(|addon| addon.is_active && !addon.is_withdrawn);
        let in_force = active.map(|addon| (addon.name(), addon.bundle.version.as_str()));
        Approvals::parse(self.approved(key).unwrap_or_default(), &key.namespace).above(in_force)
    }

    /// Looks at everything that was fetched for a configuration.
    pub(super) fn assess(
        &self,
        modules: &Modules,
        key: &SourceKey,
        spec: &SourceSpec,
        fetched: &Fetched,
    ) -> Assessment {
        // What goes on without its configuration is free in its scope, and never for those of another: they may have less
        // rights.
        let is_held = |addon: &&RegisteredAddon| {
            let is_free = !addon.holds_id() || self.is_deleting(&addon.source);
            !is_free || !addon.source.shares_scope_with(key)
        };
        let rivals = self.registration.of_rivals(fetched.bundles());
        let registered: Vec<&RegisteredAddon> = rivals.filter(is_held).collect();
        let built_in = |name: &ModuleName| modules.built_in(name);
        Assessment::of(key, spec, fetched, &Taken { registered: &registered, built_in: &built_in })
    }
}

fn by_name(addon: &RegisteredAddon) -> (&ModuleName, &RegisteredAddon) {
    (&addon.bundle.name, addon)
}

fn planned(modules: &Modules, old: Option<&RegisteredAddon>, new: Option<&RegisteredAddon>) -> PlannedModule {
    let bundle = |addon: Option<&RegisteredAddon>| addon.map(|addon| addon.bundle.clone());
    let (from, to): (Option<Bundle>, Option<Bundle>) = (bundle(old), bundle(new));
    let change = match (&from, &to) {
        (Some(from), Some(to)) if from.digest == to.digest => PlannedChange::Stay,
        (Some(_), Some(_)) => PlannedChange::Change,
        (None, _) => PlannedChange::Come,
        (Some(_), None) => PlannedChange::Go,
    };
    let name = from.as_ref().or(to.as_ref()).map_or_else(|| "".into(), |bundle| bundle.name.clone());
    let is_on = modules.is_on(&name);
    PlannedModule { name, change, from, to, is_on, held_back: None }
}

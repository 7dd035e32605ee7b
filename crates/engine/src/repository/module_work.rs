//! The work on the chart of a module: a Chart is there for it, and a version is pinned.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use objects::legal;
use serde_json::{Value, json};

use super::chart::Chart;
use super::lost_package::Remedy;
use super::module_chart::{MODULE_CHART, Stage, chart_of};
use super::object::{MODULE, OPERATOR};
use super::patches::Change;
use super::repositories::Repositories;
use super::work::{RepositoryAnswer, module_key};
use crate::context::Context;
use crate::effect::{Announcement, Effect};
use crate::failure::Failure;
use crate::module::{Lower, Modules};
use crate::name::ModuleName;
use crate::package::{ChartReference, ChartSpec, GivenUp, Package, Pin, RepositoryKey, RepositoryKind};
use crate::reconcile::Step;
use crate::time::Time;

/// With how many failed runs a version is given up, if there is one before it with which the module ran.
const GIVEN_UP: u32 = 3;

/// How many letters are kept of the error with which a version was given up.
const MOST_OF_ERROR: usize = 500;

/// The first thing that is not as it should be.
enum Todo {
    Nothing,
    Apply(Arc<ChartReference>),
    Delete,
    GoBack(Box<Pin>),
    Pin(Option<Box<Pin>>),
    Remedy(Remedy),
}

/// Announces that a module is installed from another package from now on.
fn announce(
    cx: &mut Context,
    (module, package): (&ModuleName, &Package),
    (warning, reason): (bool, &'static str),
    why: &str,
) {
    let Package { repository, chart, version, .. } = package;
    let message =
        format!("module {module} takes version {version} of chart {chart} of Repository {repository}: {why}");
    let owner = module.as_str().split('.').next().unwrap_or_default();
    let module = Some(ModuleName::from(owner));
    cx.push(Effect::Announce(Announcement { module, source: None, object: None, warning, reason, message }));
}

impl Repositories {
    /// Hands modules the packages that they stay with, before anything has begun.
    pub(crate) fn hand_out_pins(&mut self, modules: &mut Modules, lower: &mut Lower<'_>) {
        self.observe_modules(modules, lower);
        self.repackaged.clear();
    }

    /// Takes in which modules name which charts now.
    pub(super) fn observe_modules(&mut self, modules: &mut Modules, lower: &mut Lower<'_>) {
        let mut changed = modules.take_chart_changes();
        if std::mem::take(&mut self.has_moved) {
            changed.extend(modules.with_dependencies());
        }
        for name in changed {
            let named = modules.chart_reference(&name);
            self.observe_module(modules, lower, &name, named.as_ref());
            self.observe_dependencies(modules, lower, &name);
        }
        if modules.take_departures() || self.has_unknown {
            self.has_unknown = false;
            self.observe_departures(modules, lower);
        }
    }

    /// Takes in which modules need their Charts and pins no more: they are gone, or name no chart.
    fn observe_departures(&mut self, modules: &Modules, lower: &Lower<'_>) {
        let without_chart = self.modules.iter().filter(|(_, module)| module.reference.is_none());
        let of_charts = self.charts.iter().filter_map(|(name, chart)| self.module_of_ours(name, chart));
        let names: BTreeSet<ModuleName> = without_chart
            .map(|(name, _)| name.clone())
            .chain(self.pins.keys().cloned())
            .chain(of_charts)
            .collect();
        for name in names {
            let is_gone = modules.has_departed(lower.configuration, &name);
            if !is_gone && !modules.is_removed(&name) {
                continue;
            }
            let module = self.modules.entry(name.clone()).or_default();
            if module.pin.is_none() {
                module.pin = self.pins.remove(&name);
            }
            module.is_gone = is_gone;
            self.wakes.insert(module_key(&name));
        }
    }

    /// Returns the module for which this operator made a Chart. An operator of another namespace may have made it.
    fn module_of_ours(&self, name: &Arc<str>, chart: &Chart) -> Option<ModuleName> {
        let object = chart.object.as_ref().filter(|object| !object.is_deleting)?;
        let label = object.labels.get(MODULE)?;
        if object.operator.as_deref() != Some(&*self.config.namespace) {
            return None;
        }
        // What is no legal label has another name there.
        let names = [Some(label.as_str()), name.strip_prefix(MODULE_CHART)];
        let mut modules = names.into_iter().flatten().map(ModuleName::from);
        modules.find(|module| chart_of(module) == *name && legal::label(module.as_str()) == *label)
    }

    /// Takes in which chart is named under a name, if any is.
    pub(super) fn observe_module(
        &mut self,
        modules: &mut Modules,
        lower: &mut Lower<'_>,
        name: &ModuleName,
        named: Option<&Arc<ChartReference>>,
    ) {
        if named.is_none() && !self.modules.contains_key(name) {
            return;
        }
        let module = self.modules.entry(name.clone()).or_default();
        if module.pin.is_none() {
            module.pin = self.pins.remove(name);
        }
        let is_on = modules.is_on(&modules.owner_of(name));
        module.reference = named.filter(|_| is_on).map(Arc::clone);
        module.is_deleted &= module.reference.is_none();
        module.is_gone = modules.has_departed(lower.configuration, name);
        if let (Some(named), Some(pin)) = (named, &module.pin)
            && (&named.repository, &named.name) == (&pin.package.repository, &pin.package.chart)
            && !modules.is_package_lost(name)
            && modules.set_package(name, &Arc::new(pin.package.clone()))
        {
            self.repackaged.insert(modules.owner_of(name));
        }
        if modules.is_package_lost(name) && module.lost.is_none() {
            self.look_for_package(name);
        }
        if !modules.has_package(name) && self.modules.get(name).is_some_and(|its| its.reference.is_some()) {
            let why = self.why_held(name);
            modules.hold(lower.cx, lower.configuration, name, &why);
        }
        self.wakes.insert(module_key(name));
    }

    /// Returns the module whose Chart this is, if it is that of one.
    pub(super) fn module_of(&self, chart: &Arc<str>) -> Option<ModuleName> {
        let is_its = |name: &&ModuleName| chart_of(name) == *chart;
        self.modules.keys().find(is_its).cloned()
    }

    /// Asks for the work on the chart of a module.
    pub(super) fn wake_module(&mut self, name: &ModuleName) {
        if self.modules.contains_key(name) {
            self.wakes.insert(module_key(name));
        }
    }

    /// Returns until when a version has to have been published that the Chart of a module takes.
    pub(super) fn not_after(&self, chart: &Arc<str>, now: Time) -> Option<String> {
        self.min_age(chart).map(|age| self.config.time_of_day_before(now, age))
    }

    /// Returns how long ago a version has to have been published that the Chart of a module takes; `None` if that does not matter.
    pub(super) fn min_age(&self, chart: &Arc<str>) -> Option<Duration> {
        let module = self.modules.get(&self.module_of(chart)?)?;
        module.reference.as_ref().map(|reference| reference.min_age).filter(|age| !age.is_zero())
    }

    /// Returns whether there is anything to do for the chart of a module.
    pub(super) fn module_has_work(&self, modules: &Modules, name: &ModuleName, now: Time) -> bool {
        !matches!(self.module_todo(modules, name, now), Todo::Nothing)
    }

    /// Says of a module that has no package why that is so, and of one that has it that it is held no more.
    pub(super) fn say_why_held(&self, modules: &mut Modules, lower: &mut Lower<'_>, name: &ModuleName) {
        if modules.has_package(name) {
            return modules.hold_no_more(lower.cx, lower.configuration, name);
        }
        let why = self.why_held(name);
        modules.hold(lower.cx, lower.configuration, name, &why);
    }

    pub(super) fn advance_module(
        &mut self,
        modules: &mut Modules,
        lower: &mut Lower<'_>,
        name: &ModuleName,
    ) -> Step {
        let now = lower.cx.now;
        if let Some(failure) = self.module_answered(modules, name, now) {
            return Step::Failed(failure);
        }
        let chart = chart_of(name);
        let key = RepositoryKey { kind: RepositoryKind::Chart, name: Arc::clone(&chart) };
        let mut todo = self.module_todo(modules, name, now);
        if let Todo::Remedy(Remedy::Regain) = todo {
            self.regain(modules, name);
            todo = self.module_todo(modules, name, now);
        }
        match todo {
            Todo::Nothing | Todo::Remedy(Remedy::Regain | Remedy::Wait) => {
                self.say_why_held(modules, lower, name);
                let lost = self.modules.get(name).and_then(|module| module.lost.as_ref());
                let again = lost.and_then(|lost| lost.retry_at).filter(|at| *at > now);
                if self.modules.get(name).is_some_and(|module| module.is_gone && module.pin.is_none()) {
                    self.modules.remove(name);
                }
                again.map_or(Step::Done, |at| Step::Again(at.since(now)))
            }
            Todo::Remedy(Remedy::Find(request)) => {
                self.set_stage(name, Stage::Finding);
                let run = lower.cx.ids.run();
                Step::Fetch(run, Box::new(Effect::ResolveChart { run, request: Box::new(request) }))
            }
            Todo::Remedy(Remedy::Store(request)) => {
                self.set_stage(name, Stage::Storing);
                let run = lower.cx.ids.run();
                Step::Fetch(run, Box::new(Effect::StorePackage { run, request }))
            }
            Todo::Apply(reference) => {
                let change = Change::apply(key.clone(), self.chart_for(name, &reference));
                self.begin(lower.cx, name, Stage::Applying(reference), change, &key)
            }
            Todo::Delete => self.begin(lower.cx, name, Stage::Deleting, Change::delete(key.clone()), &key),
            Todo::GoBack(pin) => {
                let given_up = pin.given_up.as_ref();
                let why = given_up.map_or_else(String::new, |its| {
                    format!("{GIVEN_UP} runs failed with version {}: {}", its.version, its.error)
                });
                announce(lower.cx, (name, &pin.package), (true, "ChartRolledBack"), &why);
                self.pin(lower.cx, name, Some(pin))
            }
            Todo::Pin(pin) => {
                let before = self.modules.get(name).and_then(|module| module.pin.as_ref());
                if let Some(pin) = &pin
                    && before.is_some_and(|before| before.package.digest != pin.package.digest)
                {
                    let why = format!("{} takes it", pin.constraint);
                    announce(lower.cx, (name, &pin.package), (false, "ChartUpgraded"), &why);
                }
                self.pin(lower.cx, name, pin)
            }
        }
    }

    /// Returns the fields of the Chart of a module.
    fn chart_for(&self, name: &ModuleName, reference: &ChartReference) -> Value {
        json!({
            "metadata": {
                "labels": {MODULE: legal::label(name.as_str())},
                "annotations": {OPERATOR: self.config.namespace},
            },
            "spec": {
                "name": &*reference.name,
                "repository": &*reference.repository,
                "versions": [&*reference.version],
            },
        })
    }

    /// Returns the first thing about the chart of a module that is not as it should be.
    fn module_todo(&self, modules: &Modules, name: &ModuleName, now: Time) -> Todo {
        let Some(module) = self.modules.get(name) else { return Todo::Nothing };
        let chart = chart_of(name);
        let known = self.charts.get(&chart).and_then(|chart| chart.object.as_ref());
        let Some(reference) = &module.reference else {
            let label = legal::label(name.as_str());
            let is_ours =
                known.is_some_and(|known| known.labels.get(MODULE) == Some(&label) && !known.is_deleting);
            return match module.is_gone || modules.is_removed(name) {
                true if is_ours && !module.is_deleted => Todo::Delete,
                true if module.pin.is_some() => Todo::Pin(None),
                true | false => Todo::Nothing,
            };
        };
        let is_so = known.is_some_and(|known| {
            let is_its = |spec: &ChartSpec| {
                spec.name == reference.name
                    && spec.repository == reference.repository
                    && spec.versions.iter().map(String::as_str).eq([&*reference.version])
            };
            known.is_deleting || known.spec.as_ref().is_ok_and(is_its)
        });
        if !is_so && module.applied.as_ref() != Some(reference) {
            return Todo::Apply(Arc::clone(reference));
        }
        let (failures, is_good) = modules.package_runs(name);
        // It may have run with what it has before this operator began.
        let runs = (failures, is_good || module.pin.as_ref().is_some_and(|pin| pin.is_good));
        let error = || modules.error_of(name).unwrap_or_default();
        if let Some(pin) = self.last_good(name, reference, runs, error) {
            return Todo::GoBack(Box::new(pin));
        }
        let found = self.found(&chart, reference);
        let pin = found.and_then(|found| self.next_pin(name, reference, found, runs.1));
        if let Some(pin) = pin {
            return Todo::Pin(Some(Box::new(pin)));
        }
        if let Some(pin) = module.pin.as_ref().filter(|pin| is_good && !pin.is_good) {
            return Todo::Pin(Some(Box::new(Pin { is_good, ..pin.clone() })));
        }
        match self.remedy(name, reference, now) {
            Remedy::Wait => Todo::Nothing,
            remedy @ (Remedy::Regain | Remedy::Find(_) | Remedy::Store(_)) => Todo::Remedy(remedy),
        }
    }

    /// Takes in that the Chart of a module is as it has to be: what becomes of it from now on is news.
    pub(super) fn chart_of_module_seen(&mut self, name: &ModuleName) {
        let chart = chart_of(name);
        let known = self.charts.get(&chart).and_then(|chart| chart.spec()).cloned();
        let Some(module) = self.modules.get_mut(name) else { return };
        let is_it = module.applied.as_ref().zip(known).is_some_and(|(applied, spec)| {
            (&spec.name, &spec.repository) == (&applied.name, &applied.repository)
                && spec.versions.iter().map(String::as_str).eq([&*applied.version])
        });
        if is_it {
            module.applied = None;
        }
    }

    /// Begins to change the Chart of a module.
    fn begin(
        &mut self,
        cx: &mut Context,
        name: &ModuleName,
        stage: Stage,
        change: Change,
        author: &RepositoryKey,
    ) -> Step {
        self.set_stage(name, stage);
        change.begin(cx, author)
    }

    fn set_stage(&mut self, name: &ModuleName, stage: Stage) {
        if let Some(module) = self.modules.get_mut(name) {
            module.stage = stage;
        }
    }

    /// Begins to write what a module stays with.
    fn pin(&mut self, cx: &mut Context, name: &ModuleName, pin: Option<Box<Pin>>) -> Step {
        let run = cx.ids.run();
        self.set_stage(name, Stage::Pinning(pin.clone()));
        Step::Write(run, Box::new(Effect::PinPackage { run, module: name.clone(), pin }))
    }

    /// Takes in the answer to what was begun. Returns why the API server or we failed.
    fn module_answered(&mut self, modules: &mut Modules, name: &ModuleName, now: Time) -> Option<Failure> {
        let module = self.modules.get_mut(name)?;
        match (std::mem::take(&mut module.stage), module.answer.take()) {
            (Stage::Applying(reference), Some(RepositoryAnswer::Patched(Ok(())))) => {
                module.applied = Some(reference);
                None
            }
            (Stage::Deleting, Some(RepositoryAnswer::Patched(Ok(())))) => {
                (module.applied, module.is_deleted) = (None, true);
                None
            }
            (Stage::Pinning(pin), Some(RepositoryAnswer::Pinned(Ok(())))) => {
                module.pin = pin.map(|pin| *pin);
                if let Some(pin) = &module.pin
                    && modules.set_package(name, &Arc::new(pin.package.clone()))
                {
                    module.lost = None;
                    self.repackaged.insert(modules.owner_of(name));
                }
                None
            }
            (Stage::Finding, Some(RepositoryAnswer::Resolved(Ok(outcome)))) => {
                self.pinned_found(now, name, outcome);
                None
            }
            (Stage::Storing, Some(RepositoryAnswer::Stored(Ok(outcome)))) => {
                self.pinned_stored(now, name, outcome);
                None
            }
            (_, answer) => answer.and_then(RepositoryAnswer::failure),
        }
    }

    /// Returns the package that the Chart of a module came to, if it did, and up to which number it took archives again.
    fn found(&self, chart: &Arc<str>, reference: &ChartReference) -> Option<(Package, u64)> {
        let known = self.charts.get(chart)?;
        let spec = known.spec()?;
        let is_its = spec.name == reference.name
            && spec.repository == reference.repository
            && spec.versions.first().map(String::as_str) == Some(&*reference.version);
        let (version, stored) = known.package_of(0).filter(|_| is_its)?.ok()?;
        let package = Package {
            repository: Arc::clone(&reference.repository),
            chart: Arc::clone(&reference.name),
            version: Arc::clone(&version.version),
            digest: stored.digest.clone(),
        };
        Some((package, known.reprocessed))
    }

    /// Returns what a module stays with from now on; `None` if that is what it stays with already.
    ///
    /// `is_good` says whether it ran with the package that it has.
    fn next_pin(
        &self,
        name: &ModuleName,
        reference: &ChartReference,
        (package, reprocessed): (Package, u64),
        is_good: bool,
    ) -> Option<Pin> {
        let constraint = Arc::clone(&reference.version);
        let Some(pin) = self.modules.get(name).and_then(|module| module.pin.as_ref()) else {
            let (previous, rejected, given_up) = (None, None, None);
            let is_good = false;
            return Some(Pin { constraint, package, is_good, previous, rejected, given_up, reprocessed });
        };
        if pin.package == package {
            let is_same = pin.constraint == constraint;
            let rejected = pin.rejected.clone().filter(|_| is_same);
            let given_up = pin.given_up.clone().filter(|_| is_same);
            let next = Pin { constraint, rejected, given_up, reprocessed, ..pin.clone() };
            return (next != *pin).then_some(next);
        }
        // Somebody said of its own Chart that the archive is to be taken that was published again, or that failed.
        let has_failed = pin.rejected.as_ref() == Some(&package.digest);
        let is_raised = reprocessed > pin.reprocessed;
        let is_asked_for = is_raised && (package.version == pin.package.version || has_failed);
        let moves = !reference.is_met_by(pin) || reference.auto_upgrade || is_asked_for;
        let is_rejected = reference.is_met_by(pin) && has_failed && !is_raised;
        (moves && !is_rejected).then(|| Pin {
            constraint,
            package,
            is_good: false,
            previous: if is_good { Some(pin.package.clone()) } else { pin.previous.clone() },
            rejected: None,
            given_up: None,
            reprocessed,
        })
    }

    /// Returns what a module goes back to, with which it ran before, if too many runs failed with what it has.
    fn last_good(
        &self,
        name: &ModuleName,
        reference: &ChartReference,
        (failures, is_good): (u32, bool),
        error: impl FnOnce() -> String,
    ) -> Option<Pin> {
        let pin = self.modules.get(name)?.pin.as_ref()?;
        let previous = pin.previous.as_ref().filter(|previous| previous.digest != pin.package.digest)?;
        let is_its = reference.repository == previous.repository && reference.name == previous.chart;
        (is_its && failures >= GIVEN_UP && !is_good).then(|| Pin {
            constraint: Arc::clone(&pin.constraint),
            package: previous.clone(),
            is_good: true,
            previous: None,
            rejected: Some(pin.package.digest.clone()),
            given_up: Some(GivenUp {
                version: Arc::clone(&pin.package.version),
                error: error().chars().take(MOST_OF_ERROR).collect(),
            }),
            reprocessed: pin.reprocessed,
        })
    }

    /// Returns why there is no package for a module yet, for people.
    pub(super) fn why_held(&self, name: &ModuleName) -> String {
        if let Some(why) = self.why_lost(name) {
            return why;
        }
        let chart = chart_of(name);
        if self.config.chart_workers == 0 {
            return "chart repositories are not looked after".to_owned();
        }
        if !self.watches.are_all_listed() {
            return "its chart comes from a Repository, and the API server has no such kind: apply the CRDs (`addon-operator crds`)".to_owned();
        }
        let said =
            self.charts.get(&chart).and_then(|known| known.object.as_ref()).map(|object| object.synced().1);
        match said.filter(|said| !said.is_empty()) {
            _ if self.charts.get(&chart).is_some_and(Chart::is_synced) => {
                format!("Chart {chart} is synced, and its version is not pinned yet")
            }
            Some(said) => format!("Chart {chart}: {said}"),
            None => format!("Chart {chart} is not synced yet"),
        }
    }
}

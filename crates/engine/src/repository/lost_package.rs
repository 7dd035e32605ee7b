//! What becomes of packages that are lost: somebody removed the maps in which they are kept.
//!
//! A Chart keeps the versions that its constraints take. What a module stays with may be another version, which its
//! constraint does not take any more: that one is looked for by itself.

use std::sync::Arc;

use super::chart::Chart;
use super::module_chart::{Lost, ModuleChart, chart_of};
use super::object::Object;
use super::repositories::Repositories;
use super::work::{module_key, retry_after};
use crate::module::{Lower, Modules};
use crate::name::ModuleName;
use crate::package::{
    ChartConfigMap, ChartReference, Pin, ResolveRequest, ResolvedChart, ResolvedVersion, StoreRequest,
    StoredPackage, WantedVersion,
};
use crate::time::Time;

/// What is to be done about the package of a module that is lost.
pub(super) enum Remedy {
    /// Nothing now: its Chart is at work, or it is too early to try again.
    Wait,
    /// It is there again.
    Regain,
    Find(ResolveRequest),
    Store(Box<StoreRequest>),
}

impl Repositories {
    /// Handles that maps are gone, or are others than before. What is wanted of them is written again.
    pub(crate) fn maps_lost(&mut self, maps: &[ChartConfigMap]) {
        for map in maps {
            let Some(version) = &map.version else {
                self.index_lost(map);
                continue;
            };
            self.wake_charts_of(&map.repository, |chart| {
                chart.name() == Some(&map.chart) && chart.versions().any(|its| its.version == *version)
            });
            let Some(digest) = &map.digest else { continue };
            let is_its = |module: &ModuleChart| {
                module.pin.as_ref().is_some_and(|pin| pin.package.digest == *digest)
                    && module.reference.is_some()
            };
            let concerned = self.modules.iter().filter(|(_, module)| is_its(module));
            let concerned: Vec<ModuleName> = concerned.map(|(name, _)| name.clone()).collect();
            for name in concerned {
                self.look_for_package(&name);
            }
        }
    }

    /// Has an index fetched again, if what is gone of it is wanted.
    fn index_lost(&mut self, map: &ChartConfigMap) {
        let Some(repository) = self.repositories.get_mut(&map.repository) else { return };
        let is_wanted = repository
            .index
            .as_ref()
            .is_some_and(|index| index.asked.is_open || index.asked.charts.contains(&map.chart));
        if is_wanted {
            // What is left of it says nothing about what was there.
            (repository.is_asked_for, repository.is_forced) = (true, true);
            self.wake(crate::package::RepositoryKind::Repository, &map.repository);
        }
    }

    /// Handles that the package of a module could not be read, for this reason. The module is held until it is there again.
    pub(crate) fn package_lost(
        &mut self,
        modules: &mut Modules,
        lower: &mut Lower<'_>,
        name: &ModuleName,
        why: &str,
    ) {
        for (dependency, _) in modules.dependencies_of(name) {
            if modules.is_package_lost(&dependency) {
                self.package_lost(modules, lower, &dependency, why);
            }
        }
        if !self.modules.contains_key(name) {
            return;
        }
        self.look_for_package(name);
        if let Some(lost) = self.modules.get_mut(name).and_then(|module| module.lost.as_mut()) {
            lost.problem.get_or_insert_with(|| why.to_owned());
        }
        let why = self.why_held(name);
        modules.hold(lower.cx, lower.configuration, name, &why);
    }

    /// Has the package of a module looked for, in what its Chart keeps first.
    pub(super) fn look_for_package(&mut self, name: &ModuleName) {
        let Some(module) = self.modules.get_mut(name) else { return };
        let lost = module.lost.get_or_insert_default();
        (lost.version, lost.retry_at) = (None, None);
        self.look_again_at_chart(&chart_of(name));
        self.wakes.insert(module_key(name));
    }

    /// Returns what is to be done about the package of a module, which is lost.
    pub(super) fn remedy(&self, name: &ModuleName, reference: &ChartReference, now: Time) -> Remedy {
        let Some((module, lost)) = self.modules.get(name).and_then(|its| Some((its, its.lost.as_ref()?)))
        else {
            return Remedy::Wait;
        };
        if lost.is_back {
            return Remedy::Regain;
        }
        let Some(pin) = module.pin.as_ref().filter(|pin| is_of(pin, reference)) else { return Remedy::Wait };
        let chart = chart_of(name);
        let Some(known) = self.charts.get(&chart) else { return Remedy::Wait };
        match known.package_of(0) {
            // Its Chart is looked at, and says when that is done.
            None => return Remedy::Wait,
            Some(Ok((_, stored))) if stored.digest == pin.package.digest => return Remedy::Regain,
            // It is tried again with its Chart.
            Some(_) if takes_pinned(known, pin) => return Remedy::Wait,
            Some(_) => {}
        }
        if lost.retry_at.is_some_and(|at| at > now) {
            return Remedy::Wait;
        }
        let repository = self.repositories.get(&reference.repository);
        let Some(repository) = repository.and_then(|known| known.access(&reference.repository)) else {
            return Remedy::Wait;
        };
        let Some(version) = &lost.version else {
            let constraint = pin.package.version.to_string();
            return Remedy::Find(ResolveRequest {
                repository,
                chart: Arc::clone(&reference.name),
                versions: vec![WantedVersion { constraint, not_after: None }],
            });
        };
        let Some(object) = known.object.as_ref() else { return Remedy::Wait };
        Remedy::Store(Box::new(StoreRequest {
            repository,
            chart: Arc::clone(&reference.name),
            version: ResolvedVersion { digest: Some(pin.package.digest.clone()), ..version.clone() },
            owner: (chart, object.uid.clone()),
            replaces: false,
            known: Some(pin.package.digest.clone()),
        }))
    }

    /// Records where the version is that a module stays with, or why it is nowhere.
    pub(super) fn pinned_found(
        &mut self,
        now: Time,
        name: &ModuleName,
        outcome: Result<ResolvedChart, String>,
    ) {
        let found = outcome.and_then(|found| match found.versions.into_iter().next() {
            Some(version) => version.map_err(|unresolved| unresolved.problem),
            None => Err("nothing was found".to_owned()),
        });
        let Some(lost) = self.modules.get_mut(name).and_then(|module| module.lost.as_mut()) else { return };
        match found {
            Ok(version) => lost.version = Some(version),
            Err(problem) => lost.failed(now, problem),
        }
    }

    /// Records that the version is kept with which a module stays, or why it is not.
    pub(super) fn pinned_stored(
        &mut self,
        now: Time,
        name: &ModuleName,
        outcome: Result<StoredPackage, String>,
    ) {
        let Some(module) = self.modules.get_mut(name) else { return };
        let Some((lost, pin)) = module.lost.as_mut().zip(module.pin.as_ref()) else { return };
        match outcome {
            Ok(stored) if stored.digest == pin.package.digest => lost.is_back = true,
            Ok(stored) => lost.failed(now, other_archive(&stored, &chart_of(name))),
            Err(problem) => lost.failed(now, problem),
        }
    }

    /// Takes in that the package of a module is there again.
    pub(super) fn regain(&mut self, modules: &mut Modules, name: &ModuleName) {
        if let Some(module) = self.modules.get_mut(name) {
            module.lost = None;
        }
        if modules.regain_package(name) {
            self.repackaged.insert(modules.owner_of(name));
        }
    }

    /// Returns why the package of a module is not there, if it is lost, for people.
    pub(super) fn why_lost(&self, name: &ModuleName) -> Option<String> {
        let module = self.modules.get(name)?;
        let (lost, pin) = (module.lost.as_ref()?, module.pin.as_ref()?);
        let chart = chart_of(name);
        let known = self.charts.get(&chart).filter(|known| takes_pinned(known, pin));
        let why = match known.and_then(|known| known.package_of(0)) {
            Some(Ok((_, stored))) if stored.digest != pin.package.digest => other_archive(stored, &chart),
            Some(Err(problem)) => problem.to_owned(),
            Some(Ok(_)) | None => {
                let object = self.charts.get(&chart).and_then(|known| known.object.as_ref());
                let said = object.map(Object::synced).filter(|(is_synced, _)| !is_synced);
                let said = said.map(|(_, said)| said.to_owned()).filter(|said| !said.is_empty());
                said.or_else(|| lost.problem.clone()).unwrap_or_else(|| "it is looked for".to_owned())
            }
        };
        let package = &pin.package;
        Some(format!(
            "the package of version {} is lost ({}); Chart {chart}: {why}",
            package.version, package.digest
        ))
    }
}

impl Lost {
    /// Records that the package could not be had. It is tried again, ever more rarely.
    fn failed(&mut self, now: Time, problem: String) {
        self.failures = self.failures.saturating_add(1);
        (self.version, self.problem) = (None, Some(problem));
        self.retry_at = Some(now + retry_after(self.failures));
    }
}

/// Returns whether a pin is one of the chart that a module names now.
fn is_of(pin: &Pin, reference: &ChartReference) -> bool {
    (&pin.package.repository, &pin.package.chart) == (&reference.repository, &reference.name)
}

/// Returns whether the first constraint of a Chart takes the version that is pinned.
fn takes_pinned(chart: &Chart, pin: &Pin) -> bool {
    let first = chart.found().and_then(|found| found.as_ref().ok()?.versions.first()?.as_ref().ok());
    first.is_some_and(|first| first.version == pin.package.version)
}

fn other_archive(stored: &StoredPackage, chart: &str) -> String {
    format!(
        "the repository has another archive under this version ({}); raise the annotation addon-operator.io/reprocess of Chart {chart} to have it taken",
        stored.digest
    )
}

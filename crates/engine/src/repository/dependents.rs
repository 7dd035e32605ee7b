//! The Charts that a Chart needs: they are made, get the constraints as they are written, and are waited for.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::chart::Chart;
use super::object::UNMANAGED;
use super::patches::Change;
use super::repositories::Repositories;
use super::repository_work::new_chart;
use crate::addon::shown_url;
use crate::package::{PackageDependency, RepositoryKey, RepositoryKind};

/// A version of a Chart.
type Node = (Arc<str>, Arc<str>);

impl Repositories {
    /// Returns the Repository from which a chart comes that a chart of `own` needs: its own if the URLs are equal, else one with
    /// that URL, which is of the same group if its own is in one, else its own.
    fn repository_for(&self, dependency: &PackageDependency, own: &Arc<str>) -> Arc<str> {
        let url = dependency.repository.trim_end_matches('/');
        if let Some(alias) = url
            .strip_prefix('@')
            .or_else(|| url.strip_prefix("alias:"))
            .or_else(|| url.strip_prefix("catalog://"))
        {
            return alias.into();
        }
        let has_url = |name: &Arc<str>| self.has_url(name, url) == Some(true);
        if has_url(own) {
            return Arc::clone(own);
        }
        let group = self.group_of(own);
        let fits = |name: &&Arc<str>| has_url(name) && (group.is_none() || self.group_of(name) == group);
        self.repositories.keys().find(fits).unwrap_or(own).clone()
    }

    /// Returns whether a Repository has this URL, if it has any.
    fn has_url(&self, name: &Arc<str>, url: &str) -> Option<bool> {
        let access = self.repositories.get(name)?.access(name)?;
        Some(access.url.trim_end_matches('/') == url)
    }

    fn group_of(&self, name: &Arc<str>) -> Option<&str> {
        self.repositories.get(name).and_then(|repository| repository.group())
    }

    /// Returns whether a dependency names a URL that is not that of the Repository in which it is looked for.
    fn is_elsewhere(&self, dependency: &PackageDependency, repository: &Arc<str>) -> bool {
        let url = dependency.repository.trim_end_matches('/');
        let is_url = url.contains("://") && !url.starts_with("catalog://");
        is_url && self.has_url(repository, url) == Some(false)
    }

    /// Returns the name of the Chart that is made for a dependency, and its Repository.
    fn dependent_of(&self, dependency: &PackageDependency, own: &Arc<str>) -> (Arc<str>, Arc<str>) {
        let repository = self.repository_for(dependency, own);
        let name = self.name_for_chart(&dependency.name, &repository, |_| true);
        (name, repository)
    }

    /// Returns the dependencies of a Chart, each with the Chart and the Repository that it comes to.
    fn dependents(&self, chart: &Chart) -> Vec<(PackageDependency, Arc<str>, Arc<str>)> {
        let Some(spec) = chart.spec().filter(|spec| spec.create_deps) else { return Vec::new() };
        let all: BTreeSet<&PackageDependency> =
            chart.packages().flat_map(|stored| &stored.dependencies).collect();
        let dependent = |dependency: &PackageDependency| {
            let (name, repository) = self.dependent_of(dependency, &spec.repository);
            (dependency.clone(), name, repository)
        };
        all.into_iter().map(dependent).collect()
    }

    /// Returns the constraints on a Chart of those that need it.
    pub(super) fn wanted_by_others(&self, name: &Arc<str>) -> BTreeSet<String> {
        let all = self.charts.values().flat_map(|chart| self.dependents(chart));
        all.filter(|(_, dependent, _)| dependent == name)
            .map(|(dependency, _, _)| dependency.version)
            .collect()
    }

    /// Asks for the work on those Charts that need one, and on the Repository that lists it.
    pub(super) fn wake_dependents_of(&mut self, name: &Arc<str>) {
        let needs = |chart: &Chart| self.dependents(chart).iter().any(|(_, dependent, _)| dependent == name);
        let parents: Vec<Arc<str>> = self
            .charts
            .iter()
            .filter(|(_, chart)| needs(chart))
            .map(|(parent, _)| Arc::clone(parent))
            .collect();
        for parent in parents {
            self.wake(RepositoryKind::Chart, &parent);
        }
    }

    /// Returns the next Chart that has to be made or changed because another one needs it.
    pub(super) fn dependent_to_write(
        &self,
        name: &Arc<str>,
        chart: &Chart,
        applied: &BTreeSet<Arc<str>>,
    ) -> Option<(Arc<str>, Change)> {
        // Nothing of a circle can be used. Who deletes it does so one by one: the others do not bring back what is gone.
        if chart.goes_round == Some(chart.look) {
            return None;
        }
        for (dependency, dependent, repository_name) in self.dependents(chart) {
            if applied.contains(&dependent) || dependent == *name {
                continue;
            }
            let Some(repository) = self.repositories.get(&repository_name) else { continue };
            let Some(access) = repository.access(&repository_name) else { continue };
            let key = RepositoryKey { kind: RepositoryKind::Chart, name: Arc::clone(&dependent) };
            let Some(known) = self.charts.get(&dependent).and_then(|known| known.object.as_ref()) else {
                let versions: Vec<String> = self.wanted_by_others(&dependent).into_iter().collect();
                let of = (repository, &repository_name, &*access.uid);
                let made = new_chart(&dependency.name, &versions, of, Some("true"));
                return Some((dependent, Change::apply(key, made)));
            };
            let Ok(spec) = &known.spec else { continue };
            // What a Repository lists it writes itself, with what others need.
            let is_managed = known.owners.contains(&access.uid) && !known.labels.contains_key(UNMANAGED);
            if !is_managed && !known.is_deleting && !spec.versions.contains(&dependency.version) {
                let mut versions = spec.versions.clone();
                versions.push(dependency.version);
                let patch =
                    json!({"metadata": {"resourceVersion": known.version}, "spec": {"versions": versions}});
                return Some((dependent, Change::merge(key, patch)));
            }
        }
        None
    }

    /// Returns what is wrong with the Charts that a Chart needs, or what it waits for.
    pub(super) fn dependency_problems(&self, name: &Arc<str>, chart: &Chart) -> Vec<String> {
        if let Some(circle) = self.circle_through(name) {
            return vec![format!("its dependencies go round in a circle: {}", circle.join(" → "))];
        }
        let mut problems = Vec::new();
        for (dependency, dependent, repository) in self.dependents(chart) {
            let what = &dependency.name;
            match self.charts.get(&dependent) {
                _ if !self.repositories.contains_key(&repository) => {
                    problems.push(format!("{what}: there is no Repository {:?}", &*repository));
                }
                Some(known) if known.is_synced() => {}
                Some(_)
                    if self.needs_chart(&dependent, name)
                        && self.is_complete(&dependent, &dependency.version) => {}
                known if self.is_elsewhere(&dependency, &repository) => {
                    let url = shown_url(&dependency.repository);
                    let said = known.and_then(|known| known.object.as_ref()).map(|object| object.synced().1);
                    let said = said.filter(|said| !said.is_empty()).unwrap_or("it is not synced yet");
                    problems.push(format!(
                        "{what}: no Repository {}has the URL {url}, create one; Chart {dependent} of Repository {repository}: {said}",
                        if self.group_of(&repository).is_some() { "of its group " } else { "" }
                    ));
                }
                Some(known) => {
                    let said = known.object.as_ref().map(|object| object.synced().1).unwrap_or_default();
                    let why = if said.is_empty() { "it is not synced yet" } else { said };
                    problems.push(format!("{what}: Chart {dependent}: {why}"));
                }
                None => problems.push(format!("{what}: Chart {dependent} is not there yet")),
            }
        }
        problems
    }

    /// Returns whether a Chart goes round in a circle with charts that it needs, or needs such a circle.
    pub(super) fn goes_round(&self, name: &Arc<str>) -> bool {
        let Some(chart) = self.charts.get(name).filter(|chart| chart.spec().is_some_and(|s| s.create_deps))
        else {
            return false;
        };
        let mut seen: BTreeSet<Arc<str>> = BTreeSet::from([Arc::clone(name)]);
        let mut left: Vec<Arc<str>> = self.dependents(chart).into_iter().map(|(_, name, _)| name).collect();
        while let Some(next) = left.pop() {
            if seen.insert(Arc::clone(&next))
                && let Some(chart) = self.charts.get(&next)
            {
                left.extend(self.dependents(chart).into_iter().map(|(_, name, _)| name));
            }
        }
        seen.iter().any(|name| self.circle_through(name).is_some())
    }

    /// Returns the Charts of a circle of dependencies that leads through one, if there is such a circle.
    ///
    /// Another version of a chart may need other charts: what goes round are versions.
    fn circle_through(&self, name: &Arc<str>) -> Option<Vec<String>> {
        let chart = self.charts.get(name)?;
        chart.versions().find_map(|version| {
            let start = (Arc::clone(name), Arc::clone(&version.version));
            let mut seen = BTreeSet::new();
            // Paths are short, and each version is entered once.
            let mut paths = vec![vec![start.clone()]];
            while let Some(path) = paths.pop() {
                for next in self.needed_by(path.last()?).into_iter().flatten().flatten() {
                    if next == start {
                        return Some(
                            path.iter().chain([&next]).map(|(chart, _)| chart.to_string()).collect(),
                        );
                    }
                    if seen.insert(next.clone()) {
                        paths.push(path.iter().cloned().chain([next]).collect());
                    }
                }
            }
            None
        })
    }

    /// Returns the versions that a kept version needs, `None` for each that is not found yet; `None` if it is not kept.
    fn needed_by(&self, (name, version): &Node) -> Option<Vec<Option<Node>>> {
        let chart = self.charts.get(name)?;
        let own = chart.repository()?;
        let is_asked_for = chart.spec().is_some_and(|spec| spec.create_deps);
        let stored = chart.stored.get(version)?.1.as_ref().ok()?;
        let needed = |dependency: &PackageDependency| {
            let (dependent, _) = self.dependent_of(dependency, own);
            let version = self.charts.get(&dependent)?.version_for(&dependency.version)?;
            Some((dependent, version))
        };
        Some(stored.dependencies.iter().filter(|_| is_asked_for).map(needed).collect())
    }

    /// Returns whether a version that is needed is kept, and all that it needs itself.
    ///
    /// Two Charts may need versions of each other that do not go round in a circle. Neither is synced before the other one then, so
    /// this is what tells that nothing is lacking.
    fn is_complete(&self, dependent: &Arc<str>, constraint: &str) -> bool {
        let Some(version) = self.charts.get(dependent).and_then(|chart| chart.version_for(constraint)) else {
            return false;
        };
        let mut left = vec![(Arc::clone(dependent), version)];
        let mut seen: BTreeSet<Node> = left.iter().cloned().collect();
        while let Some(node) = left.pop() {
            let Some(needed) = self.needed_by(&node) else { return false };
            for next in needed {
                let Some(next) = next else { return false };
                if seen.insert(next.clone()) {
                    left.push(next);
                }
            }
        }
        true
    }

    /// Returns whether a Chart needs another one, itself or through others.
    fn needs_chart(&self, name: &Arc<str>, other: &Arc<str>) -> bool {
        let mut left = vec![Arc::clone(name)];
        let mut seen = BTreeSet::new();
        while let Some(name) = left.pop() {
            let needed = self.charts.get(&name).map(|chart| self.dependents(chart)).unwrap_or_default();
            for (_, next, _) in needed {
                if next == *other {
                    return true;
                }
                if seen.insert(Arc::clone(&next)) {
                    left.push(next);
                }
            }
        }
        false
    }
}

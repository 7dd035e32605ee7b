//! The Charts that a Chart needs: they are made, get the constraints as they are written, and are waited for.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::chart::Chart;
use super::chart_status::LACKS_OTHERS;
use super::known::Repository;
use super::object::{Object, STANDS_IN_FOR, UNMANAGED};
use super::patches::Change;
use super::repositories::Repositories;
use super::repository_work::new_chart;
use crate::addon::shown_url;
use crate::package::{ChartSpec, PackageDependency, RepositoryAccess, RepositoryKey, RepositoryKind};

/// A version of a Chart.
type Node = (Arc<str>, Arc<str>);

/// How the message of a circle begins.
const ROUND: &str = "its dependencies go round in a circle";

/// Returns what is wrong with a Chart that another one needs.
///
/// What it waits for itself, it says itself. If those above it said that, too, each step below would be told by all of them.
fn said(chart: &Chart) -> &str {
    let Some(object) = &chart.object else { return "it is not synced yet" };
    let (_, message) = object.synced();
    let waits = object.reason() == LACKS_OTHERS && !message.starts_with(ROUND);
    match message {
        _ if waits => "charts that it needs are not synced",
        "" => "it is not synced yet",
        message => message,
    }
}

/// Returns whether a Repository has this URL, which has no slash at its end.
fn is_at(access: &RepositoryAccess, url: &str) -> bool {
    access.url.trim_end_matches('/') == url
}

/// Returns whether a Repository has the URL of which this is what may be shown.
fn is_at_shown(access: &RepositoryAccess, url: &str) -> bool {
    *shown_url(access.url.trim_end_matches('/')) == *url
}

impl Repositories {
    /// Returns the Repository from which a chart comes that a chart of `own` needs: its own if the URLs are equal, else one with
    /// that URL, which is of the same group if its own is in one, else its own.
    pub(super) fn repository_for(&self, dependency: &PackageDependency, own: &Arc<str>) -> Arc<str> {
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
        self.other_with(own, |access| is_at(access, url)).unwrap_or(own).clone()
    }

    /// Returns the first Repository that is meant, which is of the same group as `own` if that is in one.
    fn other_with(&self, own: &Arc<str>, is_meant: impl Fn(&RepositoryAccess) -> bool) -> Option<&Arc<str>> {
        let group = self.group_of(own);
        let fits = |(name, repository): &(&Arc<str>, &Repository)| {
            (group.is_none() || repository.group() == group)
                && repository.access(name).is_some_and(|access| is_meant(&access))
        };
        self.repositories.iter().find(fits).map(|(name, _)| name)
    }

    /// Returns whether a Repository has this URL, if it has any.
    fn has_url(&self, name: &Arc<str>, url: &str) -> Option<bool> {
        let access = self.repositories.get(name)?.access(name)?;
        Some(is_at(&access, url))
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

    /// Returns the constraints on Charts of those that need them.
    pub(super) fn wanted_by_others(&self) -> BTreeMap<Arc<str>, BTreeSet<String>> {
        let mut wanted: BTreeMap<Arc<str>, BTreeSet<String>> = BTreeMap::new();
        for (dependency, dependent, _) in self.charts.values().flat_map(|chart| self.dependents(chart)) {
            wanted.entry(dependent).or_default().insert(dependency.version);
        }
        wanted
    }

    /// Returns whether a Chart was made in place of one of another Repository, which is there now and is synced.
    pub(super) fn is_superseded(
        &self,
        name: &Arc<str>,
        object: &Object<ChartSpec>,
        spec: &ChartSpec,
    ) -> bool {
        let Some(url) = &object.stands_in_for else { return false };
        let own = self.repositories.get(&spec.repository).and_then(|own| own.access(&spec.repository));
        let is_ours = own.is_some_and(|own| object.owners.contains(&own.uid));
        // One that its Repository lists stays as long as that does.
        if !is_ours || !object.labels.contains_key(UNMANAGED) {
            return false;
        }
        let is_meant = |access: &RepositoryAccess| is_at_shown(access, url);
        let Some(right) = self.other_with(&spec.repository, is_meant) else { return false };
        let other = self.name_for_chart(&spec.name, right, |_| true);
        other != *name
            && self.charts.get(&other).is_some_and(Chart::is_synced)
            && !self.wanted_by_others().contains_key(name)
    }

    /// Asks for the work on those Charts that need one, on the Repository that lists it, and on those that stand in for it.
    pub(super) fn wake_dependents_of(&mut self, name: &Arc<str>) {
        let own = self.charts.get(name).and_then(Chart::name);
        let stands_in = |chart: &Chart| {
            chart.object.as_ref().is_some_and(|object| object.stands_in_for.is_some()) && chart.name() == own
        };
        let needs = |chart: &Chart| {
            stands_in(chart) || self.dependents(chart).iter().any(|(_, dependent, _)| dependent == name)
        };
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
                let wanted = self.wanted_by_others().remove(&dependent).unwrap_or_default();
                let versions: Vec<String> = wanted.into_iter().collect();
                let of = (repository, &repository_name, &*access.uid);
                let stands_in_for = self
                    .is_elsewhere(&dependency, &repository_name)
                    .then(|| shown_url(dependency.repository.trim_end_matches('/')));
                let made = new_chart(&dependency.name, &versions, of, Some("true"), stands_in_for.as_deref());
                return Some((dependent, Change::apply(key, made)));
            };
            let Ok(spec) = &known.spec else { continue };
            if known.stands_in_for.is_some()
                && !known.is_deleting
                && !self.is_elsewhere(&dependency, &repository_name)
            {
                // From now on it is there for itself.
                let patch = json!({"metadata": {
                    "resourceVersion": known.version, "annotations": {STANDS_IN_FOR: Value::Null},
                }});
                return Some((dependent, Change::merge(key, patch)));
            }
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
            return vec![format!("{ROUND}: {}", circle.join(" → "))];
        }
        let mut problems = Vec::new();
        let dependents = self.dependents(chart);
        let is_lacking = |dependent: &Arc<str>| !self.charts.get(dependent).is_some_and(Chart::is_synced);
        let need_it = if dependents.iter().any(|(_, dependent, _)| is_lacking(dependent)) {
            self.that_need(name)
        } else {
            BTreeSet::new()
        };
        for (dependency, dependent, repository) in dependents {
            let what = &dependency.name;
            match self.charts.get(&dependent) {
                _ if !self.repositories.contains_key(&repository) => {
                    problems.push(format!("{what}: there is no Repository {:?}", &*repository));
                }
                Some(known) if known.is_synced() => {}
                Some(_)
                    if need_it.contains(&dependent) && self.is_complete(&dependent, &dependency.version) => {}
                known if self.is_elsewhere(&dependency, &repository) => {
                    let url = shown_url(&dependency.repository);
                    let said = known.map_or("it is not there yet", said);
                    problems.push(format!(
                        "{what}: no Repository {}has the URL {url}, create one; Chart {dependent} of Repository {repository}: {said}",
                        if self.group_of(&repository).is_some() { "of its group " } else { "" }
                    ));
                }
                Some(known) => {
                    problems.push(format!("{what}: Chart {dependent}: {}", said(known)));
                }
                None => problems.push(format!("{what}: Chart {dependent} is not there yet")),
            }
        }
        problems
    }

    /// Returns whether a Chart goes round in a circle with charts that it needs, or needs such a circle.
    ///
    /// Each version is entered once, however many lead to it.
    pub(super) fn goes_round(&self, name: &Arc<str>) -> bool {
        let needed = self.needed_charts(name);
        let versions = |name: &Arc<str>| {
            let versions = self.charts.get(name).into_iter().flat_map(Chart::versions);
            versions.map(|version| (Arc::clone(name), Arc::clone(&version.version))).collect::<Vec<Node>>()
        };
        // What was entered once, and what of it is on the path from where it began.
        let (mut seen, mut entered) = (BTreeSet::new(), BTreeSet::new());
        for start in needed.keys().flat_map(versions) {
            let mut path: Vec<(Node, Vec<Node>)> = Vec::new();
            let mut next = Some(start);
            loop {
                if let Some(node) = next.take() {
                    if entered.contains(&node) {
                        return true;
                    }
                    if seen.insert(node.clone()) {
                        let needs = self.needed_by(&node).into_iter().flatten().flatten().collect();
                        entered.insert(node.clone());
                        path.push((node, needs));
                    }
                }
                let Some((node, left)) = path.last_mut() else { break };
                next = left.pop();
                if next.is_none() {
                    entered.remove(&*node);
                    path.pop();
                }
            }
        }
        false
    }

    /// Returns a Chart and all Charts that it needs, itself or through others, each with those that it needs itself.
    fn needed_charts(&self, name: &Arc<str>) -> BTreeMap<Arc<str>, Vec<Arc<str>>> {
        let mut needed = BTreeMap::new();
        let mut left = vec![Arc::clone(name)];
        while let Some(next) = left.pop() {
            if needed.contains_key(&next) {
                continue;
            }
            let dependents = self.charts.get(&next).map(|chart| self.dependents(chart)).unwrap_or_default();
            let its: Vec<Arc<str>> = dependents.into_iter().map(|(_, dependent, _)| dependent).collect();
            left.extend(its.iter().cloned());
            needed.insert(next, its);
        }
        needed
    }

    /// Returns those of the Charts that a Chart needs which need it themselves.
    fn that_need(&self, name: &Arc<str>) -> BTreeSet<Arc<str>> {
        let mut needed_by: BTreeMap<&Arc<str>, Vec<&Arc<str>>> = BTreeMap::new();
        let needed = self.needed_charts(name);
        for (parent, its) in &needed {
            for chart in its {
                needed_by.entry(chart).or_default().push(parent);
            }
        }
        let mut found = BTreeSet::new();
        let mut left = vec![name];
        while let Some(next) = left.pop() {
            for parent in needed_by.get(next).into_iter().flatten().copied() {
                if found.insert(Arc::clone(parent)) {
                    left.push(parent);
                }
            }
        }
        found
    }

    /// Returns the Charts of a circle of dependencies that leads through one, if there is such a circle.
    ///
    /// Another version of a chart may need other charts: what goes round are versions.
    fn circle_through(&self, name: &Arc<str>) -> Option<Vec<String>> {
        let chart = self.charts.get(name)?;
        chart.versions().find_map(|version| {
            let start = (Arc::clone(name), Arc::clone(&version.version));
            // How each version was come to. Each is entered once.
            let mut before: BTreeMap<Node, Node> = BTreeMap::new();
            let mut left = vec![start.clone()];
            while let Some(node) = left.pop() {
                for next in self.needed_by(&node).into_iter().flatten().flatten() {
                    if next == start {
                        let back = std::iter::successors(Some(&node), |node| before.get(*node));
                        let mut circle: Vec<String> = back.map(|(chart, _)| chart.to_string()).collect();
                        circle.reverse();
                        circle.push(name.to_string());
                        return Some(circle);
                    }
                    if let Entry::Vacant(entry) = before.entry(next.clone()) {
                        entry.insert(node.clone());
                        left.push(next);
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
}

//! The work on a Repository: its index, the Charts that it lists, and its status.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use objects::legal;
use serde_json::{Map, Value, json};

use super::announcements::{announce_left_out, announce_repository};
use super::chart::Chart;
use super::index_request::{index_request, is_index_due};
use super::known::{Asked, Index, KEPT, Repository, Stage, Written};
use super::object::{
    CHART, GROUP, Object, REPO, STANDS_IN_FOR, UNMANAGED, condition, owner, status_change, without_nulls,
};
use super::patches::Change;
use super::repositories::Repositories;
use super::work::{RepositoryAnswer, retry_after};
use crate::context::Context;
use crate::effect::Effect;
use crate::failure::Failure;
use crate::package::{
    ChartRepositorySpec, ChartSpec, FetchedIndex, IndexRequest, RepositoryKey, RepositoryKind,
};
use crate::reconcile::Step;
use crate::time::Time;

/// The finalizer of Repositories.
const FINALIZER: &str = "finalizer.repo.yaho.soer3n.dev";

/// The type of the condition that says that not all charts of an index are kept.
const TRUNCATED: &str = "IndexTruncated";

/// Where the status says how many charts an index has of which not all are kept.
const OFFERED: &str = "offered";

/// The first thing that is not as it should be.
enum Todo {
    Nothing,
    Change(Change, Written),
    Fetch(Box<IndexRequest>, Asked),
}

impl Repositories {
    pub(super) fn observe_repository(&mut self, name: &Arc<str>, json: Option<&[u8]>) {
        let object = json.map(|json| Object::read(json, ChartRepositorySpec::read));
        let repository = self.repositories.entry(Arc::clone(name)).or_default();
        let before = repository.access(name);
        let group = repository.group().map(str::to_owned);
        let (interval, asked) = (repository.interval(), repository.object.as_ref().map(|its| its.reprocess));
        let generation = repository.object.as_ref().map(|its| its.generation);
        if let Some(object) = &object {
            repository.announced.see(&object.uid, object.says_synced());
        }
        repository.object = object;
        if repository.interval() != interval {
            repository.reschedule();
        }
        // Who changes what it says may have corrected what fails.
        if repository.failures > 0
            && repository
                .object
                .as_ref()
                .zip(generation)
                .is_some_and(|(object, its)| object.generation != its)
        {
            repository.is_asked_for = true;
        }
        // What was raised before this operator began was a reason for another one.
        if repository.object.as_ref().zip(asked).is_some_and(|(object, asked)| object.reprocess > asked) {
            (repository.is_asked_for, repository.is_forced) = (true, true);
        }
        let is_other = before != repository.access(name) || group.as_deref() != repository.group();
        if repository.object.is_none() {
            self.repositories.remove(name);
        }
        self.has_moved |= is_other;
        if is_other {
            self.wake_charts_of(name, |_| true);
            let needs = |chart: &Chart| chart.spec().is_some_and(|spec| spec.create_deps);
            let names: Vec<Arc<str>> = self
                .charts
                .iter()
                .filter(|(_, chart)| needs(chart))
                .map(|(name, _)| Arc::clone(name))
                .collect();
            for name in &names {
                self.wake(RepositoryKind::Chart, name);
            }
        }
        let now = self.repositories.get(name).and_then(|repository| repository.group().map(str::to_owned));
        for group in BTreeSet::from([group, now]).into_iter().flatten() {
            self.wake_groups(&group);
        }
    }

    pub(super) fn repository_has_work(&self, name: &Arc<str>, now: Time) -> bool {
        let Some(repository) = self.repositories.get(name) else { return false };
        let is_changed = |todo: Todo| !matches!(todo, Todo::Nothing) || repository.is_rescheduled;
        repository.object.is_some() && is_changed(self.repository_todo(name, now))
    }

    /// Returns whether an index is being fetched that nobody asks for any more.
    pub(super) fn is_fetch_outdated(&self, name: &Arc<str>) -> bool {
        let Some(repository) = self.repositories.get(name) else { return true };
        let Stage::Fetching(asked) = &repository.stage else { return false };
        let spec = repository.object.as_ref().and_then(|object| object.spec.as_ref().ok());
        spec.is_none_or(|spec| (&spec.url, spec.auth_secret.as_ref()) != (&asked.url, asked.secret.as_ref()))
    }

    pub(super) fn advance_repository(&mut self, cx: &mut Context, name: &Arc<str>) -> Step {
        if let Some(failure) = self.repository_answered(cx, name) {
            return Step::Failed(failure);
        }
        let todo = self.repository_todo(name, cx.now);
        let Some(repository) = self.repositories.get_mut(name) else { return Step::Done };
        match todo {
            Todo::Nothing => {
                repository.applied.clear();
                repository.is_rescheduled = false;
                if repository.announced.is_in_doubt()
                    && let Some(object) = &repository.object
                {
                    announce_repository(cx, name, object, &mut repository.announced);
                }
                repository.fetch_at.map_or(Step::Done, |at| Step::Again(at.since(cx.now)))
            }
            Todo::Change(change, written) => {
                repository.stage = Stage::Writing(written);
                change.begin(cx, &RepositoryKey { kind: RepositoryKind::Repository, name: Arc::clone(name) })
            }
            Todo::Fetch(request, asked) => {
                repository.stage = Stage::Fetching(asked);
                repository.fetch_at = None;
                (repository.is_asked_for, repository.is_forced) = (false, false);
                let run = cx.ids.run();
                Step::Fetch(run, Box::new(Effect::FetchIndex { run, request }))
            }
        }
    }

    /// Takes in the answer to what was begun. Returns why the API server or we failed.
    fn repository_answered(&mut self, cx: &mut Context, name: &Arc<str>) -> Option<Failure> {
        let repository = self.repositories.get_mut(name)?;
        let stage = std::mem::take(&mut repository.stage);
        match (stage, repository.answer.take()) {
            (Stage::Fetching(asked), Some(RepositoryAnswer::Fetched(Ok(outcome)))) => {
                self.index_known(cx, name, asked, outcome);
                None
            }
            (Stage::Fetching(_), Some(RepositoryAnswer::Fetched(Err(failure)))) => {
                // It is still due.
                repository.fetch_at = Some(cx.now);
                Some(failure).filter(|failure| !failure.is_cancelled())
            }
            (Stage::Writing(written), Some(RepositoryAnswer::Patched(Ok(())))) => {
                match (written, &mut repository.object) {
                    (Written::Chart(chart), _) => drop(repository.applied.insert(chart)),
                    (Written::Finalizers(names), Some(object)) => object.finalizers = names,
                    (Written::Status(status), Some(object)) => {
                        object.status = status;
                        announce_repository(cx, name, object, &mut repository.announced);
                    }
                    (Written::Finalizers(_) | Written::Status(_), None) => {}
                }
                None
            }
            (stage, answer) => {
                if matches!(stage, Stage::Writing(Written::Status(_))) {
                    repository.announced.doubt();
                }
                answer.and_then(RepositoryAnswer::failure)
            }
        }
    }

    /// Records what a look at an index found. Charts whose versions are others now, and those that were not synced, are looked at.
    fn index_known(
        &mut self,
        cx: &mut Context,
        name: &Arc<str>,
        asked: Asked,
        mut outcome: Result<FetchedIndex, String>,
    ) {
        let Some(repository) = self.repositories.get_mut(name) else { return };
        let now = cx.now;
        if let Ok(index) = &mut outcome
            && index.is_unchanged
        {
            if let Some(Index { outcome: Ok(before), .. }) = &repository.index {
                index.missing.clone_from(&before.missing);
                index.kept = before.kept;
                index.truncated = before.truncated;
                index.left_out.clone_from(&before.left_out);
            } else {
                // What was found before a restart is what the status says.
                let told = |field| repository.object.as_ref().map_or(0, |object| object.status_count(field));
                index.kept = told(KEPT);
                index.truncated = Some(told(OFFERED)).filter(|count| *count > 0 && asked.is_open);
            }
        }
        let known = repository.index.as_ref().and_then(|index| index.outcome.as_ref().ok());
        if let Ok(index) = &outcome
            && !index.left_out.is_empty()
            && known.is_none_or(|known| known.left_out != index.left_out)
            && let Some(object) = &repository.object
        {
            announce_left_out(cx, name, object, &index.left_out);
        }
        repository.looked_at = now;
        if outcome.as_ref().is_ok_and(|index| index.refused.is_empty()) {
            repository.failures = 0;
            repository.fetch_at = repository.interval().map(|interval| now + interval);
        } else {
            repository.failures = repository.failures.saturating_add(1);
            repository.fetch_at = Some(now + retry_after(repository.failures));
        }
        let changed = outcome.as_ref().map(|index| index.changed.clone()).unwrap_or_default();
        let is_fine = outcome.is_ok();
        repository.index = Some(Index { asked, outcome });
        let charts = self.charts.iter();
        let concerned: Vec<Arc<str>> = charts
            .filter(|(_, chart)| chart.repository() == Some(name))
            .filter(|(_, chart)| {
                chart.name().is_some_and(|chart| changed.contains(&**chart)) || chart.is_unresolved()
            })
            .map(|(name, _)| Arc::clone(name))
            .collect();
        for chart in concerned {
            if is_fine {
                self.look_again_at_chart(&chart);
            } else {
                // It says now what it waits for.
                self.wake(RepositoryKind::Chart, &chart);
            }
        }
    }

    /// Returns the first thing about a Repository that is not as it should be.
    fn repository_todo(&self, name: &Arc<str>, now: Time) -> Todo {
        let Some(repository) = self.repositories.get(name) else { return Todo::Nothing };
        let Some(object) = &repository.object else { return Todo::Nothing };
        let key = RepositoryKey { kind: RepositoryKind::Repository, name: Arc::clone(name) };
        let has_finalizer = object.finalizers.iter().any(|name| name == FINALIZER);
        if object.is_deleting == has_finalizer {
            let is_on = !object.is_deleting;
            let others = object.finalizers.iter().filter(|name| *name != FINALIZER).cloned();
            let names = others.chain(is_on.then(|| FINALIZER.to_owned())).collect();
            return Todo::Change(
                Change::finalizer(key, object, FINALIZER, is_on),
                Written::Finalizers(names),
            );
        }
        if object.is_deleting {
            return Todo::Nothing;
        }
        if let Ok(spec) = &object.spec {
            let asked = self.asked_of(name, spec);
            if is_index_due(repository, object, spec, &asked, now)
                || (repository.index.is_none() && self.lacks_index_map(name))
            {
                let request = index_request(repository, object, name, &asked);
                return Todo::Fetch(Box::new(request), asked);
            }
            if let Some((chart, change)) = self.chart_to_write(name, repository, object, spec) {
                return Todo::Change(change, Written::Chart(chart));
            }
        }
        let status = self.repository_status(name, repository, object);
        match status_change(&object.status, &status, &self.config.time_of_day(now)) {
            None => Todo::Nothing,
            Some(change) => {
                let written = Written::Status(without_nulls(&change));
                Todo::Change(Change::status(key, &change), written)
            }
        }
    }

    /// Returns whether a Chart of a Repository found no versions of its chart: no index was kept of it.
    fn lacks_index_map(&self, name: &Arc<str>) -> bool {
        let mut charts = self.charts.values().filter(|chart| chart.repository() == Some(name));
        charts.any(|chart| {
            let is_without = chart.spec().is_some_and(|spec| spec.versions.is_empty());
            if is_without { !chart.is_synced() } else { chart.found().is_some_and(Result::is_err) }
        })
    }

    /// Returns which charts of an index are kept: those that are listed, and those that Charts are about.
    fn asked_of(&self, name: &Arc<str>, spec: &ChartRepositorySpec) -> Asked {
        let listed = spec.charts.iter().map(|chart| Arc::from(chart.name.as_str()));
        let wanted = self.charts.values().filter(|chart| chart.repository() == Some(name));
        let wanted = wanted.filter_map(|chart| chart.name().cloned());
        let charts = listed.chain(wanted).filter(|chart| !chart.is_empty()).collect();
        let secret = spec.auth_secret.clone().filter(|secret| !secret.is_empty());
        let references = self.modules.values().filter_map(|module| module.reference.as_ref());
        let aged = references.filter(|its| its.repository == *name && !its.min_age.is_zero());
        let aged = aged.map(|its| Arc::clone(&its.name)).collect();
        Asked { url: spec.url.clone(), secret, charts, aged, is_open: spec.charts.is_empty() }
    }

    fn repository_status(
        &self,
        name: &Arc<str>,
        repository: &Repository,
        object: &Object<ChartRepositorySpec>,
    ) -> Map<String, Value> {
        let count = self.charts.values().filter(|chart| chart.repository() == Some(name)).count();
        let mut fields = Map::new();
        fields.insert("charts".to_owned(), count.into());
        fields.insert("observedGeneration".to_owned(), object.generation.into());
        let outcome = match (&object.spec, &repository.index) {
            (Err(problem), _) => Err(problem.as_str()),
            (Ok(_), Some(index)) => index.outcome.as_ref().map_err(String::as_str),
            (Ok(_), None) => {
                // Nobody asked yet: what was said stays.
                for field in ["synced", "conditions", "etag", "modified", KEPT, OFFERED] {
                    fields.extend(object.status.get(field).map(|value| (field.to_owned(), value.clone())));
                }
                return fields;
            }
        };
        let is_whole = outcome.is_ok_and(|index| index.refused.is_empty());
        fields.insert("synced".to_owned(), is_whole.into());
        let mut conditions = vec![match outcome {
            Ok(index) if is_whole => condition(true, "install", &missing(index)),
            Ok(index) => condition(false, "fetchIndexFailed", &refused(index)),
            Err(problem) => condition(false, "fetchIndexFailed", problem),
        }];
        if let Ok(index) = outcome {
            for (field, text) in [("etag", &index.validator.etag), ("modified", &index.validator.modified)] {
                if !text.is_empty() {
                    fields.insert(field.to_owned(), text.as_str().into());
                }
            }
            if index.kept > 0 {
                fields.insert(KEPT.to_owned(), index.kept.into());
            }
            if let Some(offered) = index.truncated {
                fields.insert(OFFERED.to_owned(), offered.into());
                let message = format!(
                    "the index has {offered} charts; the first by name are kept (--charts-index-max), and those that spec.charts lists"
                );
                conditions.push(json!({
                    "type": TRUNCATED, "status": "True", "reason": TRUNCATED, "message": message,
                }));
            }
        }
        fields.insert("conditions".to_owned(), conditions.into());
        fields
    }

    /// Returns the next Chart that has to be made, changed or deleted because of what a Repository lists.
    fn chart_to_write(
        &self,
        name: &Arc<str>,
        repository: &Repository,
        object: &Object<ChartRepositorySpec>,
        spec: &ChartRepositorySpec,
    ) -> Option<(Arc<str>, Change)> {
        let chart_key =
            |chart: &Arc<str>| RepositoryKey { kind: RepositoryKind::Chart, name: Arc::clone(chart) };
        let mut managed = BTreeSet::new();
        let mut others = if spec.charts.is_empty() { BTreeMap::new() } else { self.wanted_by_others() };
        for listed in spec.charts.iter().filter(|listed| !listed.name.is_empty()) {
            let chart = self.name_for_chart(&listed.name, name, |known| known.owners.contains(&object.uid));
            managed.insert(Arc::clone(&chart));
            if repository.applied.contains(&chart) {
                continue;
            }
            let versions = union(&listed.versions, others.remove(&chart).unwrap_or_default());
            let known = self.charts.get(&chart).and_then(|chart| chart.object.as_ref());
            let is_so = known.is_some_and(|known| {
                let is_spec =
                    known.spec.as_ref().is_ok_and(|spec| spec.versions == versions && spec.create_deps);
                is_spec && !known.labels.contains_key(UNMANAGED) && known.owners.contains(&object.uid)
            });
            if !is_so && known.is_none_or(|known| !known.is_deleting) {
                // It is managed from now on.
                let unmanaged =
                    known.filter(|known| known.labels.contains_key(UNMANAGED)).map(|_| Value::Null);
                let of = (repository, name, &*object.uid);
                let wanted = new_chart(&listed.name, &versions, of, unmanaged, None);
                return Some((Arc::clone(&chart), Change::apply(chart_key(&chart), wanted)));
            }
        }
        let is_left = |(chart, known): &(&Arc<str>, &Chart)| {
            let object_of = known.object.as_ref().filter(|known| !known.is_deleting);
            let is_ours = object_of.is_some_and(|known| {
                known.owners.contains(&object.uid) && !known.labels.contains_key(UNMANAGED)
            });
            is_ours && !managed.contains(*chart) && !repository.applied.contains(*chart)
        };
        let (chart, _) = self.charts.iter().find(is_left)?;
        Some((Arc::clone(chart), Change::delete(chart_key(chart))))
    }

    /// Returns the name that a Chart of `repository` has for a chart: `<chart>-<repository>`, or one that is told apart from it
    /// if something else has that name. `is_ours` says whether a Chart that is about the same may be changed.
    pub(super) fn name_for_chart(
        &self,
        chart: &str,
        repository: &Arc<str>,
        is_ours: impl Fn(&Object<ChartSpec>) -> bool,
    ) -> Arc<str> {
        let text = format!("{chart}-{repository}");
        let name: Arc<str> = legal::object(&text).into();
        let known = self.charts.get(&name).and_then(|known| known.object.as_ref());
        let is_free = known.is_none_or(|known| {
            let is_same =
                known.spec.as_ref().is_ok_and(|spec| *spec.name == *chart && spec.repository == *repository);
            is_same && is_ours(known)
        });
        if is_free { name } else { legal::told_apart(&text, &[chart, repository]).into() }
    }
}

/// Returns a Chart of a Repository that belongs to it. `unmanaged` is what its label for those says that no Repository lists;
/// null takes it away. `stands_in_for` is the URL that no Repository has.
pub(super) fn new_chart(
    chart: &str,
    versions: &[String],
    (repository, name, uid): (&Repository, &Arc<str>, &str),
    unmanaged: Option<impl Into<Value>>,
    stands_in_for: Option<&str>,
) -> Value {
    let mut labels =
        BTreeMap::from([(CHART, Value::from(legal::label(chart))), (REPO, legal::label(name).into())]);
    labels.extend(repository.group().map(|group| (GROUP, group.into())));
    labels.extend(unmanaged.map(|unmanaged| (UNMANAGED, unmanaged.into())));
    let annotations: BTreeMap<&str, &str> =
        stands_in_for.map(|url| (STANDS_IN_FOR, url)).into_iter().collect();
    let owners = [owner(RepositoryKind::Repository, name, uid)];
    json!({
        "metadata": {"labels": labels, "annotations": annotations, "ownerReferences": owners},
        "spec": {"name": chart, "repository": &**name, "versions": versions, "createDeps": true},
    })
}

/// Returns the constraints of a list and those of others that are not in it.
pub(super) fn union(list: &[String], others: BTreeSet<String>) -> Vec<String> {
    let mut all = list.to_vec();
    all.extend(others.into_iter().filter(|other| !list.contains(other)));
    all
}

/// Returns why versions of some charts could not be had.
fn refused(index: &FetchedIndex) -> String {
    let line = |(name, why): &(Arc<str>, String)| format!("chart {name}: {why}");
    index.refused.iter().map(line).collect::<Vec<_>>().join("; ")
}

/// Returns which charts that were asked for are not in an index.
fn missing(index: &FetchedIndex) -> String {
    let line = |(name, near): &(Arc<str>, Option<String>)| match near {
        Some(near) => format!("the index has no chart {name:?}; did you mean {near}?"),
        None => format!("the index has no chart {name:?}"),
    };
    index.missing.iter().map(line).collect::<Vec<_>>().join("; ")
}

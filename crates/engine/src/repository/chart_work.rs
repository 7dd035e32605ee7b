//! The work on a Chart: *Metadata → Index → Version(n) → Write(n) → Dependents(n) → Status*.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use objects::legal;
use serde_json::json;

use super::announcements::announce_chart;
use super::chart::{Chart, Resolved, Stage, Written};
use super::chart_steps::tell;
use super::object::{CHART, GROUP, MODULE, Object, REPO, UNMANAGED, status_change, without_nulls};
use super::patches::Change;
use super::repositories::Repositories;
use super::work::{RepositoryAnswer, retry_after};
use crate::context::Context;
use crate::effect::Effect;
use crate::failure::Failure;
use crate::name::ModuleName;
use crate::package::{
    ChartSpec, RepositoryKey, RepositoryKind, ResolveRequest, ResolvedVersion, StoreRequest, WantedVersion,
};
use crate::reconcile::Step;
use crate::time::Time;

/// The first thing that is not as it should be.
enum Todo {
    Nothing,
    Change(Change, Written),
    Resolve(ResolveRequest),
    Store(StoreRequest),
}

impl Repositories {
    pub(super) fn observe_chart(&mut self, name: &Arc<str>, json: Option<&[u8]>) {
        let object = json.map(|json| Object::read(json, ChartSpec::read));
        let chart = self.charts.entry(Arc::clone(name)).or_default();
        let repositories: Vec<Arc<str>> = chart
            .repository()
            .into_iter()
            .chain(object.as_ref().and_then(|o| Some(&o.spec.as_ref().ok()?.repository)))
            .cloned()
            .collect();
        let before = chart.object.as_ref().map(|object| (object.generation, object.reprocess));
        let was_synced = chart.is_synced();
        if chart.object.is_none()
            && let Some(object) = &object
        {
            chart.reprocessed = u64::try_from(object.status_number("reprocessed")).unwrap_or_default();
        }
        if let Some(object) = &object {
            chart.announced.see(&object.uid, object.says_synced());
        }
        if chart.object.is_none()
            && let Some(module) = object.as_ref().and_then(|object| object.labels.get(MODULE))
        {
            self.has_unknown |= !self.modules.contains_key(module.as_str());
        }
        let now = object.as_ref().map(|object| (object.generation, object.reprocess));
        let labels = object.as_ref().map(|object| object.labels.clone()).unwrap_or_default();
        chart.object = object;
        if before != now {
            chart.look += 1;
            chart.failures = 0;
        }
        let is_news = before != now || was_synced != chart.is_synced();
        if chart.object.is_none() {
            self.charts.remove(name);
        }
        for repository in repositories {
            self.wake(RepositoryKind::Repository, &repository);
        }
        if is_news {
            self.wake_dependents_of(name);
        }
        if let Some(module) = labels
            .get(MODULE)
            .map(|module| ModuleName::from(module.as_str()))
            .or_else(|| self.module_of(name))
        {
            self.wake_module(&module);
        }
    }

    /// Asks for the work on those Charts of a Repository that are meant, as if they were new.
    pub(super) fn wake_charts_of(&mut self, repository: &Arc<str>, is_meant: impl Fn(&Chart) -> bool) {
        let of_it = self.charts.iter().filter(|(_, chart)| chart.repository() == Some(repository));
        let names: Vec<Arc<str>> =
            of_it.filter(|(_, chart)| is_meant(chart)).map(|(name, _)| Arc::clone(name)).collect();
        for name in names {
            self.look_again_at_chart(&name);
        }
    }

    /// Has a Chart looked at once more.
    pub(super) fn look_again_at_chart(&mut self, name: &Arc<str>) {
        if let Some(chart) = self.charts.get_mut(name) {
            chart.look += 1;
            self.wake(RepositoryKind::Chart, name);
        }
    }

    pub(super) fn chart_has_work(&self, name: &Arc<str>, now: Time) -> bool {
        !matches!(self.chart_todo(name, now), Todo::Nothing)
    }

    pub(super) fn advance_chart(&mut self, cx: &mut Context, name: &Arc<str>) -> Step {
        if let Some(failure) = self.chart_answered(cx, name) {
            return Step::Failed(failure);
        }
        if let Some(chart) = self.charts.get_mut(name)
            && chart.retry_at.take_if(|at| *at <= cx.now).is_some()
        {
            chart.look += 1;
        }
        let todo = self.chart_todo(name, cx.now);
        let key = RepositoryKey { kind: RepositoryKind::Chart, name: Arc::clone(name) };
        let mut step = |step: String| tell(cx, name, step);
        match &todo {
            Todo::Nothing => {}
            Todo::Change(_, Written::Labels(_)) => step("metadata".to_owned()),
            Todo::Change(_, Written::Chart(chart)) => step(format!("dependents: Chart {chart}")),
            Todo::Change(_, Written::Deletion) => {
                step("another Repository has what this stands in for: it is deleted".to_owned());
            }
            Todo::Change(_, Written::Status(_)) => {
                if let Some(spec) = self.without_repository(name) {
                    step("metadata".to_owned());
                    for constraint in &spec.versions {
                        step(format!("version {constraint}: parse"));
                        step(format!(
                            "version {constraint}: repository: there is none named {}",
                            spec.repository
                        ));
                    }
                }
                step("status".to_owned());
            }
            Todo::Resolve(_) => {
                step("metadata".to_owned());
                step("index".to_owned());
            }
            Todo::Store(request) => step(format!("write {}: download", request.version.version)),
        }
        let Some(chart) = self.charts.get_mut(name) else { return Step::Done };
        match todo {
            Todo::Nothing => {
                chart.applied.clear();
                if chart.announced.is_in_doubt()
                    && let Some(object) = &chart.object
                {
                    announce_chart(cx, name, object, &mut chart.announced);
                }
                self.chart_settled(cx.now, name)
            }
            Todo::Change(change, written) => {
                chart.stage = Stage::Writing(written);
                change.begin(cx, &key)
            }
            Todo::Resolve(request) => {
                chart.stage = Stage::Resolving(chart.look);
                let run = cx.ids.run();
                Step::Fetch(run, Box::new(Effect::ResolveChart { run, request: Box::new(request) }))
            }
            Todo::Store(request) => {
                chart.stage = Stage::Storing(chart.look, Arc::clone(&request.version.version));
                let run = cx.ids.run();
                Step::Fetch(run, Box::new(Effect::StorePackage { run, request: Box::new(request) }))
            }
        }
    }

    /// Takes in the answer to what was begun. Returns why the API server or we failed.
    fn chart_answered(&mut self, cx: &mut Context, name: &Arc<str>) -> Option<Failure> {
        for step in self.steps_of_answer(name) {
            tell(cx, name, step);
        }
        let chart = self.charts.get_mut(name)?;
        match (std::mem::take(&mut chart.stage), chart.answer.take()) {
            (Stage::Resolving(look), Some(RepositoryAnswer::Resolved(Ok(outcome)))) => {
                // Its Repository may not have looked for it yet.
                let lacking = chart.repository().filter(|_| outcome.is_err()).cloned();
                chart.resolved = Some(Resolved { look, outcome });
                if let Some(repository) = lacking {
                    self.wake(RepositoryKind::Repository, &repository);
                }
                None
            }
            (Stage::Storing(look, version), Some(RepositoryAnswer::Stored(Ok(outcome)))) => {
                let parts = match &outcome {
                    Ok(_) => vec![format!("write {version}: load"), format!("write {version}: maps")],
                    Err(problem) => vec![format!("write {version}: {problem}")],
                };
                for step in parts {
                    tell(cx, name, step);
                }
                chart.stored.insert(version, (look, outcome));
                let is_new = |version: &ResolvedVersion| {
                    let stored = chart.stored.get(&version.version).filter(|(look, _)| *look == chart.look);
                    stored.is_some_and(|(_, outcome)| {
                        outcome.as_ref().is_ok_and(|stored| stored.republished.is_none())
                    })
                };
                if chart.versions().all(is_new) {
                    chart.reprocessed = chart.object.as_ref().map_or(0, |object| object.reprocess);
                }
                None
            }
            (Stage::Writing(written), Some(RepositoryAnswer::Patched(Ok(())))) => {
                match (written, &mut chart.object) {
                    (Written::Chart(chart_name), _) => drop(chart.applied.insert(chart_name)),
                    // A watch says so later.
                    (Written::Deletion, Some(object)) => object.is_deleting = true,
                    (Written::Labels(labels), Some(object)) => object.labels.extend(labels),
                    (Written::Status(status), Some(object)) => {
                        object.status = status;
                        announce_chart(cx, name, object, &mut chart.announced);
                    }
                    (Written::Deletion | Written::Labels(_) | Written::Status(_), None) => {}
                }
                None
            }
            (stage, answer) => {
                if matches!(stage, Stage::Writing(Written::Status(_))) {
                    chart.announced.doubt();
                }
                answer.and_then(RepositoryAnswer::failure).filter(|failure| !failure.is_cancelled())
            }
        }
    }

    /// Ends the work on a Chart, about which nothing is to be done now. What is wrong is looked at again.
    fn chart_settled(&mut self, now: Time, name: &Arc<str>) -> Step {
        self.wake_dependents_of(name);
        if let Some(module) = self.module_of(name) {
            self.wake_module(&module);
        }
        let is_wrong = self.charts.get(name).is_some_and(|chart| {
            chart.spec().is_some() && chart.object.is_some() && self.problems_of(name).reason().is_some()
        });
        let old_enough_at = self.old_enough_at(name).filter(|at| *at > now);
        let goes_round = self.goes_round(name);
        let Some(chart) = self.charts.get_mut(name) else { return Step::Done };
        if goes_round {
            chart.goes_round = Some(chart.look);
        }
        if is_wrong {
            chart.retry_at.get_or_insert_with(|| {
                chart.failures = chart.failures.saturating_add(1);
                now + retry_after(chart.failures)
            });
        } else {
            (chart.failures, chart.retry_at) = (0, None);
        }
        chart.retry_at = chart.retry_at.into_iter().chain(old_enough_at).min();
        chart.retry_at.map_or(Step::Done, |at| Step::Again(at.since(now)))
    }

    /// Returns when a version is old enough for the module of a Chart that is too new for it yet; `None` if there is no such one.
    fn old_enough_at(&self, name: &Arc<str>) -> Option<Time> {
        let age = self.min_age(name)?;
        let published = self.charts.get(name)?.found()?.as_ref().ok()?.next_published.as_ref()?;
        let published: Timestamp = published.parse().ok()?;
        let since_start = published.duration_since(self.config.started_at);
        // Ages are compared in whole seconds.
        let at = since_start.checked_add(SignedDuration::try_from(age).ok()?)?;
        let at = at.checked_add(SignedDuration::from_secs(1))?;
        Some(Time::default() + Duration::try_from(at).ok()?)
    }

    /// Returns the first thing about a Chart that is not as it should be.
    fn chart_todo(&self, name: &Arc<str>, now: Time) -> Todo {
        let Some(chart) = self.charts.get(name) else { return Todo::Nothing };
        let Some(object) = chart.object.as_ref().filter(|object| !object.is_deleting) else {
            return Todo::Nothing;
        };
        let key = RepositoryKey { kind: RepositoryKind::Chart, name: Arc::clone(name) };
        if let Ok(spec) = &object.spec {
            let labels = self.labels_for(object, spec);
            if !object.has_labels(&labels) {
                let change = Change::merge(key, json!({"metadata": {"labels": labels}}));
                return Todo::Change(change, Written::Labels(labels));
            }
            if self.is_superseded(name, object, spec) {
                return Todo::Change(Change::delete(key), Written::Deletion);
            }
            let access =
                self.repositories.get(&spec.repository).and_then(|known| known.access(&spec.repository));
            if let Some(repository) = access {
                if spec.versions.is_empty() && self.is_offer_unknown(spec) {
                    return Todo::Nothing;
                }
                let is_known = chart.resolved.as_ref().is_some_and(|resolved| resolved.look == chart.look);
                if !is_known {
                    let not_after = self.not_after(name, now);
                    let wanted = |constraint: &String| WantedVersion {
                        constraint: constraint.clone(),
                        not_after: not_after.clone(),
                    };
                    let versions = spec.versions.iter().map(wanted).collect();
                    return Todo::Resolve(ResolveRequest {
                        repository,
                        chart: Arc::clone(&spec.name),
                        versions,
                    });
                }
                // It is no failure that there are no versions while nobody has looked at the index yet.
                if chart.found().is_some_and(Result::is_err) && self.is_offer_unknown(spec) {
                    return Todo::Nothing;
                }
                let is_kept = |version: &&ResolvedVersion| {
                    chart.stored.get(&version.version).is_some_and(|(look, _)| *look == chart.look)
                };
                if let Some(version) = chart.versions().find(|version| !is_kept(version)).filter(|_| is_known)
                {
                    return Todo::Store(StoreRequest {
                        repository,
                        chart: Arc::clone(&spec.name),
                        version: version.clone(),
                        owner: (Arc::clone(name), object.uid.clone()),
                        replaces: object.reprocess > chart.reprocessed,
                        known: object.resolved_digest(&version.version),
                    });
                }
            }
            if let Some((dependent, change)) = self.dependent_to_write(name, chart, &chart.applied) {
                return Todo::Change(change, Written::Chart(dependent));
            }
        }
        let status = self.chart_status(name, chart, object);
        match status_change(&object.status, &status, &self.config.time_of_day(now)) {
            None => Todo::Nothing,
            Some(change) => {
                let written = Written::Status(without_nulls(&change));
                Todo::Change(Change::status(key, &change), written)
            }
        }
    }

    /// Returns what a Chart asks for whose Repository is not there.
    fn without_repository(&self, name: &Arc<str>) -> Option<&ChartSpec> {
        let spec = self.charts.get(name)?.spec()?;
        let known = self.repositories.get(&spec.repository);
        known.and_then(|known| known.access(&spec.repository)).is_none().then_some(spec)
    }

    /// Returns the labels that a Chart has to have.
    fn labels_for(&self, object: &Object<ChartSpec>, spec: &ChartSpec) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([(CHART.to_owned(), legal::label(&spec.name))]);
        let repo = legal::label(&spec.repository);
        if object.labels.get(REPO) != Some(&repo) {
            labels.insert(REPO.to_owned(), repo);
        }
        if !object.labels.contains_key(REPO) && object.owners.is_empty() {
            labels.insert(UNMANAGED.to_owned(), "true".to_owned());
        }
        let group = self.repositories.get(&spec.repository).and_then(|repository| repository.group());
        labels.extend(group.map(|group| (GROUP.to_owned(), group.to_owned())));
        labels
    }
}

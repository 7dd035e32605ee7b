//! What the status of a Chart says: which versions are kept, and what is wrong with the others.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::chart::Chart;
use super::object::{Object, condition};
use super::repositories::Repositories;
use crate::package::{ChartSpec, ResolvedVersion};

/// The reason of a Chart that lacks charts which it needs.
pub(super) const LACKS_OTHERS: &str = "createDepsFailed";

/// What is wrong with a Chart, the step it happened in first.
#[derive(Debug, Default)]
pub(super) struct Problems {
    init: Vec<String>,
    store: Vec<String>,
    pub(super) dependencies: Vec<String>,
}

impl Problems {
    pub(super) fn reason(&self) -> Option<&'static str> {
        let steps = [
            ("initChartFailed", &self.init),
            ("createConfigmapsFailed", &self.store),
            (LACKS_OTHERS, &self.dependencies),
        ];
        steps.into_iter().find(|(_, problems)| !problems.is_empty()).map(|(reason, _)| reason)
    }

    fn message(&self) -> String {
        let all = self.init.iter().chain(&self.store).chain(&self.dependencies);
        all.map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}

impl Repositories {
    /// Returns what is wrong with a Chart.
    pub(super) fn problems_of(&self, name: &Arc<str>) -> Problems {
        let mut problems = Problems::default();
        let Some(chart) = self.charts.get(name) else { return problems };
        let spec = match chart.object.as_ref().map(|object| &object.spec) {
            None => return problems,
            Some(Err(problem)) => {
                problems.init.push(problem.clone());
                return problems;
            }
            Some(Ok(spec)) => spec,
        };
        let repository = self.repositories.get(&spec.repository);
        if repository.and_then(|known| known.access(&spec.repository)).is_none() {
            problems
                .init
                .push(format!("there is no Repository {:?}, or its spec can't be read", &*spec.repository));
        }
        match chart.found() {
            Some(Err(problem)) => {
                problems.init.push(self.not_offered(spec).unwrap_or_else(|| problem.clone()));
            }
            Some(Ok(resolved)) => {
                for unresolved in resolved.versions.iter().filter_map(|version| version.as_ref().err()) {
                    // What is wrong with the Repository is so for all versions.
                    if !problems.init.contains(&unresolved.problem) {
                        problems.init.push(unresolved.problem.clone());
                    }
                }
            }
            None => {}
        }
        for version in chart.versions() {
            if let Some((_, Err(problem))) = chart.stored.get(&version.version) {
                problems.store.push(format!("{}: {problem}", version.version));
            }
        }
        if spec.create_deps {
            problems.dependencies = self.dependency_problems(name, chart);
        }
        problems
    }

    /// Returns why the Repository of a Chart has no such chart, if the last look at its index says that.
    fn not_offered(&self, spec: &ChartSpec) -> Option<String> {
        let repository = self.repositories.get(&spec.repository)?;
        let index = match &repository.index.as_ref()?.outcome {
            Ok(index) => index,
            Err(problem) => return Some(format!("Repository {}: {problem}", spec.repository)),
        };
        if let Some((_, problem)) = index.refused.iter().find(|(chart, _)| *chart == spec.name) {
            return Some(format!("Repository {}: {problem}", spec.repository));
        }
        let (_, near) = index.missing.iter().find(|(chart, _)| *chart == spec.name)?;
        let near = near.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        Some(format!("Repository {} has no chart {:?}{near}", spec.repository, &*spec.name))
    }

    /// Returns whether nobody looked yet whether the Repository of a Chart has such a chart.
    pub(super) fn is_offer_unknown(&self, spec: &ChartSpec) -> bool {
        let Some(repository) = self.repositories.get(&spec.repository) else { return false };
        if repository.access(&spec.repository).is_none() {
            return false;
        }
        !repository.index.as_ref().is_some_and(|index| {
            index.outcome.is_err() || index.asked.is_open || index.asked.charts.contains(&spec.name)
        })
    }

    pub(super) fn chart_status(
        &self,
        name: &Arc<str>,
        chart: &Chart,
        object: &Object<ChartSpec>,
    ) -> Map<String, Value> {
        let problems = self.problems_of(name);
        let word = |is_synced: bool| if is_synced { "synced" } else { "notSynced" };
        let mut fields = Map::new();
        fields.insert("observedGeneration".to_owned(), object.generation.into());
        let are_versions_synced = problems.init.is_empty() && problems.store.is_empty();
        fields.insert("versions".to_owned(), word(are_versions_synced).into());
        if object.spec.as_ref().is_ok_and(|spec| spec.create_deps) {
            let is_synced = are_versions_synced && problems.dependencies.is_empty();
            fields.insert("dependencies".to_owned(), word(is_synced).into());
        }
        let first = chart.versions().next();
        fields.insert("deprecated".to_owned(), first.is_some_and(|version| version.deprecated).into());
        fields.insert("type".to_owned(), first.map_or("", |version| version.kind.as_str()).into());
        fields.insert("tags".to_owned(), "".into());
        if chart.reprocessed > 0 {
            fields.insert("reprocessed".to_owned(), chart.reprocessed.into());
        }
        let constraints = object.spec.as_ref().map(|spec| spec.versions.as_slice()).unwrap_or_default();
        let found = chart.found().and_then(|outcome| outcome.as_ref().ok());
        let versions = found.into_iter().flat_map(|found| constraints.iter().zip(&found.versions));
        let lines: Vec<Value> = versions
            .filter_map(|(constraint, version)| {
                let version = version.as_ref().ok()?;
                // What was kept and is lost stays known: nothing else takes its place.
                let digest = match &chart.stored.get(&version.version)?.1 {
                    Ok(stored) => stored.digest.clone(),
                    Err(_) => object.resolved_digest(&version.version)?,
                };
                Some(json!({
                    "constraint": constraint, "version": &*version.version, "digest": digest.as_str(),
                }))
            })
            .collect();
        if !lines.is_empty() {
            fields.insert("resolved".to_owned(), lines.into());
        }
        let mut conditions = vec![match problems.reason() {
            None => condition(true, "success", &differing(chart)),
            Some(reason) => condition(false, reason, &problems.message()),
        }];
        if let Some(message) = republished(chart) {
            conditions.push(json!({
                "type": "DigestChanged", "status": "True", "reason": "DigestChanged", "message": message,
            }));
        }
        fields.insert("conditions".to_owned(), conditions.into());
        fields
    }
}

/// Returns which archives say of themselves that they are something else than the index says. They are taken all the same.
fn differing(chart: &Chart) -> String {
    let told: Vec<&str> = chart.packages().filter_map(|stored| stored.differs.as_deref()).collect();
    told.join("; ")
}

/// Returns which versions were published again with other bytes, if there are some.
fn republished(chart: &Chart) -> Option<String> {
    let line = |version: &ResolvedVersion| {
        let stored = chart.stored.get(&version.version)?.1.as_ref().ok()?;
        let other = stored.republished.as_ref()?;
        Some(format!("version {} was published again: {other} instead of {}", version.version, stored.digest))
    };
    let lines: Vec<String> = chart.versions().filter_map(line).collect();
    let advice =
        "what is kept stays in force until the annotation addon-operator.io/reprocess of the Chart is raised";
    (!lines.is_empty()).then(|| format!("{}; {advice}", lines.join("; ")))
}

//! What is told of the work on a Chart, step by step.

use std::sync::Arc;

use super::chart::Stage;
use super::repositories::Repositories;
use super::work::RepositoryAnswer;
use crate::context::Context;
use crate::notice::Notice;
use crate::package::{RepositoryKey, RepositoryKind, ResolvedVersion, Unresolved, VersionStep};

/// Tells what the work on a Chart does, or came to.
pub(super) fn tell(cx: &mut Context, name: &Arc<str>, step: String) {
    let object = RepositoryKey { kind: RepositoryKind::Chart, name: Arc::clone(name) }.to_string();
    cx.notify(Notice::ChartStepped { object, step });
}

impl Repositories {
    /// Returns the steps that were done for each constraint of a Chart, up to the one at which it failed, if that has just been
    /// answered.
    pub(super) fn steps_of_answer(&self, name: &Arc<str>) -> Vec<String> {
        let Some(chart) = self.charts.get(name) else { return Vec::new() };
        let (Stage::Resolving(_), Some(RepositoryAnswer::Resolved(Ok(outcome)))) =
            (&chart.stage, &chart.answer)
        else {
            return Vec::new();
        };
        let (Ok(found), Some(spec)) = (outcome, chart.spec()) else {
            return outcome.as_ref().err().map(|problem| format!("index: {problem}")).into_iter().collect();
        };
        let all = spec.versions.iter().zip(&found.versions);
        all.flat_map(|(constraint, version)| self.steps_of_version(&spec.repository, constraint, version))
            .collect()
    }

    fn steps_of_version(
        &self,
        own: &Arc<str>,
        constraint: &str,
        version: &Result<ResolvedVersion, Unresolved>,
    ) -> Vec<String> {
        let mut steps = Vec::new();
        for step in VersionStep::ALL {
            let failed = version.as_ref().err().filter(|unresolved| unresolved.step == step);
            let found = match version {
                Ok(version) => self.found_at(step, own, version),
                Err(_) => String::new(),
            };
            let word = step.as_str();
            let what = failed.map_or(found, |unresolved| format!(": {}", unresolved.problem));
            steps.push(format!("version {constraint}: {word}{what}"));
            if failed.is_some() {
                break;
            }
        }
        steps
    }

    /// Returns what a step found, with a colon before it, where that is more than that it went well.
    fn found_at(&self, step: VersionStep, own: &Arc<str>, version: &ResolvedVersion) -> String {
        match step {
            VersionStep::Parse => format!(": {}", version.version),
            VersionStep::Repository | VersionStep::Url => String::new(),
            VersionStep::Values if version.has_values => ": they are kept".to_owned(),
            VersionStep::Values => ": they are not kept yet".to_owned(),
            VersionStep::Dependencies if version.dependencies.is_empty() => ": none".to_owned(),
            VersionStep::Dependencies => {
                let from = |dependency| {
                    let repository = self.repository_for(dependency, own);
                    format!("{} {} of Repository {repository}", dependency.name, dependency.version)
                };
                let all: Vec<String> = version.dependencies.iter().map(from).collect();
                format!(": {}", all.join(", "))
            }
        }
    }
}

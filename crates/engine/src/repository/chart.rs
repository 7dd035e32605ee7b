//! What is known about a Chart, and how far the work on it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::announcements::Announced;
use super::object::Object;
use super::work::RepositoryAnswer;
use crate::package::{ChartSpec, ResolvedChart, ResolvedVersion, StoredPackage};
use crate::time::Time;

/// What is known about a Chart.
#[derive(Debug, Default)]
pub(super) struct Chart {
    /// Its object; `None` when that is gone.
    pub(super) object: Option<Object<ChartSpec>>,
    pub(super) announced: Announced,
    pub(super) stage: Stage,
    /// The answer to the effect of its stage.
    pub(super) answer: Option<RepositoryAnswer>,
    /// Which look at it is the newest that is wanted.
    pub(super) look: u64,
    pub(super) resolved: Option<Resolved>,
    /// What came of each version that was to be kept, with the look that it belongs to.
    pub(super) stored: BTreeMap<Arc<str>, (u64, Result<StoredPackage, String>)>,
    /// When it is looked at again by itself.
    pub(super) retry_at: Option<Time>,
    /// The look that found that it goes round in a circle with charts that it needs.
    pub(super) goes_round: Option<u64>,
    /// How many looks in a row found something wrong.
    pub(super) failures: u32,
    /// The number up to which archives were taken that were published again.
    pub(super) reprocessed: u64,
    /// The Charts that were written in this pass; what a watch says of them may be older.
    pub(super) applied: BTreeSet<Arc<str>>,
}

/// What its work is doing.
#[derive(Debug, Default)]
pub(super) enum Stage {
    #[default]
    Idle,
    Resolving(u64),
    Storing(u64, Arc<str>),
    Writing(Written),
}

/// What is written, so that it is known before the watch says so.
#[derive(Debug)]
pub(super) enum Written {
    Chart(Arc<str>),
    /// It is deleted itself.
    Deletion,
    Labels(BTreeMap<String, String>),
    Status(Value),
}

/// The versions that were found.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) look: u64,
    pub(super) outcome: Result<ResolvedChart, String>,
}

impl Chart {
    /// Forgets how far the work is.
    pub(super) fn begin_anew(&mut self) {
        self.stage = Stage::Idle;
        self.applied.clear();
    }

    /// Returns what it asks for, if that can be read and it is not being deleted.
    pub(super) fn spec(&self) -> Option<&ChartSpec> {
        self.object.as_ref().filter(|object| !object.is_deleting)?.spec.as_ref().ok()
    }

    /// Returns the name of its Repository.
    pub(super) fn repository(&self) -> Option<&Arc<str>> {
        self.spec().map(|spec| &spec.repository)
    }

    /// Returns the name of the chart in its Repository.
    pub(super) fn name(&self) -> Option<&Arc<str>> {
        self.spec().map(|spec| &spec.name)
    }

    /// Returns whether some version was not found.
    pub(super) fn is_unresolved(&self) -> bool {
        let is_found = |resolved: &Resolved| {
            resolved.outcome.as_ref().is_ok_and(|chart| chart.versions.iter().all(Result::is_ok))
        };
        !self.resolved.as_ref().is_some_and(is_found)
    }

    /// Returns whether its object says that it is synced as it is.
    pub(super) fn is_synced(&self) -> bool {
        let is_so = |object: &Object<ChartSpec>| {
            object.synced().0 && object.status_number("observedGeneration") == object.generation
        };
        self.object.as_ref().is_some_and(is_so)
    }

    /// Returns the version that a constraint took and what is kept of it, or why there is none; `None` if that is not known yet.
    pub(super) fn package_of(
        &self,
        place: usize,
    ) -> Option<Result<(&ResolvedVersion, &StoredPackage), &str>> {
        let resolved = self.resolved.as_ref().filter(|resolved| resolved.look == self.look)?;
        let version = match resolved.outcome.as_ref().map(|chart| chart.versions.get(place)) {
            Err(problem) => return Some(Err(problem)),
            Ok(Some(Err(unresolved))) => return Some(Err(&unresolved.problem)),
            Ok(None) => return None,
            Ok(Some(Ok(version))) => version,
        };
        match self.stored.get(&version.version)? {
            (look, _) if *look != self.look => None,
            (_, Err(problem)) => Some(Err(problem)),
            (_, Ok(stored)) => Some(Ok((version, stored))),
        }
    }

    /// Returns the version that one of its constraints took, if it has that constraint and a version was found.
    pub(super) fn version_for(&self, constraint: &str) -> Option<Arc<str>> {
        let place = self.spec()?.versions.iter().position(|its| its == constraint)?;
        let version = self.found()?.as_ref().ok()?.versions.get(place)?.as_ref().ok()?;
        Some(Arc::clone(&version.version))
    }

    /// Returns what was found for what it asks for; `None` if that can't be read, or nobody looked yet.
    pub(super) fn found(&self) -> Option<&Result<ResolvedChart, String>> {
        self.resolved.as_ref().filter(|_| self.spec().is_some()).map(|resolved| &resolved.outcome)
    }

    /// Iterates over the versions that were found, each once.
    pub(super) fn versions(&self) -> impl Iterator<Item = &ResolvedVersion> {
        let resolved = self.found().and_then(|outcome| outcome.as_ref().ok());
        let mut seen = BTreeSet::new();
        let found = resolved
            .into_iter()
            .flat_map(|chart| &chart.versions)
            .filter_map(|version| version.as_ref().ok());
        found.filter(move |version| seen.insert(&version.version))
    }

    /// Iterates over what is kept of the versions that were found.
    pub(super) fn packages(&self) -> impl Iterator<Item = &StoredPackage> {
        self.versions().filter_map(|version| self.stored.get(&version.version)?.1.as_ref().ok())
    }
}

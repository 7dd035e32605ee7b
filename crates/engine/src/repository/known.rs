//! What is known about a Repository, and how far the work on it is.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::announcements::Announced;
use super::object::{GROUP, Object};
use super::work::RepositoryAnswer;
use crate::package::{ChartRepositorySpec, FetchedIndex, RepositoryAccess};
use crate::time::Time;

/// Where the status says how many charts of the index are kept.
pub(super) const KEPT: &str = "kept";

/// What is known about a Repository.
#[derive(Debug, Default)]
pub(super) struct Repository {
    /// Its object; `None` when that is gone.
    pub(super) object: Option<Object<ChartRepositorySpec>>,
    pub(super) announced: Announced,
    pub(super) stage: Stage,
    /// The answer to the effect of its stage.
    pub(super) answer: Option<RepositoryAnswer>,
    /// What the last look at its index found.
    pub(super) index: Option<Index>,
    /// When the index is looked at again by itself.
    pub(super) fetch_at: Option<Time>,
    /// Whether it is looked at at once: somebody asks for that, or what is kept of it was removed.
    pub(super) is_asked_for: bool,
    /// Whether it is fetched then although it may be the one that is kept.
    pub(super) is_forced: bool,
    /// When it was looked at last.
    pub(super) looked_at: Time,
    /// Whether the time of the next look is another one than was planned.
    pub(super) is_rescheduled: bool,
    /// How many times in a row it could not be fetched.
    pub(super) failures: u32,
    /// The Charts that were written in this pass; what a watch says of them may be older.
    pub(super) applied: BTreeSet<Arc<str>>,
}

/// What its work is doing.
#[derive(Debug, Default)]
pub(super) enum Stage {
    #[default]
    Idle,
    Fetching(Asked),
    Writing(Written),
}

/// What is written, so that it is known before the watch says so.
#[derive(Debug)]
pub(super) enum Written {
    Chart(Arc<str>),
    Finalizers(Vec<String>),
    Status(Value),
}

/// Of which object an index was asked for, and which charts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) url: String,
    pub(super) secret: Option<String>,
    pub(super) charts: BTreeSet<Arc<str>>,
    /// Those for which it matters when their versions were published.
    pub(super) aged: BTreeSet<Arc<str>>,
    pub(super) is_open: bool,
}

/// What a look at an index found.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) asked: Asked,
    pub(super) outcome: Result<FetchedIndex, String>,
}

impl Asked {
    /// Returns whether both are about the same repository.
    pub(super) fn has_source_of(&self, other: &Self) -> bool {
        self.url == other.url && self.secret == other.secret
    }
}

impl Index {
    /// Returns whether nothing could be had.
    pub(super) fn has_nothing(&self) -> bool {
        let is_refused = |index: &FetchedIndex| {
            !index.refused.is_empty() && index.refused.len() >= self.asked.charts.len()
        };
        self.outcome.as_ref().map_or(true, is_refused)
    }

    /// Returns whether all charts are kept that are asked for, as far as the repository has them.
    pub(super) fn has(&self, asked: &Asked) -> bool {
        let is_whole = self.outcome.as_ref().is_ok_and(|index| index.truncated.is_none());
        let has_named = asked.charts.is_subset(&self.asked.charts) || (self.asked.is_open && is_whole);
        let has_times = asked.aged.is_subset(&self.asked.aged);
        has_named && has_times && (self.asked.is_open || !asked.is_open)
    }
}

impl Repository {
    /// Forgets how far the work is.
    pub(super) fn begin_anew(&mut self) {
        self.stage = Stage::Idle;
        self.applied.clear();
    }

    /// Returns how often its index is looked at; `None` if it is not, or that can't be read.
    pub(super) fn interval(&self) -> Option<Duration> {
        self.object.as_ref()?.spec.as_ref().ok()?.interval()
    }

    /// Plans the next look at its index behind the last one. What failed is tried again when it was to be.
    pub(super) fn reschedule(&mut self) {
        if self.index.is_some() && self.failures == 0 {
            self.fetch_at = self.interval().map(|interval| self.looked_at + interval);
            self.is_rescheduled = true;
        }
    }

    /// Returns how it is reached, if its object is there and can be read.
    pub(super) fn access(&self, name: &Arc<str>) -> Option<RepositoryAccess> {
        let object = self.object.as_ref().filter(|object| !object.is_deleting)?;
        let spec = object.spec.as_ref().ok()?;
        Some(RepositoryAccess {
            name: Arc::clone(name),
            uid: object.uid.clone(),
            url: spec.url.clone(),
            secret: spec.auth_secret.clone().filter(|secret| !secret.is_empty()),
        })
    }

    /// Returns the name of its group, if it is in one.
    pub(super) fn group(&self) -> Option<&str> {
        self.object.as_ref()?.labels.get(GROUP).map(String::as_str)
    }
}

//! When the index of a repository is fetched, and what is asked of it then.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::known::{Asked, Index, KEPT, Repository};
use super::object::Object;
use crate::package::{ChartRepositorySpec, IndexRequest, IndexValidator};
use crate::time::Time;

/// Returns whether the index of a repository is to be fetched.
pub(super) fn is_index_due(
    repository: &Repository,
    object: &Object<ChartRepositorySpec>,
    spec: &ChartRepositorySpec,
    asked: &Asked,
    now: Time,
) -> bool {
    match &repository.index {
        // Another operator, or this one before its restart, looked at it, and only a change is a reason to do that again.
        None if spec.interval().is_none() => !was_synced(object),
        None => true,
        Some(index) => {
            let is_same = index.asked.has_source_of(asked);
            // Another chart that is asked for is no reason to ask a server again that has no answer.
            let rests = is_same && index.has_nothing() && repository.fetch_at.is_some_and(|at| at > now);
            let is_enough = (is_same && index.has(asked)) || rests;
            !is_enough || repository.is_asked_for || repository.fetch_at.is_some_and(|at| at <= now)
        }
    }
}

fn was_synced(object: &Object<ChartRepositorySpec>) -> bool {
    object.synced().0 && object.status_number("observedGeneration") == object.generation
}

/// Returns what is asked of the index of a repository.
pub(super) fn index_request(
    repository: &Repository,
    object: &Object<ChartRepositorySpec>,
    name: &Arc<str>,
    asked: &Asked,
) -> IndexRequest {
    let (mut absent, mut kept) = (BTreeSet::new(), 0);
    let known = match &repository.index {
        _ if repository.is_forced => None,
        // What was kept before a restart is what the status says.
        None if was_synced(object) => {
            kept = object.status_count(KEPT);
            Some(IndexValidator {
                etag: object.status_text("etag").to_owned(),
                modified: object.status_text("modified").to_owned(),
            })
        }
        Some(known @ Index { asked: before, outcome: Ok(index) })
            if before.has_source_of(asked) && known.has(asked) =>
        {
            absent.extend(index.missing.iter().map(|(missing, _)| Arc::clone(missing)));
            kept = index.kept;
            Some(index.validator.clone())
        }
        None | Some(_) => None,
    };
    IndexRequest {
        repository: repository.access(name).unwrap_or_default(),
        // What is not in the index is looked for again when the index is another one.
        charts: asked.charts.clone(),
        absent,
        aged: asked.aged.clone(),
        is_open: asked.is_open,
        known: known.filter(|known| *known != IndexValidator::default()),
        kept,
    }
}

//! Which versions of a chart constraints take, by what is kept of the index.

use std::cmp::Ordering;

use ::source::chart_repository::choice::{Listing, choose, too_young};
use ::source::chart_repository::entry::{Dependency, Entry};
use ::source::chart_repository::location;
use ::source::registry::reference::is_registry;
use ::source::url::HttpUrl;
use engine::{
    PackageDependency, RepositoryAccess, ResolveRequest, ResolvedChart, ResolvedVersion, Unresolved,
    VersionStep, WantedVersion,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use objects::legal;
use serde_json::Value;

use super::config_maps::{CHART, OF_CHART, OF_REPOSITORY, REPO, TYPE, VERSIONS};
use super::repositories::Repositories;
use super::stop::Stop;

impl Repositories {
    pub(super) async fn chart(&self, request: &ResolveRequest) -> Result<ResolvedChart, Stop> {
        let (repository, chart) = (&request.repository.name, &request.chart);
        let Some(map) = self.index_map_of(repository, chart).await? else {
            return Err(Stop::Rejected(self.missing(repository, chart).await?));
        };
        let versions = map.binary_data.as_ref().and_then(|data| data.get(VERSIONS));
        let kept: Vec<Value> =
            versions.and_then(|versions| serde_json::from_slice(&versions.0).ok()).ok_or_else(|| {
                Stop::Rejected(format!("the index map of chart {chart} can't be read: it is written anew"))
            })?;
        let entries: Vec<Entry> = kept.iter().filter_map(Entry::read).collect();
        let base = match self.base(&request.repository).await {
            Ok(base) => Ok(base),
            Err(Stop::Rejected(problem)) => Err(problem),
            Err(failed @ Stop::Failed(_)) => return Err(failed),
        };
        let listing = listing(&request.repository);
        let mut versions = Vec::new();
        for wanted in &request.versions {
            versions.push(self.version(request, base.as_ref(), &entries, wanted).await?);
        }
        let taken = request.versions.iter().filter_map(|wanted| taken(listing, &entries, wanted));
        Ok(ResolvedChart {
            versions,
            next_published: next_published(listing, &entries, &request.versions).map(|time| time.to_string()),
            // A pre-release is the highest where there is nothing else, or where it is taken.
            highest: choose(listing, &entries, "*", |_| true)
                .ok()
                .or(entries.first())
                .into_iter()
                .chain(taken)
                // Of two that are equal, the first.
                .reduce(|highest, next| match next.parsed.precedence(&highest.parsed) {
                    Ordering::Greater => next,
                    Ordering::Equal | Ordering::Less => highest,
                })
                .map(|entry| entry.version.clone()),
        })
    }

    /// Returns the version that a constraint takes, or the step at which that failed. `base` is the URL of the Repository.
    async fn version(
        &self,
        request: &ResolveRequest,
        base: Result<&HttpUrl, &String>,
        entries: &[Entry],
        wanted: &WantedVersion,
    ) -> Result<Result<ResolvedVersion, Unresolved>, Stop> {
        let not = |step, problem: String| Ok(Err(Unresolved { step, problem }));
        let listing = listing(&request.repository);
        let entry = match choose(listing, entries, &wanted.constraint, is_old_enough(wanted)) {
            Ok(entry) => entry,
            Err(error) => return not(VersionStep::Parse, error.to_string()),
        };
        let digest = match &entry.digest {
            Ok(digest) => digest.as_ref().and_then(|digest| digest.to_string().parse().ok()),
            Err(problem) => return not(VersionStep::Parse, format!("{}: {problem}", entry.version)),
        };
        let base = match base {
            Ok(base) => base,
            Err(problem) => return not(VersionStep::Repository, problem.clone()),
        };
        let url = entry.urls.first().cloned().unwrap_or_default();
        // Of a registry, the version alone says where the archive is.
        if !is_registry(&url)
            && let Err(error) = location::archive(base, &url, self.options.allowed.protocols)
        {
            let problem = format!("{}: the URL of the archive can't be used: {error}", entry.version);
            return not(VersionStep::Url, problem);
        }
        let has_values = match self.has_values(&request.repository, &request.chart, &entry.version).await {
            Ok(has_values) => has_values,
            Err(Stop::Rejected(problem)) => {
                return not(VersionStep::Values, format!("{}: {problem}", entry.version));
            }
            Err(failed @ Stop::Failed(_)) => return Err(failed),
        };
        Ok(Ok(ResolvedVersion {
            version: entry.version.as_str().into(),
            url,
            digest,
            deprecated: entry.deprecated,
            kind: entry.kind.clone(),
            has_values,
            dependencies: entry.dependencies.iter().filter_map(needed).collect(),
        }))
    }

    pub(super) async fn index_map_of(
        &self,
        repository: &str,
        chart: &str,
    ) -> Result<Option<ConfigMap>, Stop> {
        let text = format!("helm-{repository}-{chart}-index");
        for name in [legal::object(&text), legal::told_apart(&text, &[repository, chart])] {
            match self.maps.get(&name).await? {
                Some(map) => {
                    let annotation =
                        |name: &str| map.metadata.annotations.as_ref()?.get(name).map(String::as_str);
                    if annotation(OF_REPOSITORY) == Some(repository) && annotation(OF_CHART) == Some(chart) {
                        return Ok(Some(map));
                    }
                }
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Returns why there is no index map of a chart, with the nearest name that there is.
    pub(super) async fn missing(&self, repository: &str, chart: &str) -> Result<String, Stop> {
        let selector = format!("{REPO}={},{TYPE}=index", legal::label(repository));
        let maps = self.maps.metadata(&selector).await?;
        let names: Vec<String> =
            maps.into_iter().filter_map(|map| map.metadata.labels?.remove(CHART)).collect();
        Ok(match engine::view::nearest(chart, names.iter().map(String::as_str)) {
            Some(near) => format!("Repository {repository} has no chart {chart:?}; did you mean {near}?"),
            // Nothing is kept of an index that can't be fetched, nor of one that has none of the charts that are asked for.
            None if names.is_empty() => format!(
                "there is no chart {chart:?} yet: the condition of Repository {repository} says why, if that lasts"
            ),
            None => format!("Repository {repository} has no chart {chart:?}"),
        })
    }
}

/// Returns a chart that another one needs, as far as it comes from a repository.
fn needed(dependency: &Dependency) -> Option<PackageDependency> {
    PackageDependency::remote(&dependency.name, &dependency.version, &dependency.repository)
}

/// Returns where the versions of a Repository are listed.
fn listing(repository: &RepositoryAccess) -> Listing {
    if is_registry(&repository.url) { Listing::Tags } else { Listing::Index }
}

/// Returns the version that a constraint takes, if it takes one.
fn taken<'e>(listing: Listing, entries: &'e [Entry], wanted: &WantedVersion) -> Option<&'e Entry> {
    choose(listing, entries, &wanted.constraint, is_old_enough(wanted)).ok()
}

/// Returns when a version was published, if the index says that.
fn published(entry: &Entry) -> Option<Timestamp> {
    entry.created.as_ref().and_then(|time| time.parse().ok())
}

/// Returns what says whether a version is old enough. If nobody knows how old it is, it is not.
fn is_old_enough(wanted: &WantedVersion) -> impl Fn(&Entry) -> bool + use<> {
    let not_after: Option<Timestamp> = wanted.not_after.as_ref().and_then(|time| time.parse().ok());
    move |entry| not_after.is_none_or(|limit| published(entry).is_some_and(|created| created <= limit))
}

/// Returns when the first version was published that is taken as soon as it is old enough.
fn next_published(listing: Listing, entries: &[Entry], all: &[WantedVersion]) -> Option<Timestamp> {
    let young =
        all.iter().flat_map(|wanted| too_young(listing, entries, &wanted.constraint, is_old_enough(wanted)));
    young.filter_map(published).min()
}

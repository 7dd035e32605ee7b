//! What people ask about charts that are kept: which versions there are, default values, archives, and what another version would be.

use std::sync::{Arc, PoisonError};

use ::source::chart_repository::choice::{Listing, choose};
use ::source::chart_repository::entry::Entry;
use ::source::digest::Digest;
use engine::{
    Failure, FailureKind, Package, RepositoryAccess, ResolveRequest, ResolvedVersion, WantedVersion,
};
use serde_json::Value;

use super::config_maps::VERSIONS;
use super::package::{as_ours, question};
use super::repositories::Repositories;
use super::stop::{Stop, blocking};

fn failed(stop: Stop) -> Failure {
    match stop {
        Stop::Rejected(problem) => Failure::new(FailureKind::Files, problem),
        Stop::Failed(failure) => failure,
    }
}

fn named(repository: &str) -> RepositoryAccess {
    RepositoryAccess { name: repository.into(), ..RepositoryAccess::default() }
}

/// Returns the default values of the chart in an archive: its `values.yaml` as it is, with comments.
///
/// # Errors
///
/// When the archive is no chart.
pub async fn default_values(archive: Vec<u8>) -> Result<String, Failure> {
    let read = blocking(move || {
        let values = chart::load::values_of_archive(&archive)
            .map_err(|error| Stop::Rejected(format!("the archive is no chart: {error}")))?;
        Ok(String::from_utf8_lossy(&values).into_owned())
    });
    read.await.and_then(|values| values).map_err(failed)
}

impl Repositories {
    /// Returns the versions of a chart that the index of its Repository lists, the highest first, as the index has them.
    ///
    /// # Errors
    ///
    /// When nothing is kept of the index, or the API server does not answer.
    pub async fn versions(&self, repository: &str, chart: &str) -> Result<Vec<Value>, Failure> {
        self.listed(repository, chart).await.map_err(failed)
    }

    async fn listed(&self, repository: &str, chart: &str) -> Result<Vec<Value>, Stop> {
        let Some(map) = self.index_map_of(repository, chart).await? else {
            return Err(Stop::Rejected(self.missing(repository, chart).await?));
        };
        let versions = map.binary_data.as_ref().and_then(|data| data.get(VERSIONS));
        versions.and_then(|versions| serde_json::from_slice(&versions.0).ok()).ok_or_else(|| {
            Stop::Rejected(format!("the index map of chart {chart} can't be read: it is written anew"))
        })
    }

    /// Returns a version that is kept, and its archive, byte for byte. An empty constraint takes the highest version.
    ///
    /// # Errors
    ///
    /// When it is not kept, or the API server does not answer.
    pub async fn kept_package(
        &self,
        repository: &str,
        chart: &str,
        constraint: &str,
    ) -> Result<(Package, Vec<u8>), Failure> {
        self.kept_version(repository, chart, constraint).await.map_err(failed)
    }

    async fn kept_version(
        &self,
        repository: &str,
        chart: &str,
        constraint: &str,
    ) -> Result<(Package, Vec<u8>), Stop> {
        let exact = ResolvedVersion { version: constraint.into(), ..ResolvedVersion::default() };
        let access = named(repository);
        if let Some((bytes, digest)) = self.kept(&question(&access, chart, exact)).await? {
            return Ok((package(repository, chart, constraint, &digest)?, bytes));
        }
        let kept = self.listed(repository, chart).await?;
        let entries: Vec<Entry> = kept.iter().filter_map(Entry::read).collect();
        let entry = choose(Listing::Index, &entries, constraint, |_| true)
            .map_err(|error| Stop::Rejected(error.to_string()))?;
        let version =
            ResolvedVersion { version: entry.version.as_str().into(), ..ResolvedVersion::default() };
        match self.kept(&question(&access, chart, version)).await? {
            Some((bytes, digest)) => Ok((package(repository, chart, &entry.version, &digest)?, bytes)),
            None => Err(Stop::Rejected(format!(
                "version {} of chart {chart} of Repository {repository} is not kept: a Chart that names it in spec.versions has it fetched",
                entry.version
            ))),
        }
    }

    /// Returns the package of a version whether it is kept or not, so that it can be looked at. Nothing is written.
    ///
    /// # Errors
    ///
    /// When there is no such version, or it can't be fetched.
    pub async fn look_at(
        &self,
        repository: &RepositoryAccess,
        chart: &str,
        constraint: &str,
    ) -> Result<Package, Failure> {
        self.seen(repository, chart, constraint).await.map_err(failed)
    }

    async fn seen(
        &self,
        repository: &RepositoryAccess,
        chart: &str,
        constraint: &str,
    ) -> Result<Package, Stop> {
        let wanted = WantedVersion { constraint: constraint.to_owned(), not_after: None };
        let resolve =
            ResolveRequest { repository: repository.clone(), chart: chart.into(), versions: vec![wanted] };
        let resolved = self.chart(&resolve).await?;
        let none = || Stop::Rejected("nothing was asked for".to_owned());
        let version = resolved.versions.into_iter().next().ok_or_else(none)?;
        let version = version.map_err(|unresolved| Stop::Rejected(unresolved.problem))?;
        let request = question(repository, chart, version);
        let (bytes, digest) = if let Some(kept) = self.kept(&request).await? {
            kept
        } else {
            let bytes = self.download(&self.base(repository).await?, &request).await?;
            let digest = Digest::of(&bytes);
            let listed = request.version.digest.as_ref();
            if let Some(listed) = listed.filter(|listed| listed.as_str() != digest.to_string()) {
                return Err(Stop::Rejected(format!(
                    "the digest of the archive is {digest}, that of the index is {listed}"
                )));
            }
            (bytes, digest)
        };
        let package = package(&repository.name, chart, &request.version.version, &digest)?;
        let mut looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        *looked_at = Some((package.digest.clone(), Arc::new(bytes)));
        Ok(package)
    }

    /// Returns an archive that somebody looks at.
    pub(super) fn archive_looked_at(&self, package: &Package) -> Option<Vec<u8>> {
        let looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        looked_at.as_ref().filter(|(digest, _)| *digest == package.digest).map(|(_, bytes)| bytes.to_vec())
    }
}

fn package(repository: &str, chart: &str, version: &str, digest: &Digest) -> Result<Package, Stop> {
    Ok(Package {
        repository: repository.into(),
        chart: chart.into(),
        version: version.into(),
        digest: as_ours(digest)?,
    })
}

//! Charts in registries: which versions have tags, and the archive of one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use ::source::digest::Digest;
use ::source::registry::manifest::{self, CHART, Layer, MAX_MANIFEST};
use ::source::registry::reference::RegistryUrl;
use ::source::registry::tags::TagFacts;
use ::source::url::HttpUrl;
use engine::{Failure, FailureKind, FetchedIndex, IndexRequest, StoreRequest};
use http::header::CONTENT_TYPE;
use objects::legal;
use serde_json::Value;

use super::config_maps::{OF_CHART, OF_REPOSITORY, OF_VERSION, REPO, TYPE, VERSIONS};
use super::package::MOST_PACKED;
use super::repositories::Repositories;
use super::stop::Stop;
use crate::remote::FetchObservation;
use crate::remote::registry::{ANY, Login, RegistryError, Session};

/// Of how many versions of a chart it is asked when they were pushed, if that matters: of the highest.
const RECENT: usize = 20;

/// Where a Repository names who may read.
const LOGIN: Login = Login {
    missing: "it wants user and password, write them into a Secret and name that in spec.authSecret",
    place: "spec.authSecret",
};

impl From<RegistryError> for Stop {
    fn from(error: RegistryError) -> Self {
        if error.is_ours() { Self::Failed(Failure::of(FailureKind::Files, &error)) } else { rejected(&error) }
    }
}

fn rejected(error: &impl ToString) -> Stop {
    Stop::Rejected(error.to_string())
}

impl Repositories {
    /// Asks for the tags of the charts that are wanted, and writes which versions there are.
    pub(super) async fn tags(&self, request: &IndexRequest) -> Result<FetchedIndex, Stop> {
        let repository = &request.repository;
        let base = self.base(repository).await?;
        let registry = registry(&repository.url)?;
        if request.charts.is_empty() {
            let text = "spec.charts is empty, and a registry (oci://) can't list its charts: name those that are wanted";
            return Err(Stop::Rejected(text.to_owned()));
        }
        let kept = self.kept_versions(&repository.name).await?;
        let (mut changed, mut refused) = (BTreeSet::new(), Vec::new());
        for chart in &request.charts {
            let begun = Instant::now();
            let found =
                self.versions_of(self.session(&base, &registry, chart), request, (chart, &kept)).await;
            self.report("index", found.is_ok(), begun);
            match found {
                Ok(versions) => {
                    if self.keep_index(request, chart, &versions).await? {
                        changed.insert(chart.to_string());
                    }
                }
                Err(Stop::Rejected(problem)) => refused.push((chart.clone(), problem)),
                Err(failed @ Stop::Failed(_)) => return Err(failed),
            }
        }
        Ok(FetchedIndex { changed, refused, ..FetchedIndex::default() })
    }

    /// Returns the versions that a chart has, as its index map has them. Of those that are kept, the manifest says whether they
    /// were pushed again.
    async fn versions_of(
        &self,
        session: Result<Session<'_>, Stop>,
        request: &IndexRequest,
        (chart, kept): (&str, &BTreeSet<(String, String)>),
    ) -> Result<Vec<u8>, Stop> {
        let mut session = session?;
        let tags = session.tags().await?;
        let mut known = self.known_facts(&request.repository.name, chart).await?;
        let recent = if request.aged.contains(chart) { RECENT } else { 0 };
        let mut facts = BTreeMap::new();
        for (place, version) in tags.highest().into_iter().enumerate() {
            // A tag that is pushed again is younger: its age is asked for each time. What is not asked for is not known.
            if place >= recent && !kept.contains(&(chart.to_owned(), version.clone())) {
                continue;
            }
            let now = match manifest_of(&mut session, &version).await {
                Ok((layer, created)) => Some(TagFacts { digest: Some(layer.digest), created }),
                // What it was is what is known. Whoever wants it hears the reason.
                Err(Stop::Rejected(_)) => known.remove(&version),
                Err(failed @ Stop::Failed(_)) => return Err(failed),
            };
            facts.extend(now.map(|now| (version, now)));
        }
        let url = format!("{}/{chart}", without_user(&request.repository.url));
        Ok(tags.versions(chart, &url, &facts))
    }

    /// Returns the charts of a Repository and the versions of them that are kept.
    async fn kept_versions(&self, repository: &str) -> Result<BTreeSet<(String, String)>, Stop> {
        let selector = format!("{REPO}={},{TYPE}=default", legal::label(repository));
        let version = |annotations: BTreeMap<String, String>| {
            let of = |name: &str| annotations.get(name).cloned();
            let is_its = of(OF_REPOSITORY).as_deref() == Some(repository);
            of(OF_CHART).zip(of(OF_VERSION)).filter(|_| is_its)
        };
        let maps = self.maps.metadata(&selector).await?;
        Ok(maps.into_iter().filter_map(|map| version(map.metadata.annotations?)).collect())
    }

    /// Returns what an index map says of the manifests of versions.
    async fn known_facts(&self, repository: &str, chart: &str) -> Result<BTreeMap<String, TagFacts>, Stop> {
        let map = self.index_map_of(repository, chart).await?;
        let versions = map.as_ref().and_then(|map| map.binary_data.as_ref()?.get(VERSIONS));
        let entries: Vec<Value> =
            versions.and_then(|versions| serde_json::from_slice(&versions.0).ok()).unwrap_or_default();
        let facts = |entry: Value| {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
            let digest = text("digest").and_then(|digest| Digest::parse(&digest).ok());
            Some((text("version")?, TagFacts { digest, created: text("created") }))
        };
        Ok(entries.into_iter().filter_map(facts).collect())
    }

    /// Returns the archive of a version, which has the digest that its manifest names.
    pub(super) async fn pull(&self, base: &HttpUrl, request: &StoreRequest) -> Result<Vec<u8>, Stop> {
        let begun = Instant::now();
        let archive = self.archive_of(base, request).await;
        self.report("archive", archive.is_ok(), begun);
        archive
    }

    async fn archive_of(&self, base: &HttpUrl, request: &StoreRequest) -> Result<Vec<u8>, Stop> {
        let registry = registry(&request.repository.url)?;
        let mut session = self.session(base, &registry, &request.chart)?;
        let (layer, _) = manifest_of(&mut session, &request.version.version).await?;
        let url = session.repository().blob(session.server(), &layer.digest);
        let (archive, ..) = session.get(&url, ANY, MOST_PACKED).await?;
        let digest = Digest::of(&archive);
        if digest == layer.digest {
            return Ok(archive);
        }
        let wanted = layer.digest;
        Err(Stop::Rejected(format!(
            "the digest of the archive is {digest}, that of the manifest is {wanted}"
        )))
    }

    fn session(&self, base: &HttpUrl, registry: &RegistryUrl, chart: &str) -> Result<Session<'_>, Stop> {
        let chart = registry.chart(chart).map_err(|error| rejected(&error))?;
        let session = Session::open(&self.http, &self.options.allowed, registry, chart, LOGIN)?;
        Ok(session.with_user(base.credentials()))
    }

    fn report(&self, what: &'static str, is_fine: bool, begun: Instant) {
        let outcome = if is_fine { "fetched" } else { "failed" };
        self.metrics.observe(FetchObservation { scheme: what, outcome, took: begun.elapsed() });
    }
}

/// Returns the archive that the manifest of a version names, and when it was made.
async fn manifest_of(session: &mut Session<'_>, version: &str) -> Result<(Layer, Option<String>), Stop> {
    let url = session.repository().manifest(session.server(), version).map_err(|error| rejected(&error))?;
    let (manifest, headers, _) = session.get(&url, manifest::ACCEPT, MAX_MANIFEST).await?;
    let served = headers.get(CONTENT_TYPE).and_then(|served| served.to_str().ok()).unwrap_or_default();
    let layer = CHART.layer(served, &manifest, MOST_PACKED).map_err(|error| rejected(&error))?;
    Ok((layer, manifest::created(&manifest)))
}

fn registry(url: &str) -> Result<RegistryUrl, Stop> {
    RegistryUrl::parse(url).map_err(|error| Stop::Rejected(format!("spec.url: {error}")))
}

/// Returns a URL as it is shown: without user and password, and without a slash at its end.
fn without_user(url: &str) -> String {
    let url = url.trim_end_matches('/');
    let (scheme, rest) = url.split_once("://").unwrap_or(("oci", url));
    let (server, path) =
        rest.split_once('/').map_or((rest, String::new()), |(server, path)| (server, format!("/{path}")));
    let server = server.rsplit_once('@').map_or(server, |(_, server)| server);
    format!("{scheme}://{server}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_user_and_password() {
        for (url, shown) in [
            ("oci://me:word@a.example/x/", "oci://a.example/x"),
            ("oci://a.example", "oci://a.example"),
            ("oci://a.example/x@y", "oci://a.example/x@y"),
        ] {
            assert_eq!(without_user(url), shown);
        }
    }
}

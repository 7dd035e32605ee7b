//! Charts in registries: which versions have tags, and the archive of one.

use std::collections::BTreeSet;
use std::time::Instant;

use ::source::digest::Digest;
use ::source::registry::manifest::{self, CHART, MAX_MANIFEST};
use ::source::registry::reference::RegistryUrl;
use ::source::registry::tags::Tags;
use ::source::url::HttpUrl;
use engine::{Failure, FailureKind, FetchedIndex, IndexRequest, StoreRequest};
use http::header::CONTENT_TYPE;

use super::package::MOST_PACKED;
use super::repositories::Repositories;
use super::stop::Stop;
use crate::remote::FetchObservation;
use crate::remote::registry::{ANY, Login, RegistryError, Session};

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
        let (mut changed, mut refused) = (BTreeSet::new(), Vec::new());
        for chart in &request.charts {
            let begun = Instant::now();
            let found = self.tags_of(&base, &registry, chart).await;
            self.report("index", found.is_ok(), begun);
            match found {
                Ok(tags) => {
                    let url = format!("{}/{chart}", without_user(&repository.url));
                    if self.keep_index(request, chart, &tags.versions(chart, &url)).await? {
                        changed.insert(chart.to_string());
                    }
                }
                Err(Stop::Rejected(problem)) => refused.push((chart.clone(), problem)),
                Err(failed @ Stop::Failed(_)) => return Err(failed),
            }
        }
        Ok(FetchedIndex { changed, refused, ..FetchedIndex::default() })
    }

    async fn tags_of(&self, base: &HttpUrl, registry: &RegistryUrl, chart: &str) -> Result<Tags, Stop> {
        Ok(self.session(base, registry, chart)?.tags().await?)
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
        let url = session.repository().manifest(session.server(), &request.version.version);
        let url = url.map_err(|error| rejected(&error))?;
        let (manifest, headers, _) = session.get(&url, manifest::ACCEPT, MAX_MANIFEST).await?;
        let served = headers.get(CONTENT_TYPE).and_then(|served| served.to_str().ok()).unwrap_or_default();
        let layer = CHART.layer(served, &manifest, MOST_PACKED);
        let layer = layer.map_err(|error| rejected(&error))?;
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

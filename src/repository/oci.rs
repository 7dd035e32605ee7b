//! Charts in registries: which versions have tags, and the archive of one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use ::source::digest::Digest;
use ::source::registry::challenge::{Challenge, MAX_TOKEN_ANSWER, token, token_url};
use ::source::registry::manifest::{self, Layer, MAX_MANIFEST};
use ::source::registry::reference::{ChartReference, RegistryUrl};
use ::source::registry::tags::{MAX_PAGE, TagFacts, Tags, next_page};
use ::source::url::{BundleUrl, HttpUrl};
use engine::{FetchedIndex, IndexRequest, StoreRequest};
use http::header::{CONTENT_TYPE, LINK, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use objects::legal;
use serde_json::Value;

use super::config_maps::{OF_CHART, OF_REPOSITORY, OF_VERSION, REPO, TYPE, VERSIONS};
use super::index::fetching;
use super::package::MOST_PACKED;
use super::pauses;
use super::repositories::Repositories;
use super::stop::Stop;
use crate::remote::FetchObservation;
use crate::remote::http::{HttpError, RegistryGet, host};

/// The longest pause that a request itself waits for; for a longer one, the work is put off.
const SHORT_PAUSE: Duration = Duration::from_secs(2);

/// Of how many versions of a chart it is asked when they were pushed, if that matters: of the highest.
const RECENT: usize = 20;

/// What is accepted where anything may come.
const ANY: &str = "*/*";

/// How one chart is spoken about with its registry.
struct Session<'s> {
    repositories: &'s Repositories,
    /// The server, without credentials.
    server: HttpUrl,
    /// The server without TLS, if that may be asked and nobody answered yet.
    plain: Option<HttpUrl>,
    /// User and password as the header has them.
    basic: Option<String>,
    chart: ChartReference,
    /// What the registry wanted to see.
    authorization: Option<String>,
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
            let found = self.versions_of(&base, &registry, request, (chart, &kept)).await;
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
        base: &HttpUrl,
        registry: &RegistryUrl,
        request: &IndexRequest,
        (chart, kept): (&str, &BTreeSet<(String, String)>),
    ) -> Result<Vec<u8>, Stop> {
        let tags = self.tags_of(base, registry, chart).await?;
        let mut session = self.session(base, registry, chart)?;
        let mut known = self.known_facts(&request.repository.name, chart).await?;
        let recent = if request.aged.contains(chart) { RECENT } else { 0 };
        let mut facts = BTreeMap::new();
        for (place, version) in tags.highest().into_iter().enumerate() {
            let before = known.remove(&version);
            let is_new = before.as_ref().is_none_or(|before| before.digest.is_none());
            let is_kept = kept.contains(&(chart.to_owned(), version.clone()));
            let now = if is_kept || (place < recent && is_new) {
                match session.manifest(&version).await {
                    Ok((layer, created)) => Some(TagFacts { digest: Some(layer.digest), created }),
                    // What it was is what is known. Whoever wants it hears the reason.
                    Err(Stop::Rejected(_)) => before,
                    Err(failed @ Stop::Failed(_)) => return Err(failed),
                }
            } else {
                before
            };
            facts.extend(now.map(|now| (version, now)));
        }
        let url = format!("{}/{chart}", without_user(&request.repository.url));
        Ok(tags.versions(chart, &url, &facts))
    }

    /// Returns the versions of charts of a Repository that are kept.
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

    async fn tags_of(&self, base: &HttpUrl, registry: &RegistryUrl, chart: &str) -> Result<Tags, Stop> {
        let mut session = self.session(base, registry, chart)?;
        let mut tags = Tags::default();
        let mut url = session.chart.tags(&session.server);
        loop {
            let (page, headers, answered) = session.get(&url, ANY, MAX_PAGE).await?;
            tags.take(&page).map_err(|error| rejected(&error))?;
            let link = headers.get(LINK).and_then(|link| link.to_str().ok()).and_then(next_page);
            let Some(link) = link else { return Ok(tags) };
            let next = answered.join(link, self.options.allowed.protocols);
            let next = next.ok().filter(|next| next.is_same_server(&session.server));
            url = next.ok_or_else(|| {
                Stop::Rejected(
                    "the registry names a next page of tags that can't be used: it is not on the same server"
                        .to_owned(),
                )
            })?;
        }
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
        let (layer, _) = session.manifest(&request.version.version).await?;
        let url = session.chart.blob(&session.server, &layer.digest);
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
        let server = base.without_credentials();
        let plain = self.options.allowed.protocols.has_http.then(|| registry.plain_server());
        let plain = plain.transpose().map_err(|error| rejected(&error))?;
        let basic = base.credentials().map(::source::url::Credentials::authorization);
        Ok(Session { repositories: self, server, plain, basic, chart, authorization: None })
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

impl Session<'_> {
    /// Returns the archive that the manifest of a version names, and when it was made.
    async fn manifest(&mut self, version: &str) -> Result<(Layer, Option<String>), Stop> {
        let url = self.chart.manifest(&self.server, version).map_err(|error| rejected(&error))?;
        let (manifest, headers, _) = self.get(&url, manifest::ACCEPT, MAX_MANIFEST).await?;
        let served = headers.get(CONTENT_TYPE).and_then(|served| served.to_str().ok()).unwrap_or_default();
        let layer = manifest::layer(served, &manifest, MOST_PACKED).map_err(|error| rejected(&error))?;
        Ok((layer, manifest::created(&manifest)))
    }

    /// Returns what is at a URL of the registry, with its headers and the URL that answered.
    async fn get(
        &mut self,
        url: &HttpUrl,
        accept: &'static str,
        limit: u64,
    ) -> Result<(Vec<u8>, HeaderMap, HttpUrl), Stop> {
        let mut has_waited = false;
        let mut has_authorized = false;
        let mut url = self.server.below(url.path(), url.query());
        loop {
            self.check(&url)?;
            let mut body = Vec::new();
            let authorization = self.authorization.as_deref();
            let get = RegistryGet { url: &url, accept, authorization, limit };
            let answer = self.repositories.http.ask_registry(get, &mut body).await;
            let answer = match answer {
                // Only while developing: a registry without TLS does not understand the beginning of it.
                Err(HttpError::Connect(_)) if self.plain.is_some() => {
                    self.server = self.plain.take().unwrap_or_else(|| self.server.clone());
                    url = self.server.below(url.path(), url.query());
                    continue;
                }
                answer => answer.map_err(|error| fetching("what the registry has", &error))?,
            };
            self.plain = None;
            let is_own = answer.url.is_same_server(&self.server);
            match answer.status {
                StatusCode::OK => return Ok((body, answer.headers, answer.url)),
                StatusCode::UNAUTHORIZED if is_own && !has_authorized => {
                    has_authorized = true;
                    self.authorize(&answer.headers).await?;
                }
                StatusCode::TOO_MANY_REQUESTS => {
                    self.pause(&answer.url, &answer.headers, &mut has_waited).await?;
                }
                status => return Err(Stop::Rejected(self.refusal(&answer.url, status))),
            }
        }
    }

    /// Checks that a URL may be asked now.
    fn check(&self, url: &HttpUrl) -> Result<(), Stop> {
        let allowed = self.repositories.options.allowed.check_bundle(&BundleUrl::Http(url.clone()));
        allowed.map_err(|error| Stop::Rejected(format!("the registry: {error}")))?;
        let host = host(url);
        if self.repositories.pauses.has(&host) {
            return Err(Stop::Rejected(format!(
                "{host} wants to be left alone for a while (429 Too Many Requests)"
            )));
        }
        Ok(())
    }

    /// Waits as long as a server wants that, if it is short and the first time; else nobody asks it until then.
    async fn pause(&self, url: &HttpUrl, headers: &HeaderMap, has_waited: &mut bool) -> Result<(), Stop> {
        let pause = pauses::wanted(headers, Timestamp::now());
        if pause <= SHORT_PAUSE && !std::mem::replace(has_waited, true) {
            tokio::time::sleep(pause).await;
            return Ok(());
        }
        let host = host(url);
        self.repositories.pauses.add(&host, pause);
        // The same text as while it lasts: the status is written once.
        Err(Stop::Rejected(format!("{host} wants to be left alone for a while (429 Too Many Requests)")))
    }

    /// Gets what the registry wants to see.
    async fn authorize(&mut self, headers: &HeaderMap) -> Result<(), Stop> {
        let challenges = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let mut challenges: Vec<Challenge> = challenges.filter_map(Challenge::parse).collect();
        // A token, if there is a choice.
        challenges.sort_by_key(|challenge| matches!(challenge, Challenge::Basic));
        let refused = |why: &str| {
            let host = host(&self.server);
            Stop::Rejected(format!("{host} answered 401 Unauthorized: {why}"))
        };
        match challenges.into_iter().next() {
            Some(Challenge::Basic) => {
                let basic = self.basic.clone();
                self.authorization = Some(basic.ok_or_else(|| refused(NO_CREDENTIALS))?);
            }
            Some(Challenge::Bearer { realm, service, scope }) => {
                let protocols = self.repositories.options.allowed.protocols;
                let named = (&*realm, &*service, &*scope);
                let at = token_url(&self.server, named, &self.chart.scope(), protocols);
                let at = at.map_err(|error| rejected(&error))?;
                let token =
                    self.token(&at.url, self.basic.as_deref().filter(|_| at.takes_credentials)).await?;
                self.authorization = Some(format!("Bearer {token}"));
            }
            None => return Err(refused("it names no way to log in that is known here (Basic or Bearer)")),
        }
        Ok(())
    }

    async fn token(&self, url: &HttpUrl, basic: Option<&str>) -> Result<String, Stop> {
        self.check(url)?;
        let mut body = Vec::new();
        let get = RegistryGet { url, accept: ANY, authorization: basic, limit: MAX_TOKEN_ANSWER };
        let answer = self.repositories.http.ask_registry(get, &mut body).await;
        let answer = answer.map_err(|error| fetching("a token", &error))?;
        match answer.status {
            StatusCode::OK => token(&body).map_err(|error| rejected(&error)),
            StatusCode::TOO_MANY_REQUESTS => {
                self.pause(&answer.url, &answer.headers, &mut true).await?;
                Err(Stop::Rejected(String::new()))
            }
            status => Err(Stop::Rejected(self.refusal(&answer.url, status))),
        }
    }

    /// Returns what a refusal means, and what to do about it.
    fn refusal(&self, url: &HttpUrl, status: StatusCode) -> String {
        let (host, name) = (host(url), self.chart.name());
        let why = match status {
            StatusCode::UNAUTHORIZED if self.basic.is_none() => NO_CREDENTIALS.to_owned(),
            StatusCode::UNAUTHORIZED => "it refuses the user and password of spec.authSecret".to_owned(),
            StatusCode::FORBIDDEN => {
                format!(
                    "nobody may read {name} so; spec.authSecret has to name a user who may, or it is not there"
                )
            }
            StatusCode::NOT_FOUND => format!("it has no {name}, or not this version of it"),
            _ => format!("nothing of {name} can be had"),
        };
        format!("{host} answered {status}: {why}")
    }
}

/// What is told to those who named no user.
const NO_CREDENTIALS: &str =
    "it wants user and password, write them into a Secret and name that in spec.authSecret";

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

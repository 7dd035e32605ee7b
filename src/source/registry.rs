//! Bundles in registries (OCI): the tags of a repository are the versions of a bundle, and a layer of a manifest is its archive.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use ::source::chunk::MAX_PACKED_BYTES;
use ::source::index::Index;
use ::source::registry::docker_config::{self, LoginError};
use ::source::registry::manifest::{ACCEPT, BUNDLE, Layer, MAX_MANIFEST};
use ::source::registry::reference::{self, ReferenceError, RegistryUrl};
use ::source::registry::tags::Tags;
use ::source::template::{self, SecretData};
use ::source::versions::{Choice, Include, Selection};
use engine::{AddonReason, Digest, FetchedAddon, RepositoryReason, RepositorySpec, SourceKey};
use futures::stream::{self, StreamExt as _};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use tokio::time::Instant;

use super::cache::{Tagged, UrlHash, Verdict};
use super::disk_error::disk_failure;
use super::fetch::{
    AT_A_TIME, Fetcher, Outcome, Reader, RepositoryStop, Saying, Stop, Wanted, collect, finish, include,
    not_there, templating, unreadable,
};
use super::git::Pass;
use super::store::{Download, Pin};
use super::turns::blocking;
use crate::remote::FetchObservation;
use crate::remote::http::{HttpError, Sink};
use crate::remote::registry::{ANY, Login, RegistryError, Session};

/// How registries are named among the ways to speak to a server.
const SCHEME: &str = "oci";

/// The header with the digest of a manifest.
const DIGEST: &str = "docker-content-digest";

/// Where a configuration names who may read.
const LOGIN: Login = Login {
    missing: "it wants user and password, write them into a Secret and name that in secretRef",
    place: "secretRef",
};

/// Where it names who may read a mirror on another server.
const MIRROR_LOGIN: Login = Login {
    missing: "it wants user and password; as a mirror it is shown only those that a .dockerconfigjson has for its host: write them \
              into one, in a Secret, and name that in secretRef",
    place: "the .dockerconfigjson of secretRef",
};

/// Counts what an archive has, so that its manifest can be compared.
struct Counted<'d> {
    download: &'d mut Download,
    length: u64,
}

impl Sink for Counted<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<()> {
        self.length = self.length.saturating_add(part.len().try_into().unwrap_or(u64::MAX));
        self.download.write(part)
    }
}

/// Returns why a bundle could not be had.
fn stop(error: &RegistryError) -> Stop {
    if error.is_ours() {
        return Stop::Ours(disk_failure(error));
    }
    fetching(format!("the bundle can't be fetched: {error}"))
}

fn fetching(message: String) -> Stop {
    Stop::Addon(AddonReason::FetchingError, message)
}

/// A registry as a configuration names it.
#[derive(Clone, Copy)]
struct RegistryAccess<'p> {
    registry: &'p RegistryUrl,
    secret: Option<&'p SecretData>,
}

impl Fetcher {
    /// Returns what is wanted of a registry. Versions that do not become modules are not fetched. A refresh takes the list of
    /// tags for the answer whether a bundle changed.
    pub(super) async fn addons_in_registry(
        &self,
        url: &str,
        (spec, reader): (&RepositorySpec, Reader<'_>),
        secret: Option<&SecretData>,
        pass: &Pass,
        saying: &mut Saying,
    ) -> Result<(Vec<FetchedAddon>, Vec<Pin>), RepositoryStop> {
        let unread =
            |message: String| RepositoryStop::Repository(RepositoryReason::FetchingIndexError, message);
        let mut registry = RegistryUrl::parse(url).map_err(|error| unread(error.to_string()))?;
        if let Some(secret) = secret.filter(|_| registry.server().credentials().is_none()) {
            // A Secret may be there for the path, or for the mirror.
            let may_be_silent = template::has_placeholder(&spec.url)
                || self.mirrors.registry(&registry).is_ok_and(|mirror| mirror.is_some());
            match docker_config::of_secret(secret, &registry) {
                Ok((user, password)) => registry = registry.with_credentials(&user, &password),
                Err(LoginError::Keys | LoginError::Host(_)) if may_be_silent => {}
                Err(error) => return Err(templating(error.to_string())),
            }
        }
        saying.redactor =
            std::mem::take(&mut saying.redactor).with_credentials(registry.server().credentials());
        let place = RegistryAccess { registry: &registry, secret };
        let mut wanted: Vec<Include> = spec.include.iter().map(include).collect();
        let names_none = wanted.is_empty();
        if names_none {
            let name = registry.own_name().map_err(|error| unread(error.to_string()))?.to_owned();
            wanted.push(Include { name, version: None, digest: None });
        }
        if let Some(first) = wanted.first() {
            let asked = self.asked(place, &first.name).ok().filter(|(_, is_mirror)| *is_mirror);
            saying.mirror = asked.map(|(mirror, _)| mirror.to_string());
        }
        let (versions, problems) = self.versions(place, &wanted).await?;
        if let Some(problem) = problems.values().next().filter(|_| names_none) {
            return Err(unread(format!("the versions can't be listed: {problem}")));
        }
        let listed = versions.iter().map(|(name, versions)| (name.as_str(), versions));
        let index = Index::of_versions(listed).map_err(|error| unread(error.to_string()))?;
        let selection = Selection::with(&index, &wanted, |line| pass.calls_for(line));
        let may_come = |choice: &&Choice<'_>| choice.is_chosen || choice.is_called_for;
        let chosen: Vec<Wanted> = selection.choices.iter().filter(may_come).map(Wanted::of).collect();
        if names_none && chosen.is_empty() {
            let text = format!(
                "{registry} has no tag that is a version, such as 1.2.3: push a bundle, or name bundles below it in include"
            );
            return Err(unread(text));
        }
        // One list for each bundle is all that a look may cost.
        let is_known =
            |name: &str| pass.is_refresh && wanted.iter().all(|it| it.name != name || !is_exact(it));
        let asking: Vec<_> = chosen
            .iter()
            .map(|wanted| self.tagged_addon(place, reader, (wanted, is_known(&wanted.line.name))))
            .collect();
        let outcomes: Vec<Outcome> = stream::iter(asking).buffered(AT_A_TIME).collect().await;
        let (mut addons, pins) = collect(chosen.iter().zip(outcomes), saying, &self.store)?;
        addons.extend(selection.missing.iter().map(|include| {
            if let Some(problem) = unreadable(include) {
                return not_there(include, problem);
            }
            let problem = problems.get(&include.name).map_or_else(
                || {
                    let version = include.version.as_deref().unwrap_or("at all");
                    let name = &include.name;
                    format!(
                        "the registry has no version {version} of {name}: correct spec.repositories[].include, or push it"
                    )
                },
                |problem| format!("the versions can't be listed: {problem}"),
            );
            not_there(include, saying.clean(true, &problem))
        }));
        Ok((addons, pins))
    }

    /// Returns the URL of the repository of a bundle that is asked, with who may read it, and whether that is a mirror. User and
    /// password go to a mirror on another server only if the Secret has them for it.
    fn asked(&self, place: RegistryAccess<'_>, name: &str) -> Result<(RegistryUrl, bool), ReferenceError> {
        let own = place.registry.at(&place.registry.bundle(name)?);
        let Some(mirror) = self.mirrors.registry(&own)? else { return Ok((own, false)) };
        if let Some(credentials) = own.server().credentials()
            && mirror.server().is_same_server(own.server())
        {
            return Ok((mirror.with_credentials(credentials.user(), credentials.password()), true));
        }
        let login = place.secret.and_then(|secret| docker_config::of_secret_for(secret, &mirror));
        let mirror =
            login.map_or_else(|| mirror.clone(), |(user, word)| mirror.with_credentials(&user, &word));
        Ok((mirror, true))
    }

    fn session(&self, place: RegistryAccess<'_>, name: &str) -> Result<Session<'_>, RegistryError> {
        let rejected = |error: ReferenceError| RegistryError::Rejected(error.to_string());
        let (asked, is_mirror) = self.asked(place, name).map_err(rejected)?;
        let allowed = self.allowed.check_registry(&asked);
        allowed.map_err(|error| RegistryError::Rejected(error.to_string()))?;
        let repository = asked.repository().map_err(rejected)?;
        let is_elsewhere = is_mirror && !asked.server().is_same_server(place.registry.server());
        let login = if is_elsewhere { MIRROR_LOGIN } else { LOGIN };
        Session::open(&self.http, &self.allowed, &asked, repository, login)
    }

    /// Returns the versions of each bundle that may be chosen, and why others can't be listed. Versions that are named exactly
    /// are not looked for: whether they are there is known when they are fetched, or from a list that somebody else asks for. One
    /// that is not there is not what a range means.
    async fn versions(
        &self,
        place: RegistryAccess<'_>,
        wanted: &[Include],
    ) -> Result<(BTreeMap<String, BTreeSet<String>>, BTreeMap<String, String>), RepositoryStop> {
        let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut unlisted = BTreeSet::new();
        for include in wanted {
            match include.version.as_deref().filter(|_| is_exact(include)) {
                Some(version) => {
                    versions.entry(include.name.clone()).or_default().insert(version.to_owned());
                }
                None => drop(unlisted.insert(include.name.as_str())),
            }
        }
        let names: Vec<&str> = unlisted.into_iter().collect();
        let asking: Vec<_> = names.iter().map(|name| self.tags(place, name)).collect();
        let answers: Vec<_> = stream::iter(asking).buffered(AT_A_TIME).collect().await;
        let mut problems = BTreeMap::new();
        for (name, tags) in names.into_iter().zip(answers) {
            match tags {
                Ok(tags) => drop(versions.insert(name.to_owned(), tags.whole_versions())),
                Err(error) if error.is_ours() => {
                    return Err(RepositoryStop::Ours(disk_failure(&error)));
                }
                Err(error) => drop(problems.insert(name.to_owned(), error.to_string())),
            }
        }
        Ok((versions, problems))
    }

    async fn tags(&self, place: RegistryAccess<'_>, name: &str) -> Result<Tags, RegistryError> {
        let begun = Instant::now();
        let tags = match self.session(place, name) {
            Ok(mut session) => session.tags().await,
            Err(error) => Err(error),
        };
        self.observe_registry(if tags.is_ok() { "fetched" } else { "failed" }, begun);
        tags
    }

    async fn tagged_addon(
        &self,
        place: RegistryAccess<'_>,
        reader: Reader<'_>,
        (wanted, is_known): (&Wanted, bool),
    ) -> Outcome {
        let line = &wanted.line;
        let loading = |problem: &String| Stop::Addon(AddonReason::LoadingError, problem.clone());
        let entry = line.outcome.as_ref().map_err(loading)?;
        let begun = Instant::now();
        let found = self.tagged_bundle(place, reader, (wanted, is_known), entry.version.original()).await;
        let outcome = match &found {
            Ok((.., false)) => "unchanged",
            Ok((.., true)) => "fetched",
            Err(_) => "failed",
        };
        self.observe_registry(outcome, begun);
        let (digest, pin, verdict, _) = found?;
        self.cache.put_held(reader.source, &digest);
        finish(line, entry, digest, pin, &verdict)
    }

    /// Returns the bundle of a version, and whether anything was fetched for it. `is_known` says that one which was fetched before
    /// is not asked for.
    async fn tagged_bundle(
        &self,
        place: RegistryAccess<'_>,
        Reader { source, keys }: Reader<'_>,
        (wanted, is_known): (&Wanted, bool),
        version: &str,
    ) -> Result<(Digest, Pin, Verdict, bool), Stop> {
        let expected = wanted.digest.as_ref();
        // One that is named by its digest is what it is, whatever the registry says.
        if let Some(digest) = expected {
            let digest = ours(digest)?;
            let pin = self.store.pin(&digest);
            if self.is_verified(keys, &digest)
                && let Some(verdict) = self.named(source, &digest).await?
            {
                return Ok((digest, pin, verdict, false));
            }
        }
        let mut session = self.session(place, &wanted.line.name).map_err(|error| stop(&error))?;
        let tag = reference::tag(version).map_err(|error| fetching(error.to_string()))?;
        let url = session.repository().manifest_of(place.registry.server(), &tag);
        let hash = UrlHash::of(&url).with(session.server().host());
        if let Some(known) = self.cache.manifest(hash).filter(|known| is_expected(known, expected)) {
            let pin = self.store.pin(&known.bundle);
            if self.is_verified(keys, &known.bundle)
                && let Some(verdict) = self.stored(source, &known.bundle).await?
                && (is_known || self.is_unchanged(&mut session, &tag, &known).await?)
            {
                return Ok((known.bundle, pin, verdict, false));
            }
        }
        let (tagged, layer) = manifest(&mut session, &tag).await?;
        if !is_expected(&tagged, expected) {
            let Tagged { manifest, bundle } = &tagged;
            let expected = expected.map(ToString::to_string).unwrap_or_default();
            let text = format!(
                "the digest of the bundle is {bundle}, that of its manifest {manifest}, {expected} is expected"
            );
            return Err(fetching(text));
        }
        let pin = self.store.pin(&tagged.bundle);
        if let Some(keys) = keys.filter(|keys| !self.is_verified(Some(keys), &tagged.bundle)) {
            self.verify_manifest(keys, &mut session, &tagged.manifest).await?;
            self.cache.put_verified(&tagged.bundle, keys.hash());
        }
        let (digest, pin, verdict) = match self.named(source, &tagged.bundle).await? {
            Some(verdict) => (tagged.bundle.clone(), pin, verdict),
            None => self.layer(source, &mut session, &layer, &tagged.bundle).await?,
        };
        self.cache.put_manifest(hash, tagged);
        Ok((digest, pin, verdict, true))
    }

    /// Asks whether a tag names what it named before.
    async fn is_unchanged(&self, session: &mut Session<'_>, tag: &str, known: &Tagged) -> Result<bool, Stop> {
        let url = session.repository().manifest_of(session.server(), tag);
        let headers = session.head(&url, ACCEPT).await.map_err(|error| stop(&error))?;
        Ok(header(&headers, DIGEST) == known.manifest.to_string())
    }

    /// Fetches the archive that a manifest names.
    async fn layer(
        &self,
        source: &SourceKey,
        session: &mut Session<'_>,
        layer: &Layer,
        digest: &Digest,
    ) -> Result<(Digest, Pin, Verdict), Stop> {
        let store = Arc::clone(&self.store);
        let download = blocking(move || store.download()).await.map_err(Stop::Ours)?;
        let mut download = download.map_err(|error| Stop::Ours(error.failure()))?;
        let mut sink = Counted { download: &mut download, length: 0 };
        let url = session.repository().blob(session.server(), &layer.digest);
        let answer = session.get_into(&url, ANY, layer.size, &mut sink).await;
        let (length, size) = (sink.length, layer.size);
        match answer {
            Err(RegistryError::Http { error: HttpError::TooLong { .. }, .. }) => {
                return Err(lies(&format!("more than the {size}"), size));
            }
            answer => drop(answer.map_err(|error| stop(&error))?),
        }
        if length != size {
            return Err(lies(&length.to_string(), size));
        }
        self.take(source, download, Some(digest)).await
    }

    fn observe_registry(&self, outcome: &'static str, begun: Instant) {
        self.metrics.observe(FetchObservation { scheme: SCHEME, outcome, took: begun.elapsed() });
    }
}

/// Returns whether one version is named, so that there is nothing to choose from.
fn is_exact(include: &Include) -> bool {
    include.version.as_deref().is_some_and(|version| reference::exact_tag(version).is_some())
}

/// Returns what is said of a layer that is not as long as its manifest says.
fn lies(has: &str, size: u64) -> Stop {
    fetching(format!(
        "the layer with the bundle has {has} bytes, and {size} according to the manifest: push it again"
    ))
}

fn is_expected(tagged: &Tagged, expected: Option<&::source::digest::Digest>) -> bool {
    expected
        .is_none_or(|expected| *expected == tagged.manifest || expected.to_string() == tagged.bundle.as_str())
}

/// Returns a digest as the engine has it.
fn ours(digest: &::source::digest::Digest) -> Result<Digest, Stop> {
    digest.to_string().parse().map_err(|error: engine::NotADigest| fetching(error.to_string()))
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Reads the manifest that a tag names. All that is known of it comes from one answer, so that a tag which moves meanwhile
/// changes nothing.
async fn manifest(session: &mut Session<'_>, tag: &str) -> Result<(Tagged, Layer), Stop> {
    let url = session.repository().manifest_of(session.server(), tag);
    let (manifest, headers, _) =
        session.get(&url, ACCEPT, MAX_MANIFEST).await.map_err(|error| match error {
            error if error.is_missing() => {
                let text = "if the tag was listed a moment ago, it was deleted meanwhile";
                fetching(format!("the bundle can't be fetched: {error}; {text}"))
            }
            error => stop(&error),
        })?;
    let digest = ::source::digest::Digest::of(&manifest);
    let told = header(&headers, DIGEST);
    if told.starts_with("sha256:") && told != digest.to_string() {
        let text = format!(
            "the bundle can't be fetched: the registry says that the manifest of {tag} is {told}, and sent {digest}: the tag \
             moved meanwhile, or somebody on the way changes answers"
        );
        return Err(fetching(text));
    }
    let unusable = |problem: String| fetching(format!("the bundle can't be fetched: {problem}"));
    let layer = BUNDLE.layer(header(&headers, CONTENT_TYPE.as_str()), &manifest, MAX_PACKED_BYTES as u64);
    let layer = layer.map_err(|error| unusable(error.to_string()))?;
    let bundle = ours(&layer.digest)?;
    Ok((Tagged { manifest: digest, bundle }, layer))
}

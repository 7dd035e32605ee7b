//! Signatures of bundles: nothing is unpacked that no key of `spec.verify` signed. See docs/sources.md.

use std::sync::Arc;

use ::source::digest::Digest as SourceDigest;
use ::source::registry::manifest::ACCEPT;
use ::source::signature::detached;
use ::source::signature::key::{KeyError, MAX_KEYS, PublicKey};
use ::source::signature::sigstore::{self, MAX_BUNDLE, Statement};
use ::source::signature::simple_signing::{self, MAX_TEXT, Signed};
use ::source::url::HttpUrl;
use engine::{AddonReason, Digest, Failure, RepositoryReason, SourceKey, Verification};
use http::StatusCode;

use super::disk_error::disk_failure;
use super::fetch::{Fetcher, RepositoryStop, Stop};
use super::keys::Keys;
use crate::remote::http::{Answer, Get, HttpError};
use crate::remote::registry::{ANY, RegistryError, Session};

/// The most bytes of a manifest with signatures.
const MAX_MANIFEST: u64 = 1 << 20;

/// What the names of keys of a Secret end with that hold public keys. Others, such as `cosign.key`, are not looked at.
const PUBLIC: &str = ".pub";

fn loading(message: &str) -> Stop {
    Stop::Addon(AddonReason::LoadingError, format!("the bundle can't be used: {message}"))
}

fn fetching(error: &impl ToString) -> Stop {
    let text = format!("the signature of the bundle can't be fetched: {}", error.to_string());
    Stop::Addon(AddonReason::FetchingError, text)
}

/// Returns why the keys of a configuration can't be used.
fn unusable(place: &str, error: &KeyError) -> RepositoryStop {
    RepositoryStop::Repository(RepositoryReason::LoadingError, format!("{place} can't be used: {error}"))
}

/// What was seen of the signatures of a manifest.
#[derive(Default)]
struct Seen {
    /// Whether there is the tag of signatures.
    has_tag: bool,
    /// How many signatures there are.
    signatures: usize,
    /// What those signed that are of a key.
    subjects: Vec<SourceDigest>,
}

fn failed(error: &RegistryError) -> Stop {
    if error.is_ours() { Stop::Ours(disk_failure(error)) } else { fetching(error) }
}

/// Returns whether a key signed a manifest as cosign does up to version 2.
async fn is_simply_signed(
    keys: &Keys,
    session: &mut Session<'_>,
    manifest: &SourceDigest,
    seen: &mut Seen,
) -> Result<bool, Stop> {
    let url = session.repository().manifest_of(session.server(), &simple_signing::tag(manifest));
    let signed = match session.get(&url, ACCEPT, MAX_MANIFEST).await {
        Ok((found, ..)) => simple_signing::signatures(&found),
        Err(error) if error.is_missing() => return Ok(false),
        Err(error) => return Err(failed(&error)),
    };
    (seen.has_tag, seen.signatures) = (true, signed.len());
    for Signed { text: digest, signature } in &signed {
        let url = session.repository().blob(session.server(), digest);
        let (text, ..) = session.get(&url, ANY, MAX_TEXT).await.map_err(|error| failed(&error))?;
        if SourceDigest::of(&text) == *digest && keys.accept(&text, signature) {
            seen.subjects.extend(simple_signing::subject(&text));
        }
        if seen.subjects.contains(manifest) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether a key signed a manifest as cosign does from version 3 on.
async fn has_bundle(
    keys: &Keys,
    session: &mut Session<'_>,
    manifest: &SourceDigest,
    seen: &mut Seen,
) -> Result<bool, Stop> {
    for (referrer, _) in referrers(session, manifest).await.map_err(|error| failed(&error))? {
        let url = session.repository().manifest_of(session.server(), &referrer.to_string());
        let (found, ..) = session.get(&url, ACCEPT, MAX_MANIFEST).await.map_err(|error| failed(&error))?;
        let Some(digest) = sigstore::layer(&found) else { continue };
        let url = session.repository().blob(session.server(), &digest);
        let (bundle, ..) = session.get(&url, ANY, MAX_BUNDLE).await.map_err(|error| failed(&error))?;
        let Some(Statement { message, signatures, subjects }) = sigstore::statement(&bundle) else {
            continue;
        };
        seen.signatures += signatures.len();
        if signatures.iter().any(|signature| keys.accept(&message, signature)) {
            seen.subjects.extend(subjects);
        }
        if seen.subjects.contains(manifest) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the bundles that refer to a manifest: their descriptors with their digests. A registry that has no call for that has a tag.
pub(super) async fn referrers(
    session: &mut Session<'_>,
    manifest: &SourceDigest,
) -> Result<Vec<(SourceDigest, serde_json::Value)>, RegistryError> {
    let url = session.repository().referrers(session.server(), manifest);
    match session.get(&url, ACCEPT, MAX_MANIFEST).await {
        Ok((found, ..)) => return Ok(sigstore::referrers(&found)),
        Err(error) if error.is_unknown_call() => {}
        Err(error) => return Err(error),
    }
    let url = session.repository().manifest_of(session.server(), &sigstore::tag(manifest));
    match session.get(&url, ACCEPT, MAX_MANIFEST).await {
        Ok((found, ..)) => Ok(sigstore::referrers(&found)),
        Err(error) if error.is_missing() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

impl Fetcher {
    /// Reads the keys that a configuration names.
    pub(super) async fn keys(
        &self,
        key: &SourceKey,
        verification: &Verification,
    ) -> Result<Keys, RepositoryStop> {
        let mut keys = Vec::new();
        for (number, text) in verification.public_keys.iter().enumerate() {
            let place = || format!("spec.verify.publicKeys[{number}]");
            keys.extend(PublicKey::parse_all(text).map_err(|error| unusable(&place(), &error))?);
        }
        if let Some(name) = &verification.secret {
            let data = self.secret(key, name).await?;
            let name = format!("{}/{}", name.namespace, name.name);
            let mut public = data.iter().filter(|(key, _)| key.ends_with(PUBLIC)).peekable();
            if public.peek().is_none() {
                let text = format!(
                    "Secret {name} of spec.verify has no public key: it needs a key whose name ends with {PUBLIC}, such as cosign.pub"
                );
                return Err(RepositoryStop::Repository(RepositoryReason::LoadingError, text));
            }
            for (key, text) in public {
                let place = || format!("{key} of Secret {name} of spec.verify");
                let text = std::str::from_utf8(text).unwrap_or_default();
                keys.extend(PublicKey::parse_all(text).map_err(|error| unusable(&place(), &error))?);
            }
        }
        match keys.len() {
            0 => {
                let text = "spec.verify names no key: write publicKeys, or name a Secret with secretRef";
                Err(RepositoryStop::Repository(RepositoryReason::LoadingError, text.to_owned()))
            }
            1..=MAX_KEYS => Ok(Keys::new(keys)),
            _ => Err(unusable("spec.verify", &KeyError::Many)),
        }
    }

    /// Checks the signature that lies beside an archive on a web server.
    pub(super) async fn verify_archive(
        &self,
        keys: &Keys,
        url: &HttpUrl,
        packed: impl FnOnce() -> Result<Vec<u8>, Failure> + Send + 'static,
    ) -> Result<(), Stop> {
        let beside = url.below(detached::SUFFIX, url.query());
        let mut file = Vec::new();
        let get = Get { url: &beside, known: None, limit: detached::MAX_FILE };
        match self.observed(&beside, self.http.get(get, &mut file)).await {
            Ok(Answer::New(..) | Answer::Unchanged) => {}
            Err(HttpError::Status { host, status: StatusCode::NOT_FOUND | StatusCode::GONE }) => {
                let name = beside.path().rsplit('/').next().unwrap_or_default();
                return Err(loading(&format!(
                    "it is not signed: {host} has no {name}, and spec.verify wants the signature of the archive there"
                )));
            }
            Err(error) => return Err(fetching(&error)),
        }
        let (keys, signature) = (keys.clone(), detached::signature(&file));
        let is_signed = self
            .turns
            .in_memory(move || -> Result<bool, Failure> { Ok(keys.accept(&packed()?, &signature)) })
            .await;
        let is_signed = is_signed.and_then(|is_signed| is_signed).map_err(Stop::Ours)?;
        if is_signed {
            return Ok(());
        }
        let text = "it is wrongly signed: its signature is of no key of spec.verify, or of another archive";
        Err(loading(text))
    }

    /// Checks the signatures that a registry has of a manifest.
    pub(super) async fn verify_manifest(
        &self,
        keys: &Keys,
        session: &mut Session<'_>,
        manifest: &SourceDigest,
    ) -> Result<(), Stop> {
        let mut seen = Seen::default();
        let is_signed = is_simply_signed(keys, session, manifest, &mut seen).await?
            || has_bundle(keys, session, manifest, &mut seen).await?;
        if is_signed {
            return Ok(());
        }
        let tag = simple_signing::tag(manifest);
        Err(loading(&match seen.subjects.first() {
            Some(other) => {
                format!(
                    "it is wrongly signed: its signature is of the manifest {other}, and the tag names {manifest}"
                )
            }
            None if seen.signatures > 0 => {
                "it is wrongly signed: none of its signatures is of a key of spec.verify".to_owned()
            }
            None if seen.has_tag => format!("it is not signed: {tag} has no signature of cosign"),
            None => format!(
                "it is not signed: the registry has no tag {tag}, and nothing that refers to the manifest, and spec.verify wants \
                 signatures of cosign there"
            ),
        }))
    }

    /// Returns whether a bundle was verified with these keys before.
    pub(super) fn is_verified(&self, keys: Option<&Keys>, digest: &Digest) -> bool {
        keys.is_none_or(|keys| self.cache.is_verified(digest, keys.hash()))
    }

    /// Checks an archive that was fetched or is kept, unless that was done before.
    pub(super) async fn verify_once(
        &self,
        keys: Option<&Keys>,
        url: &HttpUrl,
        digest: &Digest,
        packed: impl FnOnce() -> Result<Vec<u8>, Failure> + Send + 'static,
    ) -> Result<(), Stop> {
        let Some(keys) = keys.filter(|keys| !self.is_verified(Some(keys), digest)) else { return Ok(()) };
        self.verify_archive(keys, url, packed).await?;
        self.cache.put_verified(digest, keys.hash());
        Ok(())
    }

    /// Returns what reads the archive of a bundle that is kept.
    pub(super) fn kept(
        &self,
        digest: &Digest,
    ) -> impl FnOnce() -> Result<Vec<u8>, Failure> + Send + 'static + use<> {
        let (store, digest) = (Arc::clone(&self.store), digest.clone());
        move || store.packed(&digest).map_err(|error| error.failure())
    }
}

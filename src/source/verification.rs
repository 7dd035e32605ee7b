//! Signatures of bundles: nothing is unpacked that no key of `spec.verify` signed. See docs/sources.md.

use std::sync::Arc;

use ::source::digest::Digest as SourceDigest;
use ::source::signature::detached;
use ::source::signature::key::{KeyError, MAX_KEYS, PublicKey};
use ::source::signature::simple_signing::{self, MAX_TEXT, Signed};
use ::source::url::HttpUrl;
use engine::{AddonReason, Digest, Failure, RepositoryReason, SourceKey, Verification};
use http::StatusCode;

use super::fetch::{Fetcher, RepositoryStop, Stop};
use super::keys::Keys;
use super::store::disk_failure;
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
        let is_signed =
            self.in_turn(move || -> Result<bool, Failure> { Ok(keys.accept(&packed()?, &signature)) }).await;
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
        let tag = simple_signing::tag(manifest);
        let failed = |error: &RegistryError| {
            if error.is_ours() { Stop::Ours(disk_failure(error)) } else { fetching(error) }
        };
        let url = session.repository().manifest_of(session.server(), &tag);
        let signed = match session.get(&url, ANY, MAX_MANIFEST).await {
            Ok((found, ..)) => simple_signing::signatures(&found),
            Err(error) if error.is_missing() => {
                return Err(loading(&format!(
                    "it is not signed: the registry has no tag {tag}, and spec.verify wants signatures of cosign there"
                )));
            }
            Err(error) => return Err(failed(&error)),
        };
        let mut subjects = Vec::new();
        for Signed { text: digest, signature } in &signed {
            let url = session.repository().blob(session.server(), digest);
            let (text, ..) = session.get(&url, ANY, MAX_TEXT).await.map_err(|error| failed(&error))?;
            if SourceDigest::of(&text) == *digest && keys.accept(&text, signature) {
                subjects.extend(simple_signing::subject(&text));
            }
            if subjects.contains(manifest) {
                return Ok(());
            }
        }
        Err(loading(&match subjects.first() {
            Some(other) => {
                format!(
                    "it is wrongly signed: its signature is of the manifest {other}, and the tag names {manifest}"
                )
            }
            None if signed.is_empty() => format!("it is not signed: {tag} has no signature of cosign"),
            None => "it is wrongly signed: none of its signatures is of a key of spec.verify".to_owned(),
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

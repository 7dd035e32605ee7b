//! Bundles: packed modules, known by the digest of their bytes.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::name::ModuleName;

/// How a digest begins.
const PREFIX: &str = "sha256:";

/// The digest of a packed archive: `sha256:` and 64 digits.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(Arc<str>);

/// Why a text is no digest.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("a digest is sha256: and 64 digits of 0-9 and a-f")]
pub struct NotADigest;

/// One bundle that was fetched, linted and put into the store directory.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Bundle {
    /// The id that its `meta.yaml` gives.
    pub id: String,
    /// The name of the module that it becomes.
    pub name: ModuleName,
    /// Its version.
    pub version: String,
    /// The digest of the packed archive.
    pub digest: Digest,
    /// The order number of its module.
    pub order: u32,
    /// What is in it.
    pub kind: BundleKind,
    /// The namespace of the release that its files name, if they do. Without the bundle nobody else knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Arc<str>>,
}

/// What is in a bundle.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BundleKind {
    /// A chart with plans, in the format of helm-broker.
    Chart,
    /// A module as it is in a directory.
    Module,
}

/// A module that the loader finds in the store directory.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ModuleLink {
    /// The module's order number.
    pub order: u32,
    /// Its name.
    pub name: ModuleName,
    /// Its bundle.
    pub digest: Digest,
}

impl Digest {
    /// Returns the digest with its prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the 64 digits.
    pub fn hex(&self) -> &str {
        self.0.strip_prefix(PREFIX).unwrap_or_default()
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let hex = text.strip_prefix(PREFIX).ok_or(NotADigest)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if hex.len() == 64 && hex.bytes().all(is_digit) { Ok(Self(text.into())) } else { Err(NotADigest) }
    }
}

impl TryFrom<String> for Digest {
    type Error = NotADigest;

    fn try_from(text: String) -> Result<Self, NotADigest> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.as_str().to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sha256_in_small_digits_is_a_digest() {
        let good = format!("sha256:{}", "0a".repeat(32));
        assert_eq!(good.parse::<Digest>().unwrap().hex(), "0a".repeat(32));
        let bad = [good.to_uppercase(), good.clone() + "0", good.replace(':', "-"), String::new()];
        for text in bad {
            assert_eq!(text.parse::<Digest>(), Err(NotADigest), "{text}");
        }
    }
}

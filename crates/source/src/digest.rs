//! The SHA-256 digest of a packed bundle.

use std::fmt::{self, Write as _};

use sha2::{Digest as _, Sha256};

/// How many hexadecimal digits a digest has.
const DIGITS: usize = 64;

/// The digest of a packed bundle; shown as `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

/// A text that is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is sha256: and 64 hexadecimal digits, as `source pack` prints it")]
pub struct DigestError;

impl Digest {
    /// Returns the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hex = String::with_capacity(DIGITS);
        for byte in Sha256::digest(bytes) {
            let _ = write!(hex, "{byte:02x}");
        }
        Self(hex)
    }

    /// Reads `sha256:<hex>`; capital letters are taken as small ones.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let digits = text.strip_prefix("sha256:").ok_or(DigestError)?;
        let is_hex = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex { Ok(Self(digits.to_ascii_lowercase())) } else { Err(DigestError) }
    }

    /// Returns the 64 hexadecimal digits.
    pub fn hex(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_shown() {
        // The digest of no bytes, as every tool prints it.
        let empty = Digest::of(b"");
        assert_eq!(empty.hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(Digest::parse(&empty.to_string()), Ok(empty.clone()));
        assert_eq!(Digest::parse(&format!("sha256:{}", empty.hex().to_uppercase())), Ok(empty));
    }

    #[test]
    fn what_is_no_digest_is_refused() {
        let short = format!("sha256:{}", "a".repeat(63));
        let word = format!("sha256:{}", "g".repeat(64));
        let other = format!("sha512:{}", "a".repeat(64));
        for text in ["", "sha256:", &short, &word, &other, &"a".repeat(64)] {
            assert_eq!(Digest::parse(text), Err(DigestError), "{text}");
        }
    }
}

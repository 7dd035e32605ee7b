//! Identities and name suffixes, and tokens that cannot be guessed.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A stream of random numbers; not for secrets.
#[derive(Debug)]
pub(crate) struct Random(AtomicU64);

/// The characters of generated names: no vowels, so that no words come out, and nothing that looks like another.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Returns 256 random bits as text, which nobody can guess; an error if the system has none.
pub(crate) fn secret() -> Result<String, rustls::crypto::GetRandomFailed> {
    let mut bits = [0; 32];
    rustls::crypto::aws_lc_rs::default_provider().secure_random.fill(&mut bits)?;
    Ok(URL_SAFE_NO_PAD.encode(bits))
}

impl Random {
    /// Returns a stream that begins at `seed`, or anywhere.
    pub(crate) fn new(seed: Option<u64>) -> Random {
        Random(AtomicU64::new(seed.unwrap_or_else(|| RandomState::new().build_hasher().finish())))
    }

    /// Returns the next number (the splitmix64 generator).
    pub(crate) fn next(&self) -> u64 {
        const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.0.fetch_add(GAMMA, Ordering::Relaxed).wrapping_add(GAMMA);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns an identity in the form of a UUID of version 4.
    pub(crate) fn uid(&self) -> String {
        let bits = (u128::from(self.next()) << 64) | u128::from(self.next());
        let bits = (bits & !(0xf << 76)) | (0x4 << 76);
        let bits = (bits & !(0x3 << 62)) | (0x2 << 62);
        let text = format!("{bits:032x}");
        let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
    }

    /// Returns `length` characters for the end of a generated name.
    pub(crate) fn suffix(&self, length: usize) -> String {
        let size = ALPHABET.len() as u64;
        (0..length)
            .filter_map(|_| ALPHABET.get(usize::try_from(self.next() % size).unwrap_or(0)))
            .map(|&byte| char::from(byte))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_have_version_and_variant() {
        let random = Random::new(Some(1));
        let uid = random.uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(uid.as_bytes()[14], b'4');
        assert!(matches!(uid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
        assert_ne!(uid, random.uid());
        assert_eq!(random.suffix(5).len(), 5);
    }
}

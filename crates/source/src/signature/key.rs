//! Public keys in PEM, as `cosign generate-key-pair` and `openssl pkey -pubout` write them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The most bytes of a text with keys.
pub const MAX_TEXT: usize = 64 << 10;

/// The most keys of a configuration.
pub const MAX_KEYS: usize = 20;

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";

/// What a PEM block with a public key is called.
const LABEL: &str = "PUBLIC KEY";

/// The tags of DER.
const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
const INTEGER: u8 = 0x02;

/// The algorithms that are known, as a key names them: with their parameters, in DER.
const ALGORITHMS: [&[u8]; 5] = [
    // P-256, P-384 and P-521.
    &[0x06, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7],
    &[0x06, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 0x06, 5, 0x2b, 0x81, 4, 0, 0x22],
    &[0x06, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 0x06, 5, 0x2b, 0x81, 4, 0, 0x23],
    // Ed25519.
    &[0x06, 3, 0x2b, 0x65, 0x70],
    // RSA.
    &[0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0],
];

/// The algorithm of keys whose length counts.
const RSA: &[u8] = ALGORITHMS[4];

/// How many bits an RSA key may have.
const SHORTEST_RSA: usize = 2048;
const LONGEST_RSA: usize = 8192;

/// Why a text has no key that can be used. Nothing of the text is quoted.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum KeyError {
    /// There is no PEM block.
    #[error("it is no public key in PEM: it begins with -----BEGIN PUBLIC KEY-----, as cosign.pub does")]
    NoPem,
    /// There is a private key.
    #[error(
        "it is a private key: write the public one, and make a new pair, because others may have read this one"
    )]
    Private,
    /// There is something else.
    #[error(
        "it is a {0}: write the public key, which `openssl pkey -pubout` or `openssl x509 -pubkey -noout` prints"
    )]
    Label(&'static str),
    /// What is in the block is damaged.
    #[error("the public key is damaged: copy the whole file again")]
    Damaged,
    /// The algorithm is another one.
    #[error("the key is of a kind that is not known: use ECDSA (P-256, P-384, P-521), Ed25519 or RSA")]
    Algorithm,
    /// It is too short, or far longer than anybody needs.
    #[error("the RSA key has {0} bits, and {SHORTEST_RSA} to {LONGEST_RSA} are accepted: make another pair")]
    Size(usize),
    /// It is too long, or there are too many.
    #[error("there are more than {MAX_KEYS} keys, or {} KiB of them", MAX_TEXT >> 10)]
    Many,
}

/// A public key.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PublicKey {
    algorithm: &'static [u8],
    bits: Vec<u8>,
}

impl PublicKey {
    /// Reads all keys of a text: at least one.
    ///
    /// # Errors
    ///
    /// If one of them can't be used.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, KeyError> {
        if text.len() > MAX_TEXT {
            return Err(KeyError::Many);
        }
        let mut keys = Vec::new();
        let mut rest = text;
        while let Some((_, behind)) = rest.split_once(BEGIN) {
            let (label, behind) = behind.split_once(DASHES).ok_or(KeyError::NoPem)?;
            if label.ends_with("PRIVATE KEY") {
                return Err(KeyError::Private);
            }
            if label != LABEL {
                return Err(match label {
                    "CERTIFICATE" => KeyError::Label("certificate"),
                    "RSA PUBLIC KEY" => KeyError::Label("key in the format PKCS#1"),
                    _ => KeyError::NoPem,
                });
            }
            let (body, behind) = behind.split_once(DASHES).ok_or(KeyError::Damaged)?;
            let body: String = body.chars().filter(|char| !char.is_ascii_whitespace()).collect();
            let der = STANDARD.decode(body).map_err(|_| KeyError::Damaged)?;
            keys.push(Self::of_der(&der)?);
            if keys.len() > MAX_KEYS {
                return Err(KeyError::Many);
            }
            let (end, behind) = behind.split_once(DASHES).ok_or(KeyError::Damaged)?;
            if end.trim_start_matches("END ") != LABEL {
                return Err(KeyError::Damaged);
            }
            rest = behind;
        }
        if keys.is_empty() { Err(KeyError::NoPem) } else { Ok(keys) }
    }

    /// Reads a `SubjectPublicKeyInfo`.
    fn of_der(der: &[u8]) -> Result<Self, KeyError> {
        let (info, rest) = part(der, SEQUENCE).ok_or(KeyError::Damaged)?;
        let (named, behind) = part(info, SEQUENCE).ok_or(KeyError::Damaged)?;
        let (bits, end) = part(behind, BIT_STRING).ok_or(KeyError::Damaged)?;
        let [0, bits @ ..] = bits else { return Err(KeyError::Damaged) };
        if !rest.is_empty() || !end.is_empty() || bits.is_empty() {
            return Err(KeyError::Damaged);
        }
        let algorithm = ALGORITHMS.into_iter().find(|known| *known == named).ok_or(KeyError::Algorithm)?;
        if algorithm == RSA {
            let size = rsa_bits(bits).ok_or(KeyError::Damaged)?;
            if !(SHORTEST_RSA..=LONGEST_RSA).contains(&size) {
                return Err(KeyError::Size(size));
            }
        }
        Ok(Self { algorithm, bits: bits.to_vec() })
    }

    /// Returns the algorithm with its parameters, in DER, without the outer `SEQUENCE`.
    pub fn algorithm(&self) -> &[u8] {
        self.algorithm
    }

    /// Returns the key itself, as its algorithm has it.
    pub fn bits(&self) -> &[u8] {
        &self.bits
    }
}

/// Returns how many bits the modulus of an RSA key has.
fn rsa_bits(key: &[u8]) -> Option<usize> {
    let (numbers, _) = part(key, SEQUENCE)?;
    let (modulus, _) = part(numbers, INTEGER)?;
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let modulus = modulus.get(zeros..)?;
    let first = modulus.first()?;
    Some(modulus.len() * 8 - usize::try_from(first.leading_zeros()).ok()?)
}

/// Returns the content of the part with this tag at the beginning of DER, and what is behind it.
fn part(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let [found, length, rest @ ..] = der else { return None };
    if *found != tag {
        return None;
    }
    let (length, rest) = match *length {
        short @ 0..=0x7f => (usize::from(short), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => {
            let [high, low, rest @ ..] = rest else { return None };
            (usize::from(u16::from_be_bytes([*high, *low])), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Made with `openssl genpkey` and `openssl pkey -pubout`.
    const P256: &str = include_str!("testdata/p256.pub");
    const ED25519: &str = include_str!("testdata/ed25519.pub");
    const RSA: &str = include_str!("testdata/rsa.pub");
    const RSA_1024: &str = include_str!("testdata/rsa1024.pub");

    #[test]
    fn keys_are_read_as_openssl_and_cosign_write_them() {
        for (text, length) in [(P256, 65), (ED25519, 32), (RSA, 270)] {
            let keys = PublicKey::parse_all(text).unwrap();
            assert_eq!(keys.len(), 1);
            assert_eq!(keys[0].bits().len(), length);
        }
        let all = format!("first\n{P256}\n{ED25519}{RSA}");
        assert_eq!(PublicKey::parse_all(&all).unwrap().len(), 3);
        assert_eq!(PublicKey::parse_all(&P256.replace('\n', "\r\n")), PublicKey::parse_all(P256));
    }

    #[test]
    fn what_is_no_public_key_says_so_and_nothing_of_it() {
        let label = |label: &str| P256.replace("PUBLIC KEY", label);
        let many = P256.repeat(MAX_KEYS + 1);
        for (text, error) in [
            ("", KeyError::NoPem),
            ("cosign.pub", KeyError::NoPem),
            ("-----BEGIN PUBLIC KEY", KeyError::NoPem),
            (&label("PRIVATE KEY"), KeyError::Private),
            (&label("ENCRYPTED SIGSTORE PRIVATE KEY"), KeyError::Private),
            (&label("CERTIFICATE"), KeyError::Label("certificate")),
            (&label("RSA PUBLIC KEY"), KeyError::Label("key in the format PKCS#1")),
            (&P256.replace("MFkw", "!!!!"), KeyError::Damaged),
            (&P256.replace("MFkw", ""), KeyError::Damaged),
            (&P256.replace("-----END PUBLIC KEY-----", ""), KeyError::Damaged),
            // The same length, another curve.
            (&P256.replace("DAQcDQ", "DAQYDQ"), KeyError::Algorithm),
            (RSA_1024, KeyError::Size(1024)),
            (&many, KeyError::Many),
            (&"x".repeat(MAX_TEXT + 1), KeyError::Many),
        ] {
            assert_eq!(PublicKey::parse_all(text), Err(error.clone()), "{text}");
            assert!(!error.to_string().contains("MFkw"));
        }
        for length in 0..90 {
            let der = [&[SEQUENCE, 0x82, 0xff, 0xff][..], &vec![SEQUENCE; length]].concat();
            assert_eq!(PublicKey::of_der(&der), Err(KeyError::Damaged));
        }
    }
}

//! The public keys of a configuration, and the arithmetic of signatures: that of the TLS library.

use ::source::signature::key::PublicKey;
use rustls::pki_types::AlgorithmIdentifier;
use rustls::pki_types::alg_id::{
    ECDSA_P384, ECDSA_P521, ECDSA_SHA256, ECDSA_SHA384, ECDSA_SHA512, ED25519, RSA_PKCS1_SHA256,
};
use sha2::{Digest as _, Sha256};

/// The keys of which one has to have signed each bundle.
#[derive(Clone)]
pub(super) struct Keys {
    keys: Vec<PublicKey>,
    /// Stands for all of them.
    hash: [u8; 32],
}

/// Reports whether a signature of a key of this kind is accepted: over SHA-256, or over the hash as long as its curve, which newer
/// releases of cosign take.
fn is_used(key: AlgorithmIdentifier, signature: AlgorithmIdentifier) -> bool {
    [ECDSA_SHA256, ED25519, RSA_PKCS1_SHA256].contains(&signature)
        || [(ECDSA_P384, ECDSA_SHA384), (ECDSA_P521, ECDSA_SHA512)].contains(&(key, signature))
}

impl Keys {
    /// Returns these keys, in an order of their own.
    pub(super) fn new(mut keys: Vec<PublicKey>) -> Self {
        keys.sort();
        let mut hash = Sha256::new();
        for key in &keys {
            for part in [key.algorithm(), key.bits()] {
                hash.update(part.len().to_be_bytes());
                hash.update(part);
            }
        }
        Self { hash: hash.finalize().into(), keys }
    }

    /// Returns what stands for all keys together.
    pub(super) fn hash(&self) -> [u8; 32] {
        self.hash
    }

    /// Reports whether one of the keys made a signature of a message.
    pub(super) fn accept(&self, message: &[u8], signature: &[u8]) -> bool {
        let known = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms.all;
        self.keys.iter().any(|key| {
            let is_its = |algorithm: &&&dyn rustls::pki_types::SignatureVerificationAlgorithm| {
                let of = algorithm.public_key_alg_id();
                is_used(of, algorithm.signature_alg_id()) && of.as_ref() == key.algorithm()
            };
            let mut algorithms = known.iter().filter(is_its);
            algorithms.any(|algorithm| algorithm.verify_signature(key.bits(), message, signature).is_ok())
        })
    }
}

//! Signatures of bundles: which keys are trusted, and what a signature is about. The arithmetic is done elsewhere.
//!
//! - [`key`] reads public keys. - [`simple_signing`] and [`sigstore`] read what cosign writes beside an image, up to version 2 and from
//!   version 3 on. - [`detached`] reads a file with nothing but a signature.

pub mod detached;
pub mod key;
pub mod sigstore;
pub mod simple_signing;

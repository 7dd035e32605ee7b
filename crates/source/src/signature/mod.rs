//! Signatures of bundles: which keys are trusted, and what a signature is about. The arithmetic is done elsewhere.
//!
//! - [`key`] reads public keys. - [`simple_signing`] reads what cosign writes beside an image. - [`detached`] reads a file with
//!   nothing but a signature.

pub mod detached;
pub mod key;
pub mod simple_signing;

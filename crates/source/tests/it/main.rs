//! The crate as others use it, in one binary: each one more has all that it needs linked once more.

#[path = "../git/mod.rs"]
mod git;
mod lint;
mod replay;

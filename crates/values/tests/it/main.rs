//! The crate as others use it, in one binary: each one more has all that it needs linked once more.

mod replay;
mod yaml;

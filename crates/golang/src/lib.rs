//! What Go's standard library does and Rust's does not, bug for bug: charts, values and hooks
//! were written for programs in Go, and see its texts, its limits and its error messages.
//!
//! Modules have the names of Go's packages. Everything here is pure: text and values in, text,
//! values and errors out.

pub mod fmt;
pub mod json;
pub mod reflect;
pub mod regexp;
pub mod strconv;
pub mod time;
pub mod unicode;
pub mod url;

/// How deeply values may be nested before printing, copying, writing or comparing them is refused.
pub const MAX_NESTING: usize = 512;

//! What Go's standard library does and Rust's does not, bug for bug: charts, values and hooks
//! were written for programs in Go, and see its texts, its limits and its error messages.
//!
//! Modules have the names of Go's packages. Everything here is pure: text and values in, text,
//! values and errors out.

pub mod regexp;
pub mod strconv;
pub mod time;
pub mod unicode;
pub mod url;

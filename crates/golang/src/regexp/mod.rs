//! Regular expressions as Go knows them: RE2's syntax, Go's errors and Go's
//! rules for empty matches and replacements.
//!
//! An expression is checked here and translated; `regex` does the searching.

mod class;
mod error;
mod escape;
mod replace;
mod search;
mod translate;

pub use error::{ErrorCode, SyntaxError};
pub use escape::quote_meta;
pub use search::Regexp;

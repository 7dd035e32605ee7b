//! Values of modules: YAML both ways, names, layers, patches and schemas.
//!
//! Everything here is pure: text and trees in, trees, text and errors out.
//!
//! - [`yaml`] reads and writes YAML as the field's tools do.
//! - [`name`] turns names of directories into names of modules and keys.
//! - [`Section`] holds the values of one module or of `global` and computes
//!   what hooks and templates see; [`Values`] is a document of several sections.
//! - [`patch`] reads what hooks write into their patch files.
//! - [`schema`] completes and validates sections.

pub mod checksum;
mod document;
pub mod merge;
pub mod name;
pub mod patch;
pub mod schema;
mod section;
pub mod yaml;

pub use checksum::Checksum;
pub use document::Values;
pub use section::{Section, SectionError};

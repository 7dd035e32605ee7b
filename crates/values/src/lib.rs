//! Values of modules: YAML both ways, names, layers, patches and schemas.
//!
//! Everything here is pure: text and trees in, trees, text and errors out.
//!
//! - [`yaml`] reads and writes YAML as the field's tools do.
//! - [`name`] turns names of directories into names of modules and keys.
//! - [`Section`] holds the values of one module or of `global` and computes
//!   what hooks and templates see; [`Values`] is a document of several sections.
//! - [`overlay`] parts config values into what is shown and what is secret.
//! - [`patch`] reads what hooks write into their patch files.
//! - [`json_schema`] checks values against schemas of charts and plans.
//! - [`preset`] picks one of several sets of values for a section.
//! - [`schema`] completes and validates sections.
//! - [`unique`] reads JSON in which no key occurs twice.

pub mod checksum;
mod document;
pub mod json_schema;
mod json_type;
pub mod merge;
pub mod name;
pub mod overlay;
pub mod patch;
pub mod preset;
pub mod schema;
mod section;
pub mod unique;
pub mod yaml;

pub use checksum::Checksum;
pub use document::Values;
pub use json_type::json_type;
pub use section::{Section, SectionError};

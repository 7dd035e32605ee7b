//! Values of modules: YAML both ways, names, layers, patches and schemas.
//!
//! Everything here is pure: text and trees in, trees, text and errors out.

pub mod checksum;
pub mod merge;
pub mod name;
pub mod number;
pub mod yaml;

pub use checksum::Checksum;

//! The ways to change an object: JSON patch, merge patch and strategic merge patch.

pub mod convert;
pub mod json;
pub mod location;
pub mod merge;
pub mod strategic;
pub mod text;

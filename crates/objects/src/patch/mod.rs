//! The ways to change an object: JSON patch, merge patch and strategic merge patch.

pub mod json;
pub mod location;
pub mod merge;
pub mod patched_text;
pub mod strategic;
pub mod unstructured;

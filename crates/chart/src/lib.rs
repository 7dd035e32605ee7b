//! Helm charts: load, render, order and record, without doing anything itself.

pub mod call;
pub mod fmt;
pub mod functions;
pub mod template;
pub mod value;
pub mod world;

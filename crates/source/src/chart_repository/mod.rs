//! Chart repositories: what an index offers, which version a constraint takes, and what the cluster keeps of a chart.
//!
//! ```text
//! index ─▶ entry ─▶ choice ─▶ location ─▶ (archive) ─▶ projection
//! ```

pub mod choice;
pub mod entry;
pub mod index;
pub mod location;
pub mod projection;

//! Keyed work: what has to be brought about for each of many objects, one pending run of each at most.
//!
//! Work on one key never waits for work on another one, as tasks of a queue do.

mod reconciles;
mod terms;
mod work;

pub(crate) use reconciles::{Reconciles, Rest, Step};
pub(crate) use terms::{LONGEST, Terms};
pub(crate) use work::{Subject, WorkKey};

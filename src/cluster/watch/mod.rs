//! Watches: the one place that follows the objects of the API server, for all adapters.
//!
//! A [`Watch`] follows what happens behind a version. A [`Reflector`] lists a collection and watches it from there,
//! again after each failure. [`wait_for`] does so for one object until it is as wanted.

mod backoff;
mod change_stream;
mod error;
mod health;
mod reflector;
mod wait;

pub(crate) use backoff::Backoff;
pub(crate) use change_stream::{Change, Head, PATIENCE, Progress, Watch};
pub(crate) use error::WatchError;
pub use health::{WatchHealth, WatchHealths};
pub(crate) use reflector::{Reflector, Update};
pub(crate) use wait::wait_for;

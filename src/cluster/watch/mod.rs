//! Watches: the one place that follows the objects of the API server, for all adapters.
//!
//! A [`Watch`] follows what happens behind a version. A [`Reflector`] lists a collection and watches it from there in a
//! task of its own, again after each failure; [`Attempts`] say when. [`wait_for`] does so for one object until it is as
//! wanted. The operator's own watches report to [`WatchReports`] whether they work.

mod backoff;
mod change_stream;
mod error;
mod list_watch;
mod reflector;
mod reports;
mod wait;

pub(crate) use backoff::{Attempts, Backoff};
pub(crate) use change_stream::{Change, Head, PATIENCE, Progress, Steadiness, Watch};
pub(crate) use error::WatchError;
pub(crate) use list_watch::Update;
pub(crate) use reflector::Reflector;
pub(crate) use reports::WatchReport;
pub use reports::WatchReports;
pub(crate) use wait::{Patience, Unfulfilled, wait_for};

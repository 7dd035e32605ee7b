//! The API server as all adapters see it: one client, one picture of its kinds, one way to ask and to watch.

mod body_limit;
mod client;
mod crd_watch;
mod deadline;
mod discovery;
mod impersonation;
pub(crate) mod list;
mod rate_limit;
mod refusal;
pub(crate) mod request;
mod request_metrics;
mod transport;
pub(crate) mod watch;

pub(crate) use body_limit::is_made_here;
pub use client::{
    Access, ConnectError, connect, connect_in_process, failure, is_already_there, is_conflict, is_not_found,
    server_host,
};
pub(crate) use client::{QUOTA, is_of_quota, request_failure};
pub(crate) use crd_watch::Crds;
pub use discovery::{Discovery, ResolveError, Resource};
pub use impersonation::impersonating;
pub use rate_limit::RateLimit;
pub use request::RequestError;
pub use request_metrics::{RequestMetrics, RequestObservation};
pub use watch::WatchReports;

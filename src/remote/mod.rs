//! What is fetched from servers that are not the API server: one guarded connector, and HTTP with a limit for everything.
//!
//! ```text
//! registry ─▶ http ─▶ permits ─▶ connector ─▶ address
//! logs in     limits  turns      TLS          may it be asked?
//! ```

mod address;
mod authorizations;
mod connector;
pub(crate) mod http;
mod observation;
mod pauses;
mod permits;
pub(crate) mod registry;

pub(crate) use connector::Connector;
pub use connector::{AuthoritiesError, Lookup, SystemLookup, Trust, TrustOptions};
pub use observation::{FetchMetrics, FetchObservation};

//! The API server as all adapters see it: one client, one picture of its kinds.

mod client;
mod discovery;
mod limit;
mod meter;

pub use client::{Access, ConnectError, connect, connect_in_process, failure, is_conflict, is_not_found};
pub use discovery::{Discovery, ResolveError, Resource};
pub use limit::Limit;
pub use meter::{Meter, Told};

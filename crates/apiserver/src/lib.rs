//! A small Kubernetes API server for development and tests.
//!
//! ```text
//!            kubectl, helm, controllers             tests
//!                      │ TLS                          │ in process
//!                 transport ───────────┐  ┌───────────┘
//!                                    service           faults, audit, tokens
//!                                      │
//!                                   dispatch ── discovery, openapi, reviews
//!                              ┌───────┴───────┐
//!                            read            write     decode → name → default → prune → validate → admit → own
//!                              └───────┬───────┘
//!                                   cluster            what is served, who must hear of changes
//!                                      │
//!                                    store             revision → event; no I/O, no clock
//! ```

mod answer;
mod audit;
mod auth;
mod bootstrap;
mod call;
mod chores;
pub mod cli;
mod cluster;
mod columns;
mod config;
mod convert;
mod custom;
pub mod defaults;
mod discovery;
mod dispatch;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod document;
mod endpoint;
mod fault;
mod garbage;
mod gzip;
pub mod kind;
mod openapi;
mod parts;
mod protobuf;
mod quiet;
mod random;
mod read;
mod registry;
mod request;
mod reviews;
mod scale;
mod semantics;
mod server;

mod simulate;
mod state;
mod status;
pub mod store;
pub mod swagger;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod table;
mod transport;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod validation;
mod version;
mod write;
mod yaml;

pub use cli::{Options, RunError, run};
pub use config::{Clock, Config};
pub use endpoint::{ConnectionCut, Endpoint};
pub use fault::{Effect, FaultPlan, Faults};
pub use server::{ApiServer, Builder, StartError};
pub use state::StateError;
pub use status::{ApiError, Cause};
pub use transport::{Serving, TransportError};

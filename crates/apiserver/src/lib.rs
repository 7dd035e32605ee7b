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

mod admission;
mod authentication;
mod bootstrap;
pub mod cli;
mod cluster;
mod config;
mod controllers;
pub mod defaults;
mod definitions;
mod discovery;
mod fault_injection;
pub mod kind;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod openapi;
mod protobuf;
mod random;
mod read;
mod registry;
mod request;
mod response;
mod reviews;
mod server;
mod services;
mod storage;
mod strategy;
mod subresources;
mod work_queue;

mod status;
pub mod store;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod table;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON values have six forms and most code is about one of them"
)]
pub mod validation;
mod write;
mod yaml;

pub use cli::{Options, RunError, run};
pub use config::{Clock, Config};
pub use fault_injection::{Effect, FaultPlan, Faults};
pub use server::endpoint::{ConnectionCut, Endpoint};
pub use server::transport::{Serving, TransportError};
pub use server::{ApiServer, Builder, StartError};
pub use status::{ApiError, Cause};
pub use storage::state_file::StateError;

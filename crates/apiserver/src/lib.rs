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
mod fingerprint;
pub mod kind;
mod object_meta;
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
mod status;
mod storage;
pub mod store;
mod strategy;
mod subresources;
mod sync;
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
mod work_queue;
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

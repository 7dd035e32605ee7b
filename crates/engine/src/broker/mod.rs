//! The broker: platforms see the addons that are registered as services, and switch them on and off as instances.
//!
//! See docs/source-broker.md. It speaks version 2 of the Open Service Broker API.
//!
//! ```text
//! request ─▶ call ─▶ broker ─▶ answer
//!                      │ ▲
//! offers, from sources ┘ └ instances: what is kept, with bindings; operations: how far each is
//! registration: what Service Catalog is told
//! ```

mod answer;
mod bindings;
mod call;
mod instances;
mod machine;
mod offers;
mod operation;
mod provisioning;
mod registration;

pub(crate) use machine::{Broker, Standing};

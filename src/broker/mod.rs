//! The broker's listener: platforms of the Open Service Broker API ask, the engine answers.
//!
//! ```text
//! platform ─▶ listener ─▶ access ─▶ Event::BrokerAsked     Effect::AnswerBroker ─▶ pending ─▶ answer
//! Effect::KeepInstances, ReadInstances ─▶ records: a Secret
//! Effect::RegisterBrokers ─▶ registration: objects of Service Catalog
//! ```

mod access;
mod credentials;
mod endpoint;
mod listener;
mod observation;
mod pending;
mod records;
mod registration;

pub use endpoint::{Broker, BrokerError, Options};
pub use observation::{BrokerMetrics, BrokerObservation};

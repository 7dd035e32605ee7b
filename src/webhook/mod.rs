//! Webhooks: takes reviews of the API server over HTTPS, and tells it that there is somebody to ask.
//!
//! ```text
//! files, or a Secret that all replicas follow ─▶ certificates, renewal ─▶ TLS
//! API server ─▶ listener ─▶ Event::ReviewRequested      Effect::AnswerReview ─▶ pending ─▶ answer
//! Effect::RegisterWebhooks ─▶ registration ─▶ configurations, definitions
//! ```

mod authority;
mod certificate_secret;
mod certificates;
mod clock;
mod error;
mod listener;
mod options;
mod pending;
mod registration;
mod renewal;
mod webhooks;

pub use certificates::CertificateFiles;
pub use clock::Clock;
pub use error::WebhookError;
pub use options::Options;
pub use webhooks::{Webhooks, uninstall};

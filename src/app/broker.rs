//! The broker at the start of the operator: its port, and the task that answers there.

use std::sync::Arc;

use tokio::task::JoinHandle;

use super::surroundings::Surroundings;
use crate::broker::{Broker, BrokerError, BrokerObservation, Options};
use crate::driver::Inbox;
use crate::telemetry::Telemetry;

/// Answers platforms until it is dropped.
pub(super) struct Answering(Option<JoinHandle<()>>);

impl Answering {
    /// Begins to answer, if there is a broker.
    pub(super) fn begin(broker: Option<&Arc<Broker>>, inbox: &Inbox) -> Self {
        Self(broker.map(|broker| broker.listen(inbox)))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Returns the broker, if platforms may ask.
pub(super) async fn of(
    around: &Surroundings,
    telemetry: &Arc<Telemetry>,
) -> Result<Option<Arc<Broker>>, BrokerError> {
    let settings = &around.settings;
    let Some(address) = settings.broker.address.clone().filter(|_| !around.once) else { return Ok(None) };
    let options = Options {
        address,
        namespace: settings.namespace.clone(),
        config_map: settings.config_map.clone(),
        secret: settings.broker.secret.clone(),
        url: settings.broker.url.clone(),
    };
    let broker = Broker::bind(around.client.clone(), options).await?;
    let counted = Arc::clone(telemetry);
    broker.metrics().listen(move |BrokerObservation { method, status, took }| {
        counted.broker_asked(method, status, took);
    });
    Ok(Some(Arc::new(broker)))
}

//! Webhooks at the start of the operator: their port, and what the engine has to know of them.

use std::sync::Arc;

use engine::hook::spec::FailurePolicy;
use engine::{WebhookClient, WebhookConfig};

use super::surroundings::Surroundings;
use crate::config::Settings;
use crate::webhook::{Clock, Options, WebhookError, Webhooks};

/// How many reviews wait for a hook at most. The API server asks hardly more at a time.
const WAITING: usize = 1_000;

/// Returns what takes reviews, if hooks may be asked.
pub(crate) async fn of(around: &Surroundings) -> Result<Option<Arc<Webhooks>>, WebhookError> {
    if !around.settings.webhooks.enabled {
        return Ok(None);
    }
    let options = options(&around.settings);
    Ok(Some(Arc::new(Webhooks::bind(around.client.clone(), options, around.any_port).await?)))
}

/// Returns what the engine has to know of webhooks.
pub(crate) fn config(settings: &Settings, webhooks: &Webhooks) -> WebhookConfig {
    WebhookConfig {
        name: settings.webhooks.name.clone(),
        client: webhooks.client().clone(),
        failure_policy: if settings.webhooks.ignores_failures {
            FailurePolicy::Ignore
        } else {
            FailurePolicy::Fail
        },
        concurrency: settings.webhooks.concurrency,
        waiting: WAITING,
    }
}

/// Returns how reviews are taken.
pub(crate) fn options(settings: &Settings) -> Options {
    let webhooks = &settings.webhooks;
    Options {
        address: (webhooks.address.clone(), webhooks.port),
        certificates: webhooks.certificates.clone(),
        client_authorities: webhooks.client_authorities.clone(),
        namespace: settings.namespace.clone(),
        name: webhooks.name.clone(),
        client: match &webhooks.url {
            Some(url) => WebhookClient::Url(url.clone()),
            None => WebhookClient::Service(webhooks.service.clone()),
        },
        clock: Clock::default(),
    }
}

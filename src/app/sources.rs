//! Module sources at the start of the operator: what fetches them, what is registered, and whether they are looked after.

use std::sync::Arc;

use ::source::allow::{AllowList, AllowedHost, Prefix};
use ::source::url::Protocols;
use anyhow::Context;
use engine::{Failure, FailureKind, Registry, SourceKey, SourceKind};

use super::surroundings::{Outcome, Surroundings};
use super::waiting::{Wanted, answered};
use crate::cluster::Discovery;
use crate::config::Settings;
use crate::driver::Channels;
use crate::source::{self, Sources, SystemLookup, Trust};

/// Returns what fetches and keeps the bundles of modules.
pub(crate) fn of(around: &Surroundings) -> anyhow::Result<Sources> {
    let Settings { sources, namespace, config_map, .. } = &around.settings;
    let hosts = sources.allow.iter().map(|host| AllowedHost::parse(host)).collect::<Result<_, _>>();
    let prefixes =
        sources.allow_prefixes.iter().map(|prefix| Prefix::parse(prefix)).collect::<Result<_, _>>();
    let allowed = AllowList {
        protocols: Protocols { has_http: sources.develop },
        hosts: hosts.context("--source-allow")?,
        prefixes: prefixes.context("--source-allow-prefix")?,
    };
    let authorities = sources.ca.clone();
    let api_server = around.api_server.clone();
    let secret_namespaces = match sources.secret_namespaces.as_slice() {
        [] => vec![namespace.clone()],
        namespaces => namespaces.to_vec(),
    };
    let options = source::Options {
        directory: sources.dir.clone(),
        namespace: namespace.clone(),
        config_map: config_map.clone(),
        secret_namespaces,
        trust: Trust { allowed, authorities, api_server, lookup: Arc::new(SystemLookup) },
        in_flight: sources.fetches,
        timeout: sources.timeout,
    };
    Ok(Sources::new(around.client.clone(), options)?)
}

/// Returns what is registered, once its bundles are on the disk; `None` if sources can't be looked after. An API server
/// that is away is waited for, except with `--once`.
pub(super) async fn restore(
    sources: &Sources,
    around: &Surroundings,
    channels: &Channels,
) -> Result<Option<Registry>, Outcome> {
    channels.say("it restores the bundles of module sources".to_owned());
    let complaint = "the bundles of module sources can't be restored";
    let wanted = Wanted { what: "the bundles of module sources", complaint };
    let restored = answered(&wanted, around, channels, || async {
        match sources.restore().await {
            Err(failure) if failure.kind != FailureKind::Cluster => {
                // Waiting mends nothing, and modules from files must not wait. Releases of sources have a mark: they stay.
                tracing::error!(error = %failure, "module sources are not looked after until this is mended and the operator restarted");
                Ok(None)
            }
            answer => answer.map(Some),
        }
    });
    let Some(restored) = restored.await? else { return Ok(None) };
    for (digest, failure) in restored.problems {
        tracing::error!(error = %failure, "bundle {digest} can't be restored; its module is left as it is");
    }
    Ok(Some(restored.registry))
}

/// Returns whether module sources are looked after: their kind is served, or modules of them are registered. An API server
/// that is away is waited for, except with `--once`.
///
/// `registry` is `None` if nobody may look after them. Who has no such kind pays nothing for sources.
pub(super) async fn are_looked_after(
    discovery: &Discovery,
    registry: Option<&Registry>,
    around: &Surroundings,
    channels: &Channels,
) -> Result<bool, Outcome> {
    let Some(registry) = registry else { return Ok(false) };
    if !registry.addons.is_empty() {
        return Ok(true);
    }
    let kind = SourceKind::Cluster.as_str();
    let complaint = "the API server does not say which kinds there are";
    let wanted = Wanted { what: "the kinds of the API server", complaint };
    let is_served = answered(&wanted, around, channels, || async {
        let served = discovery.serves(SourceKey::API_VERSION, kind).await;
        served.map_err(|error| Failure::of(FailureKind::Cluster, &error))
    });
    let is_served = is_served.await?;
    if !is_served {
        tracing::info!(
            "module sources are off: there is no kind {kind}; for modules from repositories run `addon-operator crds \
             | kubectl apply -f -` and restart the operator"
        );
    }
    Ok(is_served)
}

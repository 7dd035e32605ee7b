//! Module sources at the start of the operator: what fetches them, what is registered, and whether they are looked after.

use std::sync::Arc;

use ::source::allow::{AllowList, AllowedHost, Prefix};
use ::source::url::Protocols;
use anyhow::Context;
use engine::{FailureKind, Registry, SourceKey, SourceKind};

use super::surroundings::{ASK_AGAIN, Outcome, Surroundings};
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
    let mut shutdown = around.shutdown.clone();
    let mut is_reported = false;
    loop {
        let answer = tokio::select! {
            answer = sources.restore() => answer,
            _ = shutdown.wait_for(|requested| *requested) => return Err(Outcome::Done),
        };
        let failure = match answer {
            Ok(restored) => {
                for (digest, failure) in restored.problems {
                    tracing::error!(error = %failure, "bundle {digest} can't be restored; its module is left as it is");
                }
                return Ok(Some(restored.registry));
            }
            Err(failure) => failure,
        };
        if failure.kind != FailureKind::Cluster {
            // Waiting mends nothing, and modules from files must not wait. Releases of sources have a mark: they stay.
            tracing::error!(error = %failure, "module sources are not looked after until this is mended and the operator restarted");
            return Ok(None);
        }
        if around.once {
            tracing::error!(error = %failure, "the bundles of module sources can't be restored");
            return Err(Outcome::ClusterAway);
        }
        channels.say(format!("it waits for the bundles of module sources: {failure}"));
        if !std::mem::replace(&mut is_reported, true) {
            tracing::error!(error = %failure, "the bundles of module sources can't be restored; it is tried again every second");
        }
        tokio::select! {
            () = tokio::time::sleep(ASK_AGAIN) => {}
            _ = shutdown.wait_for(|requested| *requested) => return Err(Outcome::Done),
        }
    }
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
    let mut shutdown = around.shutdown.clone();
    loop {
        let answer = tokio::select! {
            answer = discovery.serves(SourceKey::API_VERSION, kind) => answer,
            _ = shutdown.wait_for(|requested| *requested) => return Err(Outcome::Done),
        };
        match answer {
            Ok(true) => return Ok(true),
            Ok(false) => {
                tracing::info!(
                    "module sources are off: there is no kind {kind}; for modules from repositories run `addon-operator \
                     crds | kubectl apply -f -` and restart the operator"
                );
                return Ok(false);
            }
            Err(error) if around.once => {
                tracing::error!(%error, "the API server does not say which kinds there are");
                return Err(Outcome::ClusterAway);
            }
            Err(error) => channels.say(format!("it waits for the kinds of the API server: {error}")),
        }
        tokio::select! {
            () = tokio::time::sleep(ASK_AGAIN) => {}
            _ = shutdown.wait_for(|requested| *requested) => return Err(Outcome::Done),
        }
    }
}

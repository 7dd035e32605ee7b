//! Module sources at the start of the operator: what fetches them, what is registered, and whether they are looked after.

use std::collections::BTreeSet;
use std::sync::Arc;

use ::source::allow::{AllowList, AllowedHost, Prefix};
use ::source::mirror::{Mirror, Mirrors};
use ::source::url::Protocols;
use anyhow::Context;
use engine::{
    Approvals, Bundle, Digest, Failure, FailureKind, Module, Registry, SourceKey, SourceKind, SourceSpec,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;

use super::surroundings::{Outcome, Surroundings};
use super::waiting::{Wanted, answered};
use crate::cluster::Discovery;
use crate::config::Settings;
use crate::driver::Channels;
use crate::http::{PinnedFetch, SourcePlans};
use crate::load::Loader;
use crate::source::{self, Sources, SystemLookup, Trust, TrustOptions};

/// What is registered at a start, and the bundles of it that are lost.
pub(super) type AtStart = (Registry, BTreeSet<Digest>);

/// Fetches module sources that were not applied, and reads the modules that they would bring.
pub(super) struct PlansOfSources {
    pub(super) sources: Arc<Sources>,
    pub(super) loader: Loader,
}

impl SourcePlans for PlansOfSources {
    fn fetch(
        &self,
        source: SourceKey,
        spec: SourceSpec,
        approvals: Approvals,
    ) -> BoxFuture<'_, Result<PinnedFetch, Failure>> {
        async move { self.sources.look_at(&source, &spec, &approvals).await }.boxed()
    }

    fn unknown_fields(&self, kind: SourceKind, object: &Value) -> Vec<String> {
        source::unknown_fields(kind, object)
    }

    fn module(&self, bundle: Bundle) -> BoxFuture<'_, Result<Arc<Module>, Failure>> {
        async move {
            let path = self.sources.bundle(&bundle.digest).await?.ok_or_else(|| {
                Failure::new(FailureKind::Files, format!("the bundle {} is gone; plan again", bundle.digest))
            })?;
            self.loader.load_bundle(&bundle, path).await
        }
        .boxed()
    }
}

/// Returns which hosts and URLs may be asked.
pub(super) fn allowed(settings: &Settings) -> anyhow::Result<AllowList> {
    let sources = &settings.sources;
    let hosts = sources.allow.iter().map(|host| AllowedHost::parse(host)).collect::<Result<_, _>>();
    let prefixes =
        sources.allow_prefixes.iter().map(|prefix| Prefix::parse(prefix)).collect::<Result<_, _>>();
    Ok(AllowList {
        protocols: Protocols { has_http: sources.develop },
        hosts: hosts.context("--source-allow")?,
        prefixes: prefixes.context("--source-allow-prefix")?,
    })
}

/// Returns what fetches and keeps the bundles of modules.
pub(crate) fn of(around: &Surroundings) -> anyhow::Result<Sources> {
    let Settings { sources, namespace, config_map, .. } = &around.settings;
    let allowed = allowed(&around.settings)?;
    let mirrors = sources.mirrors.iter().map(|text| Mirror::parse(text)).collect::<Result<_, _>>();
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
        mirrors: Mirrors::new(mirrors.context("--source-mirror")?),
        trust: Trust {
            allowed,
            authorities,
            api_server,
            lookup: Arc::new(SystemLookup),
            options: TrustOptions::OPERATOR,
        },
        in_flight: sources.fetches,
        timeout: sources.timeout,
    };
    let sources = Sources::new(around.client.clone(), options)?;
    sources.check_directory().map_err(|failure| anyhow::Error::msg(failure.message))?;
    Ok(sources)
}

/// Returns what is registered, once its bundles are on the disk, and the bundles that are lost; `None` if sources can't be looked after. An API server
/// that is away is waited for, except with `--once`.
pub(super) async fn restore(
    sources: &Sources,
    around: &Surroundings,
    channels: &Channels,
) -> Result<Option<AtStart>, Outcome> {
    channels.say("it restores the bundles of module sources".to_owned());
    let complaint = "the bundles of module sources can't be restored";
    let wanted = Wanted { what: "the bundles of module sources", complaint };
    let restored = answered(&wanted, around, channels, || async {
        match sources.restore().await {
            Err(failure) if !matches!(failure.kind, FailureKind::Cluster | FailureKind::Forbidden) => {
                // Waiting mends nothing, and modules from files must not wait. Releases of sources have a mark: they stay.
                tracing::error!(error = %failure, "module sources are not looked after until this is mended and the operator restarted");
                Ok(None)
            }
            answer => answer.map(Some),
        }
    });
    let Some(restored) = restored.await? else { return Ok(None) };
    for (digest, failure) in &restored.problems {
        let of_it = restored.registry.addons.iter().filter(|addon| addon.digests().any(|its| its == digest));
        let sources: BTreeSet<String> = of_it.map(|addon| addon.source.to_string()).collect();
        let sources = sources.into_iter().collect::<Vec<_>>().join(", ");
        tracing::error!(
            error = %failure,
            "bundle {digest} can't be restored; its module is not there, and its release is left as it is. {sources} fetches it \
             again as soon as its object is seen"
        );
    }
    let lost = restored.problems.into_iter().map(|(digest, _)| digest).collect();
    Ok(Some((restored.registry, lost)))
}

/// Returns whether there is one of the kinds of module sources, or modules of them are registered. An API server that is
/// away is waited for, except with `--once`.
///
/// `restored` is `None` if nobody may look after them: then nothing is asked.
pub(super) async fn are_kinds_served(
    discovery: &Discovery,
    restored: Option<&AtStart>,
    around: &Surroundings,
    channels: &Channels,
) -> Result<bool, Outcome> {
    let Some((registry, _)) = restored else { return Ok(false) };
    if !registry.addons.is_empty() {
        return Ok(true);
    }
    let kinds = [SourceKind::Cluster, SourceKind::Namespaced].map(SourceKind::as_str);
    let complaint = "the API server does not say which kinds there are";
    let wanted = Wanted { what: "the kinds of the API server", complaint };
    answered(&wanted, around, channels, || async {
        let served = discovery.serves_any(SourceKey::API_VERSION, &kinds).await;
        served.map_err(|error| Failure::of(FailureKind::Cluster, &error))
    })
    .await
}

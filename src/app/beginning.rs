//! What the engine begins with: what is kept of the time before this start.

use std::collections::BTreeSet;

use anyhow::Context;
use engine::{Catalog, Digest, Origin, Pins, Registry};

use super::surroundings::{Outcome, Surroundings};
use super::{Host, Parts};
use crate::driver::{Channels, Inbox};

/// What the engine begins with.
pub(super) struct Beginning {
    pub(super) config: engine::Config,
    pub(super) catalog: Catalog,
    /// What is registered, and the bundles of it that are lost.
    pub(super) registry: Registry,
    pub(super) lost: BTreeSet<Digest>,
    /// The packages that modules stay with.
    pub(super) pins: Pins,
}

impl Beginning {
    /// Returns what is kept of the time before this start, or how the operator ends if it is asked to end meanwhile.
    pub(super) async fn restore(
        around: &Surroundings,
        parts: &Parts,
        host: &Host,
        catalog: Catalog,
        channels: &(Inbox, Channels),
    ) -> anyhow::Result<Result<Self, Outcome>> {
        let mut config = super::engine_config(&around.settings);
        let restored = match super::sources::restore(&parts.sources, around, &channels.1).await {
            Ok(restored) => restored,
            Err(outcome) => return Ok(Err(outcome)),
        };
        match super::sources::are_kinds_served(&parts.discovery, restored.as_ref(), around, &channels.1).await
        {
            Ok(are_served) => config.are_source_kinds_served = are_served,
            Err(outcome) => return Ok(Err(outcome)),
        }
        if restored.is_none() || (around.once && !config.are_source_kinds_served) {
            config.source_workers = 0;
        }
        let (registry, lost) = restored.unwrap_or_default();
        let with = (&parts.discovery, &*parts.repositories);
        let (are_served, pins) = match super::repositories::restore(with, &catalog, around, &channels.1).await
        {
            Ok(restored) => restored,
            Err(outcome) => return Ok(Err(outcome)),
        };
        config.are_repository_kinds_served = are_served;
        config.chart_workers = super::repositories::workers(around, are_served);
        let is_stale = catalog.modules.iter().any(|module| module.origin != Origin::Files);
        let catalog = if registry.addons.is_empty() && !is_stale {
            catalog
        } else {
            // Bundles that were not on the disk are there now, and those that are not registered are not.
            host.loader.load().await.context("the modules can't be loaded")?
        };
        Ok(Ok(Self { config, catalog, registry, lost, pins }))
    }
}

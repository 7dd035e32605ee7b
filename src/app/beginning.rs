//! What the engine begins with: what is kept of the time before this start.

use std::collections::BTreeSet;

use anyhow::Context;
use engine::{Catalog, Digest, Origin, Pins, Registry};

use super::surroundings::{Outcome, Surroundings};
use super::{repositories, sources};
use crate::cluster::Discovery;
use crate::driver::Channels;
use crate::load::Loader;
use crate::repository::Repositories;
use crate::source::Sources;

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
        (discovery, of_modules, of_charts): (&Discovery, &Sources, &Repositories),
        (mut config, catalog): (engine::Config, Catalog),
        loader: &Loader,
        channels: &Channels,
    ) -> anyhow::Result<Result<Self, Outcome>> {
        let restored = match sources::restore(of_modules, around, channels).await {
            Ok(restored) => restored,
            Err(outcome) => return Ok(Err(outcome)),
        };
        match sources::are_kinds_served(discovery, restored.as_ref(), around, channels).await {
            Ok(are_served) => config.are_source_kinds_served = are_served,
            Err(outcome) => return Ok(Err(outcome)),
        }
        if restored.is_none() || (around.once && !config.are_source_kinds_served) {
            config.source_workers = 0;
        }
        let (registry, lost) = restored.unwrap_or_default();
        let with = (discovery, of_charts);
        let (are_served, pins) = match repositories::restore(with, &catalog, around, channels).await {
            Ok(restored) => restored,
            Err(outcome) => return Ok(Err(outcome)),
        };
        config.are_repository_kinds_served = are_served;
        config.chart_workers = repositories::workers(around, are_served);
        let is_stale = catalog.modules.iter().any(|module| module.origin != Origin::Files);
        let catalog = if registry.addons.is_empty() && !is_stale {
            catalog
        } else {
            // Bundles that were not on the disk are there now, and those that are not registered are not.
            loader.load().await.context("the modules can't be loaded")?
        };
        Ok(Ok(Self { config, catalog, registry, lost, pins }))
    }
}

//! The charts of modules, loaded once for each content.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use chart::chart::Chart;
use chart::render_cache::Cache;
use chart::warnings::Warnings;
use engine::Module;

use super::chart_files;
use super::error::ReleaseError;

/// What is kept of each module.
#[derive(Default)]
pub(super) struct ChartCache(Mutex<BTreeMap<String, LoadedChart>>);

/// A chart and its parsed templates.
#[derive(Clone)]
pub(super) struct LoadedChart {
    content: u64,
    pub(super) chart: Arc<Chart>,
    /// Held during a render, so that renders of one module follow each other.
    pub(super) templates: Arc<Mutex<Cache>>,
}

impl ChartCache {
    /// Returns the chart of a module; it is read again when a file of the module differs.
    pub(super) async fn load(&self, module: &Arc<Module>) -> Result<LoadedChart, ReleaseError> {
        let name = module.name.as_str().to_owned();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.content == module.content) {
            return Ok(known.clone());
        }
        let module = Arc::clone(module);
        let opened = tokio::task::spawn_blocking(move || {
            let mut warnings = Warnings::default();
            let opened =
                chart_files::open_module(module.name.as_str(), Path::new(&*module.path), &mut warnings);
            (opened, warnings, module.content)
        })
        .await;
        let wrapped = |source: chart_files::OpenError| ReleaseError::Open {
            module: name.clone(),
            source: Box::new(source),
        };
        let (opened, warnings, content) = opened.map_err(|error| {
            ReleaseError::RenderThread(super::render_thread::RenderThreadError::Panic(error.to_string()))
        })?;
        let chart = Arc::new(opened.map_err(wrapped)?);
        for warning in warnings.texts() {
            tracing::warn!(module = %name, "{warning}");
        }
        // What did not change is not parsed again.
        let templates = known.map(|known| known.templates).unwrap_or_default();
        let loaded = LoadedChart { content, chart, templates };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, loaded.clone());
        Ok(loaded)
    }
}

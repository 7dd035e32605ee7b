//! The charts of modules, loaded once for each content as long as there is room.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use chart::chart::Chart;
use chart::render_cache::Cache;
use chart::warnings::Warnings;
use engine::Module;

use super::archives::ArchiveSource;
use super::chart_files;
use super::error::ReleaseError;

/// How many bytes the files of the charts may have that are kept. Parsed templates and the last render take about ten
/// times as much. The chart that was used last is kept in any case.
const KEPT_BYTES: usize = 512 << 10;

/// The charts that were used last.
pub(super) struct ChartCache {
    recent: Mutex<RecentCharts>,
    archives: ArchiveSource,
}

#[derive(Default)]
struct RecentCharts {
    charts: BTreeMap<String, RecentChart>,
    /// How many bytes their files have.
    bytes: usize,
    /// Counts uses.
    uses: u64,
    /// The content of which the warnings were told, by module.
    told: BTreeMap<String, u64>,
}

struct RecentChart {
    chart: LoadedChart,
    bytes: usize,
    used: u64,
}

impl RecentCharts {
    fn get(&mut self, name: &str) -> Option<LoadedChart> {
        let kept = self.charts.get_mut(name)?;
        self.uses += 1;
        kept.used = self.uses;
        Some(kept.chart.clone())
    }

    /// Keeps a chart, and drops those that were not used for the longest time if there is no room.
    fn put(&mut self, name: &str, chart: LoadedChart) {
        self.uses += 1;
        let bytes = bytes(&chart.chart);
        self.bytes += bytes;
        let before = self.charts.insert(name.to_owned(), RecentChart { chart, bytes, used: self.uses });
        self.bytes -= before.map_or(0, |before| before.bytes);
        while self.bytes > KEPT_BYTES && self.charts.len() > 1 {
            let oldest = self.charts.iter().min_by_key(|(_, kept)| kept.used).map(|(name, _)| name.clone());
            let Some(dropped) = oldest.and_then(|name| self.charts.remove(&name)) else { return };
            self.bytes -= dropped.bytes;
        }
    }

    /// Reports whether warnings about this content are news.
    fn tells(&mut self, name: &str, content: u64) -> bool {
        self.told.insert(name.to_owned(), content) != Some(content)
    }
}

/// Returns how many bytes the files of a chart and of those in it have.
fn bytes(chart: &Chart) -> usize {
    let files = chart.templates.iter().chain(&chart.files).map(|file| file.data.len());
    files.sum::<usize>() + chart.dependencies.iter().map(bytes).sum::<usize>()
}

/// A chart and its parsed templates.
#[derive(Clone)]
pub(super) struct LoadedChart {
    content: u64,
    pub(super) chart: Arc<Chart>,
    /// Held during a render, so that renders of one module follow each other.
    pub(super) templates: Arc<Mutex<Cache>>,
}

impl ChartCache {
    /// Returns a cache that holds nothing. Charts that modules name come from `archives`.
    pub(super) fn new(archives: ArchiveSource) -> Self {
        Self { recent: Mutex::default(), archives }
    }

    /// Returns the chart of a module; it is read again when a file of the module differs.
    pub(super) async fn load(&self, module: &Arc<Module>) -> Result<LoadedChart, ReleaseError> {
        let name = module.name.as_str().to_owned();
        let known = self.lock(|kept| kept.get(&name));
        if let Some(known) = known.as_ref().filter(|known| known.content == module.content) {
            return Ok(known.clone());
        }
        let archive = match &module.package {
            Some(package) => Some(self.archives.archive(package).await?),
            None => None,
        };
        let mut held = Vec::new();
        for package in &module.dependencies.packages {
            let name = format!("charts/{}-{}.tgz", package.chart, package.version);
            held.push((name, self.archives.archive(package).await?));
        }
        let module = Arc::clone(module);
        let opened = tokio::task::spawn_blocking(move || {
            let mut warnings = Warnings::default();
            let opened = if let Some(bytes) = archive {
                chart_files::open_archive(&bytes, &mut warnings)
            } else {
                let path = Path::new(&*module.path);
                chart_files::open_module(module.name.as_str(), path, held, &mut warnings)
            };
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
        if !warnings.texts().is_empty() && self.lock(|kept| kept.tells(&name, content)) {
            for warning in warnings.texts() {
                tracing::warn!(module = %name, "{warning}");
            }
        }
        // What did not change is not parsed again.
        let templates = known.map(|known| known.templates).unwrap_or_default();
        let loaded = LoadedChart { content, chart, templates };
        self.lock(|kept| kept.put(&name, loaded.clone()));
        Ok(loaded)
    }

    fn lock<T>(&self, work: impl FnOnce(&mut RecentCharts) -> T) -> T {
        work(&mut self.recent.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use chart::chart::File;

    use super::*;

    fn loaded(length: usize) -> LoadedChart {
        let mut chart = Chart::default();
        chart.templates.push(File { name: "templates/a".into(), data: vec![b'x'; length].into() });
        LoadedChart { content: 1, chart: Arc::new(chart), templates: Arc::default() }
    }

    #[test]
    fn the_charts_used_last_are_kept_and_of_large_ones_one() {
        let mut kept = RecentCharts::default();
        for number in 0..1_000 {
            kept.put(&format!("m{number:04}"), loaded(KEPT_BYTES / 10));
            assert!(number == 0 || kept.get("m0000").is_some(), "it is in use");
        }
        assert_eq!(kept.charts.len(), 10);
        assert!(kept.get("m0999").is_some() && kept.get("m0001").is_none());
        kept.put("m0999", loaded(1));
        assert_eq!(kept.bytes, KEPT_BYTES / 10 * 9 + 1);
        kept.put("large", loaded(KEPT_BYTES + 1));
        assert_eq!((kept.charts.len(), kept.bytes), (1, KEPT_BYTES + 1));
    }

    #[test]
    fn a_chart_that_is_loaded_again_is_warned_of_once_for_each_content() {
        let mut kept = RecentCharts::default();
        assert!(kept.tells("web", 1) && !kept.tells("web", 1) && kept.tells("web", 2));
    }
}

//! A module that comes from a chart bundle: one chart that knows nothing of modules, and plans. See
//! docs/sources.md#bundles-with-plans.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{Failure, FailureKind, Plans};
use source::bundle::{ChartBundle, Content, Entry, META, Tree};
use values::preset::{Preset, Presets};
use walkdir::WalkDir;

use super::offer;
use crate::regular_file;

/// What a chart bundle is as a module.
pub(super) struct BundledChart {
    /// The directory of the chart.
    pub(super) path: PathBuf,
    /// The plans.
    pub(super) plans: Plans,
}

/// Returns whether a bundle has a chart and plans, and is no module's directory.
pub(super) fn is_chart_bundle(root: &Path) -> bool {
    root.join(META).is_file() && root.join("chart").is_dir() && !root.join("Chart.yaml").exists()
}

/// Reads the chart bundle in a directory.
///
/// # Errors
///
/// All that is wrong with its plans. It was linted before, so somebody has changed it since.
pub(super) fn read(root: &Path) -> Result<BundledChart, Failure> {
    let failed = |what: String| Failure::new(FailureKind::Files, format!("{}: {what}", root.display()));
    let tree = tree(root).map_err(|error| failed(format!("can't be read: {error}")))?;
    let bundle = ChartBundle::read(&tree).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        failed(problems.join("; "))
    })?;
    let mut plans = Plans { offer: offer::read(root), ..Plans::default() };
    let mut presets = Vec::with_capacity(bundle.plans.len());
    for plan in bundle.plans {
        let name: Arc<str> = plan.name.into();
        if let Some(template) = plan.credentials {
            plans.credentials.insert(Arc::clone(&name), root.join(template).to_string_lossy().into());
        }
        presets.push(Preset { name, values: Arc::new(plan.values), schema: plan.schema });
    }
    plans.presets = Arc::new(Presets::new(presets));
    Ok(BundledChart { path: root.join(bundle.chart), plans })
}

/// Returns what is read of a bundle: `meta.yaml`, the plans, and the names in `chart/`.
fn tree(root: &Path) -> io::Result<Tree> {
    let mut tree = Tree::new();
    tree.insert(META.to_owned(), Entry::file(regular_file::read(&root.join(META))?, false));
    // Links to files are followed, and those to directories are none, as for the lint.
    let walk = |name: &str, depth: usize| {
        let entries = WalkDir::new(root.join(name)).min_depth(1).max_depth(depth).follow_links(true);
        entries.into_iter().filter_entry(|entry| !(entry.path_is_symlink() && entry.file_type().is_dir()))
    };
    for entry in walk("chart", 1).chain(walk("plans", 2)) {
        let entry = entry?;
        let Some(path) = entry.path().strip_prefix(root).ok().and_then(Path::to_str) else { continue };
        let found = if entry.file_type().is_dir() {
            Entry::Directory
        } else if path.starts_with("plans/") {
            Entry::file(regular_file::read(entry.path())?, false)
        } else {
            Entry::File { content: Content::Size(0), is_executable: false }
        };
        tree.insert(path.to_owned(), found);
    }
    Ok(tree)
}

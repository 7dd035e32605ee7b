//! The files of CRDs of a bundle: what is no CRD would never be written, and hold up all modules.

use ::chart::chart::Chart;
use ::chart::definitions;
use values::yaml;

use super::meta::MAX_TREE_BYTES;
use super::problem::Findings;
use super::tree::{Files, has_extension};

/// What the names of files in `crds/` begin with that are no CRDs, unless `--crd-filters` says otherwise.
const NO_CRDS: [&str; 2] = ["doc-", "_"];

/// Checks the CRDs of a module, whose files lie below `root`: what is no CRD would never be written, and hold up all modules.
pub(super) fn check(files: &Files<'_>, root: &str, findings: &mut Findings) {
    let directory = format!("{root}crds");
    for (name, _, _) in files.below(&directory).filter(|(name, _, _)| has_extension(name, "yaml")) {
        let path = format!("{directory}/{name}");
        let bytes = files.bytes(&path).unwrap_or_default();
        let Ok(text) = std::str::from_utf8(bytes) else {
            findings.problem(path, "the file is not in UTF-8");
            continue;
        };
        let file = name.rsplit('/').next().unwrap_or(name);
        let is_read = !NO_CRDS.iter().any(|prefix| file.starts_with(prefix));
        let checked = if is_read {
            definitions::check(text, MAX_TREE_BYTES)
        } else {
            yaml::parse_each(text, MAX_TREE_BYTES, |_| Ok(()))
        };
        if let Err(error) = checked {
            findings.problem(path, error);
        }
    }
}

/// Checks the CRDs of the charts that a chart depends on, packed or not: those that are missing are written before its release.
pub(super) fn check_dependencies(chart: &Chart, directory: &str, findings: &mut Findings) {
    for crd in chart.crds() {
        // The first part is the name of the chart.
        let Some((_, path)) = crd.path.split_once('/').filter(|(_, path)| path.starts_with("charts/")) else {
            continue;
        };
        if let Err(problem) = definitions::check(&crd.file.text(), MAX_TREE_BYTES) {
            let place = if directory.is_empty() { path.to_owned() } else { format!("{directory}/{path}") };
            findings.problem(place, problem);
        }
    }
}

//! Bundles: what one is, and what is wrong with it. See docs/sources.md.
//!
//! A bundle is a directory with `meta.yaml`. With `chart/` it is a chart bundle: one chart and plans. Without it, it is a
//! module as modules directories hold them. [`lint`] reads the files and runs none of them; it finds all problems at once.
//!
//! - [`Bundle`] is what it says about itself; `meta` reads `meta.yaml` of bundles and of plans.
//! - [`ChartBundle`] is what a module made of a chart bundle needs: its chart and plans.
//! - `chart_bundle` and `module_bundle` check the two kinds, and `crds` the CRDs of both.
//! - [`tree`] is the bundle in memory.

mod chart_bundle;
mod crds;
mod descriptor;
mod meta;
mod module_bundle;
mod plans;
mod privileged;
mod problem;
pub mod tree;

pub use descriptor::{Bundle, Kind, META, Plan};
pub use module_bundle::CheckModuleFile;
pub use plans::{ChartBundle, PlanFiles};
pub use problem::{MAX_PROBLEMS, Problem};
pub use tree::{Content, Entry, Tree};

use problem::Findings;
use tree::Files;

/// What a lint found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The bundle, or all of its problems, sorted: at most [`MAX_PROBLEMS`], and one that counts the others.
    pub outcome: Result<Bundle, Vec<Problem>>,
    /// What is left out, sorted.
    pub warnings: Vec<Problem>,
    /// What in it would act with the rights of the operator, sorted; also if it can't be used.
    pub privileged: Vec<String>,
}

/// Checks a bundle, and returns what it is or all that is wrong with it. The tree begins at the directory of `meta.yaml`.
pub fn lint(tree: &Tree, module_file: CheckModuleFile) -> Report {
    let files = Files::new(tree);
    let mut findings = Findings::default();
    tree::check_limits(tree, &mut findings);
    let meta = meta::read_bundle(&files, &mut findings);
    let has_chart = files.is_directory("chart");
    let has_module =
        ["templates", "hooks"].iter().any(|name| files.is_directory(name)) || files.has("Chart.yaml");
    let is_chart = has_chart || (files.is_directory("plans") && !has_module);
    if has_chart && files.has("Chart.yaml") {
        findings.problem(
            "Chart.yaml",
            "the bundle has chart/, too: a module has Chart.yaml and no chart/, a chart bundle has chart/ and no Chart.yaml",
        );
    }
    let (kind, chart, plans) = if is_chart {
        let chart = chart_bundle::check_chart(&files, &mut findings);
        let plans = chart_bundle::check_plans(
            &files,
            meta.as_ref().is_some_and(|meta| meta.is_bindable),
            &mut findings,
        );
        chart_bundle::check_documents(&files, &mut findings);
        (Kind::Chart, chart, plans)
    } else {
        let name = meta.as_ref().and_then(|meta| meta.name.as_ref());
        module_bundle::check(&files, name, module_file, &mut findings);
        (Kind::Module, None, Vec::new())
    };
    let (problems, warnings) = findings.sorted();
    let privileged = privileged::privileged(tree, chart.as_deref());
    let bundle = meta.and_then(|meta| meta.into_bundle(kind, chart, plans));
    let namespace = privileged::namespace(tree);
    let bundle = bundle.map(|bundle| Bundle { namespace, privileged: privileged.clone(), ..bundle });
    let outcome = match bundle {
        Some(bundle) if problems.is_empty() => Ok(bundle),
        Some(_) | None => Err(problems),
    };
    Report { outcome, warnings, privileged }
}

/// Checks that a bundle is the one that its index lists. Returns a problem otherwise.
pub fn check_listed(bundle: &Bundle, name: &str, listed: &crate::index::Entry) -> Option<Problem> {
    let wrong = |what: &str, own: &str, listed: &str| {
        let message = format!("{what} is {own:?} here and {listed:?} in the index: change one of them");
        Some(Problem { path: META.to_owned(), message })
    };
    if bundle.name.as_str() != name {
        return wrong("name", bundle.name.as_str(), name);
    }
    if bundle.version.to_string() != listed.version.to_string() {
        return wrong("version", &bundle.version.to_string(), &listed.version.to_string());
    }
    match &listed.id {
        Some(id) if *id != bundle.id => wrong("id", &bundle.id, id),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests;

//! What the plans of a chart bundle hold: what is read when its module is loaded.

use std::sync::Arc;

use serde_json::Value;

use super::problem::{Findings, Problem};
use super::tree::{Files, Tree};
use super::{chart_bundle, meta};

/// A chart bundle, as far as its module needs it.
#[derive(Clone, Debug)]
pub struct ChartBundle {
    /// The directory of the chart, such as `chart/redis`.
    pub chart: String,
    /// The plans, sorted by directory.
    pub plans: Vec<PlanFiles>,
}

/// What a plan holds.
#[derive(Clone)]
pub struct PlanFiles {
    /// Its name.
    pub name: String,
    /// Its values; an object.
    pub values: Value,
    /// The JSON Schema of what the user configures, as the file has it.
    pub schema: Option<Arc<[u8]>>,
    /// The path of the template of its credentials, if it can be bound.
    pub credentials: Option<String>,
}

impl ChartBundle {
    /// Reads a chart bundle. Of the tree it needs `meta.yaml`, `plans/` and the names in `chart/`.
    ///
    /// # Errors
    ///
    /// All that is wrong with these files, sorted.
    pub fn read(tree: &Tree) -> Result<Self, Vec<Problem>> {
        let files = Files::new(tree);
        let mut findings = Findings::default();
        let bundle = meta::read_bundle(&files, &mut findings);
        let chart = chart_bundle::chart_directory(&files, &mut findings);
        let is_bindable = bundle.is_some_and(|meta| meta.is_bindable);
        let plans = chart_bundle::check_plans(&files, is_bindable, &mut findings);
        let mut read: Vec<PlanFiles> = Vec::new();
        for plan in plans {
            // A plan is picked by its name: of two, nobody could pick the later.
            if read.iter().any(|other| other.name == plan.name) {
                continue;
            }
            let path = |name: &str| format!("{}/{name}", plan.directory);
            read.push(PlanFiles {
                values: chart_bundle::read_values(&files, &path("values.yaml"), &mut findings),
                schema: files
                    .bytes(&path(chart_bundle::CREATE_SCHEMA))
                    .filter(|text| !is_null(text))
                    .map(Into::into),
                credentials: plan.is_bindable.then(|| path("bind.yaml")),
                name: plan.name,
            });
        }
        let (problems, _) = findings.sorted();
        match chart {
            Some(chart) if problems.is_empty() => Ok(Self { chart, plans: read }),
            Some(_) | None => Err(problems),
        }
    }
}

/// Returns whether a schema says nothing.
fn is_null(text: &[u8]) -> bool {
    serde_json::from_slice::<Value>(text).is_ok_and(|schema| schema.is_null())
}

// Values can be secrets.
impl std::fmt::Debug for PlanFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlanFiles")
            .field("name", &self.name)
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

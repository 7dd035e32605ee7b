//! Charts that ask much of one mechanism each, at sizes that charts in the field have.
//!
//! The same seed makes the same charts. Benchmarks render them, and an example compares them with `helm template`.

mod calculations;
mod collections;
mod dice;
mod parts;
mod texts;
mod trees;

use std::collections::BTreeMap;

use serde_json::Value;

/// The files of a chart, and the flags that it is rendered with.
pub(crate) struct LargeChart {
    /// What it asks for.
    pub(crate) name: &'static str,
    /// The content of its files by path.
    pub(crate) files: BTreeMap<String, String>,
    /// The flags of the command `template`.
    pub(crate) flags: &'static [&'static str],
}

impl LargeChart {
    /// Returns a chart without values and templates.
    fn new(name: &'static str) -> Self {
        let mut chart = Self { name, files: BTreeMap::new(), flags: &[] };
        chart.put(
            "Chart.yaml",
            format!("apiVersion: v2\nname: {name}\nversion: 1.2.3\nappVersion: \"4.5.6\"\n"),
        );
        chart
    }

    fn put(&mut self, path: &str, text: impl Into<String>) {
        self.files.insert(path.to_owned(), text.into());
    }

    fn values(&mut self, values: &Value) {
        self.put("values.yaml", values::yaml::emit(values));
    }

    fn template(&mut self, name: &str, text: &str) {
        self.put(&format!("templates/{name}"), text);
    }
}

/// Returns all charts.
pub(crate) fn all() -> Vec<LargeChart> {
    [parts::all(), calculations::all(), collections::all(), texts::all(), trees::all()]
        .into_iter()
        .flatten()
        .collect()
}

//! A chart: what was in its files, not yet rendered.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::metadata::Metadata;

/// A file of a chart.
#[derive(Clone, PartialEq, Eq)]
pub struct File {
    /// The path inside the chart, with slashes.
    pub name: Arc<str>,
    /// The content, without a byte order mark.
    pub data: Arc<[u8]>,
}

impl File {
    /// Returns the content as text; what is not UTF-8 is replaced.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.data)
    }
}

/// Prints the name and the size only: a chart may hold secrets.
impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "File({}, {} bytes)", self.name, self.data.len())
    }
}

/// A chart and the charts that it holds. Clones share the files.
#[derive(Clone, Default, PartialEq)]
pub struct Chart {
    /// `Chart.yaml`, and the dependencies of `requirements.yaml`.
    pub metadata: Metadata,
    /// `Chart.lock` as it was read.
    pub lock: Option<Value>,
    /// The files below `templates/`.
    pub templates: Vec<File>,
    /// `values.yaml`; every number is a float.
    pub values: Option<Arc<Map<String, Value>>>,
    /// `values.schema.json`.
    pub schema: Option<Arc<[u8]>>,
    /// Everything else, `crds/` included.
    pub files: Vec<File>,
    /// The charts below `charts/`.
    pub dependencies: Vec<Chart>,
    /// The path that its templates have, where that is not the one below the chart that holds it.
    pub path: Option<String>,
}

/// Prints the name and the size only.
impl std::fmt::Debug for Chart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chart({}, {} templates)", self.metadata.name, self.templates.len())
    }
}

/// A file below `crds/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrdFile {
    /// The path that `# Source:` shows.
    pub path: String,
    /// The file.
    pub file: File,
}

impl Chart {
    /// Returns the name, which for a dependency is its alias.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Returns the path that the templates of this dependency have in a chart with the path `holder`.
    pub(crate) fn path_in(&self, holder: &str) -> String {
        self.path.clone().unwrap_or_else(|| format!("{holder}/charts/{}", self.name()))
    }

    /// Reports whether this is a library chart, of which only defines are used.
    pub fn is_library(&self) -> bool {
        self.metadata.kind == "library"
    }

    /// Returns the files below `crds/` of this chart, then those of its dependencies.
    pub fn crds(&self) -> Vec<CrdFile> {
        let mut found = Vec::new();
        self.collect_crds(self.name(), &mut found);
        found
    }

    fn collect_crds(&self, path: &str, found: &mut Vec<CrdFile>) {
        for file in &self.files {
            if file.name.starts_with("crds/") && is_manifest(&file.name) {
                found.push(CrdFile { path: format!("{path}/{}", file.name), file: file.clone() });
            }
        }
        for dependency in &self.dependencies {
            dependency.collect_crds(&dependency.path_in(path), found);
        }
    }

    /// Returns the defaults, which are empty where there is no `values.yaml`.
    pub fn defaults(&self) -> Map<String, Value> {
        self.values.as_deref().cloned().unwrap_or_default()
    }
}

fn is_manifest(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| {
        ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    })
}

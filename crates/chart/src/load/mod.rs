//! From files to a [`Chart`].

pub mod archive;
pub mod ignore;
pub mod pattern;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

pub use archive::{ArchiveError, MAX_FILE_BYTES};

use crate::chart::{Chart, File};
use crate::metadata::{Metadata, ValidationError};
use crate::warnings::Warnings;
use crate::yaml;

/// Files of a directory: paths relative to it, with slashes, and their content.
pub type Tree = BTreeMap<String, Arc<[u8]>>;

/// How deeply charts may be packed into charts.
pub const MAX_CHART_DEPTH: usize = 32;

/// The version of a chart that has no `Chart.yaml`.
const MODULE_VERSION: &str = "0.2.0";

/// Directories of a module that are not part of its chart.
const MODULE_DIRECTORIES: [&str; 5] = ["crds/", "docs/", "hooks/", "images/", "lib/"];

/// Why a chart can't be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The archive can't be read or is refused.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The `.helmignore` can't be used.
    #[error(transparent)]
    Ignore(#[from] ignore::IgnoreError),
    /// A file has more than [`MAX_FILE_BYTES`].
    #[error("chart file {name:?} is larger than the maximum file size {MAX_FILE_BYTES}")]
    LargeFile {
        /// The last part of the path.
        name: String,
    },
    /// A file is not what it should be.
    #[error("cannot load {name}: {source}")]
    File {
        /// The name of the file.
        name: String,
        /// What is wrong with it.
        source: yaml::FileError,
    },
    /// There is no `Chart.yaml`.
    #[error("Chart.yaml file is missing")]
    MissingMetadata,
    /// `Chart.yaml` lacks something.
    #[error(transparent)]
    Validation(#[from] ValidationError),
    /// A chart below `charts/` can't be loaded.
    #[error("error unpacking subchart {name} in {parent}: {source}")]
    Subchart {
        /// The file or directory below `charts/`.
        name: String,
        /// The name of the chart around it.
        parent: String,
        /// What is wrong with it.
        source: Box<LoadError>,
    },
    /// An archive lies in a directory that is called like one.
    #[error("error unpacking subchart tar in {parent}: expected {name}, got {found}")]
    SubchartArchive {
        /// The entry of `charts/`.
        name: String,
        /// The name of the chart around it.
        parent: String,
        /// The first file below it.
        found: String,
    },
    /// More than [`MAX_CHART_DEPTH`] charts within each other.
    #[error("charts are packed into each other more than {MAX_CHART_DEPTH} deep")]
    Depth,
}

/// Loads a chart from the files of its directory, without those that its `.helmignore` names.
pub fn from_directory(files: &Tree, warnings: &mut Warnings) -> Result<Chart, LoadError> {
    from_directory_within(files, u64::MAX, warnings)
}

/// Does the same, but packed charts in it may have at most `most` bytes together when they are unpacked.
pub fn from_directory_within(
    files: &Tree,
    mut most: u64,
    warnings: &mut Warnings,
) -> Result<Chart, LoadError> {
    let rules = match files.get(".helmignore") {
        Some(data) => ignore::Rules::parse(&String::from_utf8_lossy(data))?,
        None => ignore::Rules::parse("")?,
    };
    let mut ignored = rules.filter();
    let files = files.iter().filter(|(path, _)| !ignored(path));
    from_files(walk_order(files)?, &mut most, warnings, 0)
}

/// Loads a chart from a gzipped tar archive.
pub fn from_archive(bytes: &[u8], warnings: &mut Warnings) -> Result<Chart, LoadError> {
    from_archive_at(bytes, &mut { u64::MAX }, warnings, 0)
}

/// Returns the file `values.yaml` of a gzipped tar archive as its author wrote it; nothing if the chart has none.
pub fn values_of_archive(bytes: &[u8]) -> Result<Arc<[u8]>, LoadError> {
    let files = archive::unpack(bytes, &mut { u64::MAX })?;
    let values = files.into_iter().find(|file| &*file.name == "values.yaml");
    Ok(values.map_or_else(Arc::default, |file| file.data))
}

/// Loads the chart of a module that has no `Chart.yaml`: all files but those of
/// directories that are never charts.
pub fn from_module(name: &str, files: &Tree, warnings: &mut Warnings) -> Result<Chart, LoadError> {
    let files = files.iter().filter(|(path, _)| {
        path.as_str() != "Chart.yaml"
            && !MODULE_DIRECTORIES.iter().any(|directory| path.starts_with(directory))
    });
    let metadata = format!("apiVersion: v2\nname: {}\nversion: {MODULE_VERSION}\n", Value::from(name));
    let mut files = walk_order(files)?;
    files.insert(0, File { name: "Chart.yaml".into(), data: metadata.into_bytes().into() });
    from_files(files, &mut { u64::MAX }, warnings, 0)
}

/// Takes what it unpacks from `most`.
fn from_archive_at(
    bytes: &[u8],
    most: &mut u64,
    warnings: &mut Warnings,
    depth: usize,
) -> Result<Chart, LoadError> {
    from_files(archive::unpack(bytes, most)?, most, warnings, depth)
}

/// Puts files in the order in which Helm walks a directory: by name within each
/// directory, so `a/x` comes before `a-b`. Byte order marks are dropped.
fn walk_order<'a>(files: impl Iterator<Item = (&'a String, &'a Arc<[u8]>)>) -> Result<Vec<File>, LoadError> {
    let mut ordered = Vec::new();
    for (path, data) in files {
        if data.len() as u64 > MAX_FILE_BYTES {
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            return Err(LoadError::LargeFile { name });
        }
        ordered.push(File { name: path.as_str().into(), data: without_mark(data) });
    }
    ordered.sort_by(|a, b| a.name.split('/').cmp(b.name.split('/')));
    Ok(ordered)
}

fn without_mark(data: &Arc<[u8]>) -> Arc<[u8]> {
    data.strip_prefix("\u{feff}".as_bytes()).map_or_else(|| Arc::clone(data), Into::into)
}

/// The parts of a chart while its files are gone through.
#[derive(Default)]
struct Parts {
    chart: Chart,
    has_metadata: bool,
    subcharts: BTreeMap<String, Vec<File>>,
}

fn from_files(
    files: Vec<File>,
    most: &mut u64,
    warnings: &mut Warnings,
    depth: usize,
) -> Result<Chart, LoadError> {
    if depth > MAX_CHART_DEPTH {
        return Err(LoadError::Depth);
    }
    let mut parts = Parts::default();
    for file in files.iter().filter(|file| &*file.name == "Chart.yaml") {
        parts.has_metadata = true;
        decode_metadata(file, &mut parts.chart.metadata)?;
        if parts.chart.metadata.api_version.is_empty() {
            "v1".clone_into(&mut parts.chart.metadata.api_version);
        }
    }
    for file in files {
        parts.add(file, warnings)?;
    }
    if !parts.has_metadata {
        return Err(LoadError::MissingMetadata);
    }
    let Parts { mut chart, subcharts, .. } = parts;
    chart.metadata.validate()?;
    for (name, files) in subcharts {
        if name.starts_with(['_', '.']) {
            continue;
        }
        let subchart = load_subchart(&name, files, chart.name(), most, warnings, depth)?;
        chart.dependencies.push(subchart);
    }
    Ok(chart)
}

impl Parts {
    fn add(&mut self, file: File, warnings: &mut Warnings) -> Result<(), LoadError> {
        match &*file.name {
            "Chart.yaml" => {}
            "Chart.lock" => self.chart.lock = Some(read_lock(&file)?),
            "values.yaml" => self.chart.values = Some(Arc::new(read_values(&file)?)),
            "values.schema.json" => self.chart.schema = Some(file.data),
            "requirements.yaml" => {
                self.has_metadata = true;
                self.warn_of_old_file(
                    "load.go:120",
                    "Dependencies are handled in Chart.yaml",
                    "migrating dependencies to Chart.yaml",
                    warnings,
                );
                decode_metadata(&file, &mut self.chart.metadata)?;
                self.keep_old_file(file);
            }
            "requirements.lock" => {
                self.has_metadata = true;
                self.warn_of_old_file(
                    "load.go:138",
                    "Dependency locking is handled in Chart.lock",
                    "migrating to Chart.lock",
                    warnings,
                );
                self.chart.lock = Some(read_lock(&file)?);
                self.keep_old_file(file);
            }
            name => match name.strip_prefix("charts/") {
                Some(_) if extension(name) == Some("prov") => self.chart.files.push(file),
                Some(inner) => {
                    let (directory, _) = inner.split_once('/').unwrap_or((inner, ""));
                    let inner = File { name: inner.into(), data: file.data };
                    self.subcharts.entry(directory.to_owned()).or_default().push(inner);
                }
                None if name.starts_with("templates/") => self.chart.templates.push(file),
                None => self.chart.files.push(file),
            },
        }
        Ok(())
    }

    fn warn_of_old_file(&self, place: &'static str, text: &str, advice: &str, warnings: &mut Warnings) {
        if self.chart.metadata.api_version != "v1" {
            let text = format!("Warning: {text} since apiVersion \"v2\". We recommend {advice}.");
            warnings.add_from(place, text);
        }
    }

    /// Charts of version 1 have their old files among `.Files`.
    fn keep_old_file(&mut self, file: File) {
        if self.chart.metadata.api_version == "v1" {
            self.chart.files.push(file);
        }
    }
}

fn load_subchart(
    name: &str,
    files: Vec<File>,
    parent: &str,
    most: &mut u64,
    warnings: &mut Warnings,
    depth: usize,
) -> Result<Chart, LoadError> {
    let loaded = if extension(name) == Some("tgz") {
        match files.first() {
            Some(file) if &*file.name == name => from_archive_at(&file.data, most, warnings, depth + 1),
            found => {
                let found = found.map(|file| file.name.to_string()).unwrap_or_default();
                return Err(LoadError::SubchartArchive {
                    name: name.to_owned(),
                    parent: parent.to_owned(),
                    found,
                });
            }
        }
    } else {
        let inner = files.into_iter().filter_map(|file| {
            let (_, inner) = file.name.split_once('/')?;
            Some(File { name: inner.into(), data: file.data })
        });
        from_files(inner.collect(), most, warnings, depth + 1)
    };
    loaded.map_err(|source| LoadError::Subchart {
        name: name.to_owned(),
        parent: parent.to_owned(),
        source: Box::new(source),
    })
}

/// Returns what follows the last dot; Helm distinguishes upper and lower case.
fn extension(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, extension)| extension)
}

fn in_file(file: &File) -> impl FnOnce(yaml::FileError) -> LoadError {
    let name = file.name.to_string();
    move |source| LoadError::File { name, source }
}

fn decode_metadata(file: &File, metadata: &mut Metadata) -> Result<(), LoadError> {
    yaml::read(&file.data).and_then(|value| Ok(metadata.decode(&value)?)).map_err(in_file(file))
}

fn read_lock(file: &File) -> Result<Value, LoadError> {
    yaml::read(&file.data).map_err(in_file(file))
}

fn read_values(file: &File) -> Result<Map<String, Value>, LoadError> {
    yaml::read_map(&file.data).map_err(in_file(file))
}

#[cfg(test)]
mod tests;

//! Charts on disk.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use chart::chart::Chart;
use chart::load::{self, LoadError, Tree, ignore::Rules};
use chart::warnings::Warnings;

use crate::regular_file;

/// Why a chart on disk can't be loaded.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is nothing at the path.
    #[error("path {0:?} not found")]
    Missing(PathBuf),
    /// A file or directory can't be read.
    #[error("can not read {path}: {source}")]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The files are no chart.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Loads the chart at `path`: a directory or a packed chart.
pub fn open(path: &Path, warnings: &mut Warnings) -> Result<Chart, OpenError> {
    let metadata = fs::metadata(path).map_err(|_| OpenError::Missing(path.to_owned()))?;
    if metadata.is_dir() {
        return Ok(load::from_directory(&read_tree(path)?, warnings)?);
    }
    let bytes =
        regular_file::read(path).map_err(|source| OpenError::Read { path: path.to_owned(), source })?;
    Ok(load::from_archive(&bytes, warnings)?)
}

/// Loads a packed chart.
pub fn open_archive(bytes: &[u8], warnings: &mut Warnings) -> Result<Chart, OpenError> {
    Ok(load::from_archive(bytes, warnings)?)
}

/// Loads the chart of a module, which may do without a `Chart.yaml`. `held` are files that are added to it.
pub fn open_module(
    name: &str,
    path: &Path,
    held: Vec<(String, Vec<u8>)>,
    warnings: &mut Warnings,
) -> Result<Chart, OpenError> {
    if path.join("Chart.yaml").exists() {
        let mut tree = read_tree(path)?;
        tree.extend(held.into_iter().map(|(name, data)| (name, data.into())));
        return Ok(load::from_directory(&tree, warnings)?);
    }
    let files = Walk { rules: None }.read(path)?;
    Ok(load::from_module(name, &files, warnings)?)
}

/// Reads the files of a directory but for those that its `.helmignore` names.
///
/// Links are followed. Of a file that is too large for a chart only as much is read
/// as it takes to see that.
pub fn read_tree(path: &Path) -> Result<Tree, OpenError> {
    let rules = regular_file::read(&path.join(".helmignore")).ok();
    let rules = match &rules {
        Some(text) => Rules::parse(&String::from_utf8_lossy(text)).map_err(LoadError::from)?,
        None => Rules::parse("").map_err(LoadError::from)?,
    };
    Walk { rules: Some(rules) }.read(path)
}

struct Walk {
    rules: Option<Rules>,
}

impl Walk {
    fn read(&self, top: &Path) -> Result<Tree, OpenError> {
        let mut ignored = self.rules.as_ref().map(Rules::filter);
        let mut tree = Tree::new();
        for entry in walkdir::WalkDir::new(top).follow_links(true).min_depth(1).sort_by_file_name() {
            let entry = entry.map_err(|error| OpenError::Read {
                path: error.path().unwrap_or(top).to_owned(),
                source: error.into(),
            })?;
            if entry.file_type().is_dir() {
                continue;
            }
            let Ok(inner) = entry.path().strip_prefix(top) else { continue };
            let name = inner.to_string_lossy().into_owned();
            if ignored.as_mut().is_some_and(|ignored| ignored(&name)) {
                continue;
            }
            let data = read_file(entry.path())
                .map_err(|source| OpenError::Read { path: entry.path().to_owned(), source })?;
            tree.insert(name, data.into());
        }
        Ok(tree)
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let file = regular_file::open(path)?;
    let metadata = file.metadata()?;
    // One byte more than there are saves the question whether more follow.
    let expected = metadata.len().min(load::MAX_FILE_BYTES) + 1;
    let mut data = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    file.take(load::MAX_FILE_BYTES + 1).read_to_end(&mut data)?;
    Ok(data)
}

//! The files of a bundle in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::descriptor::META;
use super::problem::Findings;
use crate::archive_path::{MAX_ENTRIES, MAX_UNPACKED_BYTES};

/// The most bytes of files whose content [`super::lint`] reads, all together; packed charts unpacked.
pub const MAX_READ_BYTES: u64 = 8 << 20;

/// What a bundle holds, by path: relative to the bundle, with slashes and none at either end. Directories need no entry of
/// their own.
pub type Tree = BTreeMap<String, Entry>;

/// One entry of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file.
    File {
        /// What is in it.
        content: Content,
        /// Whether it can be run.
        is_executable: bool,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Link {
        /// Where it leads, relative to its own directory.
        target: String,
    },
}

/// What a module says about itself, and the chart of a repository that it is.
pub(super) const MODULE_FILE: &str = "module.yaml";

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The bytes.
    Bytes(Arc<[u8]>),
    /// How many bytes there are; they are not needed.
    Size(u64),
}

impl Entry {
    /// Returns a file with these bytes.
    pub fn file(bytes: impl Into<Arc<[u8]>>, is_executable: bool) -> Self {
        Self::File { content: Content::Bytes(bytes.into()), is_executable }
    }
}

/// Reports whether [`super::lint`] reads the content of the file at `path`; of all others the size is enough.
///
/// Templates and other files of charts make up most of a bundle, and nothing is wrong with them before they are rendered.
pub fn needs_content(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_of_chart = path.starts_with("chart/") || path.starts_with("charts/");
    let is_read_by_loader = matches!(
        name,
        "Chart.yaml"
            | "Chart.lock"
            | "requirements.yaml"
            | "requirements.lock"
            | "values.yaml"
            | ".helmignore"
    );
    let is_packed_chart = path.contains("charts/") && has_extension(name, "tgz");
    let is_of_plan =
        path.starts_with("plans/") && (has_extension(name, "yaml") || has_extension(name, "json"));
    let is_schema = ["openapi/", "crds/"].iter().any(|directory| path.starts_with(directory));
    let is_crd = is_of_chart
        && path.contains("/crds/")
        && ["yaml", "yml", "json"].iter().any(|extension| has_extension(name, extension));
    (is_read_by_loader && (is_of_chart || !path.contains('/')))
        || is_packed_chart
        || is_of_plan
        || is_schema
        || is_crd
        || matches!(path, META | "docs/meta.yaml" | MODULE_FILE)
}

/// Returns the one directory that holds all of an archive, if `meta.yaml` is in there and not beside it.
///
/// Some tools pack a directory, others what is in it.
pub fn top_directory<'p>(paths: impl IntoIterator<Item = &'p str>) -> Option<&'p str> {
    let (mut top, mut has_meta) = (None, false);
    for path in paths {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        if path == META || *top.get_or_insert(first) != first {
            return None;
        }
        has_meta |= rest == META;
    }
    top.filter(|_| has_meta)
}

/// Reports whether the extension of a file's name is this one.
pub(super) fn has_extension(name: &str, extension: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, found)| found == extension)
}

/// Finds too many entries and too many bytes.
pub(super) fn check_limits(tree: &Tree, findings: &mut Findings) {
    if tree.len() > MAX_ENTRIES {
        findings.problem(
            "",
            format!("there are more than {MAX_ENTRIES} files and directories: remove what is not needed"),
        );
    }
    let size = |entry: &Entry| match entry {
        Entry::File { content: Content::Bytes(bytes), .. } => bytes.len() as u64,
        Entry::File { content: Content::Size(size), .. } => *size,
        Entry::Directory | Entry::Link { .. } => 0,
    };
    let bytes = tree.values().fold(0_u64, |sum, entry| sum.saturating_add(size(entry)));
    let is_read = |(path, entry): &(&String, &Entry)| {
        matches!(entry, Entry::File { content: Content::Bytes(_), .. }) || needs_content(path)
    };
    let read = tree.iter().filter(is_read).fold(0_u64, |sum, (_, entry)| sum.saturating_add(size(entry)));
    if read > MAX_READ_BYTES {
        let most = MAX_READ_BYTES >> 20;
        findings.problem(
            "",
            format!(
                "meta.yaml, values, plans, schemas, CRDs and packed charts have more than {most} MiB together: make two \
                 bundles of it"
            ),
        );
    }
    if bytes > MAX_UNPACKED_BYTES {
        let most = MAX_UNPACKED_BYTES >> 20;
        findings
            .problem("", format!("the files have more than {most} MiB together: remove what is not needed"));
    }
}

/// A tree with the directories that it has. A link is what it leads to.
pub(super) struct Files<'t> {
    tree: &'t Tree,
    directories: BTreeSet<&'t str>,
}

impl<'t> Files<'t> {
    pub(super) fn new(tree: &'t Tree) -> Self {
        let mut directories = BTreeSet::new();
        for (path, entry) in tree {
            if *entry == Entry::Directory {
                directories.insert(path.as_str());
            }
            directories.extend(path.match_indices('/').filter_map(|(slash, _)| path.get(..slash)));
        }
        Self { tree, directories }
    }

    pub(super) fn is_directory(&self, path: &str) -> bool {
        self.directories.contains(path)
    }

    /// Reports whether there is a file at this path.
    pub(super) fn has(&self, path: &str) -> bool {
        self.file(path).is_some()
    }

    /// Returns the bytes of a file; nothing if there is none. Bytes that were not read are none.
    pub(super) fn bytes(&self, path: &str) -> Option<&'t [u8]> {
        match self.file(path)? {
            (Content::Bytes(bytes), _) => Some(bytes),
            (Content::Size(_), _) => Some(&[]),
        }
    }

    fn file(&self, path: &str) -> Option<(&'t Content, bool)> {
        match self.tree.get(path)? {
            Entry::File { content, is_executable } => Some((content, *is_executable)),
            Entry::Directory => None,
            Entry::Link { target } => match self.tree.get(&link_target(path, target)?)? {
                Entry::File { content, is_executable } => Some((content, *is_executable)),
                Entry::Directory | Entry::Link { .. } => None,
            },
        }
    }

    /// Returns what is directly in a directory: names, and whether each is a directory.
    pub(super) fn list(&self, directory: &str) -> BTreeMap<&'t str, bool> {
        let prefix = format!("{directory}/");
        let inside = |path: &'t str| path.strip_prefix(prefix.as_str());
        let paths = self.tree.keys().map(String::as_str).filter_map(inside);
        let directories = self.directories.iter().copied().filter_map(inside);
        let first = |path: &'t str| path.split('/').next().unwrap_or(path);
        let mut names: BTreeMap<&str, bool> = paths.map(|path| (first(path), false)).collect();
        names.extend(directories.map(|path| (first(path), true)));
        names
    }

    /// Returns the files below a directory: paths relative to it, content, and whether each can be run.
    pub(super) fn below(&self, directory: &str) -> impl Iterator<Item = (&'t str, &'t Content, bool)> {
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        self.tree.keys().filter_map(move |path| {
            let (content, is_executable) = self.file(path)?;
            Some((path.strip_prefix(prefix.as_str())?, content, is_executable))
        })
    }
}

/// Returns the path to which a link leads.
fn link_target(path: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

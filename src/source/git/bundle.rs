//! Bundles and index files in a tree.

use std::io::{self, Read as _, Write};

use ::source::archive_path::EntryError;
use ::source::chunk::MAX_PACKED_BYTES;
use ::source::git::tree::{self, Below, Found, TreeError};
use ::source::git::{ObjectId, Objects};
use ::source::index::{Index, IndexError, MAX_INDEX_BYTES};
use engine::AddonReason;
use thiserror::Error;

use super::spool::FileSpool;
use crate::remote::http::Sink as _;
use crate::source::pack::{PackError, Packer};
use crate::source::store::Download;

/// How many submodules of a bundle are remembered.
const MOST_SUBMODULES: usize = 20;

/// Why an index or a bundle can't be taken from a tree.
#[derive(Debug, Error)]
pub(super) enum BundleError {
    #[error("{0}")]
    Tree(#[from] TreeError),
    #[error("{0}")]
    Entry(EntryError),
    #[error("{0:?} is a directory: name the index file in it")]
    Directory(String),
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error("it has more than {} MiB packed", MAX_PACKED_BYTES >> 20)]
    TooLong,
    #[error("can't write the bundle: {0}")]
    Write(#[source] io::Error),
}

impl BundleError {
    /// Returns whether our own disk is to blame.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self, Self::Tree(TreeError::Disk(_)) | Self::Write(_))
    }

    /// Returns whether it is so whenever this commit is read: not what a server left out or broke on the way.
    pub(super) fn is_lasting(&self) -> bool {
        !matches!(self, Self::Tree(TreeError::Missing(_) | TreeError::Damaged(_)))
    }

    /// Returns what the status says of an index.
    pub(super) fn of_index(&self) -> String {
        match self {
            // It says itself that it is about the index.
            Self::Index(error) => error.to_string(),
            Self::Tree(_) | Self::Entry(_) | Self::Directory(_) | Self::TooLong | Self::Write(_) => {
                format!("the index can't be fetched: {self}")
            }
        }
    }

    /// Returns what the status says of the bundle at a path.
    pub(super) fn of_bundle(&self, path: &str) -> String {
        let what = if self.reason() == AddonReason::LoadingError { "used" } else { "fetched" };
        format!("the bundle {path:?} can't be {what}: {self}")
    }

    /// Returns how the status names it.
    pub(super) fn reason(&self) -> AddonReason {
        match self {
            Self::Tree(TreeError::Entry(_) | TreeError::Own(_)) | Self::Entry(_) | Self::TooLong => {
                AddonReason::LoadingError
            }
            Self::Tree(_) | Self::Directory(_) | Self::Index(_) | Self::Write(_) => {
                AddonReason::FetchingError
            }
        }
    }
}

impl From<PackError> for BundleError {
    fn from(error: PackError) -> Self {
        match error {
            PackError::Entry(error) => Self::Entry(error),
            PackError::Write(error) => {
                let said = error.get_ref().and_then(|inner| inner.downcast_ref::<TooLong>());
                if said.is_some() { Self::TooLong } else { Self::Write(error) }
            }
        }
    }
}

/// Returns the index at a path.
pub(super) fn index(
    objects: &Objects<FileSpool>,
    commit: ObjectId,
    path: &str,
) -> Result<Index, BundleError> {
    let root = tree::root(objects, commit)?;
    let Found::File(file) = tree::find(objects, root, path)? else {
        return Err(BundleError::Directory(path.to_owned()));
    };
    if file.size > MAX_INDEX_BYTES as u64 {
        return Err(IndexError::Large.into());
    }
    Ok(Index::read(objects.reader(file))?)
}

/// Packs the directory at a path; an archive there is taken as it is. Returns the submodules that were left out.
pub(super) fn pack(
    objects: &Objects<FileSpool>,
    commit: ObjectId,
    path: &str,
    download: &mut Download,
) -> Result<Vec<String>, BundleError> {
    let root = tree::root(objects, commit)?;
    let mut out = Limited { into: download, left: MAX_PACKED_BYTES };
    match tree::find(objects, root, path)? {
        Found::File(file) => {
            let copied = io::copy(&mut objects.reader(file), &mut out);
            copied.map_err(PackError::Write)?;
            Ok(Vec::new())
        }
        Found::Directory(directory) => pack_directory(objects, directory, out),
    }
}

fn pack_directory(
    objects: &Objects<FileSpool>,
    directory: ObjectId,
    out: Limited<'_>,
) -> Result<Vec<String>, BundleError> {
    let mut packer = Packer::new(out);
    let mut submodules = Vec::new();
    tree::walk(objects, directory, &mut |path, below| -> Result<(), BundleError> {
        match below {
            Below::Directory => packer.directory(path)?,
            Below::Link { target } => packer.link(path, &target)?,
            Below::Submodule => {
                if submodules.len() < MOST_SUBMODULES {
                    submodules.push(path.to_owned());
                }
            }
            Below::File { object, is_executable } => {
                let bytes = objects.reader(object).take(object.size);
                packer.streamed(path, is_executable, object.size, bytes)?;
            }
        }
        Ok(())
    })?;
    packer.finish()?;
    Ok(submodules)
}

/// What is said when an archive gets too long.
#[derive(Debug, Error)]
#[error("it is too long")]
struct TooLong;

/// Takes an archive into the store directory, until it gets too long.
struct Limited<'d> {
    into: &'d mut Download,
    left: usize,
}

impl Write for Limited<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(part.len()).ok_or_else(|| io::Error::other(TooLong))?;
        self.into.write(part)?;
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

//! Why files of hooks can't be written.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::directory_trust::Refusal;

/// Why files of hooks can't be written.
#[derive(Debug, Error)]
pub enum ScratchError {
    /// The directory can't be made.
    #[error("can't make {path}: {source} (--tmp-dir names the directory for the files of hooks)")]
    Make {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Others could replace the files of hooks, or it is no directory.
    #[error("{problem}")]
    Untrusted {
        /// The directory.
        path: PathBuf,
        /// The whole text: who could do that, and what to do.
        problem: String,
    },
    /// A file can't be written.
    #[error("can't write {path}: {source} (is the file system of --tmp-dir full or read-only?)")]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl ScratchError {
    /// Returns why the directory at `path` is not used.
    pub(super) fn refused(path: &Path, refusal: Refusal) -> Self {
        match refusal {
            Refusal::Io(source) => Self::Make { path: path.to_owned(), source },
            Refusal::NoDirectory(ref at) | Refusal::Untrusted(ref at, _) => {
                let problem = refusal.told(path, "the files of hooks", "--tmp-dir");
                Self::Untrusted { path: at.clone(), problem }
            }
        }
    }
}

//! Why files of hooks can't be written.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

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
    /// Others could replace the files of hooks.
    #[error(
        "won't use {path} for the files of hooks: {problem}; take the right to write there from others (chmod go-w), or \
         name a directory of your own with --tmp-dir"
    )]
    Untrusted {
        /// The directory.
        path: PathBuf,
        /// Who could do that.
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

//! What goes wrong with the files that a cluster is kept in.

use std::path::PathBuf;

/// Why a state file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file could not be read.
    #[error("read the state file {path}: {1}", path = .0.display())]
    Read(PathBuf, #[source] std::io::Error),
    /// The file is no state file, or broken.
    #[error("the state file {path} is broken at line {line}: {why}; it was left as it is, move it away to begin with an empty cluster", path = .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A log of the state file is broken.
    #[error("the log of the state file {path} is broken at line {line}: {why}; it was left as it is, move it away to go on without the changes in it", path = .path.display())]
    BrokenLog {
        /// The log.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// There is a log, but not the state file that it belongs to.
    #[error("the state file is missing that {path} belongs to; it was left as it is, move it away to begin with an empty cluster", path = .0.display())]
    Lone(PathBuf),
    /// Another server has the file.
    #[error("the state file {path} is in use: another server keeps its cluster in it", path = .0.display())]
    InUse(PathBuf),
    /// The cluster ended, and nothing is kept of it any more.
    #[error("the server has ended")]
    Ended,
    /// The file could not be written.
    #[error("write the state file {path}: {1}", path = .0.display())]
    Write(PathBuf, #[source] std::io::Error),
}

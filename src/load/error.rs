//! Errors that make loading impossible.

use std::io;
use std::path::PathBuf;

use engine::Failure;
use thiserror::Error;

/// Why nothing can be loaded at all. At start the program exits with 2.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The global hooks or their schemas can't be used.
    #[error("{}", with_advice(.0))]
    Global(Failure),
    /// A directory has a name that no module can have.
    #[error("{path}: {message}")]
    Name {
        /// The directory.
        path: PathBuf,
        /// What is wrong with the name, with a name that is allowed.
        message: String,
    },
    /// A directory or file can't be read.
    #[error("can't read {path}: {source}")]
    Unreadable {
        /// The directory or file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A `values.yaml` of a modules directory is invalid.
    #[error("{path}: {message}")]
    Values {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        message: String,
    },
}

/// Returns what went wrong, and what to do next.
fn with_advice(failure: &Failure) -> String {
    let advice = failure.advice.as_deref();
    advice.map_or_else(|| failure.to_string(), |advice| format!("{failure}; {advice}"))
}

//! Why the store directory can't be used, and what to do about it.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use engine::{Digest, Failure, FailureKind};
use thiserror::Error;

use crate::directory_trust::Refusal;

/// Why the store directory can't be used.
#[derive(Debug, Error)]
pub(super) enum DiskError {
    #[error("can't use {path}: {}", what_to_do(.source))]
    Io { path: PathBuf, source: io::Error },
    #[error("{0}")]
    Untrusted(String),
    #[error("another operator uses {path}; give each its own --source-dir")]
    Taken { path: PathBuf },
    #[error("the bundle {digest} is not in {path}; it is fetched again when its source is processed")]
    Missing { path: PathBuf, digest: Digest },
}

impl DiskError {
    /// Returns the failure for the engine.
    pub(super) fn failure(&self) -> Failure {
        let kind = match self {
            Self::Io { .. } => FailureKind::Storage,
            Self::Untrusted(_) | Self::Taken { .. } | Self::Missing { .. } => FailureKind::Files,
        };
        Failure::new(kind, self.to_string())
    }
}

/// Returns the failure of an error for which our own disk is to blame.
pub(super) fn disk_failure(error: &(dyn Error + 'static)) -> Failure {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Failure::new(FailureKind::Storage, what_to_do(error));
        }
        cause = error.source();
    }
    Failure::new(FailureKind::Storage, error.to_string())
}

/// What to do about what a disk says.
const ADVICE: [(io::ErrorKind, &str); 4] = [
    (
        io::ErrorKind::PermissionDenied,
        "the operator's user may not write there; give the directory to it, or name another one with --source-dir",
    ),
    (
        io::ErrorKind::QuotaExceeded,
        "the quota of the operator's user is used up; raise it, or name another directory with --source-dir",
    ),
    (
        io::ErrorKind::ReadOnlyFilesystem,
        "the file system is read-only; mount it writable, or name another directory with --source-dir",
    ),
    (
        io::ErrorKind::StorageFull,
        "the disk is full; make room on it, or name another directory with --source-dir",
    ),
];

/// Returns what the disk said, and what to do about it. It is the same each time: names of temporary files are not in it.
fn what_to_do(error: &io::Error) -> String {
    let known = ADVICE.iter().find(|(kind, _)| *kind == error.kind()).map(|(_, advice)| *advice);
    let advice = known.unwrap_or(
        "see whether the disk works and the directory is in order, or name another one with --source-dir",
    );
    // Errors of temporary files end with their names.
    let said = error.to_string();
    let said = said.split(" at path \"").next().unwrap_or_default();
    format!("{said}: {advice}")
}

/// Returns why a directory of the store is refused.
pub(super) fn refused(path: &Path, refusal: Refusal) -> DiskError {
    match refusal {
        Refusal::Io(source) => DiskError::Io { path: path.to_owned(), source },
        Refusal::NoDirectory(_) | Refusal::Untrusted(..) => {
            DiskError::Untrusted(refusal.told(path, "the bundles of module sources", "--source-dir"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::archive::ArchiveError;

    #[test]
    fn what_the_disk_said_is_told_apart_and_has_no_random_name_in_it() {
        let said = |kind: io::ErrorKind| disk_failure(&ArchiveError::Write(kind.into())).message;
        assert!(said(io::ErrorKind::StorageFull).contains("the disk is full; make room"));
        assert!(said(io::ErrorKind::QuotaExceeded).contains("quota of the operator's user is used up"));
        assert!(said(io::ErrorKind::ReadOnlyFilesystem).contains("read-only; mount it writable"));
        assert!(said(io::ErrorKind::PermissionDenied).contains("may not write there"));
        assert!(said(io::ErrorKind::BrokenPipe).contains("see whether the disk works"));
        let nowhere = tempfile::tempdir_in("/nowhere/at/all").unwrap_err();
        assert!(nowhere.to_string().contains("/nowhere/at/all/.tmp"), "{nowhere}");
        let said = disk_failure(&ArchiveError::Write(nowhere)).message;
        assert!(said.starts_with("No such file or directory (os error 2): "), "{said}");
    }
}

//! Files of tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the directory of this repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Writes a file with the directories above it; a script can be executed.
pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    if text.starts_with("#!") {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Copies a directory into another one, with the modes of its files.
pub(crate) fn copy(from: &Path, into: &Path) {
    assert!(Command::new("cp").arg("-r").arg(from).arg(into).status().unwrap().success());
}

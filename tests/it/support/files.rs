//! Files of tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use addon_operator::load::LoadOptions;

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

/// Returns how `modules` and `global-hooks` of a directory are read.
pub(crate) fn load_options(root: &Path) -> LoadOptions {
    LoadOptions {
        modules_dirs: vec![root.join("modules")],
        global_hooks_dir: root.join("global-hooks"),
        unnumbered_order: 1,
        crd_filters: vec!["doc-".into(), "_".into()],
        strict: false,
        environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        config_timeout: Duration::from_secs(5),
    }
}

//! Where the files of modules and hooks are, and how they are read.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::LoadError;
use crate::process::Chroots;

/// The options of a loader.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The directories with modules.
    pub modules_dirs: Vec<PathBuf>,
    /// The directory with links to the bundles of module sources. It need not be there.
    pub bundles_dir: Option<PathBuf>,
    /// The directory with global hooks.
    pub global_hooks_dir: PathBuf,
    /// Whether that directory may be missing.
    pub global_hooks_optional: bool,
    /// The order of modules without a number.
    pub unnumbered_order: u32,
    /// Prefixes of file names in `crds/` that are left out.
    pub crd_filters: Vec<String>,
    /// Whether a missing `values.yaml` is an error.
    pub strict: bool,
    /// The environment of hooks.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether the API server may ask hooks.
    pub serves_webhooks: bool,
    /// The time limit of a hook's `--config`.
    pub config_timeout: Duration,
    /// Where hooks of modules are run, if not among all files.
    pub chroots: Option<Chroots>,
}

impl LoadOptions {
    /// Checks that a directory of modules or hooks can be read.
    ///
    /// # Errors
    ///
    /// When it can't, unless it is missing and need not be there.
    pub(super) fn check(&self, dir: &Path) -> Result<(), LoadError> {
        let may_be_missing = self.global_hooks_optional && dir == self.global_hooks_dir;
        match std::fs::read_dir(dir) {
            Err(error) if may_be_missing && error.kind() == ErrorKind::NotFound => Ok(()),
            Err(source) => Err(LoadError::Unreadable { path: dir.to_owned(), source }),
            Ok(_) => Ok(()),
        }
    }
}

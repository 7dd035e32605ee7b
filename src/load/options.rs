//! Where the files of modules and hooks are, and how they are read.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The options of a loader.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The directories with modules.
    pub modules_dirs: Vec<PathBuf>,
    /// The directory with global hooks.
    pub global_hooks_dir: PathBuf,
    /// The order of modules without a number.
    pub unnumbered_order: u32,
    /// Prefixes of file names in `crds/` that are left out.
    pub crd_filters: Vec<String>,
    /// Whether a missing `values.yaml` is an error.
    pub strict: bool,
    /// The environment of hooks.
    pub environment: Vec<(OsString, OsString)>,
    /// The time limit of a hook's `--config`.
    pub config_timeout: Duration,
}

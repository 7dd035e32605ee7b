//! The lint of bundles, with what the engine says of their `module.yaml`: what is registered is never refused at its first run.

use ::source::bundle::{self, Report, Tree};
use engine::ModuleFile;

/// Checks a bundle. Its `module.yaml` is read as that of a module from files.
pub(super) fn lint(tree: &Tree) -> Report {
    bundle::lint(tree, |text| ModuleFile::parse(text).map(drop))
}

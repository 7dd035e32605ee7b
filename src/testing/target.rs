//! The target of a test file: the hook or module next to it. See docs/testing.md#what-a-file-tests.

use std::fs;
use std::path::{Path, PathBuf};

use super::test_file::ENDINGS;

/// The target of a test file.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Target {
    /// Global hooks, in this directory.
    Global(PathBuf),
    /// The hooks of a module, or with `whole` all of it.
    Module { dir: PathBuf, whole: bool },
    /// All modules and global hooks below this directory.
    All(PathBuf),
}

/// Returns the test files in and below `roots`, in order.
pub(super) fn test_files(roots: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for root in roots {
        let root = fs::canonicalize(root).map_err(|error| format!("{}: {error}", root.display()))?;
        if root.is_file() {
            found.push(root);
            continue;
        }
        let is_skipped = |name: &str| name.starts_with('.') || name == "node_modules" || name == "target";
        let walk = walkdir::WalkDir::new(&root).sort_by_file_name().into_iter().filter_entry(|entry| {
            entry.depth() == 0
                || !entry.file_type().is_dir()
                || !is_skipped(&entry.file_name().to_string_lossy())
        });
        let files = walk.flatten().map(walkdir::DirEntry::into_path);
        found.extend(files.filter(|path| stem(path).is_some()));
    }
    Ok(found)
}

/// Returns the name of a test file without its ending; `None` for other files.
pub(super) fn stem(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).filter(|stem| !stem.is_empty())
}

impl Target {
    /// Returns the target of the file at `path`, which has no symbolic links.
    pub(super) fn of(path: &Path) -> Result<Self, String> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        for dir in parent.ancestors() {
            let name = dir.file_name().unwrap_or_default();
            let above = dir.parent().unwrap_or(Path::new("/"));
            if name == "global-hooks" {
                return Ok(Self::Global(dir.to_owned()));
            }
            if name == "hooks" && above.file_name().is_none_or(|name| name != "global-hooks") {
                return Ok(Self::Module { dir: above.to_owned(), whole: false });
            }
            if is_module(dir) {
                return Ok(Self::Module { dir: dir.to_owned(), whole: true });
            }
            if dir.join("modules").is_dir() || dir.join("global-hooks").is_dir() {
                return Ok(Self::All(dir.to_owned()));
            }
        }
        Err("it lies neither in a module, nor in global-hooks, nor in a directory that has modules/ or global-hooks/"
            .to_owned())
    }

    /// Returns the directory with the modules, if there is one.
    pub(super) fn modules_dir(&self) -> Option<PathBuf> {
        let dir = match self {
            Self::Global(dir) => dir.parent()?.join("modules"),
            Self::Module { dir, .. } => dir.parent()?.to_owned(),
            Self::All(root) => root.join("modules"),
        };
        dir.is_dir().then_some(dir)
    }

    /// Returns the directory with the global hooks, if there is one.
    pub(super) fn global_dir(&self) -> Option<PathBuf> {
        let dir = match self {
            Self::Global(dir) => dir.clone(),
            Self::Module { dir, .. } => dir.parent()?.parent()?.join("global-hooks"),
            Self::All(root) => root.join("global-hooks"),
        };
        dir.is_dir().then_some(dir)
    }
}

fn is_module(dir: &Path) -> bool {
    ["Chart.yaml", "enabled"].iter().any(|file| dir.join(file).is_file())
        || ["hooks", "templates", "crds"].iter().any(|child| dir.join(child).is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_about_what_it_lies_beside() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for path in ["modules/010-web/hooks/deep", "modules/010-web/tests", "global-hooks/hooks"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        let web = root.join("modules/010-web");
        for (path, expected) in [
            ("modules/010-web/hooks/deep/a.test.yaml", Target::Module { dir: web.clone(), whole: false }),
            ("modules/010-web/a.test.yaml", Target::Module { dir: web.clone(), whole: true }),
            ("modules/010-web/tests/a.test.yaml", Target::Module { dir: web, whole: true }),
            ("global-hooks/a.test.yaml", Target::Global(root.join("global-hooks"))),
            ("global-hooks/hooks/a.test.yaml", Target::Global(root.join("global-hooks"))),
            ("a.test.yaml", Target::All(root.to_owned())),
        ] {
            let target = Target::of(&root.join(path)).unwrap();
            assert_eq!(target, expected, "{path}");
            assert_eq!(target.modules_dir(), Some(root.join("modules")), "{path}");
            assert_eq!(target.global_dir(), Some(root.join("global-hooks")), "{path}");
        }
    }
}

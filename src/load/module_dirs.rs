//! Finds the modules in the modules directories. See docs/modules.md#names-and-order.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use values::name::ModuleName;

use super::error::LoadError;

/// The directory of a module.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Entry {
    /// The name of the module, without the number.
    pub(super) name: String,
    /// The number before the name, or the default for modules without one.
    pub(super) order: u32,
    /// The directory, symbolic links resolved.
    pub(super) path: PathBuf,
    /// The index of its modules directory.
    pub(super) dir_index: usize,
}

/// The modules of all modules directories.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// The modules in the order in which they were found.
    pub(super) modules: Vec<Entry>,
    /// What was skipped and why, one line each.
    pub(super) warnings: Vec<String>,
}

/// Returns the modules of `dirs`. Of two modules of one name the first stays.
pub(super) fn entries(dirs: &[PathBuf], unnumbered: u32) -> Result<Entries, LoadError> {
    let mut found = Entries::default();
    let mut names = BTreeSet::new();
    for (dir_index, dir) in dirs.iter().enumerate() {
        let unreadable = |source| LoadError::Unreadable { path: dir.clone(), source };
        let mut children = fs::read_dir(dir)
            .and_then(|children| {
                children.map(|child| child.map(|child| child.path())).collect::<io::Result<Vec<_>>>()
            })
            .map_err(unreadable)?;
        children.sort();
        for child in children {
            let Some(entry) = entry(&child, dir_index, unnumbered, &mut found.warnings)? else { continue };
            if names.insert(entry.name.clone()) {
                found.modules.push(entry);
            } else {
                found.warnings.push(format!(
                    "{} is left out: a module named {} was found before; rename one of them",
                    child.display(),
                    entry.name
                ));
            }
        }
    }
    Ok(found)
}

fn entry(
    child: &Path,
    dir_index: usize,
    unnumbered: u32,
    warnings: &mut Vec<String>,
) -> Result<Option<Entry>, LoadError> {
    let file_name = child.file_name().unwrap_or_default();
    let Some(text) = file_name.to_str() else {
        warnings.push(format!("{} is left out: its name is not UTF-8", child.display()));
        return Ok(None);
    };
    if text.starts_with('.') {
        return Ok(None);
    }
    let resolved = match fs::canonicalize(child) {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            warnings.push(format!("{} is left out: it is a symbolic link to nothing", child.display()));
            return Ok(None);
        }
        Err(source) => return Err(LoadError::Unreadable { path: child.to_owned(), source }),
    };
    if !resolved.is_dir() {
        if text != "values.yaml" {
            warnings.push(format!("{} is left out: it is not a directory", child.display()));
        }
        return Ok(None);
    }
    let (order, name) = ModuleName::from_directory(text, unnumbered)
        .map_err(|source| LoadError::Name { path: child.to_owned(), message: source.to_string() })?;
    let path = if is_swapped(child, &resolved) { std::path::absolute(child) } else { Ok(resolved) };
    let path = path.map_err(|source| LoadError::Unreadable { path: child.to_owned(), source })?;
    Ok(Some(Entry { name: name.as_str().to_owned(), order, path, dir_index }))
}

/// Returns whether the real path of an entry changes whenever any file of its volume does.
///
/// A volume of a ConfigMap has links to `..data`, a link to a directory that is replaced with each change. The
/// modules directory may be such a link, too. Such a module keeps the path that does not change.
fn is_swapped(child: &Path, resolved: &Path) -> bool {
    let is_link = fs::symlink_metadata(child).is_ok_and(|metadata| metadata.is_symlink());
    !is_link
        || resolved.components().any(|part| {
            part.as_os_str().to_str().is_some_and(|name| name.len() > 2 && name.starts_with(".."))
        })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(found: &Entries) -> Vec<(u32, &str)> {
        found.modules.iter().map(|entry| (entry.order, entry.name.as_str())).collect()
    }

    #[test]
    fn directories_and_links_to_directories_are_modules() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        for name in ["010-web", "plain", ".git"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("values.yaml"), "").unwrap();
        fs::write(dir.path().join("README"), "").unwrap();
        symlink(elsewhere.path(), dir.path().join("005-linked")).unwrap();
        symlink("/nowhere", dir.path().join("006-broken")).unwrap();
        let found = entries(&[dir.path().to_owned()], 1).unwrap();
        assert_eq!(names(&found), [(5, "linked"), (10, "web"), (1, "plain")]);
        assert_eq!(found.modules.first().unwrap().path, fs::canonicalize(elsewhere.path()).unwrap());
        assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
    }

    #[test]
    fn of_two_modules_of_one_name_the_first_stays() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(one.path().join("010-web")).unwrap();
        fs::create_dir(two.path().join("020-web")).unwrap();
        let found = entries(&[one.path().to_owned(), two.path().to_owned()], 1).unwrap();
        assert_eq!(names(&found), [(10, "web")]);
        assert!(found.warnings.iter().any(|warning| warning.contains("020-web")), "{:?}", found.warnings);
    }

    #[test]
    fn names_and_directories_that_cannot_be_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("010-Foo")).unwrap();
        assert!(entries(&[dir.path().to_owned()], 1).unwrap_err().to_string().contains("010-Foo"));
        let missing = dir.path().join("missing");
        assert!(entries(&[missing], 1).unwrap_err().to_string().contains("missing"));
    }
}

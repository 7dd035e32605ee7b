//! Finds the modules in the modules directories. See docs/modules.md#names-and-order.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use engine::Digest;
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
    /// The index of its modules directory; that of bundles has none.
    pub(super) dir_index: Option<usize>,
    /// The bundle that is unpacked there, if it is one.
    pub(super) bundle: Option<Digest>,
}

/// The modules of all modules directories.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// The modules in the order in which they were found.
    pub(super) modules: Vec<Entry>,
    /// What was skipped and why, one line each.
    pub(super) warnings: Vec<String>,
}

/// Returns the modules of `dirs` and behind them those of `bundles`. Of two modules of one name the first stays.
pub(super) fn entries(
    dirs: &[PathBuf],
    bundles: Option<&Path>,
    unnumbered: u32,
) -> Result<Entries, LoadError> {
    let mut found = Entries::default();
    let mut names = BTreeSet::new();
    for (dir_index, dir) in dirs.iter().enumerate() {
        for child in children(dir)? {
            let Some(entry) = entry(&child, Some(dir_index), unnumbered, &mut found.warnings)? else {
                continue;
            };
            found.add(entry, &child, &mut names);
        }
    }
    let Some(bundles) = bundles else { return Ok(found) };
    let links = match children(bundles) {
        Err(LoadError::Unreadable { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(found);
        }
        links => links?,
    };
    for link in links {
        let Some(mut entry) = entry(&link, None, unnumbered, &mut found.warnings)? else { continue };
        // A link leads to `blobs/<digits>/bundle`.
        let digits = entry.path.parent().and_then(Path::file_name).and_then(|digits| digits.to_str());
        entry.bundle = digits.and_then(|digits| format!("sha256:{digits}").parse().ok());
        if entry.bundle.is_none() {
            found.warnings.push(format!("{} is left out: it is no link to a bundle", link.display()));
            continue;
        }
        found.add(entry, &link, &mut names);
    }
    Ok(found)
}

/// Returns what is in a directory, sorted.
fn children(dir: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let mut children = fs::read_dir(dir)
        .and_then(|children| {
            children.map(|child| child.map(|child| child.path())).collect::<io::Result<Vec<_>>>()
        })
        .map_err(|source| LoadError::Unreadable { path: dir.to_owned(), source })?;
    children.sort();
    Ok(children)
}

impl Entries {
    fn add(&mut self, entry: Entry, child: &Path, names: &mut BTreeSet<String>) {
        if names.insert(entry.name.clone()) {
            self.modules.push(entry);
        } else {
            self.warnings.push(format!(
                "{} is left out: a module named {} was found before; rename one of them",
                child.display(),
                entry.name
            ));
        }
    }
}

fn entry(
    child: &Path,
    dir_index: Option<usize>,
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
    Ok(Some(Entry { name: name.as_str().to_owned(), order, path, dir_index, bundle: None }))
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
        let found = entries(&[dir.path().to_owned()], None, 1).unwrap();
        assert_eq!(names(&found), [(5, "linked"), (10, "web"), (1, "plain")]);
        assert_eq!(found.modules.first().unwrap().path, fs::canonicalize(elsewhere.path()).unwrap());
        assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
    }

    #[test]
    fn bundles_come_last_and_are_known_by_their_digest() {
        let (files, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let active = store.path().join("active");
        let none = entries(&[files.path().to_owned()], Some(&active), 1).unwrap();
        assert!(
            none.modules.is_empty() && none.warnings.is_empty(),
            "a directory that is not there is no error"
        );
        fs::create_dir(files.path().join("010-web")).unwrap();
        fs::create_dir(&active).unwrap();
        let digits = "0a".repeat(32);
        let bundle = store.path().join(format!("blobs/{digits}/bundle"));
        fs::create_dir_all(&bundle).unwrap();
        for name in ["005-db", "007-web"] {
            std::os::unix::fs::symlink(&bundle, active.join(name)).unwrap();
        }
        fs::create_dir(active.join("001-odd")).unwrap();
        let found = entries(&[files.path().to_owned()], Some(&active), 1).unwrap();
        assert_eq!(names(&found), [(10, "web"), (5, "db")]);
        assert_eq!(found.modules[1].bundle.as_ref().unwrap().hex(), digits);
        assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
    }

    #[test]
    fn of_two_modules_of_one_name_the_first_stays() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(one.path().join("010-web")).unwrap();
        fs::create_dir(two.path().join("020-web")).unwrap();
        let found = entries(&[one.path().to_owned(), two.path().to_owned()], None, 1).unwrap();
        assert_eq!(names(&found), [(10, "web")]);
        assert!(found.warnings.iter().any(|warning| warning.contains("020-web")), "{:?}", found.warnings);
    }

    #[test]
    fn names_and_directories_that_cannot_be_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("010-Foo")).unwrap();
        assert!(entries(&[dir.path().to_owned()], None, 1).unwrap_err().to_string().contains("010-Foo"));
        let missing = dir.path().join("missing");
        assert!(entries(&[missing], None, 1).unwrap_err().to_string().contains("missing"));
    }
}

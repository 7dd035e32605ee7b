//! Walks the files below a directory. Each directory is entered once, since links may form circles.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use walkdir::{DirEntry, WalkDir};

use super::temporary_files::is_draft;

/// Returns the entries below `root` by name, without temporary files and unreadable ones. Links are followed.
///
/// A directory that several links lead to is entered once. Otherwise ten modules with a link to their parent
/// would be millions of paths.
pub(super) fn walk(root: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    let mut entered = BTreeSet::new();
    let walk = WalkDir::new(root).follow_links(true).sort_by_file_name().into_iter();
    let walk = walk.filter_entry(move |entry| {
        if entry.depth() > 0 && is_draft(&entry.file_name().to_string_lossy()) {
            return false;
        }
        !entry.file_type().is_dir()
            || entry.metadata().is_ok_and(|found| entered.insert((found.dev(), found.ino())))
    });
    walk.flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_in_circles_come_to_an_end() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..12 {
            let module = dir.path().join(format!("module{number}"));
            fs::create_dir(&module).unwrap();
            fs::write(module.join("file"), "").unwrap();
            for link in ["one", "two"] {
                symlink(dir.path(), module.join(link)).unwrap();
            }
        }
        let files = walk(&dir.path().join("module0")).filter(|entry| entry.file_type().is_file());
        assert_eq!(files.count(), 12, "each file once");
    }
}

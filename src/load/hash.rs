//! Hashes of files and directories, to detect changes while the operator runs.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::walk::walk;
use crate::regular_file;

/// Files larger than this are compared by size and time instead of content.
const LARGEST_READ: u64 = 1024 * 1024;

/// Returns the hash of some bytes. It holds for this process only.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Returns a hash of the names, modes and contents of all files below `root`, without temporary files.
pub(super) fn hash_directory(root: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    for entry in walk(root) {
        let Ok(metadata) = entry.metadata() else { continue };
        entry.path().strip_prefix(root).unwrap_or(entry.path()).hash(&mut hasher);
        metadata.mode().hash(&mut hasher);
        if !metadata.is_file() {
            continue;
        }
        let content =
            (metadata.len() <= LARGEST_READ).then(|| regular_file::read(entry.path()).ok()).flatten();
        match content {
            Some(bytes) => bytes.hash(&mut hasher),
            None => (metadata.len(), metadata.mtime(), metadata.mtime_nsec()).hash(&mut hasher),
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_hash_changes_with_names_modes_and_contents_only() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("hook.sh");
        fs::write(&file, "one").unwrap();
        let first = hash_directory(dir.path());
        fs::write(&file, "one").unwrap();
        assert_eq!(hash_directory(dir.path()), first);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let executable = hash_directory(dir.path());
        assert_ne!(executable, first);
        fs::write(&file, "two").unwrap();
        assert_ne!(hash_directory(dir.path()), executable);
    }
}

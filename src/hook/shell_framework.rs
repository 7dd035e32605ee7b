//! The shell framework for hooks, embedded. Where it is not installed at `/`, its files are written to another directory.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The files of the framework, by path below the directory.
const FILES: &[(&str, &str)] = &[
    ("shell_lib.sh", include_str!("shell/shell_lib.sh")),
    ("frameworks/shell/context.sh", include_str!("shell/frameworks/shell/context.sh")),
    ("frameworks/shell/hook.sh", include_str!("shell/frameworks/shell/hook.sh")),
    ("frameworks/shell/path.sh", include_str!("shell/frameworks/shell/path.sh")),
    ("frameworks/shell/reconcile.sh", include_str!("shell/frameworks/shell/reconcile.sh")),
    ("frameworks/shell/values.sh", include_str!("shell/frameworks/shell/values.sh")),
];

/// Bash code that redirects `source /shell_lib.sh` to the files above.
const REDIRECTION: &[(&str, &str)] =
    &[("prelude.sh", include_str!("shell/prelude.sh")), ("source.sh", include_str!("shell/source.sh"))];

/// Writes the framework into `directory`: `shell_lib.sh` and `frameworks/shell`, which is also found as `framework/shell`.
///
/// Returns the paths of the files.
///
/// # Errors
///
/// A directory or file that can't be written.
pub fn write(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let written = write_files(directory, FILES)?;
    let old = directory.join("framework");
    fs::create_dir_all(&old)?;
    match symlink("../frameworks/shell", old.join("shell")) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(written),
    }
}

/// Writes the framework and the redirection. Returns the file for `BASH_ENV`.
///
/// # Errors
///
/// A directory or file that can't be written.
pub fn write_redirected(directory: &Path) -> io::Result<PathBuf> {
    write(directory)?;
    write_files(directory, REDIRECTION)?;
    Ok(directory.join("prelude.sh"))
}

fn write_files(directory: &Path, files: &[(&str, &str)]) -> io::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for (name, text) in files {
        let path = directory.join(name);
        let parent = path.parent().unwrap_or(directory);
        fs::create_dir_all(parent)?;
        // The file is replaced at once: a hook of another operator may read it meanwhile.
        let draft = tempfile::Builder::new().permissions(permissions()).tempfile_in(parent)?;
        fs::write(draft.path(), text)?;
        draft.persist(&path).map_err(|error| error.error)?;
        written.push(path);
    }
    Ok(written)
}

fn permissions() -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(0o755)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_framework_is_embedded_and_written_twice_without_harm() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path()).unwrap();
        assert_eq!(write(dir.path()).unwrap().len(), FILES.len());
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/hook/shell/frameworks/shell");
        for entry in fs::read_dir(source).unwrap() {
            let entry = entry.unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            for place in ["frameworks/shell", "framework/shell"] {
                assert_eq!(fs::read_to_string(dir.path().join(place).join(entry.file_name())).unwrap(), text);
            }
        }
    }
}

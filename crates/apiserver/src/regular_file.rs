//! Opens the files that the server writes: a pipe, a device or a link in the place of one keeps nobody waiting, and leads
//! nowhere else.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file with these options.
///
/// # Errors
///
/// Those of the system, and one for what is no regular file: to open a pipe would wait for whoever reads from it.
pub(crate) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).bits().cast_signed();
    let opened = options.custom_flags(flags).open(path);
    let file = opened.map_err(|error| match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => io::Error::other("it is a link; name the file that it leads to"),
        Ok(found) if !found.is_file() => not_regular(),
        Ok(_) | Err(_) => error,
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::other("it is no regular file; name a regular file, or a path where there is nothing yet")
}

/// Writes a file that only its owner can read, whatever mode the one had that it replaces. Readers see the old text or the new one.
///
/// A link is replaced, not what it leads to.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    if !is_replaceable(path) {
        return Err(not_regular());
    }
    let mut draft = path.to_owned().into_os_string();
    draft.push(format!(".{}", std::process::id()));
    // One that a process with the same number left behind is not written into: others may have opened it.
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

/// Returns whether there is a regular file, a link to one, or nothing.
fn is_replaceable(path: &Path) -> bool {
    // The streams of a process have names that are links, also when they are files.
    if fs::read_link(path).is_ok_and(|target| target.starts_with("/proc")) {
        return false;
    }
    fs::metadata(path).map_or(true, |found| found.is_file())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn slip_04_a_private_file_is_private_whatever_it_replaces() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        replace(&path, "first").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("first", 0o600));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        // Who has the old file open does not read the new token.
        let mut open = File::open(&path).unwrap();
        replace(&path, "second").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("second", 0o600));
        assert_eq!(io::read_to_string(&mut open).unwrap(), "first");
        for target in [path.as_path(), Path::new("nowhere")] {
            let link = dir.path().join("link");
            let _ = fs::remove_file(&link);
            symlink(target, &link).unwrap();
            replace(&link, "third").unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_file());
            assert_eq!((fs::read_to_string(&link).unwrap().as_str(), mode(&link)), ("third", 0o600));
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no draft is left");
        assert!(replace(&dir.path().join("missing/kubeconfig"), "").is_err());
    }

    #[test]
    fn slip_12_what_is_no_regular_file_is_neither_opened_nor_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, link, stream) =
            (dir.path().join("pipe"), dir.path().join("link"), dir.path().join("stream"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        symlink(&pipe, &link).unwrap();
        // What `/dev/stdout` is.
        symlink("/proc/self/fd/1", &stream).unwrap();
        let null = Path::new("/dev/null");
        for path in [pipe.as_path(), &link, &stream, dir.path(), null] {
            let error = replace(path, "").unwrap_err().to_string();
            assert!(error.contains("it is no regular file; name a regular file"), "{path:?}: {error}");
        }
        let append = |path: &Path| open(OpenOptions::new().append(true).create(true), path);
        // One with a reader can be opened.
        let reader = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        for reader in [Some(reader), None] {
            let error = append(&pipe).unwrap_err().to_string();
            assert!(error.contains("it is no regular file"), "{error}");
            drop(reader);
        }
        for path in [dir.path(), null] {
            let error = append(path).unwrap_err().to_string();
            assert!(error.contains("it is no regular file"), "{path:?}: {error}");
        }
        let error = append(&link).unwrap_err().to_string();
        assert!(error.contains("it is a link; name the file"), "{error}");
        append(&dir.path().join("new")).unwrap();
        append(&dir.path().join("new")).unwrap();
        assert_eq!(append(&dir.path().join("a/b")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

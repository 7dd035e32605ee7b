//! Reads files that users drop into directories, and writes those that they name: a pipe or a device among them keeps
//! nobody waiting.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a regular file. Links are followed.
///
/// # Errors
///
/// Those of the system, and one for what is no regular file: to open a pipe would wait for whoever writes into it.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?)
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::other("it is no regular file")
}

/// Returns what is in a regular file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the text in a regular file.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Writes a regular file, with the text in place of what it held. Links are followed.
///
/// # Errors
///
/// As for [`open`]: to open a pipe would wait for whoever reads from it.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).custom_flags(libc::O_NONBLOCK);
    let opened = options.open(path);
    let file = opened.map_err(|error| match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => not_regular(),
        Ok(_) | Err(_) => error,
    })?;
    regular(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slip_12_a_pipe_is_refused_and_a_link_to_a_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, file, link) = (dir.path().join("pipe"), dir.path().join("file"), dir.path().join("link"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        std::fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read(&pipe).unwrap_err().to_string(), "it is no regular file");
        assert_eq!(read_text(&link).unwrap(), "text");
        assert_eq!(read(dir.path()).unwrap_err().to_string(), "it is no regular file");
        assert_eq!(read(&dir.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn slip_12_a_pipe_is_not_written_to_and_a_link_to_a_file_is() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, file, link) = (dir.path().join("pipe"), dir.path().join("file"), dir.path().join("link"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(write(&pipe, "text").unwrap_err().to_string(), "it is no regular file");
        let reader = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        assert_eq!(write(&pipe, "text").unwrap_err().to_string(), "it is no regular file");
        drop(reader);
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for text in ["a longer text", "text"] {
            write(&link, text).unwrap();
            assert_eq!(read_text(&file).unwrap(), text);
        }
        assert_eq!(write(dir.path(), "").unwrap_err().to_string(), "it is no regular file");
        assert_eq!(write(&dir.path().join("a/b"), "").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

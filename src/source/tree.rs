//! What an unpacked bundle is on the disk: one digest of all of it, which shows whether anything was changed or is missing.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ::source::bundle::tree::{Content, Entry, MAX_READ_BYTES, Tree, needs_content, top_directory};
use sha2::{Digest as _, Sha256};
use walkdir::WalkDir;

use crate::regular_file;

/// How much of a file is read at a time, in bytes.
const BUFFER: usize = 64 << 10;

/// Returns the digest of the files, directories and links below `root`: their names, modes and contents.
pub(super) fn digest(root: &Path) -> io::Result<String> {
    let mut all = Sha256::new();
    for entry in WalkDir::new(root).min_depth(1).sort_by_file_name() {
        let entry = entry?;
        let kind = entry.file_type();
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let mode = entry.metadata()?.permissions().mode() & 0o7777;
        let path = path.as_os_str().as_bytes();
        let mut begin = |letter: char, mode: u32, length: u64| {
            all.update(format!("{letter} {mode:o} {} {length}\n", path.len()));
            all.update(path);
        };
        if kind.is_dir() {
            begin('d', 0, 0);
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path())?;
            let target = target.as_os_str().as_bytes();
            begin('l', 0, target.len() as u64);
            all.update(target);
        } else {
            let file = regular_file::open(entry.path())?;
            begin('f', mode, file.metadata()?.len());
            // A file may be as large as all of a bundle.
            let mut file = BufReader::with_capacity(BUFFER, file);
            loop {
                let part = file.fill_buf()?;
                if part.is_empty() {
                    break;
                }
                all.update(part);
                let length = part.len();
                file.consume(length);
            }
        }
    }
    Ok(hex(&all.finalize()))
}

/// Returns bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns a bundle as the lint reads it: only files whose content it needs are read.
pub(super) fn read(root: &Path) -> io::Result<Tree> {
    let mut tree = Tree::new();
    let mut left = MAX_READ_BYTES;
    for entry in WalkDir::new(root).min_depth(1) {
        let entry = entry?;
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
        // What is no text can't be in an archive that was unpacked here.
        let Some(path) = path.to_str() else { continue };
        let found = if entry.file_type().is_dir() {
            Entry::Directory
        } else if entry.file_type().is_symlink() {
            Entry::Link { target: fs::read_link(entry.path())?.to_string_lossy().into_owned() }
        } else {
            let metadata = entry.metadata()?;
            let is_executable = metadata.permissions().mode() & 0o111 != 0;
            // The lint says that there is too much.
            if needs_content(path) && metadata.len() <= left {
                left -= metadata.len();
                Entry::file(regular_file::read(entry.path())?, is_executable)
            } else {
                Entry::File { content: Content::Size(metadata.len()), is_executable }
            }
        };
        tree.insert(path.to_owned(), found);
    }
    Ok(tree)
}

/// Returns the directory of the bundle in an archive that was unpacked into `root`: that, or the one that holds everything.
pub(super) fn bundle_root(root: &Path) -> io::Result<PathBuf> {
    let mut paths = Vec::new();
    for entry in WalkDir::new(root).min_depth(1).max_depth(2) {
        let entry = entry?;
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
        paths.extend(path.to_str().map(str::to_owned));
    }
    let top = top_directory(paths.iter().map(String::as_str));
    Ok(top.map_or_else(|| root.to_owned(), |top| root.join(top)))
}

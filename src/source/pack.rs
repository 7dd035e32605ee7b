//! Packs bundles: the same files become the same bytes, whenever, wherever and by whomever they are packed.
//!
//! What an archive may hold is decided by `source::archive_path`, as when it is unpacked.

use std::io::{self, Read, Write};

use ::source::archive_path::{Entries, EntryError, EntryType, Header};
use flate2::Compression;
use flate2::write::GzEncoder;
use thiserror::Error;

/// When all files were changed, in seconds since 1970: the first day of 1980, which no tool takes for a mistake.
const CHANGED_AT: u64 = 315_532_800;

/// Why an archive was not packed.
#[derive(Debug, Error)]
pub(super) enum PackError {
    #[error(transparent)]
    Entry(#[from] EntryError),
    #[error("can't write the archive: {0}")]
    Write(#[from] io::Error),
}

/// Writes a `.tar.gz`. The caller adds the entries in the order of their paths, directories before what is in them.
pub(super) struct Packer<W: Write> {
    archive: tar::Builder<GzEncoder<W>>,
    entries: Entries,
}

impl<W: Write> Packer<W> {
    /// Returns one that writes to `out`.
    pub(super) fn new(out: W) -> Self {
        // No name and no time are written into the head.
        let packed = GzEncoder::new(out, Compression::best());
        Self { archive: tar::Builder::new(packed), entries: Entries::default() }
    }

    /// Adds a file.
    pub(super) fn file(&mut self, path: &str, is_executable: bool, bytes: &[u8]) -> Result<(), PackError> {
        self.streamed(path, is_executable, bytes.len() as u64, bytes)
    }

    /// Adds a file whose `size` bytes are read while they are packed.
    pub(super) fn streamed(
        &mut self,
        path: &str,
        is_executable: bool,
        size: u64,
        bytes: impl Read,
    ) -> Result<(), PackError> {
        let mode = if is_executable { 0o755 } else { 0o644 };
        self.admit(path, EntryType::File, mode, size, None)?;
        let mut header = header(tar::EntryType::Regular, mode);
        header.set_size(size);
        Ok(self.archive.append_data(&mut header, path, bytes)?)
    }

    /// Adds a directory.
    pub(super) fn directory(&mut self, path: &str) -> Result<(), PackError> {
        self.admit(path, EntryType::Directory, 0o755, 0, None)?;
        let mut header = header(tar::EntryType::Directory, 0o755);
        Ok(self.archive.append_data(&mut header, format!("{path}/"), io::empty())?)
    }

    /// Adds a symbolic link.
    pub(super) fn link(&mut self, path: &str, target: &str) -> Result<(), PackError> {
        self.admit(path, EntryType::Link, 0o777, 0, Some(target))?;
        let mut header = header(tar::EntryType::Symlink, 0o777);
        Ok(self.archive.append_link(&mut header, path, target)?)
    }

    /// Ends the archive.
    pub(super) fn finish(self) -> Result<W, PackError> {
        self.entries.finish()?;
        Ok(self.archive.into_inner()?.finish()?)
    }

    fn admit(
        &mut self,
        path: &str,
        entry_type: EntryType,
        mode: u32,
        size: u64,
        target: Option<&str>,
    ) -> Result<(), EntryError> {
        let target = target.map(str::as_bytes);
        self.entries.admit(&Header { name: path.as_bytes(), entry_type, mode, size, target }).map(drop)
    }
}

fn header(kind: tar::EntryType, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(CHANGED_AT);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header
}

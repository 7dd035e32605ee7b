//! Unpacks packed bundles, as a stream and within limits.
//!
//! Which entries may be unpacked is decided by `source::archive_path`. Here nothing is written through a link: each
//! directory is opened from the one above it without following links, and links are made when all files are there.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use ::source::archive_path::{
    Entries, EntryError, EntryType, Header, MAX_ENTRIES, MAX_PATH, MAX_UNPACKED_BYTES, Unpacked,
};
use flate2::read::MultiGzDecoder;
use rustix::fs::{CWD, Mode, OFlags, fchmod, mkdirat, openat, symlinkat};
use tar::{Archive, PaxExtensions};
use thiserror::Error;

/// How much of an archive is read at most, unpacked: what its entries may have, and what stands between them.
const MOST_BYTES: u64 = MAX_UNPACKED_BYTES + (MAX_ENTRIES as u64) * 4096;

/// The longest entry that says something about the next one, in bytes.
const LONGEST_EXTENSION: u64 = 64 * 1024;

/// Why an archive was not unpacked.
#[derive(Debug, Error)]
pub(super) enum ArchiveError {
    #[error("the archive can't be read as .tar.gz: {0}")]
    Unreadable(io::Error),
    #[error("the archive: {}", listed(.0))]
    Entries(Vec<EntryError>),
    #[error("the archive: {name:?} has {problem}, pack it with plain tar")]
    Extension { name: String, problem: &'static str },
    #[error("the archive is longer than {} MiB when it is unpacked", MOST_BYTES >> 20)]
    TooLong,
    #[error("can't unpack: {0}")]
    Write(#[source] io::Error),
}

impl ArchiveError {
    /// Returns whether our own disk is to blame, and not the archive.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self, Self::Write(_))
    }
}

/// How many refused entries are named. Nobody looks for more.
const NAMED: usize = 20;

/// Returns what is wrong with entries, in one line.
fn listed(errors: &[EntryError]) -> String {
    let named: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let more = if errors.len() < NAMED { "" } else { "; there may be more" };
    named.join("; ") + more
}

/// What `read` says when the archive is too long.
#[derive(Debug, Error)]
#[error("it is too long")]
struct TooLong;

/// Ends an archive that unpacks to more than it may.
struct Limited<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.left.checked_sub(count.try_into().unwrap_or(u64::MAX)) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other(TooLong)),
        }
        Ok(count)
    }
}

fn unreadable(error: io::Error) -> ArchiveError {
    if error.get_ref().and_then(|inner| inner.downcast_ref::<TooLong>()).is_some() {
        return ArchiveError::TooLong;
    }
    ArchiveError::Unreadable(error)
}

/// What entries of an archive say about the entry behind them.
#[derive(Default)]
struct Extension {
    name: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
}

impl Extension {
    /// Reads an entry that is about the next one. Returns whether it is such an entry.
    fn read(&mut self, entry: &mut tar::Entry<'_, impl Read>) -> Result<bool, ArchiveError> {
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() {
            return Ok(true);
        }
        if !(kind.is_gnu_longname() || kind.is_gnu_longlink() || kind.is_pax_local_extensions()) {
            return Ok(false);
        }
        let wrong = |name: &[u8], problem| {
            let name = String::from_utf8_lossy(name).chars().take(MAX_PATH).collect();
            ArchiveError::Extension { name, problem }
        };
        if entry.size() > LONGEST_EXTENSION {
            return Err(wrong(&entry.path_bytes(), "a name that is too long"));
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(unreadable)?;
        if kind.is_pax_local_extensions() {
            for extension in PaxExtensions::new(&bytes) {
                let extension = extension.map_err(unreadable)?;
                match extension.key_bytes() {
                    b"path" => self.name = Some(extension.value_bytes().to_vec()),
                    b"linkpath" => self.target = Some(extension.value_bytes().to_vec()),
                    // It would say that the entry has other bytes than those that are counted.
                    b"size" => return Err(wrong(&entry.path_bytes(), "a size of its own")),
                    key if key.starts_with(b"GNU.sparse.") => {
                        return Err(wrong(&entry.path_bytes(), "holes"));
                    }
                    _ => {}
                }
            }
        } else {
            let text: Vec<u8> = bytes.into_iter().take_while(|byte| *byte != 0).collect();
            if kind.is_gnu_longname() { self.name = Some(text) } else { self.target = Some(text) }
        }
        Ok(true)
    }
}

/// Unpacks a `.tar.gz` into an empty directory. What was written before an error stays there. Behind the first entry that is
/// refused nothing is written any more; the others are looked at, so that all that is wrong is told at once.
pub(super) fn unpack(packed: impl Read, into: &Path) -> Result<(), ArchiveError> {
    let write = |error: rustix::io::Errno| ArchiveError::Write(error.into());
    let root = openat(CWD, into, directory_flags(), Mode::empty()).map_err(write)?;
    let mut archive = Archive::new(Limited { inner: MultiGzDecoder::new(packed), left: MOST_BYTES });
    let mut entries = Entries::default();
    let mut extension = Extension::default();
    let (mut links, mut refused) = (Vec::new(), Vec::new());
    // Raw, since the crate itself would read names of any length.
    for entry in archive.entries().map_err(unreadable)?.raw(true) {
        let mut entry = entry.map_err(unreadable)?;
        if extension.read(&mut entry)? {
            continue;
        }
        let Extension { name, target } = std::mem::take(&mut extension);
        let name = name.unwrap_or_else(|| entry.path_bytes().into_owned());
        let target = target.or_else(|| entry.link_name_bytes().map(std::borrow::Cow::into_owned));
        let header = Header {
            name: &name,
            entry_type: entry_type(entry.header().entry_type()),
            mode: entry.header().mode().map_err(unreadable)?,
            size: entry.size(),
            target: target.as_deref(),
        };
        match entries.admit(&header) {
            Err(error) => {
                // What lies behind too many entries or bytes is not read.
                let is_last = matches!(error, EntryError::Entries | EntryError::Bytes);
                refused.push(error);
                if is_last || refused.len() == NAMED {
                    return Err(ArchiveError::Entries(refused));
                }
            }
            Ok(None) => {}
            Ok(Some((path, Unpacked::Link { target }))) => links.push((path, target)),
            Ok(Some(_)) if !refused.is_empty() => {}
            Ok(Some((path, Unpacked::Directory))) => drop(directory(&root, &path).map_err(write)?),
            Ok(Some((path, Unpacked::File { is_executable }))) => {
                let file = create(&root, &path, is_executable).map_err(write)?;
                copy(&mut entry, file)?;
            }
        }
    }
    refused.extend(entries.stray_links().map(|(_, error)| error).take(NAMED - refused.len()));
    if !refused.is_empty() {
        return Err(ArchiveError::Entries(refused));
    }
    // The checksum and the length of what was packed come behind the end of the archive.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(unreadable)?;
    for (path, target) in links {
        let (parent, name) = parent(&root, &path).map_err(write)?;
        symlinkat(target, &parent, name).map_err(write)?;
    }
    Ok(())
}

fn entry_type(of: tar::EntryType) -> EntryType {
    if of.is_file() || of.is_contiguous() {
        EntryType::File
    } else if of.is_dir() {
        EntryType::Directory
    } else if of.is_symlink() {
        EntryType::Link
    } else if of.is_hard_link() {
        EntryType::HardLink
    } else {
        EntryType::Other
    }
}

/// Copies an entry, and tells apart which end failed.
fn copy(from: &mut impl Read, mut into: File) -> Result<(), ArchiveError> {
    let mut buffer = [0; 16 * 1024];
    loop {
        let count = from.read(&mut buffer).map_err(unreadable)?;
        if count == 0 {
            return Ok(());
        }
        into.write_all(buffer.get(..count).unwrap_or_default()).map_err(ArchiveError::Write)?;
    }
}

const fn directory_flags() -> OFlags {
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC)
}

/// Returns the directory of this path, which is made if it is not there.
fn directory(root: &OwnedFd, path: &str) -> rustix::io::Result<OwnedFd> {
    let mode = Mode::from_raw_mode(0o755);
    let mut found = root.as_fd().try_clone_to_owned().map_err(|_| rustix::io::Errno::MFILE)?;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        match mkdirat(&found, part, mode) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        found = openat(&found, part, directory_flags(), Mode::empty())?;
    }
    Ok(found)
}

/// Returns the directory that a path is in, and the last name.
fn parent<'p>(root: &OwnedFd, path: &'p str) -> rustix::io::Result<(OwnedFd, &'p str)> {
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    Ok((directory(root, above)?, name))
}

fn create(root: &OwnedFd, path: &str, is_executable: bool) -> rustix::io::Result<File> {
    let (parent, name) = parent(root, path)?;
    let mode = Mode::from_raw_mode(if is_executable { 0o755 } else { 0o644 });
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&parent, name, flags, mode)?;
    // The umask of the operator says nothing about what hooks need.
    fchmod(&file, mode)?;
    Ok(file.into())
}

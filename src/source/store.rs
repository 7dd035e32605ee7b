//! The store directory: unpacked bundles by the digest of their archives, and links to those that are modules.
//!
//! ```text
//! lock                          held while an operator uses the directory
//! blobs/<sha256>/packed.tgz     the archive as it came
//! blobs/<sha256>/bundle/        what was in it
//! blobs/<sha256>/tree           a digest of bundle/, written last
//! active/<NNN>-<name>           a link to ../blobs/<sha256>/bundle
//! active/.next-<NNN>-<name>     the link that takes the place of that one with the next commit
//! staging/                      what is not complete; nothing is left of it at the start
//! gone/                         what nobody needs, deleted beside all else
//! ```
//!
//! A blob gets its name by one rename when it is complete, so a kill leaves none in part. Each is compared with its
//! `tree` before its first use by a process: what a crash of the machine or a hook left of it is found then, and fetched
//! or restored again. That is why nothing here waits for the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{Digest, Failure, FailureKind, ModuleLink};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::archive::{self, ArchiveError};
use super::disk_error::{DiskError, refused};
use super::gone::Gone;
use super::links::{BLOBS, BUNDLE, Links};
use super::tree;
use crate::directory_trust::{self, Refusal};
use crate::file_lock::{FileLock, HANDOVER};
use crate::regular_file;
use crate::remote::http::Sink;

const LOCK: &str = "lock";
pub(super) const ACTIVE: &str = "active";
const STAGING: &str = "staging";
const GONE: &str = "gone";
const PACKED: &str = "packed.tgz";
const TREE: &str = "tree";

/// The store directory. It is made and locked at its first use.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    gone: Arc<Gone>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    lock: Option<FileLock>,
    /// Blobs that were compared with their tree by this process.
    verified: BTreeSet<Digest>,
    /// How many fetches in flight found a blob.
    pins: BTreeMap<Digest, usize>,
    /// Blobs that were found by a fetch, and that nobody has named since.
    fresh: BTreeSet<Digest>,
}

/// Keeps a blob while a fetch is in flight that found it.
#[derive(Debug)]
pub(super) struct Pin {
    store: Arc<Store>,
    digest: Digest,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.store.state();
        if let Some(count) = state.pins.get_mut(&self.digest) {
            *count = count.saturating_sub(1);
        }
        state.pins.retain(|_, count| *count > 0);
    }
}

/// A blob that is not complete. It is gone when it is dropped.
#[derive(Debug)]
pub(super) struct Staged {
    dir: TempDir,
}

/// Takes an archive into a file, and counts its digest on the way.
pub(super) struct Download {
    staged: Staged,
    file: File,
    hash: Sha256,
}

/// Takes what is read once and not kept into a file without a name. A kill leaves nothing of it.
pub(super) struct Spool {
    staging: PathBuf,
    /// There is none until there is something to write.
    file: Option<File>,
}

impl Sink for Spool {
    fn write(&mut self, part: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(unnamed(&self.staging)?),
        };
        io::Write::write_all(file, part)
    }
}

/// Returns a file without a name in a directory, which is made again if somebody has removed it.
fn unnamed(directory: &Path) -> io::Result<File> {
    match tempfile::tempfile_in(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            tempfile::tempfile_in(directory)
        }
        outcome => outcome,
    }
}

impl Spool {
    /// Returns what was taken, from its beginning on; `None` if that is nothing.
    pub(super) fn into_reader(self) -> io::Result<Option<File>> {
        let Some(mut file) = self.file else { return Ok(None) };
        io::Seek::rewind(&mut file)?;
        Ok(Some(file))
    }
}

impl Sink for Download {
    fn write(&mut self, part: &[u8]) -> io::Result<()> {
        self.hash.update(part);
        io::Write::write_all(&mut self.file, part)
    }
}

impl Download {
    /// Returns the digest of what was taken so far.
    pub(super) fn digest(&self) -> Result<Digest, Failure> {
        let digest = format!("sha256:{}", tree::hex(&self.hash.clone().finalize()));
        digest.parse().map_err(|error| Failure::of(FailureKind::Bug, &error))
    }

    /// Returns what reads the archive.
    pub(super) fn packed(&self) -> impl FnOnce() -> Result<Vec<u8>, Failure> + Send + 'static + use<> {
        let path = self.staged.dir.path().join(PACKED);
        move || regular_file::read(&path).map_err(|source| DiskError::Io { path, source }.failure())
    }

    /// Returns the archive that was taken, with its digest.
    pub(super) fn finish(self) -> Result<(Staged, Digest), Failure> {
        let digest = self.digest()?;
        Ok((self.staged, digest))
    }
}

impl Staged {
    /// Unpacks the archive, and returns the directory of the bundle.
    ///
    /// An archive may have one directory around the bundle, or none.
    pub(super) fn unpack(&self) -> Result<PathBuf, ArchiveError> {
        let write = ArchiveError::Write;
        let (unpacked, bundle) = (self.dir.path().join("unpacked"), self.bundle());
        DirBuilder::new().mode(0o755).create(&unpacked).map_err(write)?;
        let packed = File::open(self.dir.path().join(PACKED)).map_err(write)?;
        archive::unpack(io::BufReader::new(packed), &unpacked)?;
        let root = tree::bundle_root(&unpacked).map_err(write)?;
        fs::rename(&root, &bundle).map_err(write)?;
        if root != unpacked {
            fs::remove_dir(&unpacked).map_err(write)?;
        }
        Ok(bundle)
    }

    fn bundle(&self) -> PathBuf {
        self.dir.path().join(BUNDLE)
    }
}

impl Store {
    /// Returns the store in this directory. Nothing is made yet: without sources there is nothing to keep.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { gone: Arc::new(Gone::new(path.join(GONE))), path, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the store directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory in which the loader finds modules. It may not be there.
    pub(super) fn active(&self) -> PathBuf {
        self.path.join(ACTIVE)
    }

    /// Checks what there is of the directory, so that a wrong place is told at the start. Nothing is made.
    pub(super) fn look(&self) -> Result<(), DiskError> {
        match directory_trust::look(&self.path) {
            // What can't be seen is no wrong place: it is told when there is something to keep.
            Ok(()) | Err(Refusal::Io(_)) => Ok(()),
            Err(refusal) => Err(refused(&self.path, refusal)),
        }
    }

    /// Makes the directory and locks it, if that was not done yet.
    fn open(&self) -> Result<(), DiskError> {
        let mut state = self.state();
        let dirs = [BLOBS, ACTIVE, STAGING, GONE].map(|name| self.path.join(name));
        if state.lock.is_some() {
            // Cleaners of /tmp remove what is old, and somebody else may make it again.
            if dirs.iter().any(|dir| !dir.is_dir()) {
                make(&self.path)?;
                self.check()?;
            }
            return dirs.iter().try_for_each(|dir| make_folder(dir));
        }
        make(&self.path)?;
        self.check()?;
        let path = self.path.join(LOCK);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let lock = options.open(&path).map_err(|source| DiskError::Io { path, source })?;
        let lock = FileLock::new(lock, HANDOVER).map_err(|_| DiskError::Taken { path: self.path.clone() })?;
        let [_, _, staging, gone] = &dirs;
        make_folder(gone)?;
        match self.gone.take(staging) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(DiskError::Io { path: staging.clone(), source });
            }
            _ => {}
        }
        dirs.iter().try_for_each(|dir| make_folder(dir))?;
        self.gone.delete();
        state.lock = Some(lock);
        Ok(())
    }

    /// Checks that nobody else can replace what is in the directory. Those above it were looked at when it was made.
    fn check(&self) -> Result<(), DiskError> {
        let io = |source| DiskError::Io { path: self.path.clone(), source };
        directory_trust::check_own(&self.path).map_err(|refusal| refused(&self.path, refusal))?;
        let found = fs::symlink_metadata(&self.path).map_err(io)?;
        if found.mode() & 0o077 != 0 {
            fs::set_permissions(&self.path, fs::Permissions::from_mode(0o700)).map_err(io)?;
        }
        Ok(())
    }

    fn blob(&self, digest: &Digest) -> PathBuf {
        self.path.join(BLOBS).join(digest.hex())
    }

    /// Returns the directory of a bundle, if it is here and as it was unpacked.
    pub(super) fn bundle(&self, digest: &Digest) -> Result<Option<PathBuf>, DiskError> {
        self.open()?;
        let blob = self.blob(digest);
        let bundle = blob.join(BUNDLE);
        let Ok(known) = regular_file::read_text(&blob.join(TREE)) else {
            self.state().verified.remove(digest);
            return Ok(None);
        };
        if self.state().verified.contains(digest) && bundle.is_dir() {
            return Ok(Some(bundle));
        }
        if tree::digest(&bundle).ok().as_deref() != Some(known.as_str()) {
            return Ok(None);
        }
        self.state().verified.insert(digest.clone());
        Ok(Some(bundle))
    }

    /// Returns the archive of a bundle.
    pub(super) fn packed(&self, digest: &Digest) -> Result<Vec<u8>, DiskError> {
        let missing = || DiskError::Missing { path: self.path.clone(), digest: digest.clone() };
        let packed = regular_file::read(&self.blob(digest).join(PACKED)).map_err(|_| missing())?;
        let is_whole = tree::hex(&Sha256::digest(&packed)) == digest.hex();
        if is_whole { Ok(packed) } else { Err(missing()) }
    }

    /// Returns where an archive can be taken.
    pub(super) fn download(&self) -> Result<Download, DiskError> {
        self.open()?;
        let staging = self.path.join(STAGING);
        let io = |source| DiskError::Io { path: staging.clone(), source };
        let dir = tempfile::Builder::new()
            .prefix("blob-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&staging)
            .map_err(io)?;
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(dir.path().join(PACKED));
        Ok(Download { file: file.map_err(io)?, staged: Staged { dir }, hash: Sha256::new() })
    }

    /// Returns whether it was used before. What is in it is there then, unless somebody has removed it.
    pub(super) fn is_open(&self) -> bool {
        self.state().lock.is_some()
    }

    /// Returns whether a bundle is there that this process has compared with its tree before.
    pub(super) fn has_verified(&self, digest: &Digest) -> bool {
        self.is_open() && self.state().verified.contains(digest) && self.blob(digest).join(BUNDLE).is_dir()
    }

    /// Returns a place for what is read once and not kept.
    pub(super) fn spool(&self) -> Result<Spool, DiskError> {
        if !self.is_open() {
            self.open()?;
        }
        Ok(Spool { staging: self.path.join(STAGING), file: None })
    }

    /// Returns an empty file without a name, for what is needed while something is fetched.
    pub(super) fn scratch_file(&self) -> Result<File, DiskError> {
        self.open()?;
        let staging = self.path.join(STAGING);
        tempfile::tempfile_in(&staging).map_err(|source| DiskError::Io { path: staging, source })
    }

    /// Keeps a blob while the pin lives, and until it was named or the bundles after next are dropped.
    pub(super) fn pin(self: &Arc<Self>, digest: &Digest) -> Pin {
        let mut state = self.state();
        *state.pins.entry(digest.clone()).or_default() += 1;
        state.fresh.insert(digest.clone());
        drop(state);
        Pin { store: Arc::clone(self), digest: digest.clone() }
    }

    /// Puts a bundle that was unpacked under its digest, and returns its directory.
    pub(super) fn put(&self, staged: Staged, digest: &Digest) -> Result<PathBuf, DiskError> {
        if let Some(bundle) = self.bundle(digest)? {
            return Ok(bundle);
        }
        let blob = self.blob(digest);
        let io = |source| DiskError::Io { path: blob.clone(), source };
        let tree = tree::digest(&staged.bundle()).map_err(io)?;
        fs::write(staged.dir.path().join(TREE), tree).map_err(io)?;
        if blob.exists() {
            // It was changed. It goes in two steps, so that no kill leaves it in part.
            self.gone.take(&blob).map_err(io)?;
            self.gone.delete();
        }
        fs::rename(staged.dir.keep(), &blob).map_err(io)?;
        self.state().verified.insert(digest.clone());
        Ok(blob.join(BUNDLE))
    }

    fn links(&self) -> Links {
        Links { directory: self.active() }
    }

    /// Makes the links that are missing, so that a disk that is full says so before anything is registered. Returns the bundles
    /// whose links could not be made, and why.
    pub(super) fn prepare(&self, all: &[ModuleLink]) -> Vec<(Digest, DiskError)> {
        let links = self.links();
        let make = |link: &ModuleLink| {
            self.open()?;
            links.make(link).map_err(|source| DiskError::Io { path: links.directory.clone(), source })
        };
        let missing = links.missing(all).into_iter();
        let problems = missing.filter_map(|link| Some((link.digest.clone(), make(link).err()?))).collect();
        links.clear(all);
        problems
    }

    /// Makes the links in force say exactly this.
    pub(super) fn link(&self, all: &[ModuleLink]) -> Result<(), DiskError> {
        if all.is_empty() && !self.path.exists() {
            return Ok(());
        }
        self.open()?;
        for link in all {
            if self.bundle(&link.digest)?.is_none() {
                return Err(DiskError::Missing { path: self.path.clone(), digest: link.digest.clone() });
            }
        }
        let links = self.links();
        links.replace(all).map_err(|source| DiskError::Io { path: links.directory, source })
    }

    /// Notes that somebody named these bundles: from now on that one says whether they stay.
    pub(super) fn named<'d>(&self, digests: impl Iterator<Item = &'d Digest>) {
        let mut state = self.state();
        for digest in digests {
            state.fresh.remove(digest);
        }
    }

    /// Removes all bundles but these, those that a link leads to, and those that were fetched since. Their files are deleted
    /// beside all else.
    pub(super) fn drop_all_but(&self, keep: &BTreeSet<Digest>) -> Result<(), DiskError> {
        if !self.path.exists() {
            return Ok(());
        }
        self.open()?;
        let blobs = self.path.join(BLOBS);
        let io = |source| DiskError::Io { path: blobs.clone(), source };
        let mut stays: BTreeSet<String> = keep.iter().map(|digest| digest.hex().to_owned()).collect();
        stays.extend(self.links().digits().map_err(io)?);
        let mut state = self.state();
        stays.extend(state.pins.keys().chain(&state.fresh).map(|digest| digest.hex().to_owned()));
        let pins: BTreeSet<Digest> = state.pins.keys().cloned().collect();
        state.fresh.retain(|digest| pins.contains(digest));
        for entry in fs::read_dir(&blobs).map_err(io)? {
            let entry = entry.map_err(io)?;
            let name = entry.file_name();
            if !name.to_str().is_some_and(|name| stays.contains(name)) {
                // Renamed while the state is locked, so that no fetch takes it for one that stays.
                self.gone.take(&entry.path()).map_err(io)?;
                state.verified.retain(|digest| name != digest.hex());
            }
        }
        drop(state);
        self.gone.delete();
        Ok(())
    }
}

/// Makes a folder of the store directory. What stands in its place is a matter of the disk: nobody else can have put it there.
fn make_folder(path: &Path) -> Result<(), DiskError> {
    directory_trust::make(path).map_err(|refusal| match refusal {
        Refusal::NoDirectory(path) => DiskError::Io { path, source: io::ErrorKind::NotADirectory.into() },
        Refusal::Io(_) | Refusal::Untrusted(..) => refused(path, refusal),
    })
}

/// Makes a private directory, and those above it, unless somebody else can replace it.
fn make(path: &Path) -> Result<(), DiskError> {
    directory_trust::make(path).map_err(|refusal| refused(path, refusal))
}

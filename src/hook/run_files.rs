//! The files of one run, in a directory that is used again when nothing of its run is left in it.
//!
//! A file system on a disk takes much longer to make and remove a file than to write it: it writes both down, and it
//! looks for a place among the files that were removed lately. So a directory and its files go from run to run. What
//! was in them does not, nor does what a hook did to them:
//!
//! - Each run has another path. Who uses that of an earlier run finds nothing there.
//! - Inputs are overwritten with zeros when their run is over, and outputs into which something was written are removed.
//! - A directory is removed if a process of its run lives, if there is anything in it that was not there before, and if
//!   a file in it is of another kind, has other rights or a second name, or if anybody else has it open. Who could have
//!   it open is not asked where nothing that was started lives.
//! - Outputs are looked at once where nothing lives that could write since then.
//! - What is in a directory is read only if something was made, moved or removed in it since that was done last.
//!
//! The files stay open here as long as they are used again. Opening them anew for each step took longer than the steps.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt as _, MetadataExt as _, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Mode, OFlags, RawDir, SeekFrom, Stat, fstat, openat, seek};

use super::error::ScratchError;
use crate::directory_trust::{self, Refusal};
use crate::file_lock::FileLock;
use crate::process::{Survivors, WatchedFile};

/// How many directories wait for later runs of a kind: about as many as there are hooks at a time.
const MOST_IDLE: usize = 16;

/// Up to how many bytes an input is overwritten; a longer one is removed.
const LONGEST_KEPT: u64 = 64 * 1024;

/// What an input is overwritten with.
static ZEROS: [u8; 4096] = [0; 4096];

/// How long ago something must have been made, moved or removed in a directory, so that the next such change has another time. The
/// clock of file systems ticks every 10 ms at most.
const TICK: Duration = Duration::from_millis(20);

/// How many bytes of an input are held before they are written: most inputs are shorter.
const BUFFER: usize = 8 * 1024;

/// The file beside them that is locked while the operator runs. Where it is not, the operator was killed.
pub(super) const LOCK: &str = "lock";

/// The lock before it is held. Under its final name it would be taken for that of a killed operator.
pub(super) const NEW_LOCK: &str = "lock.new";

/// The names of the files of a kind of runs.
#[derive(Debug)]
pub struct Layout {
    /// The files that are written for the run.
    pub inputs: &'static [&'static str],
    /// The files that the run writes. They exist before, and are empty.
    pub outputs: &'static [&'static str],
}

impl Layout {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.inputs.iter().chain(self.outputs).copied()
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.names().position(|other| other == name)
    }
}

/// The directories of runs, below one directory.
#[derive(Debug)]
pub(super) struct RunDirectories {
    path: PathBuf,
    keep: bool,
    is_in_memory: bool,
    /// The user of this process.
    user: u32,
    next: AtomicU64,
    idle: Mutex<Vec<Directory>>,
    /// Where inputs are put together, while nobody does so.
    held: Mutex<Vec<u8>>,
    /// Given up when the directory is gone.
    lock: Mutex<Option<FileLock>>,
}

impl RunDirectories {
    /// Returns none yet, to be made below `path`. With `keep` the files stay when their run is over.
    pub(super) fn new(path: PathBuf, keep: bool) -> Self {
        let is_in_memory = rustix::fs::statfs(&path).is_ok_and(|system| system.f_type == libc::TMPFS_MAGIC);
        let user = rustix::process::geteuid().as_raw();
        let next = AtomicU64::new(1);
        let (idle, held, lock) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { path, keep, is_in_memory, user, next, idle, held, lock }
    }

    /// Locks the directory as long as this lives. One that has a lock was locked by somebody who found that there was none, too.
    pub(super) fn lock(&self) -> Result<(), ScratchError> {
        let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let (new, path) = (self.path.join(NEW_LOCK), self.path.join(LOCK));
        if fs::symlink_metadata(&path).is_ok() {
            return Ok(());
        }
        let file = create(&new)?;
        // Nobody else knows the file yet.
        let lock = FileLock::new(file, Duration::ZERO).map_err(io::Error::from);
        let lock = lock.and_then(|lock| fs::rename(&new, &path).map(|()| lock));
        *held = Some(lock.map_err(|source| ScratchError::Write { path, source })?);
        Ok(())
    }

    /// Gives up the lock, as a kill does.
    #[cfg(test)]
    pub(super) fn unlock(&self) {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    pub(super) const fn is_in_memory(&self) -> bool {
        self.is_in_memory
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes all of them, unless they are kept.
    pub(super) fn remove(&self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }

    /// Returns the files of a run, in a directory that waited for it or in a new one.
    pub(super) fn take(
        self: &Arc<Self>,
        layout: &'static Layout,
        label: impl FnOnce() -> String,
    ) -> Result<RunFiles, ScratchError> {
        let files = |directory, label| RunFiles { all: Arc::clone(self), directory, label };
        while let Some(mut directory) = self.idle(layout) {
            let is_untouched = directory.is_untouched();
            directory.is_sealed = false;
            // One that can't be used any more is removed when it is dropped.
            let files = files(directory, String::new());
            if is_untouched {
                return Ok(files);
            }
        }
        let path = self.next_path();
        let made = DirBuilder::new().mode(0o700).create(&path).map(|()| false).or_else(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                // The directory was removed while the operator runs, as cleaners of /tmp do. Somebody else may have made it again.
                return directory_trust::make(&path).map(|()| true);
            }
            Err(Refusal::Io(error))
        });
        let is_made_anew = made.map_err(|refusal| ScratchError::refused(&path, refusal))?;
        if is_made_anew {
            self.lock()?;
        }
        let label = if self.keep { label() } else { String::new() };
        let kept = layout.names().map(|_| None).collect();
        Ok(files(Directory { layout, path, opened: None, kept, is_sealed: false }, label))
    }

    /// Returns whether something belongs to this user, is of this type, and has these rights. A directory may have got the
    /// bit for groups from the one above.
    fn is_private(&self, found: &Stat, kind: FileType, rights: u32) -> bool {
        FileType::from_raw_mode(found.st_mode) == kind
            && found.st_mode & 0o777 == rights
            && found.st_uid == self.user
    }

    /// Returns a path that was not returned before.
    fn next_path(&self) -> PathBuf {
        self.path.join(self.next.fetch_add(1, Ordering::Relaxed).to_string())
    }

    fn idle(&self, layout: &'static Layout) -> Option<Directory> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // The one that was used last is still in the caches of the system.
        let index = idle.iter().rposition(|directory| std::ptr::eq(directory.layout, layout))?;
        Some(idle.remove(index))
    }

    fn take_held(&self) -> Vec<u8> {
        std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put_held(&self, held: Vec<u8>) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    /// Keeps a directory for a later run. Returns it if there are enough.
    fn put(&self, directory: Directory) -> Option<Directory> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let is_alike = |other: &&Directory| std::ptr::eq(other.layout, directory.layout);
        if idle.iter().filter(is_alike).count() >= MOST_IDLE {
            return Some(directory);
        }
        idle.push(directory);
        None
    }
}

/// The directory of a run, or one that waits for a run.
#[derive(Debug)]
struct Directory {
    layout: &'static Layout,
    path: PathBuf,
    /// The directory itself, once it was looked into.
    opened: Option<Opened>,
    /// The files of the layout that are there. Between runs inputs hold zeros, and outputs are empty.
    kept: Vec<Option<OpenFile>>,
    /// Whether nothing was written into its outputs, and nothing lives that could do it.
    is_sealed: bool,
}

/// A file that is used again.
#[derive(Debug)]
struct OpenFile {
    /// The file, open for writing.
    file: WatchedFile,
    /// Its number.
    inode: u64,
    /// How long it is, as far as this process knows.
    length: u64,
}

impl OpenFile {
    /// Returns whether it has its name still, and nothing is in it.
    fn is_empty(&self) -> bool {
        fstat(&*self.file).is_ok_and(|found| found.st_nlink == 1 && found.st_size == 0)
    }
}

/// A directory that is open.
#[derive(Debug)]
struct Opened {
    directory: OwnedFd,
    inode: u64,
    /// When something was made, moved or removed in it last, if all that is in it is known since.
    changed: Option<Changed>,
}

/// When something was made, moved or removed in a directory last: seconds and nanoseconds.
type Changed = (i64, i64);

fn changed(found: &Stat) -> Changed {
    (found.st_mtime, i64::try_from(found.st_mtime_nsec).unwrap_or(-1))
}

/// Returns whether the next change will have another time.
fn is_settled((seconds, nanoseconds): Changed) -> bool {
    let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(seconds), u32::try_from(nanoseconds)) else {
        return false;
    };
    let at = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
    SystemTime::now().duration_since(at).is_ok_and(|ago| ago > TICK)
}

impl Directory {
    /// Returns whether its files are as they were left. Cleaners of /tmp remove what is old.
    ///
    /// Where nothing lived that could write, only such a cleaner could have done something, and that shows in the directory.
    fn is_untouched(&self) -> bool {
        let (inputs, outputs) = self.kept.split_at(self.layout.inputs.len().min(self.kept.len()));
        let is_there = |kept: &OpenFile| fstat(&*kept.file).is_ok_and(|found| found.st_nlink == 1);
        let (Ok(found), Some(opened)) = (rustix::fs::lstat(&self.path), &self.opened) else { return false };
        let is_same = opened.changed == Some(changed(&found));
        found.st_ino == opened.inode
            && (is_same || inputs.iter().flatten().all(is_there))
            && (is_same && self.is_sealed || outputs.iter().flatten().all(OpenFile::is_empty))
    }

    /// Returns whether nothing was written into any output, each is the file that it was, and nobody else may read any of it.
    fn are_outputs_untouched(&self, all: &RunDirectories) -> bool {
        let Some(opened) = self.opened.as_ref().filter(|opened| opened.changed.is_some()) else {
            return false;
        };
        let is_it = |found: Stat| {
            found.st_ino == opened.inode
                && opened.changed == Some(changed(&found))
                && all.is_private(&found, FileType::Directory, 0o700)
        };
        let is_empty = |found: Stat| {
            found.st_nlink == 1 && found.st_size == 0 && all.is_private(&found, FileType::RegularFile, 0o600)
        };
        let outputs = self.kept.get(self.layout.inputs.len()..).unwrap_or_default();
        rustix::fs::lstat(&self.path).is_ok_and(is_it)
            && outputs.iter().flatten().all(|kept| fstat(&*kept.file).is_ok_and(is_empty))
    }

    /// Looks at what is in it, which is the directory that was `found`. Files that are there in place of kept ones are opened.
    ///
    /// Returns nothing if there is anything that is not of its layout.
    fn look(&mut self, found: &Stat) -> Option<()> {
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut known = self.opened.take().filter(|opened| opened.inode == found.st_ino);
        if let Some(opened) = known.take_if(|opened| opened.changed == Some(changed(found))) {
            self.opened = Some(opened);
            return Some(());
        }
        let opened = if let Some(opened) = known {
            seek(&opened.directory, SeekFrom::Start(0)).ok()?;
            opened
        } else {
            let flags = flags | OFlags::DIRECTORY | OFlags::RDONLY;
            let directory = openat(rustix::fs::CWD, &self.path, flags, Mode::empty()).ok()?;
            Opened { inode: fstat(&directory).ok()?.st_ino, directory, changed: None }
        };
        let mut buffer = [MaybeUninit::uninit(); 2048];
        let mut entries = RawDir::new(&opened.directory, &mut buffer);
        let mut found: Vec<Option<OpenFile>> = self.layout.names().map(|_| None).collect();
        while let Some(entry) = entries.next() {
            let entry = entry.ok()?;
            let name = match entry.file_name().to_str().ok()? {
                "." | ".." => continue,
                name => name,
            };
            let index = self.layout.position(name)?;
            let kept = self.kept.get_mut(index)?.take().filter(|kept| kept.inode == entry.ino());
            *found.get_mut(index)? = Some(if let Some(kept) = kept {
                kept
            } else {
                let flags = flags | OFlags::NONBLOCK | OFlags::WRONLY;
                let file = openat(&opened.directory, name, flags, Mode::empty()).ok()?;
                OpenFile { file: WatchedFile::new(file.into()), inode: entry.ino(), length: 0 }
            });
        }
        self.kept = found;
        self.opened = Some(opened);
        Some(())
    }
}

/// The files of one run. They are gone when it is dropped.
#[derive(Debug)]
pub struct RunFiles {
    all: Arc<RunDirectories>,
    directory: Directory,
    label: String,
}

/// Writes an input of a run, from its beginning on, wherever the file was written to before.
#[derive(Debug)]
pub struct InputWriter<'f> {
    file: &'f File,
    /// How much was written.
    at: u64,
    /// What is to be written. It goes from input to input: to take so much from the heap for each makes the allocator tidy up.
    held: &'f mut Vec<u8>,
}

impl<'f> InputWriter<'f> {
    fn new(file: &'f File, held: &'f mut Vec<u8>) -> Self {
        held.clear();
        held.reserve(BUFFER);
        Self { file, at: 0, held }
    }

    /// Writes all that is held, and returns how long the input is.
    fn end(mut self) -> io::Result<u64> {
        self.flush()?;
        Ok(self.at)
    }
}

impl io::Write for InputWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > BUFFER.saturating_sub(self.held.len()) {
            self.flush()?;
        }
        if bytes.len() >= BUFFER {
            self.file.write_all_at(bytes, self.at)?;
            self.at += bytes.len() as u64;
        } else {
            self.held.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(self.held, self.at)?;
        self.at += self.held.len() as u64;
        self.held.clear();
        Ok(())
    }
}

impl RunFiles {
    /// Returns the directory of the files. It is another one when the run has ended.
    pub(super) fn directory(&self) -> &Path {
        &self.directory.path
    }

    /// Writes an input of the layout, a file of mode 0600, and returns its path.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn input(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut InputWriter<'_>) -> io::Result<()>,
    ) -> Result<PathBuf, ScratchError> {
        let path = self.path(name);
        let mut held = self.all.take_held();
        let kept = self.file(name, &path)?;
        let written = || {
            let mut out = InputWriter::new(&kept.file, &mut held);
            write(&mut out)?;
            let end = out.end()?;
            // Never to nothing: a file that was once cut to nothing is written to the disk whenever it is closed.
            if end < kept.length { kept.file.set_len(end).map(|()| end) } else { Ok(end) }
        };
        kept.length = written().map_err(|source| ScratchError::Write { path: path.clone(), source })?;
        self.all.put_held(held);
        Ok(path)
    }

    /// Returns the path of an output of the layout, an empty file of mode 0600.
    ///
    /// # Errors
    ///
    /// When the file can't be made.
    pub fn output(&mut self, name: &str) -> Result<PathBuf, ScratchError> {
        let path = self.path(name);
        self.file(name, &path)?;
        Ok(path)
    }

    /// Returns whether nothing was written into any output, as far as that is known without a look at each name. Where nothing
    /// lives any more that the run has started, they are not looked at again when it is finished.
    pub(super) fn are_outputs_untouched(&mut self, survivors: Survivors) -> bool {
        let is_untouched = self.directory.are_outputs_untouched(&self.all);
        self.directory.is_sealed = is_untouched && survivors == Survivors::None;
        is_untouched
    }

    /// Ends the run: nothing that was written stays. `survivors` says whether a process of the run may live.
    pub fn finish(mut self, survivors: Survivors) {
        if survivors == Survivors::Some || self.all.keep || self.clean(survivors).is_none() {
            return;
        }
        let Directory { layout, path, opened, kept, is_sealed } = &mut self.directory;
        let directory = Directory {
            layout,
            path: std::mem::take(path),
            opened: opened.take(),
            kept: std::mem::take(kept),
            is_sealed: *is_sealed,
        };
        if let Some(directory) = self.all.put(directory) {
            self.directory = directory;
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        if self.label.is_empty() {
            return self.directory.path.join(name);
        }
        self.directory.path.join(format!("{}-{name}", self.label))
    }

    /// Returns the file of the layout with this name and path. It is made if there is none.
    fn file(&mut self, name: &str, path: &Path) -> Result<&mut OpenFile, ScratchError> {
        let failed = |source| ScratchError::Write { path: path.to_owned(), source };
        let index = self.directory.layout.position(name);
        let slot = index.and_then(|index| self.directory.kept.get_mut(index));
        let slot = slot.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let kept = if let Some(kept) = slot.take() {
            kept
        } else {
            let file = create(path)?;
            let inode = file.metadata().map_err(failed)?.ino();
            if let Some(opened) = &mut self.directory.opened {
                opened.changed = None;
            }
            OpenFile { file: WatchedFile::new(file), inode, length: 0 }
        };
        Ok(slot.insert(kept))
    }

    /// Makes the directory ready for another run. Returns nothing if it has to be removed.
    fn clean(&mut self, survivors: Survivors) -> Option<()> {
        // From now on nobody who knew the old path gets here.
        let path = self.all.next_path();
        fs::rename(&self.directory.path, &path).ok()?;
        self.directory.path = path;
        let is_sealed = self.directory.is_sealed;
        let found = if is_sealed {
            None
        } else {
            let found = rustix::fs::lstat(&self.directory.path).ok()?;
            self.all.is_private(&found, FileType::Directory, 0o700).then_some(())?;
            self.directory.look(&found)?;
            Some(found)
        };
        let all = if is_sealed { self.directory.layout.inputs.len() } else { self.directory.kept.len() };
        for (index, name) in self.directory.layout.names().enumerate().take(all) {
            let Some(kept) = self.directory.kept.get_mut(index)?.take() else { continue };
            let longest = if index < self.directory.layout.inputs.len() { LONGEST_KEPT } else { 0 };
            if let Cleared::Kept(kept) = self.clear(kept, (name, longest), survivors)? {
                *self.directory.kept.get_mut(index)? = Some(kept);
            }
        }
        let is_whole = self.directory.kept.iter().all(Option::is_some);
        let opened = self.directory.opened.as_mut()?;
        let at = found.map_or(opened.changed, |found| Some(changed(&found)).filter(|at| is_settled(*at)));
        opened.changed = at.filter(|_| is_whole);
        Some(())
    }

    /// Overwrites a file with zeros, or removes it if it is longer than `longest`. One in memory is emptied instead.
    ///
    /// Returns nothing if the directory may not be used again.
    fn clear(
        &self,
        mut kept: OpenFile,
        (name, longest): (&str, u64),
        survivors: Survivors,
    ) -> Option<Cleared> {
        let found = fstat(&*kept.file).ok()?;
        self.all.is_private(&found, FileType::RegularFile, 0o600).then_some(())?;
        kept.length = u64::try_from(found.st_size).ok()?;
        let is_ours_alone =
            || found.st_nlink == 1 && (survivors == Survivors::None || kept.file.is_open_nowhere_else());
        if kept.length > longest {
            if self.all.is_in_memory && is_ours_alone() {
                kept.file.set_len(0).ok()?;
                return Some(Cleared::Kept(OpenFile { length: 0, ..kept }));
            }
            fs::remove_file(self.directory.path.join(name)).ok()?;
            if !self.all.is_in_memory {
                close_later(kept.file.into_file());
            }
            return Some(Cleared::Gone);
        }
        if !is_ours_alone() {
            return None;
        }
        let mut at = 0;
        while at < kept.length {
            let left = usize::try_from(kept.length - at).unwrap_or(ZEROS.len());
            let zeros = ZEROS.get(..left).unwrap_or(&ZEROS);
            kept.file.write_all_at(zeros, at).ok()?;
            at += zeros.len() as u64;
        }
        Some(Cleared::Kept(kept))
    }
}

impl Drop for RunFiles {
    fn drop(&mut self) {
        if !self.all.keep && !self.directory.path.as_os_str().is_empty() {
            let _ = fs::remove_dir_all(&self.directory.path);
        }
    }
}

/// What became of a file when its run was over.
enum Cleared {
    /// It was removed.
    Gone,
    /// It holds zeros, or nothing.
    Kept(OpenFile),
}

/// Closes a file that was removed, without waiting for that.
///
/// Who closes it as the last one waits for the disk if it is being written there. A hook that writes into an empty file
/// with `>` makes ext4 write it at once, and that may take milliseconds.
fn close_later(file: File) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn_blocking(move || drop(file));
    }
}

/// Makes a file that nobody else can read.
pub(super) fn create(path: &Path) -> Result<File, ScratchError> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|source| ScratchError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    static LAYOUT: Layout =
        Layout { inputs: &["context.json", "values.json"], outputs: &["metrics.json", "patch"] };
    static OTHER: Layout = Layout { inputs: &["values.json"], outputs: &["result"] };

    struct World {
        parent: tempfile::TempDir,
        all: Arc<RunDirectories>,
    }

    impl World {
        fn new() -> Self {
            Self::with(false)
        }

        fn with(keep: bool) -> Self {
            let parent = tempfile::tempdir().unwrap();
            let path = parent.path().join("all");
            DirBuilder::new().mode(0o700).create(&path).unwrap();
            let all = Arc::new(RunDirectories::new(path, keep));
            Self { parent, all }
        }

        /// Begins a run whose inputs hold these texts.
        fn begin(&self, context: &str, values: &str) -> RunFiles {
            let mut files = self.all.take(&LAYOUT, || "label".to_owned()).unwrap();
            files.input("context.json", |out| out.write_all(context.as_bytes())).unwrap();
            files.input("values.json", |out| out.write_all(values.as_bytes())).unwrap();
            for name in LAYOUT.outputs {
                assert_eq!(fs::read(files.output(name).unwrap()).unwrap(), b"");
            }
            files
        }

        /// Returns the bytes of all files that hold anything but zeros.
        fn secrets(&self) -> Vec<Vec<u8>> {
            let entries = walkdir::WalkDir::new(&self.all.path).into_iter().flatten();
            let files = entries.filter(|entry| entry.file_type().is_file());
            let contents = files.map(|file| fs::read(file.path()).unwrap());
            contents.filter(|bytes| bytes.iter().any(|byte| *byte != 0)).collect()
        }

        fn directories(&self) -> usize {
            let entries = fs::read_dir(&self.all.path).into_iter().flatten().flatten();
            entries.filter(|entry| entry.path().is_dir()).count()
        }
    }

    impl RunFiles {
        /// Lets the last change of its directory be long ago.
        fn make_old(&self) {
            let long_ago = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
            File::open(self.directory()).unwrap().set_modified(long_ago).unwrap();
        }
    }

    fn inodes(files: &RunFiles) -> BTreeMap<String, u64> {
        let entries = fs::read_dir(&files.directory.path).unwrap().flatten();
        let mut inodes: BTreeMap<_, _> = entries
            .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().ino()))
            .collect();
        inodes.insert(".".into(), fs::metadata(&files.directory.path).unwrap().ino());
        inodes
    }

    #[test]
    fn runs_one_after_the_other_make_the_files_of_one() {
        let world = World::new();
        let first = world.begin("[1]", "{}");
        let known = inodes(&first);
        let mut paths = vec![first.path("values.json")];
        first.finish(Survivors::Perhaps);
        for round in 2..20 {
            let files = world.begin(&format!("[{round}]"), "{\"a\": 1}");
            assert_eq!(inodes(&files), known);
            assert_eq!(fs::read_to_string(files.path("context.json")).unwrap(), format!("[{round}]"));
            paths.push(files.path("values.json"));
            files.finish(Survivors::Perhaps);
        }
        assert_eq!(world.directories(), 1);
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), 19, "each run has a path of its own");
        assert!(paths.iter().all(|path| !path.exists()));
    }

    #[test]
    fn only_the_output_that_was_written_is_made_anew() {
        let world = World::new();
        let files = world.begin("[]", "{}");
        fs::write(files.path("patch"), "secret").unwrap();
        let known = inodes(&files);
        // Its number may be given to the next file.
        let held = File::open(files.path("patch")).unwrap();
        files.finish(Survivors::Perhaps);
        let files = world.begin("[]", "{}");
        let changed: Vec<_> =
            inodes(&files).into_iter().filter(|(name, inode)| known.get(name) != Some(inode)).collect();
        assert_eq!(changed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["patch"]);
        drop(held);
    }

    #[test]
    fn nothing_of_a_run_stays_and_nothing_shines_through() {
        let world = World::new();
        let files = world.begin("[\"a long context with a secret\"]", "{\"password\": \"secret\"}");
        fs::write(files.path("metrics.json"), "secret").unwrap();
        files.finish(Survivors::Perhaps);
        assert_eq!(world.directories(), 1);
        assert!(world.secrets().is_empty());
        let files = world.begin("[]", "{}");
        assert_eq!(fs::read_to_string(files.path("context.json")).unwrap(), "[]");
        assert_eq!(fs::read_to_string(files.path("values.json")).unwrap(), "{}");
        drop(files);
        assert_eq!(world.directories(), 0, "a run that was given up leaves no directory");
    }

    #[test]
    fn a_long_input_is_removed_and_not_overwritten() {
        let world = World::new();
        let long = "x".repeat(usize::try_from(LONGEST_KEPT).unwrap() + 1);
        world.begin(&long, "{}").finish(Survivors::Perhaps);
        assert_eq!(world.directories(), 1);
        let idle = fs::read_dir(&world.all.path).unwrap().flatten().next().unwrap().path();
        assert!(!idle.join("context.json").exists() && idle.join("values.json").exists());
        let files = world.begin("[]", "{}");
        assert_eq!(fs::read_to_string(files.path("context.json")).unwrap(), "[]");
    }

    /// What a hook does with the files of its run and a file elsewhere; a file that stays open, if one does.
    type Deed = fn(&RunFiles, &Path) -> Option<File>;

    fn deeds() -> Vec<(&'static str, Deed)> {
        vec![
            ("another file", |files, _| {
                fs::write(files.path("mine"), "secret").unwrap();
                None
            }),
            ("another directory", |files, _| {
                fs::create_dir(files.path("mine")).unwrap();
                None
            }),
            ("an output that is a directory", |files, _| {
                fs::remove_file(files.path("patch")).unwrap();
                fs::create_dir(files.path("patch")).unwrap();
                None
            }),
            ("an output that is a pipe", |files, _| {
                fs::remove_file(files.path("patch")).unwrap();
                let mode = Mode::RUSR | Mode::WUSR;
                rustix::fs::mkfifoat(rustix::fs::CWD, files.path("patch"), mode).unwrap();
                None
            }),
            ("an output that is a link", |files, outside| {
                fs::remove_file(files.path("patch")).unwrap();
                symlink(outside, files.path("patch")).unwrap();
                None
            }),
            ("an input that is a link", |files, outside| {
                fs::remove_file(files.path("values.json")).unwrap();
                symlink(outside, files.path("values.json")).unwrap();
                None
            }),
            ("an input with a second name", |files, outside| {
                fs::hard_link(files.path("values.json"), outside.with_extension("link")).unwrap();
                None
            }),
            ("an input that others can read", |files, _| {
                fs::set_permissions(files.path("values.json"), fs::Permissions::from_mode(0o644)).unwrap();
                None
            }),
            ("an output that others can read", |files, _| {
                fs::set_permissions(files.path("patch"), fs::Permissions::from_mode(0o644)).unwrap();
                None
            }),
            ("a directory that others can read", |files, _| {
                fs::set_permissions(&files.directory.path, fs::Permissions::from_mode(0o755)).unwrap();
                None
            }),
            ("an input that is open", |files, _| File::open(files.path("values.json")).ok()),
            ("an output that is open", |files, _| {
                OpenOptions::new().append(true).open(files.path("metrics.json")).ok()
            }),
        ]
    }

    #[test]
    fn a_directory_to_which_a_hook_did_something_is_not_used_again() {
        let ends = [(false, Survivors::Perhaps), (true, Survivors::Perhaps), (true, Survivors::None)];
        let cases = deeds().into_iter().flat_map(|case| ends.map(|end| (case, end)));
        for ((what, deed), (is_used, survivors)) in cases {
            if survivors == Survivors::None && what.ends_with("open") {
                // Nobody lives who has it open.
                continue;
            }
            let world = World::new();
            let outside = world.parent.path().join("outside");
            fs::write(&outside, "untouched").unwrap();
            if is_used {
                let files = world.begin("[]", "{}");
                files.make_old();
                files.finish(Survivors::Perhaps);
            }
            let mut files = world.begin("[]", "{\"password\": \"secret\"}");
            let known = inodes(&files);
            let held = deed(&files, &outside);
            files.are_outputs_untouched(survivors);
            files.finish(survivors);
            assert_eq!(world.directories(), 0, "{what}");
            let files = world.begin("[]", "{}");
            if let Some(mut held) = held {
                let _ = held.write_all(b"late");
                assert_eq!(fs::read(files.path("metrics.json")).unwrap(), b"", "{what}");
                assert_ne!(inodes(&files), known, "{what}");
            }
            assert_eq!(fs::read_to_string(&outside).unwrap(), "untouched", "{what}");
        }
    }

    #[test]
    fn a_directory_is_read_only_when_something_was_made_moved_or_removed_in_it() {
        let world = World::new();
        let mut files = world.begin("[]", "{}");
        assert!(!files.are_outputs_untouched(Survivors::Perhaps), "it was never read");
        files.make_old();
        files.finish(Survivors::Perhaps);
        let mut files = world.begin("[]", "{}");
        assert!(files.are_outputs_untouched(Survivors::Perhaps));
        fs::write(files.path("patch"), "x").unwrap();
        assert!(!files.are_outputs_untouched(Survivors::Perhaps));
        files.finish(Survivors::Perhaps);
        let mut files = world.begin("[]", "{}");
        assert_eq!(
            files.are_outputs_untouched(Survivors::Perhaps),
            world.all.is_in_memory,
            "on a disk it was made anew"
        );
        files.make_old();
        files.finish(Survivors::Perhaps);
        let changes: &[fn(&RunFiles)] = &[
            |files| fs::rename(files.path("patch"), files.path("metrics.json")).unwrap(),
            |files| fs::remove_file(files.path("patch")).unwrap(),
            |files| fs::write(files.path("other"), "x").unwrap(),
            |files| fs::rename(files.directory(), files.directory().with_extension("away")).unwrap(),
        ];
        for change in changes {
            let world = World::new();
            let files = world.begin("[]", "{}");
            files.make_old();
            files.finish(Survivors::Perhaps);
            let mut files = world.begin("[]", "{}");
            assert!(files.are_outputs_untouched(Survivors::Perhaps));
            change(&files);
            assert!(!files.are_outputs_untouched(Survivors::Perhaps));
        }
    }

    #[test]
    fn outputs_that_nobody_can_have_written_are_looked_at_once() {
        type Change = (&'static str, fn(&Path));
        let ends = [Survivors::None, Survivors::Perhaps];
        let changes: &[Change] = &[
            ("nothing", |_| {}),
            ("a cleaner", |path| fs::remove_file(path.join("metrics.json")).unwrap()),
            ("a writer", |path| fs::write(path.join("patch"), "late").unwrap()),
        ];
        for (survivors, (what, change)) in
            ends.into_iter().flat_map(|end| changes.iter().map(move |it| (end, it)))
        {
            let world = World::new();
            let files = world.begin("[]", "{}");
            files.make_old();
            files.finish(Survivors::Perhaps);
            let mut files = world.begin("[\"secret\"]", "{}");
            let known = inodes(&files);
            assert!(files.are_outputs_untouched(survivors));
            files.finish(survivors);
            assert!(world.secrets().is_empty());
            change(&fs::read_dir(&world.all.path).unwrap().flatten().next().unwrap().path());
            let files = world.all.take(&LAYOUT, String::new).unwrap();
            // Nobody lives who could be the writer.
            let stays = *what == "nothing" || (*what == "a writer" && survivors == Survivors::None);
            assert_eq!(files.directory.opened.is_some(), stays, "{what}, {survivors:?}");
            assert!(!stays || inodes(&files) == known);
            assert!(!files.directory.is_sealed, "the next run may write");
        }
    }

    #[test]
    fn who_has_a_file_open_is_asked_only_if_something_may_live_that_was_started() {
        let world = World::new();
        for (survivors, stays) in [(Survivors::None, 1), (Survivors::Perhaps, 0)] {
            let files = world.begin("[]", "{}");
            let held = File::open(files.path("values.json")).unwrap();
            files.finish(survivors);
            assert_eq!(world.directories(), stays, "{survivors:?}");
            drop(held);
        }
    }

    #[test]
    fn a_file_in_the_place_of_a_known_one_is_cleared_in_its_place() {
        let world = World::new();
        world.begin("[]", "{}").finish(Survivors::Perhaps);
        let files = world.begin("[1]", "{}");
        for name in ["values.json", "patch"] {
            fs::rename(files.path(name), files.path("old")).unwrap();
            drop(create(&files.path(name)).unwrap().write_all(b"secret"));
            fs::remove_file(files.path("old")).unwrap();
        }
        files.finish(Survivors::Perhaps);
        assert_eq!((world.directories(), world.secrets().len()), (1, 0));
        let files = world.begin("[2]", "{\"b\": 2}");
        assert_eq!(fs::read_to_string(files.path("values.json")).unwrap(), "{\"b\": 2}");
    }

    #[test]
    fn a_directory_of_a_run_that_goes_on_is_not_used_again() {
        let world = World::new();
        world.begin("[]", "{}").finish(Survivors::Some);
        assert_eq!(world.directories(), 0);
    }

    #[test]
    fn a_hook_may_remove_or_replace_its_files_by_files() {
        let world = World::new();
        let files = world.begin("[]", "{}");
        fs::remove_file(files.path("values.json")).unwrap();
        fs::remove_file(files.path("metrics.json")).unwrap();
        let draft = files.path("draft");
        drop(create(&draft).unwrap().write_all(b"secret"));
        fs::rename(draft, files.path("context.json")).unwrap();
        files.finish(Survivors::Perhaps);
        assert_eq!((world.directories(), world.secrets().len()), (1, 0));
        let files = world.begin("[1]", "{}");
        assert_eq!(fs::read_to_string(files.path("context.json")).unwrap(), "[1]");
    }

    #[test]
    fn a_directory_that_was_changed_while_it_waited_is_not_used_again() {
        let changes: &[fn(&Path)] = &[
            |path| fs::remove_dir_all(path).unwrap(),
            |path| fs::remove_file(path.join("metrics.json")).unwrap(),
            |path| fs::remove_file(path.join("values.json")).unwrap(),
            |path| fs::write(path.join("patch"), "late").unwrap(),
            |path| fs::remove_dir_all(path.parent().unwrap()).unwrap(),
        ];
        for change in changes {
            let world = World::new();
            world.begin("[]", "{}").finish(Survivors::Perhaps);
            change(&fs::read_dir(&world.all.path).unwrap().flatten().next().unwrap().path());
            let files = world.begin("[1]", "{\"b\": 1}");
            assert_eq!(fs::read_to_string(files.path("values.json")).unwrap(), "{\"b\": 1}");
            drop(files);
            assert_eq!(world.directories(), 0);
        }
    }

    #[test]
    fn hooks_and_scripts_do_not_get_the_directories_of_the_other() {
        let world = World::new();
        world.begin("[]", "{}").finish(Survivors::Perhaps);
        let script = || world.all.take(&OTHER, String::new).unwrap();
        let mut files = script();
        files.output("result").unwrap();
        assert_eq!(inodes(&files).into_keys().collect::<Vec<_>>(), [".", "result"]);
        let scripts: Vec<_> = (0..MOST_IDLE).map(|_| script()).collect();
        for files in scripts {
            files.finish(Survivors::Perhaps);
        }
        let hook = world.begin("[]", "{}");
        let known = inodes(&hook);
        hook.finish(Survivors::Perhaps);
        assert_eq!(inodes(&world.begin("[]", "{}")), known, "there is a place for that of a hook");
    }

    #[test]
    fn only_so_many_directories_wait_for_a_run() {
        let world = World::new();
        let runs: Vec<_> = (0..MOST_IDLE + 5).map(|_| world.begin("[]", "{}")).collect();
        assert_eq!(world.directories(), MOST_IDLE + 5);
        for files in runs {
            files.finish(Survivors::Perhaps);
        }
        assert_eq!(world.directories(), MOST_IDLE);
    }

    #[test]
    fn files_that_are_kept_say_whose_they_were() {
        let world = World::with(true);
        world.begin("[]", "{}").finish(Survivors::Perhaps);
        let files = world.begin("[]", "{}");
        assert!(files.path("values.json").ends_with("2/label-values.json"));
        files.finish(Survivors::Perhaps);
        assert_eq!((world.directories(), world.secrets().len()), (2, 4));
    }
}

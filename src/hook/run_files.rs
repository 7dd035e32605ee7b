//! The files of one run, in a directory that is used again when nothing of its run is left in it.
//!
//! A file system on a disk takes much longer to make and remove a file than to write it: it writes both down, and it
//! looks for a place among the files that were removed lately. So a directory and its files go from run to run. What
//! was in them does not, nor does what a hook did to them:
//!
//! - Each run has another path. Who uses that of an earlier run finds nothing there.
//! - Inputs are overwritten with zeros when their run is over, and outputs into which something was written are removed.
//! - A directory is removed if a process of its run lives, if there is anything in it that was not there before, and if
//!   a file in it is of another kind, has other rights or a second name, or if anybody has it open.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat, fstat, openat, unlinkat};

use super::error::ScratchError;
use crate::process::is_open_nowhere_else;

/// How many directories wait for later runs of a kind: about as many as there are hooks at a time.
const MOST_IDLE: usize = 16;

/// Up to how many bytes an input is overwritten; a longer one is removed.
const LONGEST_KEPT: u64 = 64 * 1024;

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
    next: AtomicU64,
    idle: Mutex<Vec<Directory>>,
}

impl RunDirectories {
    /// Returns none yet, to be made below `path`. With `keep` the files stay when their run is over.
    pub(super) fn new(path: PathBuf, keep: bool) -> Self {
        let is_in_memory = rustix::fs::statfs(&path).is_ok_and(|system| system.f_type == libc::TMPFS_MAGIC);
        Self { path, keep, is_in_memory, next: AtomicU64::new(1), idle: Mutex::default() }
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
        while let Some(directory) = self.idle(layout) {
            let is_untouched = directory.is_untouched();
            // One that can't be used any more is removed when it is dropped.
            let files = files(directory, String::new());
            if is_untouched {
                return Ok(files);
            }
        }
        let path = self.next_path();
        let make = || {
            DirBuilder::new().mode(0o700).create(&path).or_else(|error| {
                if error.kind() == io::ErrorKind::NotFound {
                    // The directory was removed while the operator runs, as cleaners of /tmp do.
                    return DirBuilder::new().mode(0o700).recursive(true).create(&path);
                }
                Err(error)
            })
        };
        make().map_err(|source| ScratchError::Make { path: path.clone(), source })?;
        let label = if self.keep { label() } else { String::new() };
        Ok(files(Directory { layout, path, kept: vec![None; layout.names().count()] }, label))
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
    /// How long each file of the layout is that an earlier run left: inputs hold zeros, outputs are empty.
    kept: Vec<Option<u64>>,
}

impl Directory {
    /// Returns whether its outputs are as they were left. Cleaners of /tmp remove what is old.
    fn is_untouched(&self) -> bool {
        let kept = self.layout.names().zip(&self.kept).skip(self.layout.inputs.len());
        kept.filter(|(_, length)| length.is_some()).all(|(name, _)| {
            fs::symlink_metadata(self.path.join(name)).is_ok_and(|file| file.is_file() && file.len() == 0)
        })
    }
}

/// The files of one run. They are gone when it is dropped.
#[derive(Debug)]
pub struct RunFiles {
    all: Arc<RunDirectories>,
    directory: Directory,
    label: String,
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
        &self,
        name: &str,
        write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
    ) -> Result<PathBuf, ScratchError> {
        let path = self.path(name);
        let (file, length) = match self.kept(name).map(|length| (reopen(&path), length)) {
            Some((Ok(file), length)) => (file, length),
            _ => (create(&path)?, 0),
        };
        let mut out = io::BufWriter::with_capacity(64 * 1024, file);
        let end = |out: &mut io::BufWriter<File>| {
            write(out)?;
            let end = out.stream_position()?;
            // Never to nothing: a file that was once cut to nothing is written to the disk whenever it is closed.
            if end < length { out.get_ref().set_len(end) } else { Ok(()) }
        };
        end(&mut out).map_err(|source| ScratchError::Write { path: path.clone(), source })?;
        Ok(path)
    }

    /// Returns the path of an output of the layout, an empty file of mode 0600.
    ///
    /// # Errors
    ///
    /// When the file can't be made.
    pub fn output(&self, name: &str) -> Result<PathBuf, ScratchError> {
        let path = self.path(name);
        if self.kept(name).is_none() {
            create(&path)?;
        }
        Ok(path)
    }

    /// Ends the run: nothing that was written stays. `left_running` says whether a process of the run may live.
    pub fn finish(mut self, left_running: bool) {
        if left_running || self.all.keep || self.clean().is_none() {
            return;
        }
        let Directory { layout, path, kept } = &mut self.directory;
        let directory = Directory { layout, path: std::mem::take(path), kept: std::mem::take(kept) };
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

    /// Returns how long the file is that is there from an earlier run.
    fn kept(&self, name: &str) -> Option<u64> {
        *self.directory.kept.get(self.directory.layout.position(name)?)?
    }

    /// Makes the directory ready for another run. Returns nothing if it has to be removed.
    fn clean(&mut self) -> Option<()> {
        let layout = self.directory.layout;
        // From now on nobody who knew the old path gets here.
        let path = self.all.next_path();
        fs::rename(&self.directory.path, &path).ok()?;
        self.directory.path = path;
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::DIRECTORY | OFlags::RDONLY;
        let opened = openat(rustix::fs::CWD, &self.directory.path, flags, Mode::empty()).ok()?;
        is_private(&fstat(&opened).ok()?, FileType::Directory, 0o700).then_some(())?;
        let mut is_there = vec![false; self.directory.kept.len()];
        let mut buffer = [MaybeUninit::uninit(); 2048];
        let mut entries = RawDir::new(&opened, &mut buffer);
        while let Some(entry) = entries.next() {
            match entry.ok()?.file_name().to_str().ok()? {
                "." | ".." => {}
                name => *is_there.get_mut(layout.position(name)?)? = true,
            }
        }
        for ((index, name), is_there) in layout.names().enumerate().zip(is_there) {
            let longest = if index < layout.inputs.len() { LONGEST_KEPT } else { 0 };
            let cleared = if is_there { self.clear(&opened, name, longest)? } else { Cleared::Gone };
            *self.directory.kept.get_mut(index)? = match cleared {
                Cleared::Gone => None,
                Cleared::Kept { length } => Some(length),
            };
        }
        Some(())
    }

    /// Overwrites a file with zeros, or removes it if it is longer than `longest`.
    ///
    /// Returns nothing if the directory may not be used again.
    fn clear(&self, directory: &OwnedFd, name: &str, longest: u64) -> Option<Cleared> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::WRONLY;
        let file = openat(directory, name, flags, Mode::empty()).ok()?;
        let found = fstat(&file).ok()?;
        is_private(&found, FileType::RegularFile, 0o600).then_some(())?;
        let length = u64::try_from(found.st_size).ok()?;
        if length > longest {
            unlinkat(directory, name, AtFlags::empty()).ok()?;
            if !self.all.is_in_memory {
                close_later(file);
            }
            return Some(Cleared::Gone);
        }
        let mut file = File::from(file);
        if found.st_nlink != 1 || !is_open_nowhere_else(&file) {
            return None;
        }
        io::copy(&mut io::repeat(0).take(length), &mut file).ok()?;
        Some(Cleared::Kept { length })
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
    /// It was removed, or was never there.
    Gone,
    /// It holds zeros.
    Kept { length: u64 },
}

/// Closes a file that was removed, without waiting for that.
///
/// Who closes it as the last one waits for the disk if it is being written there. A hook that writes into an empty file
/// with `>` makes ext4 write it at once, and that may take milliseconds.
fn close_later(file: OwnedFd) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn_blocking(move || drop(file));
    }
}

/// Returns whether something belongs to this user, is of this type, and has these rights. A directory may have got the
/// bit for groups from the one above.
fn is_private(found: &Stat, kind: FileType, rights: u32) -> bool {
    FileType::from_raw_mode(found.st_mode) == kind
        && found.st_mode & 0o777 == rights
        && found.st_uid == rustix::process::geteuid().as_raw()
}

fn reopen(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(path)
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
            let all = Arc::new(RunDirectories::new(parent.path().join("all"), keep));
            Self { parent, all }
        }

        /// Begins a run whose inputs hold these texts.
        fn begin(&self, context: &str, values: &str) -> RunFiles {
            let files = self.all.take(&LAYOUT, || "label".to_owned()).unwrap();
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
            fs::read_dir(&self.all.path).map_or(0, Iterator::count)
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
        first.finish(false);
        for round in 2..20 {
            let files = world.begin(&format!("[{round}]"), "{\"a\": 1}");
            assert_eq!(inodes(&files), known);
            assert_eq!(fs::read_to_string(files.path("context.json")).unwrap(), format!("[{round}]"));
            paths.push(files.path("values.json"));
            files.finish(false);
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
        files.finish(false);
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
        files.finish(false);
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
        world.begin(&long, "{}").finish(false);
        assert_eq!(world.directories(), 1);
        let idle = fs::read_dir(&world.all.path).unwrap().flatten().next().unwrap().path();
        assert!(!idle.join("context.json").exists() && idle.join("values.json").exists());
        let files = world.begin("[]", "{}");
        assert_eq!(fs::read_to_string(files.path("context.json")).unwrap(), "[]");
    }

    #[test]
    fn a_directory_to_which_a_hook_did_something_is_not_used_again() {
        type Deed = fn(&RunFiles, &Path) -> Option<File>;
        let deeds: &[(&str, Deed)] = &[
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
            ("a directory that others can read", |files, _| {
                fs::set_permissions(&files.directory.path, fs::Permissions::from_mode(0o755)).unwrap();
                None
            }),
            ("an input that is open", |files, _| File::open(files.path("values.json")).ok()),
            ("an output that is open", |files, _| {
                OpenOptions::new().append(true).open(files.path("metrics.json")).ok()
            }),
        ];
        for (what, deed) in deeds {
            let world = World::new();
            let outside = world.parent.path().join("outside");
            fs::write(&outside, "untouched").unwrap();
            let files = world.begin("[]", "{\"password\": \"secret\"}");
            let known = inodes(&files);
            let held = deed(&files, &outside);
            files.finish(false);
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
    fn a_directory_of_a_run_that_goes_on_is_not_used_again() {
        let world = World::new();
        world.begin("[]", "{}").finish(true);
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
        files.finish(false);
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
            world.begin("[]", "{}").finish(false);
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
        world.begin("[]", "{}").finish(false);
        let script = || world.all.take(&OTHER, String::new).unwrap();
        let files = script();
        files.output("result").unwrap();
        assert_eq!(inodes(&files).into_keys().collect::<Vec<_>>(), [".", "result"]);
        let scripts: Vec<_> = (0..MOST_IDLE).map(|_| script()).collect();
        for files in scripts {
            files.finish(false);
        }
        let hook = world.begin("[]", "{}");
        let known = inodes(&hook);
        hook.finish(false);
        assert_eq!(inodes(&world.begin("[]", "{}")), known, "there is a place for that of a hook");
    }

    #[test]
    fn only_so_many_directories_wait_for_a_run() {
        let world = World::new();
        let runs: Vec<_> = (0..MOST_IDLE + 5).map(|_| world.begin("[]", "{}")).collect();
        assert_eq!(world.directories(), MOST_IDLE + 5);
        for files in runs {
            files.finish(false);
        }
        assert_eq!(world.directories(), MOST_IDLE);
    }

    #[test]
    fn files_that_are_kept_say_whose_they_were() {
        let world = World::with(true);
        world.begin("[]", "{}").finish(false);
        let files = world.begin("[]", "{}");
        assert!(files.path("values.json").ends_with("2/label-values.json"));
        files.finish(false);
        assert_eq!((world.directories(), world.secrets().len()), (2, 4));
    }
}

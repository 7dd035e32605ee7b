//! Paths in a commit: a file, a directory, and everything below it.

use std::io;

use super::object::{Kind, Mode, ObjectId, entries, target_of, tree_of};
use super::pack::{Object, Objects, Spool};
use crate::archive_path::{EntryError, MAX_DEPTH, MAX_ENTRIES, MAX_PATH};

/// The most bytes of a directory's object.
const MAX_TREE_BYTES: u64 = 4 << 20;

/// The most bytes of a commit or a tag.
const MAX_HEAD_BYTES: u64 = 1 << 20;

/// How many tags may name each other until one names a commit.
const MAX_TAGS: usize = 8;

/// The most bytes of a name in a directory.
const MAX_NAME: usize = 255;

/// How much of a path is quoted, in characters.
const QUOTED: usize = 200;

/// The name that git keeps for itself.
const OWN: &str = ".git";

/// Why something in a commit can't be read.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The server did not send it.
    #[error("the server left out the object {0}")]
    Missing(ObjectId),
    /// It is not what it should be.
    #[error("the object {0} is damaged, or too large")]
    Damaged(ObjectId),
    /// The reference names no commit.
    #[error("the option ref names no commit")]
    NoCommit,
    /// There is no such path.
    #[error("{0:?} is not in the repository at this commit")]
    NoPath(String),
    /// A part of the path is no directory.
    #[error("{0:?} is {1}, whose content is not in the repository: name what it leads to")]
    NoDirectory(String, &'static str),
    /// A name that git itself does not use.
    #[error("{0:?} is refused: no file has a name that git keeps for itself")]
    Own(String),
    /// A name, a link or a count that no bundle may have.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// Our own disk.
    #[error("can't read what was unpacked: {0}")]
    Disk(#[from] io::Error),
}

/// What a path leads to.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    /// A file.
    File(Object),
    /// A directory.
    Directory(ObjectId),
}

/// What is below a directory.
#[derive(Clone, Debug)]
pub enum Below {
    /// A directory.
    Directory,
    /// A file.
    File {
        /// Its bytes.
        object: Object,
        /// Whether it can be run.
        is_executable: bool,
    },
    /// A symbolic link.
    Link {
        /// Where it leads.
        target: String,
    },
    /// A commit of another repository, which was not fetched.
    Submodule,
}

/// Returns the tree of a commit, also of one that a tag names.
pub fn root<S: Spool>(objects: &Objects<S>, commit: ObjectId) -> Result<ObjectId, TreeError> {
    let mut id = commit;
    for _ in 0..MAX_TAGS {
        let object = objects.find(id).ok_or(TreeError::Missing(id))?;
        let next = match object.kind {
            Kind::Tree => return Ok(id),
            Kind::Blob => return Err(TreeError::NoCommit),
            Kind::Commit => tree_of(&read(objects, id, object, MAX_HEAD_BYTES)?),
            Kind::Tag => target_of(&read(objects, id, object, MAX_HEAD_BYTES)?),
        };
        id = next.ok_or(TreeError::Damaged(id))?;
    }
    Err(TreeError::NoCommit)
}

/// Returns what is at a path, which has slashes and none at either end.
pub fn find<S: Spool>(objects: &Objects<S>, tree: ObjectId, path: &str) -> Result<Found, TreeError> {
    let mut found = Found::Directory(tree);
    for part in path.split('/') {
        let none = || TreeError::NoPath(shown(path));
        let Found::Directory(tree) = found else { return Err(none()) };
        let bytes = directory(objects, tree)?;
        let mut id = None;
        for entry in entries(&bytes) {
            let entry = entry.ok_or(TreeError::Damaged(tree))?;
            if entry.name == part.as_bytes() {
                id = Some((entry.mode, entry.id));
            }
        }
        found = match id.ok_or_else(none)? {
            (Mode::Directory, id) => Found::Directory(id),
            (Mode::File | Mode::Executable, id) => Found::File(file(objects, id)?),
            (Mode::Link, _) => return Err(TreeError::NoDirectory(shown(path), "a symbolic link")),
            (Mode::Submodule, _) => return Err(TreeError::NoDirectory(shown(path), "a submodule")),
        };
    }
    Ok(found)
}

/// Hands everything below a directory to `visit`: sorted by name in each directory, which comes before what is in it.
///
/// There are limits for the number of entries and for their depth; those for their bytes are the visitor's.
pub fn walk<S: Spool, E: From<TreeError>>(
    objects: &Objects<S>,
    tree: ObjectId,
    visit: &mut impl FnMut(&str, Below) -> Result<(), E>,
) -> Result<(), E> {
    Walk { objects, visit, left: MAX_ENTRIES }.directory(tree, "", 0)
}

struct Walk<'w, S, V> {
    objects: &'w Objects<S>,
    visit: &'w mut V,
    left: usize,
}

impl<S: Spool, V> Walk<'_, S, V> {
    fn directory<E: From<TreeError>>(&mut self, tree: ObjectId, above: &str, depth: usize) -> Result<(), E>
    where
        V: FnMut(&str, Below) -> Result<(), E>,
    {
        for (name, mode, id) in self.listed(tree)? {
            let path = if above.is_empty() { name } else { format!("{above}/{name}") };
            if depth >= MAX_DEPTH || path.len() > MAX_PATH {
                return Err(TreeError::Entry(EntryError::Name(shown(&path))).into());
            }
            let below = match mode {
                Mode::Directory => Below::Directory,
                Mode::Submodule => Below::Submodule,
                Mode::Link => Below::Link { target: self.target(&path, id)? },
                Mode::File | Mode::Executable => {
                    Below::File { object: file(self.objects, id)?, is_executable: mode == Mode::Executable }
                }
            };
            (self.visit)(&path, below)?;
            if mode == Mode::Directory {
                self.directory(id, &path, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Returns the entries of a directory. All of them are counted before any is visited.
    fn listed(&mut self, tree: ObjectId) -> Result<Vec<(String, Mode, ObjectId)>, TreeError> {
        let bytes = directory(self.objects, tree)?;
        let mut listed = Vec::new();
        for entry in entries(&bytes) {
            let entry = entry.ok_or(TreeError::Damaged(tree))?;
            self.left = self.left.checked_sub(1).ok_or(EntryError::Entries)?;
            let refused = || EntryError::Name(shown(&String::from_utf8_lossy(entry.name)));
            let name = std::str::from_utf8(entry.name).map_err(|_| refused())?;
            if matches!(name, "" | "." | "..") || name.contains('/') || name.len() > MAX_NAME {
                return Err(refused().into());
            }
            if name.eq_ignore_ascii_case(OWN) {
                return Err(TreeError::Own(name.to_owned()));
            }
            listed.push((name.to_owned(), entry.mode, entry.id));
        }
        listed.sort_unstable_by(|(a, ..), (b, ..)| a.cmp(b));
        Ok(listed)
    }

    fn target(&self, path: &str, id: ObjectId) -> Result<String, TreeError> {
        let refused = || EntryError::Link(shown(path));
        let object = file(self.objects, id)?;
        if object.size > MAX_PATH as u64 {
            return Err(refused().into());
        }
        Ok(String::from_utf8(self.objects.read(object)?).map_err(|_| refused())?)
    }
}

fn file<S: Spool>(objects: &Objects<S>, id: ObjectId) -> Result<Object, TreeError> {
    let object = objects.find(id).ok_or(TreeError::Missing(id))?;
    if object.kind == Kind::Blob { Ok(object) } else { Err(TreeError::Damaged(id)) }
}

fn directory<S: Spool>(objects: &Objects<S>, id: ObjectId) -> Result<Vec<u8>, TreeError> {
    let object = objects.find(id).ok_or(TreeError::Missing(id))?;
    if object.kind != Kind::Tree {
        return Err(TreeError::Damaged(id));
    }
    read(objects, id, object, MAX_TREE_BYTES)
}

fn read<S: Spool>(
    objects: &Objects<S>,
    id: ObjectId,
    object: Object,
    limit: u64,
) -> Result<Vec<u8>, TreeError> {
    if object.size > limit { Err(TreeError::Damaged(id)) } else { Ok(objects.read(object)?) }
}

fn shown(path: &str) -> String {
    path.chars().take(QUOTED).collect()
}

//! Names and kinds of objects, and what commits, tags and trees say.

use std::fmt;

/// The name of an object: the SHA-1 of its kind, its size and its bytes. Shown as 40 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId([u8; ObjectId::BYTES]);

impl ObjectId {
    /// How many bytes a name has.
    pub const BYTES: usize = 20;

    /// Returns the name with these bytes.
    pub fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Reads 40 hexadecimal digits.
    pub fn from_hex(text: &[u8]) -> Option<Self> {
        if text.len() != 2 * Self::BYTES {
            return None;
        }
        let mut bytes = [0; Self::BYTES];
        for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let mut number = 0;
            for digit in digits {
                number = number * 16 + char::from(*digit).to_digit(16)?;
            }
            *byte = number.try_into().ok()?;
        }
        Some(Self(bytes))
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tree with its history.
    Commit,
    /// A directory.
    Tree,
    /// A file, or where a link leads.
    Blob,
    /// A named object with a text.
    Tag,
}

impl Kind {
    /// Returns the word that is part of an object's name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }
}

/// Returns the tree of a commit.
pub fn tree_of(commit: &[u8]) -> Option<ObjectId> {
    field(commit, b"tree ")
}

/// Returns the object that a tag names.
pub fn target_of(tag: &[u8]) -> Option<ObjectId> {
    field(tag, b"object ")
}

fn field(object: &[u8], name: &[u8]) -> Option<ObjectId> {
    let line = object.split(|byte| *byte == b'\n').next()?;
    ObjectId::from_hex(line.strip_prefix(name)?)
}

/// What an entry of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A file.
    File,
    /// A file that can be run.
    Executable,
    /// A symbolic link.
    Link,
    /// A directory.
    Directory,
    /// A commit of another repository.
    Submodule,
}

/// An entry of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeEntry<'t> {
    /// What it is.
    pub mode: Mode,
    /// The name as it is in the tree; it may be no name that a file can have.
    pub name: &'t [u8],
    /// Its object.
    pub id: ObjectId,
}

/// Reads the entries of a tree, in the order that they have there. The last one may be an error.
pub fn entries(mut tree: &[u8]) -> impl Iterator<Item = Option<TreeEntry<'_>>> {
    std::iter::from_fn(move || {
        if tree.is_empty() {
            return None;
        }
        let entry = split_entry(tree);
        tree = entry.map_or(&[], |(_, rest)| rest);
        Some(entry.map(|(entry, _)| entry))
    })
}

fn split_entry(tree: &[u8]) -> Option<(TreeEntry<'_>, &[u8])> {
    let end = tree.iter().position(|byte| *byte == 0)?;
    let (head, rest) = (tree.get(..end)?, tree.get(end + 1..)?);
    let (id, rest) = rest.split_first_chunk::<{ ObjectId::BYTES }>()?;
    let space = head.iter().position(|byte| *byte == b' ')?;
    let mode = match head.get(..space)? {
        b"100644" | b"100664" => Mode::File,
        b"100755" => Mode::Executable,
        b"120000" => Mode::Link,
        b"40000" | b"040000" => Mode::Directory,
        b"160000" => Mode::Submodule,
        _ => return None,
    };
    Some((TreeEntry { mode, name: head.get(space + 1..)?, id: ObjectId(*id) }, rest))
}

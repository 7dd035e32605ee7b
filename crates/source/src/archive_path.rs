//! Which entries of an archive may be unpacked, and where.
//!
//! An adapter asks for each entry before it writes anything. Names, types and links are decided here, and so is how much
//! there may be. At the end, links are checked against what is there: a link names a file of the bundle, and no path
//! leads through a link. So nothing that was unpacked can lead outside, whatever follows links.

use std::collections::{BTreeMap, BTreeSet};

/// The most bytes of all files of a bundle together.
pub const MAX_UNPACKED_BYTES: u64 = 64 << 20;

/// The most files, directories and links of a bundle.
pub const MAX_ENTRIES: usize = 5_000;

/// The most bytes of a path.
pub const MAX_PATH: usize = 1024;

/// The most bytes of one part of a path.
const MAX_PART: usize = 255;

/// How many directories may be in each other.
pub const MAX_DEPTH: usize = 32;

/// How much of a name is quoted, in characters.
const QUOTED: usize = 100;

/// The bits of a mode with which a program runs as somebody else.
const SET_ID: u32 = 0o6000;

/// The bits of a mode with which a file can be run.
const EXECUTABLE: u32 = 0o111;

/// The type of an archive's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryType {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A further name of a file.
    HardLink,
    /// A device, a pipe, a socket or something else.
    Other,
}

/// What an archive says about an entry.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// The name as it is in the archive.
    pub name: &'a [u8],
    /// The type.
    pub entry_type: EntryType,
    /// The mode.
    pub mode: u32,
    /// How many bytes the entry has.
    pub size: u64,
    /// Where a link leads.
    pub target: Option<&'a [u8]>,
}

/// What an entry becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpacked {
    /// A file.
    File {
        /// Whether it can be run.
        is_executable: bool,
    },
    /// A directory.
    Directory,
    /// A link.
    Link {
        /// Where it leads, relative to its own directory.
        target: String,
    },
}

/// Why an archive is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// A name that can't be one here.
    #[error(
        "the name {0:?} is refused: names are relative, in UTF-8, without .., backslashes and control characters, at most {MAX_PATH} bytes long and {MAX_DEPTH} directories deep"
    )]
    Name(String),
    /// A name that was there before.
    #[error("{0:?} is in the archive twice: pack it again with each name once")]
    Repeated(String),
    /// Something below what is no directory.
    #[error("{0:?} lies below something that is no directory")]
    Below(String),
    /// A hard link.
    #[error("{0:?} is a hard link: pack the file itself")]
    HardLink(String),
    /// A device or the like.
    #[error("{0:?} is no file, no directory and no symbolic link: remove it")]
    Type(String),
    /// A file that runs as somebody else.
    #[error("{0:?} has the setuid or setgid bit: remove it with chmod ug-s")]
    SetId(String),
    /// A link that leads elsewhere.
    #[error(
        "the link {0:?} does not lead to a file of the bundle: links are relative, stay inside, lead to no directory and through no other link"
    )]
    Link(String),
    /// Too many entries.
    #[error("there are more than {MAX_ENTRIES} files and directories")]
    Entries,
    /// Too many bytes.
    #[error("the files have more than {} MiB together", MAX_UNPACKED_BYTES >> 20)]
    Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Known {
    File,
    /// A directory, and whether the archive has an entry for it.
    Directory(bool),
    Link(String),
}

/// The entries of one archive that were admitted so far.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    known: BTreeMap<String, Known>,
    /// The paths of files that were refused. That they are not there is their problem, and not that of links to them.
    refused: BTreeSet<String>,
    bytes: u64,
}

impl Entries {
    /// Decides about the next entry. Returns its path and what it becomes; nothing for the directory of all entries itself.
    ///
    /// Directories above it that the archive does not have are made. The path has slashes and none at either end.
    pub fn admit(&mut self, header: &Header<'_>) -> Result<Option<(String, Unpacked)>, EntryError> {
        let quoted: String = String::from_utf8_lossy(header.name).chars().take(QUOTED).collect();
        let path = clean(header.name).ok_or_else(|| EntryError::Name(quoted.clone()))?;
        let unpacked = match unpacked(header, &quoted) {
            Ok(unpacked) => unpacked,
            Err(error) => {
                if self.refused.len() < MAX_ENTRIES {
                    self.refused.insert(path);
                }
                return Err(error);
            }
        };
        if path.is_empty() {
            return if unpacked == Unpacked::Directory { Ok(None) } else { Err(EntryError::Name(quoted)) };
        }
        self.bytes = self
            .bytes
            .checked_add(header.size)
            .filter(|sum| *sum <= MAX_UNPACKED_BYTES)
            .ok_or(EntryError::Bytes)?;
        for (slash, _) in path.match_indices('/') {
            let above = path.get(..slash).unwrap_or_default();
            match self.known.get(above) {
                Some(Known::Directory(_)) => {}
                Some(Known::File | Known::Link(_)) => return Err(EntryError::Below(quoted)),
                None => self.insert(above.to_owned(), Known::Directory(false))?,
            }
        }
        let known = match &unpacked {
            Unpacked::File { .. } => Known::File,
            Unpacked::Directory => Known::Directory(true),
            Unpacked::Link { target } => Known::Link(target.clone()),
        };
        match (self.known.get(&path), &known) {
            (None, _) | (Some(Known::Directory(false)), Known::Directory(_)) => {
                self.insert(path.clone(), known)?;
            }
            (Some(_), _) => return Err(EntryError::Repeated(quoted)),
        }
        Ok(Some((path, unpacked)))
    }

    /// Checks the links, after the last entry.
    pub fn finish(&self) -> Result<(), EntryError> {
        self.stray_links().next().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Returns the links that lead to no file of the bundle, by path, after the last entry.
    pub fn stray_links(&self) -> impl Iterator<Item = (&str, EntryError)> {
        self.known.iter().filter_map(|(path, known)| {
            let Known::Link(target) = known else { return None };
            let is_file =
                |file: &String| self.known.get(file) == Some(&Known::File) || self.refused.contains(file);
            let file = link_target(path, target).filter(is_file);
            let stray = || (path.as_str(), EntryError::Link(path.chars().take(QUOTED).collect()));
            file.is_none().then(stray)
        })
    }

    /// Returns how many bytes all files have that were admitted.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn insert(&mut self, path: String, known: Known) -> Result<(), EntryError> {
        self.known.insert(path, known);
        if self.known.len() > MAX_ENTRIES { Err(EntryError::Entries) } else { Ok(()) }
    }
}

fn unpacked(header: &Header<'_>, quoted: &str) -> Result<Unpacked, EntryError> {
    match header.entry_type {
        EntryType::File if header.mode & SET_ID != 0 => Err(EntryError::SetId(quoted.to_owned())),
        EntryType::File => Ok(Unpacked::File { is_executable: header.mode & EXECUTABLE != 0 }),
        EntryType::Directory => Ok(Unpacked::Directory),
        EntryType::Link => {
            let target = header.target.and_then(|target| std::str::from_utf8(target).ok());
            let target = target.filter(|target| target.len() <= MAX_PATH && !target.contains('\0'));
            let target = target.ok_or_else(|| EntryError::Link(quoted.to_owned()))?.to_owned();
            Ok(Unpacked::Link { target })
        }
        EntryType::HardLink => Err(EntryError::HardLink(quoted.to_owned())),
        EntryType::Other => Err(EntryError::Type(quoted.to_owned())),
    }
}

/// Returns a relative path without `.`, and without a slash at its end.
fn clean(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let is_bad = |part: &str| part == ".." || part.len() > MAX_PART;
    let is_long = name.len() > MAX_PATH || name.starts_with('/');
    if name.is_empty()
        || is_long
        || name.chars().any(|c| c.is_control() || c == '\\')
        || name.split('/').any(is_bad)
    {
        return None;
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    (parts.len() <= MAX_DEPTH).then(|| parts.join("/"))
}

/// Returns the path to which a link leads. Its `..` come first: behind a name that is a link, they would lead elsewhere.
fn link_target(path: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    let mut has_name = false;
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if has_name => return None,
            ".." => drop(parts.pop()?),
            name => {
                has_name = true;
                parts.push(name);
            }
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> Header<'_> {
        Header { name: name.as_bytes(), entry_type: EntryType::File, mode: 0o644, size: 1, target: None }
    }

    fn link<'a>(name: &'a str, target: &'a str) -> Header<'a> {
        Header { entry_type: EntryType::Link, target: Some(target.as_bytes()), size: 0, ..file(name) }
    }

    fn directory(name: &str) -> Header<'_> {
        Header { entry_type: EntryType::Directory, size: 0, ..file(name) }
    }

    /// Returns what becomes of the last entry, after all others and the end.
    fn last(headers: &[Header<'_>]) -> Result<Option<(String, Unpacked)>, EntryError> {
        let mut entries = Entries::default();
        let mut outcome = Ok(None);
        for header in headers {
            outcome = Ok(entries.admit(header)?);
        }
        entries.finish()?;
        outcome
    }

    #[test]
    fn names_are_cleaned() {
        for (name, path) in [("a", "a"), ("./a/b", "a/b"), ("a//b/./c", "a/b/c"), ("a..b", "a..b")] {
            let expected = Some((path.to_owned(), Unpacked::File { is_executable: false }));
            assert_eq!(last(&[file(name)]), Ok(expected), "{name}");
        }
        assert_eq!(last(&[directory("./")]), Ok(None));
        let run = Header { mode: 0o700, ..file("a") };
        assert_eq!(last(&[run]), Ok(Some(("a".to_owned(), Unpacked::File { is_executable: true }))));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let (long, deep) = ("x".repeat(MAX_PART + 1), "x/".repeat(MAX_DEPTH + 1));
        for name in ["", "/a", "..", "../a", "a/../b", "a/..", "a\0b", "a\nb", "a\\b", ".", &long, &deep] {
            assert!(matches!(last(&[file(name)]), Err(EntryError::Name(_))), "{name:?}");
        }
        let bytes = Header { name: b"a\xff", ..file("") };
        assert!(matches!(last(&[bytes]), Err(EntryError::Name(_))));
    }

    #[test]
    fn a_name_occurs_once_and_nothing_lies_below_a_file_or_a_link() {
        for (headers, expected) in [
            ([file("a"), file("./a")], EntryError::Repeated("./a".to_owned())),
            ([directory("a"), directory("a/")], EntryError::Repeated("a/".to_owned())),
            ([directory("a"), file("a")], EntryError::Repeated("a".to_owned())),
            ([file("a/b"), file("a")], EntryError::Repeated("a".to_owned())),
            ([file("a"), file("a/b")], EntryError::Below("a/b".to_owned())),
            ([link("a", "c"), file("a/b")], EntryError::Below("a/b".to_owned())),
        ] {
            assert_eq!(last(&headers), Err(expected));
        }
        assert!(
            last(&[file("a/b"), directory("a"), file("a/c")]).is_ok(),
            "directories come late in some archives"
        );
    }

    #[test]
    fn a_link_to_a_file_that_is_refused_is_no_problem_of_its_own() {
        let run = Header { mode: 0o4755, ..file("run") };
        for (refused, target) in
            [(run, "run"), (Header { entry_type: EntryType::HardLink, ..file("hard") }, "hard")]
        {
            let mut entries = Entries::default();
            assert!(entries.admit(&refused).is_err());
            assert!(entries.admit(&link("l", target)).is_ok() && entries.finish().is_ok(), "{target}");
            assert!(entries.admit(&link("m", "other")).is_ok() && entries.finish().is_err(), "{target}");
        }
    }

    #[test]
    fn links_lead_to_files_of_the_bundle() {
        for target in ["f", "./f", "../d/f", "../g"] {
            assert!(last(&[file("d/f"), file("g"), link("d/l", target)]).is_ok(), "{target}");
        }
        let leaving = [
            "/etc/passwd",
            "../../g",
            "..",
            ".",
            "missing",
            "../d",
            "m",
            "../d/../g",
            "l",
            "",
            "a\0",
            "m/../f",
        ];
        for target in leaving {
            let headers = [file("d/f"), file("g"), link("d/m", "f"), link("d/l", target)];
            assert_eq!(last(&headers), Err(EntryError::Link("d/l".to_owned())), "{target}");
        }
        // By its text alone this path stays inside; for the system `s` is the root, and `..` above it.
        let tricked = [file("etc/f"), link("s", "."), link("l", "s/../etc/f")];
        assert!(matches!(last(&tricked), Err(EntryError::Link(_))));
    }

    #[test]
    fn other_types_and_bits_are_refused() {
        for (header, expected) in [
            (
                Header { entry_type: EntryType::HardLink, ..link("a", "b") },
                EntryError::HardLink("a".to_owned()),
            ),
            (Header { entry_type: EntryType::Other, ..file("a") }, EntryError::Type("a".to_owned())),
            (Header { mode: 0o4755, ..file("a") }, EntryError::SetId("a".to_owned())),
            (Header { mode: 0o2755, ..file("a") }, EntryError::SetId("a".to_owned())),
        ] {
            assert_eq!(last(&[header]), Err(expected));
        }
    }

    #[test]
    fn there_is_a_limit_for_bytes_and_for_entries() {
        let half = Header { size: MAX_UNPACKED_BYTES / 2, ..file("a") };
        let other = Header { name: b"b", ..half };
        assert!(last(&[half, other]).is_ok());
        assert_eq!(last(&[half, other, file("c")]), Err(EntryError::Bytes));
        assert_eq!(last(&[Header { size: u64::MAX, ..file("a") }]), Err(EntryError::Bytes));
        let names: Vec<String> = (0..MAX_ENTRIES).map(|number| format!("d/{number}")).collect();
        let headers: Vec<Header<'_>> = names.iter().map(|name| file(name)).collect();
        assert_eq!(last(&headers), Err(EntryError::Entries), "directories that are made count");
        assert!(last(&headers[1..]).is_ok());
    }
}

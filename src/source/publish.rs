//! What authors of bundles do, without a cluster: check, pack and list them. The checks are those of the fetch.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ::source::archive_path::{Entries, EntryError, EntryType, Header};
use ::source::bundle::tree::{Content, Entry, Tree, needs_content};
use ::source::bundle::{Bundle, META, Problem};
use ::source::chunk::MAX_PACKED_BYTES;
use ::source::digest::Digest;
use ::source::index::Index;
use serde_json::{Value, json};
use walkdir::{DirEntry, WalkDir};

use super::archive::{self, ArchiveError};
use super::lint::lint;
use super::pack::{PackError, Packer};
use super::tree;
use crate::regular_file;

/// The name of the index that is written.
const INDEX: &str = "index.yaml";

/// The end of the name of a packed bundle.
const PACKED: &str = ".tgz";

/// What is never part of a bundle: the history of the repository that it is made in.
const HISTORY: &str = ".git";

/// What is said about a bundle, with the path of what it is about.
#[derive(Debug)]
pub struct Inspected {
    /// The bundle, or all that is wrong with it.
    pub outcome: Result<Bundle, Vec<Problem>>,
    /// What is left out.
    pub warnings: Vec<Problem>,
}

/// A bundle that was packed.
#[derive(Debug)]
pub struct Packed {
    /// The archive.
    pub path: PathBuf,
    /// Its digest.
    pub digest: Digest,
}

/// Checks the bundle in a directory or in a `.tgz`.
pub fn inspect(path: &Path) -> Inspected {
    if path.is_dir() { inspect_directory(path) } else { inspect_archive(path) }
}

/// Packs the bundle in `directory` as `<name>-<version>.tgz` into the directory `into`, which is made. What was packed
/// there before under that name is replaced. Returns all that is wrong otherwise, and writes nothing.
pub fn pack(directory: &Path, into: &Path) -> Result<Packed, Vec<Problem>> {
    pack_beside(directory, into, &BTreeMap::new())
}

/// Packs the bundles in several directories. Of two with one name and version only the first is packed.
pub fn pack_all(directories: &[PathBuf], into: &Path) -> Vec<Result<Packed, Vec<Problem>>> {
    let mut packed = BTreeMap::new();
    let mut outcomes = Vec::new();
    for directory in directories {
        let outcome = pack_beside(directory, into, &packed);
        if let Ok(Packed { path, .. }) = &outcome {
            packed.insert(path.clone(), directory.clone());
        }
        outcomes.push(outcome);
    }
    outcomes
}

/// Packs a bundle. `packed` are the archives that were packed with it, and of what: none of them is replaced.
fn pack_beside(
    directory: &Path,
    into: &Path,
    packed: &BTreeMap<PathBuf, PathBuf>,
) -> Result<Packed, Vec<Problem>> {
    let bundle = inspect_directory(directory).outcome?;
    let wrong = |path: &Path, message: String| vec![Problem { path: path.display().to_string(), message }];
    let io = |error: io::Error| wrong(into, format!("can't write there: {error}"));
    fs::create_dir_all(into).map_err(io)?;
    let (from, to) = (directory.canonicalize().map_err(io)?, into.canonicalize().map_err(io)?);
    if to.starts_with(&from) {
        let message = "it is inside the bundle, which would hold its own archive: choose another with -d";
        return Err(wrong(into, message.to_owned()));
    }
    let path = into.join(archive_name(&bundle));
    if let Some(other) = packed.get(&path) {
        let (other, bundle) = (other.display(), format!("{} {}", bundle.name, bundle.version));
        let message = format!("it is {bundle}, and so is {other}: give one of them another version or name");
        return Err(wrong(directory, message));
    }
    let bytes = self::packed(directory).map_err(|error| wrong(directory, error.to_string()))?;
    write(&path, &bytes).map_err(io)?;
    Ok(Packed { path, digest: Digest::of(&bytes) })
}

/// Returns the archive of the bundle in a directory or in a `.tgz`, with the name of its file.
pub(super) fn archive_of(path: &Path) -> Result<(Bundle, String, Vec<u8>), Vec<Problem>> {
    let wrong = |message: String| vec![Problem { path: path.display().to_string(), message }];
    let bundle = inspect(path).outcome?;
    let bytes = if path.is_dir() {
        packed(path).map_err(|error| wrong(error.to_string()))?
    } else {
        regular_file::read(path).map_err(|error| wrong(error.to_string()))?
    };
    let name = archive_name(&bundle);
    Ok((bundle, name, bytes))
}

/// Writes `index.yaml` about all bundles in `directory`: those that are packed, and directories of unpacked ones, which
/// repositories of git have. Returns how many there are. If anything is wrong all of it is returned, and nothing is written.
pub fn index(directory: &Path) -> Result<usize, Vec<Problem>> {
    let wrong = |message: String| vec![Problem { path: directory.display().to_string(), message }];
    let io = |error: io::Error| wrong(error.to_string());
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let is_packed = path.extension().is_some_and(|extension| extension == PACKED.trim_start_matches('.'));
        if is_packed || path.join(META).exists() {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(wrong(format!("there is no bundle: `source pack` writes NAME-VERSION{PACKED}")));
    }
    let (mut listed, mut problems) = (Vec::new(), Vec::new());
    for path in paths {
        match inspect(&path).outcome.and_then(|bundle| Listed::new(&path, bundle)) {
            Ok(found) => listed.push(found),
            Err(found) => problems.extend(found),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let packed: BTreeSet<String> =
        listed.iter().filter(|listed| listed.digest.is_some()).map(Listed::id).collect();
    // An archive is what most repositories are asked for; the directory beside it is what it was packed from.
    listed.retain(|listed| listed.digest.is_some() || !packed.contains(&listed.id()));
    let text = values::yaml::emit(&document(&mut listed));
    Index::parse(text.as_bytes()).map_err(|error| wrong(error.to_string()))?;
    write(&directory.join(INDEX), text.as_bytes()).map_err(io)?;
    Ok(listed.len())
}

/// A bundle in an index.
struct Listed {
    bundle: Bundle,
    /// That of the archive; none if it is a directory.
    digest: Option<Digest>,
}

impl Listed {
    /// Returns one, if the name of its file or directory is the one that others look for.
    fn new(path: &Path, bundle: Bundle) -> Result<Self, Vec<Problem>> {
        let wrong = |message: String| vec![Problem { path: path.display().to_string(), message }];
        let is_packed = !path.is_dir();
        let archive = archive_name(&bundle);
        let expected = if is_packed { archive.as_str() } else { archive.trim_end_matches(PACKED) };
        if path.file_name().is_none_or(|name| name != expected) {
            return Err(wrong(format!("its name has to be {expected}, as {META} says: rename it")));
        }
        let digest = if is_packed {
            let bytes = regular_file::read(path).map_err(|error| wrong(error.to_string()))?;
            Some(Digest::of(&bytes))
        } else {
            None
        };
        Ok(Self { bundle, digest })
    }

    fn id(&self) -> String {
        archive_name(&self.bundle)
    }
}

/// Returns the index: names sorted, the highest version of each first.
fn document(listed: &mut [Listed]) -> Value {
    listed.sort_by(|a, b| {
        let versions = b.bundle.version.precedence(&a.bundle.version);
        a.bundle.name.cmp(&b.bundle.name).then(versions).then_with(|| a.id().cmp(&b.id()))
    });
    let mut entries: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for Listed { bundle, digest } in listed {
        let mut entry = json!({
            "name": bundle.display_name,
            "version": bundle.version.original(),
            "description": bundle.description,
            "id": bundle.id,
        });
        if let (Some(digest), Some(fields)) = (digest, entry.as_object_mut()) {
            fields.insert("digest".to_owned(), digest.to_string().into());
            fields.insert("urls".to_owned(), json!([archive_name(bundle)]));
        }
        entries.entry(bundle.name.as_str()).or_default().push(entry);
    }
    json!({"apiVersion": "v1", "entries": entries})
}

fn archive_name(bundle: &Bundle) -> String {
    format!("{}-{}{PACKED}", bundle.name.as_str(), bundle.version.original())
}

/// Writes a file for all readers, by one rename.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(parent)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    file.persist(path)?;
    Ok(())
}

fn inspect_archive(path: &Path) -> Inspected {
    let shown = path.display();
    let wrong = |message: String| Inspected {
        outcome: Err(vec![Problem { path: shown.to_string(), message }]),
        warnings: Vec::new(),
    };
    match unpacked(path) {
        Ok(tree) => checked(&tree, |problem| format!("{shown}: {problem}")),
        Err(message) => wrong(message),
    }
}

/// Unpacks an archive into a directory of its own and reads it.
fn unpacked(path: &Path) -> Result<Tree, String> {
    let file = regular_file::open(path).map_err(|error| format!("can't be read: {error}"))?;
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    if size > MAX_PACKED_BYTES as u64 {
        return Err(too_large());
    }
    let ours =
        |error: io::Error| format!("can't be unpacked into {}: {error}", std::env::temp_dir().display());
    let into = tempfile::tempdir().map_err(ours)?;
    archive::unpack(io::BufReader::new(file), into.path()).map_err(|error| {
        if let ArchiveError::Write(error) = error { ours(error) } else { error.to_string() }
    })?;
    let root = tree::bundle_root(into.path()).map_err(ours)?;
    tree::read(&root).map_err(ours)
}

fn too_large() -> String {
    format!("the archive is longer than {} MiB: remove what is not needed", MAX_PACKED_BYTES >> 20)
}

fn inspect_directory(root: &Path) -> Inspected {
    let place = |path: &str| if path.is_empty() { root.to_owned() } else { root.join(path) };
    let (tree, problems) = match read_directory(root) {
        Ok(found) => found,
        Err(problem) => return Inspected { outcome: Err(vec![problem]), warnings: Vec::new() },
    };
    let mut inspected = checked(&tree, |path| place(path).display().to_string());
    if !problems.is_empty() {
        let mut all = problems;
        all.extend(inspected.outcome.err().unwrap_or_default());
        all.sort();
        inspected.outcome = Err(all);
    } else if inspected.outcome.is_ok() {
        let wrong = |message| Problem { path: root.display().to_string(), message };
        match packed(root) {
            Ok(bytes) if bytes.len() > MAX_PACKED_BYTES => {
                inspected.outcome = Err(vec![wrong(too_large())]);
            }
            Ok(_) => {}
            Err(error) => inspected.outcome = Err(vec![wrong(error.to_string())]),
        }
    }
    inspected
}

/// Lints a bundle. `place` returns what is said instead of a path of it.
fn checked(tree: &Tree, place: impl Fn(&str) -> String) -> Inspected {
    let report = lint(tree);
    let placed = |problems: Vec<Problem>| -> Vec<Problem> {
        problems
            .into_iter()
            .map(|Problem { path, message }| Problem { path: place(&path), message })
            .collect()
    };
    Inspected { outcome: report.outcome.map_err(placed), warnings: placed(report.warnings) }
}

/// Returns what of a directory is a bundle, sorted, each directory before what is in it.
fn walk(root: &Path) -> impl Iterator<Item = walkdir::Result<DirEntry>> {
    let is_history = |entry: &DirEntry| entry.depth() == 1 && entry.file_name() == HISTORY;
    WalkDir::new(root)
        .min_depth(1)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(move |entry| !is_history(entry))
}

/// Reads a directory as the lint reads it, with all that could not be packed. An error is about the whole.
fn read_directory(root: &Path) -> Result<(Tree, Vec<Problem>), Problem> {
    let (mut entries, mut tree, mut problems) = (Entries::default(), Tree::new(), Vec::new());
    let wrong = |path: &Path, message: String| Problem { path: path.display().to_string(), message };
    for entry in walk(root) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let message = error.io_error().map_or_else(|| error.to_string(), io::Error::to_string);
                problems.push(wrong(error.path().unwrap_or(root), format!("can't be read: {message}")));
                continue;
            }
        };
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
        match read_entry(&entry, relative, &mut entries) {
            Ok((path, found)) => drop(tree.insert(path, found)),
            Err(ReadError::Entry(error @ (EntryError::Entries | EntryError::Bytes))) => {
                return Err(wrong(root, format!("{error}: remove what is not needed")));
            }
            Err(ReadError::Entry(error)) => problems.push(wrong(entry.path(), error.to_string())),
            Err(ReadError::Io(error)) => {
                problems.push(wrong(entry.path(), format!("can't be read: {error}")));
            }
        }
    }
    problems.extend(entries.stray_links().map(|(path, error)| wrong(&root.join(path), error.to_string())));
    Ok((tree, problems))
}

/// Why a file is not part of a bundle.
enum ReadError {
    Entry(EntryError),
    Io(io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn read_entry(
    entry: &DirEntry,
    relative: &Path,
    entries: &mut Entries,
) -> Result<(String, Entry), ReadError> {
    let kind = entry.file_type();
    let metadata = entry.metadata().map_err(io::Error::from)?;
    let (entry_type, size) = if kind.is_dir() {
        (EntryType::Directory, 0)
    } else if kind.is_symlink() {
        (EntryType::Link, 0)
    } else if kind.is_file() {
        (EntryType::File, metadata.len())
    } else {
        (EntryType::Other, 0)
    };
    let target = if kind.is_symlink() { Some(fs::read_link(entry.path())?) } else { None };
    let mode = metadata.permissions().mode() & 0o7777;
    let header = Header {
        name: relative.as_os_str().as_bytes(),
        entry_type,
        mode,
        size,
        target: target.as_deref().map(|target| target.as_os_str().as_bytes()),
    };
    let admitted = entries.admit(&header).map_err(ReadError::Entry)?;
    let path = admitted.map(|(path, _)| path).unwrap_or_default();
    let is_executable = mode & 0o111 != 0;
    let found = if let Some(target) = target {
        Entry::Link { target: target.to_string_lossy().into_owned() }
    } else if kind.is_dir() {
        Entry::Directory
    } else if needs_content(&path) {
        Entry::file(regular_file::read(entry.path())?, is_executable)
    } else {
        // Who packs it has to be able to read it.
        regular_file::open(entry.path())?;
        Entry::File { content: Content::Size(size), is_executable }
    };
    Ok((path, found))
}

/// Packs a directory that was checked.
fn packed(root: &Path) -> Result<Vec<u8>, PackError> {
    let mut packer = Packer::new(Vec::new());
    for entry in walk(root) {
        let entry = entry.map_err(io::Error::from)?;
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let path = relative.to_string_lossy();
        let kind = entry.file_type();
        if kind.is_dir() {
            packer.directory(&path)?;
        } else if kind.is_symlink() {
            packer.link(&path, &fs::read_link(entry.path())?.to_string_lossy())?;
        } else {
            let mode = entry.metadata().map_err(io::Error::from)?.permissions().mode();
            packer.file(&path, mode & 0o111 != 0, &regular_file::read(entry.path())?)?;
        }
    }
    packer.finish()
}

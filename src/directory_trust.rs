//! Whether others can replace what is in a directory, by its owner and mode, or the directory itself, by those above it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, StatxAttributes, StatxFlags};

/// How many links a path may lead through.
const LINKS: usize = 40;

/// The bit that lets everybody write into a directory, and the one that lets a group.
const ALL_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;

/// The bits of a mode that let others write into a directory.
const OTHERS_WRITE: u32 = ALL_WRITE | GROUP_WRITES;

/// The bit that lets those replace only what is theirs.
pub(crate) const STICKY: u32 = 0o1000;

/// Whether files can be kept below a directory.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Trust {
    /// Nobody else can.
    Safe,
    /// Nobody else can once it has the sticky bit.
    NeedsSticky,
    /// Somebody else can: who, in words.
    Never(String),
}

/// Why a directory can't be made or used.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The system says so.
    Io(io::Error),
    /// Something else stands in the place of this directory.
    NoDirectory(PathBuf),
    /// Somebody else can replace this directory or link: who, in words.
    Untrusted(PathBuf, String),
}

impl Refusal {
    /// Returns the text of it in the way in which each place is refused. `what` says what the place is for, `option` names it.
    pub(crate) fn told(&self, path: &Path, what: &str, option: &str) -> String {
        match self {
            Self::Io(error) => {
                format!("can't use {} for {what}: {error}; {option} names another place", path.display())
            }
            Self::NoDirectory(at) => format!(
                "won't use {} for {what}: it is no directory; name a directory of your own with {option}",
                at.display()
            ),
            Self::Untrusted(at, problem) => format!(
                "won't use {} for {what}: {problem}; take the right to write there from others (chmod go-w), or name a directory \
                 of your own with {option}",
                at.display()
            ),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Makes a private directory, and those above it that are missing, unless somebody else can replace it: each directory above it
/// and each link that leads there are looked at. The directory itself is not judged.
///
/// What was looked at stays as it is for as long as nobody but root and the own user changes anything.
pub(crate) fn make(path: &Path) -> Result<(), Refusal> {
    walk(path, true).map(drop)
}

/// Makes the directory in which a file is to stand, as [`make`] does, unless somebody else can replace the file.
pub(crate) fn make_above(file: &Path) -> Result<(), Refusal> {
    let file = std::path::absolute(file)?;
    match file.parent().map(|parent| walk(parent, true)) {
        Some(Ok(Some(directory))) => judge_above(&directory, rustix::process::geteuid().as_raw()),
        Some(Err(refusal)) => Err(refusal),
        Some(Ok(None)) | None => Ok(()),
    }
}

/// Judges what there is of a directory that is to be the own user's: those above it, and itself. Nothing is made.
pub(crate) fn look(path: &Path) -> Result<(), Refusal> {
    match walk(path, false)? {
        Some(_) => check_own(path),
        None => Ok(()),
    }
}

/// Checks that what stands at a path is a directory of the own user, and no link to one.
pub(crate) fn check_own(path: &Path) -> Result<(), Refusal> {
    let own = rustix::process::geteuid().as_raw();
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() {
        return Err(Refusal::NoDirectory(path.to_owned()));
    }
    if found.uid() != own {
        let problem = format!("user {} owns it, this is user {own}", found.uid());
        return Err(Refusal::Untrusted(path.to_owned(), problem));
    }
    Ok(())
}

/// Looks at the directories on the way to one, and returns where it is in the end. What is missing is made, or there is none.
fn walk(path: &Path, makes: bool) -> Result<Option<PathBuf>, Refusal> {
    let own = rustix::process::geteuid().as_raw();
    let path = std::path::absolute(path)?;
    let mut rest: VecDeque<OsString> = steps(&path).collect();
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    while let Some(step) = rest.pop_front() {
        // Who can replace this directory by a link says what is above it, too.
        judge_above(&at, own)?;
        if step == ".." {
            at.pop();
            continue;
        }
        let next = at.join(step);
        let found = match fs::symlink_metadata(&next) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && makes => made(&next)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        if found.is_dir() {
            at = next;
            continue;
        }
        if !found.is_symlink() {
            return Err(Refusal::NoDirectory(next));
        }
        if let Some(problem) = owned_by_stranger(found.uid(), own) {
            return Err(Refusal::Untrusted(next, format!("it is a link, and {problem}")));
        }
        links += 1;
        if links > LINKS {
            return Err(io::Error::other("too many links lead there").into());
        }
        let target = fs::read_link(&next)?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        rest = steps(&target).chain(rest).collect();
    }
    Ok(Some(at))
}

/// Returns the steps of a path, but for the root.
fn steps(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|step| match step {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

/// Makes a directory, and returns what stands at the path then, following no link.
fn made(path: &Path) -> io::Result<Metadata> {
    match DirBuilder::new().mode(0o700).create(path) {
        // Somebody was faster: it is looked at as if it had been there.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => fs::symlink_metadata(path),
    }
}

/// Checks that nobody else can replace what is in a directory in which others are looked up.
fn judge_above(path: &Path, own: u32) -> Result<(), Refusal> {
    let found = fs::symlink_metadata(path)?;
    let problem = owned_by_another(found.uid(), own).or_else(|| {
        Some(open_to_others(found.mode())).filter(|_| is_open(path, &found) && !is_volume(path, &found))
    });
    problem.map_or(Ok(()), |problem| Err(Refusal::Untrusted(path.to_owned(), problem)))
}

/// Returns whether others than the owner may replace what is in a directory. A group with the number of the owner is that user's
/// private one, or that of root; with an access control list, the mode says of the group what any other user may do.
fn is_open(path: &Path, found: &Metadata) -> bool {
    let is_of_group =
        found.mode() & GROUP_WRITES != 0 && (found.gid() != found.uid() || has_access_list(path));
    (found.mode() & ALL_WRITE != 0 || is_of_group) && found.mode() & STICKY == 0
}

/// The attribute that has the access control list of a directory.
const ACCESS_LIST: &str = "system.posix_acl_access";

fn has_access_list(path: &Path) -> bool {
    let size = rustix::fs::lgetxattr(path, ACCESS_LIST, &mut [0_u8; 0]);
    // Where there are none, that is another error.
    size != Err(rustix::io::Errno::NODATA) && size != Err(rustix::io::Errno::NOTSUP)
}

/// Returns whether a directory is a volume of root's. Kubernetes makes each `emptyDir` writable for all, without the sticky bit;
/// who else sees it is said by the Pod, not by its mode.
fn is_volume(path: &Path, found: &Metadata) -> bool {
    let root = StatxAttributes::MOUNT_ROOT;
    let is_mounted = || {
        rustix::fs::statx(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)
            .is_ok_and(|found| {
                found.stx_attributes_mask.contains(root) && found.stx_attributes.contains(root)
            })
    };
    found.uid() == 0 && path.parent().is_some() && is_mounted()
}

fn owned_by_another(owner: u32, own: u32) -> Option<String> {
    (owner != own && owner != 0).then(|| format!("user {owner} owns it, this is user {own}"))
}

/// Does the same, but for the owner that stands for all whom a user namespace does not know: root of the machine is one of them.
fn owned_by_stranger(owner: u32, own: u32) -> Option<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let problem = owned_by_another(owner, own)?;
    let is_unknown = read("/proc/sys/kernel/overflowuid").trim().parse() == Ok(owner)
        && !knows(&read("/proc/self/uid_map"), owner);
    (!is_unknown).then_some(problem)
}

/// Returns whether the map of a user namespace has a user. What can't be read has all.
fn knows(map: &str, user: u32) -> bool {
    map.is_empty()
        || map.lines().any(|line| {
            let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().unwrap_or(0));
            let (first, _, count) =
                (numbers.next().unwrap_or(0), numbers.next(), numbers.next().unwrap_or(0));
            (first..first.saturating_add(count)).contains(&u64::from(user))
        })
}

fn open_to_others(mode: u32) -> String {
    format!("others may replace what is in it (mode {:o}, no sticky bit)", mode & 0o7777)
}

/// Judges a directory by its owner and mode, for the user `own`.
pub(crate) fn judge(owner: u32, mode: u32, own: u32) -> Trust {
    let is_open = mode & OTHERS_WRITE != 0 && mode & STICKY == 0;
    if let Some(problem) = owned_by_another(owner, own) {
        return Trust::Never(problem);
    }
    match (is_open, owner == own) {
        (false, _) => Trust::Safe,
        (true, true) => Trust::NeedsSticky,
        (true, false) => Trust::Never(open_to_others(mode)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};

    use super::*;

    /// A directory for a test, below which `open` may be written by all, in this mode.
    fn below(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let open = root.path().join("open");
        DirBuilder::new().create(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
        (root, open)
    }

    /// Returns what is refused, and why.
    fn refused(path: &Path) -> Option<(PathBuf, String)> {
        match make(path) {
            Ok(()) => None,
            Err(Refusal::Untrusted(path, problem)) => Some((path, problem)),
            Err(refusal) => panic!("{}: {refusal:?}", path.display()),
        }
    }

    #[test]
    fn slip_12_each_directory_above_is_looked_at() {
        let (_root, open) = below(0o777);
        for path in [open.join("x"), open.join("x/y/z"), open.join("a/../../open/b")] {
            let (at, problem) = refused(&path).unwrap();
            assert_eq!((at, problem.contains("mode 777, no sticky bit")), (open.clone(), true), "{problem}");
            assert!(!path.exists());
        }
        for mode in [0o755, 0o1777, 0o1770] {
            let (_root, open) = below(mode);
            assert_eq!(refused(&open.join("x/y")), None, "{mode:o}");
            assert_eq!(fs::metadata(open.join("x/y")).unwrap().mode() & 0o7777, 0o700);
            assert_eq!(refused(&open.join("x/y")), None, "again");
        }
        // The directory itself is for the caller to judge.
        let (_root, open) = below(0o777);
        assert_eq!(refused(&open), None);
    }

    #[test]
    fn slip_12_a_directory_that_is_left_again_is_looked_at() {
        let (_root, open) = below(0o1777);
        let (path, theirs) = (open.join("theirs/../../x"), open.join("theirs"));
        DirBuilder::new().create(&theirs).unwrap();
        assert_eq!(refused(&path), None);
        fs::set_permissions(&theirs, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(refused(&path).unwrap().0, theirs);
        // Only root gives directories away.
        fs::set_permissions(&theirs, fs::Permissions::from_mode(0o755)).unwrap();
        if lchown(&theirs, Some(65_534), None).is_ok() {
            assert_eq!(refused(&path).unwrap().0, theirs);
        }
    }

    #[test]
    fn slip_12_users_of_an_access_list_are_others() {
        let (_root, open) = below(0o775);
        let own = fs::metadata(&open).unwrap().uid();
        std::os::unix::fs::chown(&open, None, Some(own)).unwrap();
        assert_eq!(refused(&open.join("x")), None);
        // The owner, the user 65534, the group, the mask and all others: what each is, what it may do, and its number.
        let entries = [
            (1_u16, 7_u16, u32::MAX),
            (2, 7, 65_534),
            (4, 5, u32::MAX),
            (16, 7, u32::MAX),
            (32, 5, u32::MAX),
        ];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (kind, may, user) in entries {
            list.extend([kind.to_le_bytes(), may.to_le_bytes()].concat());
            list.extend(user.to_le_bytes());
        }
        match rustix::fs::setxattr(&open, ACCESS_LIST, &list, rustix::fs::XattrFlags::empty()) {
            Ok(()) => assert_eq!(refused(&open.join("y")).unwrap().0, open),
            Err(error) => assert_eq!(error, rustix::io::Errno::NOTSUP, "this file system has such lists"),
        }
    }

    #[test]
    fn slip_12_a_link_on_the_way_is_followed_if_nobody_else_can_replace_it() {
        let (root, open) = below(0o1777);
        let elsewhere = root.path().join("elsewhere");
        DirBuilder::new().create(&elsewhere).unwrap();
        for (target, name) in [(elsewhere.as_path(), "absolute"), (Path::new("../elsewhere"), "relative")] {
            symlink(target, open.join(name)).unwrap();
            assert_eq!(refused(&open.join(name).join(name).join("y")), None);
            assert!(elsewhere.join(name).join("y").is_dir());
        }
        // What it leads through is looked at as well.
        let (_other, writable) = below(0o777);
        symlink(writable.join("in"), root.path().join("into")).unwrap();
        assert_eq!(refused(&root.path().join("into/y")).unwrap().0, writable);
        symlink("loop", root.path().join("loop")).unwrap();
        assert!(matches!(make(&root.path().join("loop/x")), Err(Refusal::Io(_))));
        fs::write(root.path().join("file"), "").unwrap();
        assert!(matches!(make(&root.path().join("file/x")), Err(Refusal::NoDirectory(_))));
        // Only root gives links and directories away.
        let (nobody, link, theirs) = (Some(65_534), open.join("absolute"), root.path().join("theirs"));
        DirBuilder::new().create(&theirs).unwrap();
        if lchown(&link, nobody, None).is_err() || lchown(&theirs, nobody, None).is_err() {
            return;
        }
        let (at, problem) = refused(&link.join("y")).unwrap();
        assert_eq!(
            (at, problem.contains("it is a link, and user 65534 owns it")),
            (link.clone(), true),
            "{problem}"
        );
        assert_eq!(refused(&link).unwrap().0, link);
        assert_eq!(refused(&theirs.join("x")).unwrap().0, theirs);
    }

    #[test]
    fn slip_12_the_directory_of_a_file_is_looked_at_with_those_above_it() {
        let (_root, open) = below(0o777);
        for file in [open.join("socket"), open.join("x/socket")] {
            let refusal = make_above(&file).unwrap_err();
            assert!(matches!(&refusal, Refusal::Untrusted(at, _) if *at == open), "{refusal:?}");
            let told = refusal.told(&file, "the socket", "--debug-unix-socket");
            assert!(told.contains("mode 777, no sticky bit); take the right to write there"), "{told}");
        }
        let (_root, open) = below(0o1777);
        make_above(&open.join("x/socket")).unwrap();
        assert!(open.join("x").is_dir());
    }

    #[test]
    fn slip_12_a_look_makes_nothing_and_refuses_what_is_no_directory_of_ones_own() {
        let (root, open) = below(0o777);
        look(&root.path().join("none/at/all")).unwrap();
        assert!(!root.path().join("none").exists());
        look(&open).unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        symlink(&open, root.path().join("link")).unwrap();
        for (place, said) in
            [("file", "it is no directory"), ("link", "it is no directory"), ("open/x", "others may replace")]
        {
            let told =
                look(&root.path().join(place)).unwrap_err().told(root.path(), "bundles", "--source-dir");
            assert!(
                told.starts_with("won't use ") && told.contains(said) && told.contains("--source-dir"),
                "{told}"
            );
        }
    }

    #[test]
    fn a_user_namespace_knows_whom_it_maps() {
        for (map, expected) in [
            ("         0          0 4294967295\n", true),
            ("         0       1000          1\n", false),
            ("0 1000 1\n1 100000 65536\n", true),
            ("0 0 65534\n", false),
            ("", true),
        ] {
            assert_eq!(knows(map, 65_534), expected, "{map}");
        }
    }

    #[test]
    fn a_volume_is_known_by_its_mount() {
        let is_volume = |path: &Path| is_volume(path, &fs::metadata(path).unwrap());
        let directory = tempfile::tempdir().unwrap();
        assert!(!is_volume(directory.path()) && !is_volume(Path::new("/")));
        let is_root_of_proc = fs::metadata("/proc").unwrap().uid() == 0;
        assert_eq!(is_volume(Path::new("/proc")), is_root_of_proc);
    }

    #[test]
    fn slip_12_a_directory_is_judged_by_its_owner_and_mode() {
        let (root, own, other) = (0, 1000, 1001);
        for (owner, mode, trusted) in [
            (own, 0o755, Trust::Safe),
            (own, 0o1777, Trust::Safe),
            (own, 0o770, Trust::NeedsSticky),
            (root, 0o755, Trust::Safe),
            (root, 0o1777, Trust::Safe),
        ] {
            assert_eq!(judge(owner, mode, own), trusted, "{owner} {mode:o}");
        }
        for (owner, mode) in [(root, 0o777), (root, 0o2775), (other, 0o755), (other, 0o1777)] {
            assert!(matches!(judge(owner, mode, own), Trust::Never(_)), "{owner} {mode:o}");
        }
    }
}

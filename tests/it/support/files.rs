//! Files of tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use addon_operator::load::LoadOptions;

/// The example whose tests take nine tenths of the time that those of all samples and examples take.
pub(crate) const LONG_EXAMPLE: &str = "examples/300-hypershift";

/// Returns the directory of this repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files of this repository, sorted, with their whole paths.
///
/// What somebody has dropped there to try it is none of them: Git does not know it. Without Git, as in the sources
/// that were unpacked from an archive, it is all that is there.
pub(crate) fn tracked() -> &'static [PathBuf] {
    static TRACKED: OnceLock<Vec<PathBuf>> = OnceLock::new();
    TRACKED.get_or_init(|| tracked_in(&root()))
}

/// Returns the files of a repository, sorted.
pub(crate) fn tracked_in(root: &Path) -> Vec<PathBuf> {
    let listed = Command::new("git").arg("-C").arg(root).args(["ls-files", "-z"]).output();
    let known = listed.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let mut files: Vec<PathBuf> = if let Some(known) = known.filter(|known| !known.is_empty()) {
        let names = known.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        names.map(|name| root.join(std::str::from_utf8(name).unwrap())).collect()
    } else {
        let walk = walkdir::WalkDir::new(root).into_iter();
        let walk = walk.filter_entry(|entry| entry.file_name() != "target" && entry.file_name() != ".git");
        walk.flatten().filter(|entry| !entry.file_type().is_dir()).map(walkdir::DirEntry::into_path).collect()
    };
    // What was removed or moved, and is not committed yet.
    files.retain(|path| fs::symlink_metadata(path).is_ok());
    files.sort();
    files
}

/// Returns the files of this repository below a directory of it.
pub(crate) fn tracked_below(dir: &Path) -> impl Iterator<Item = &'static Path> {
    tracked().iter().map(PathBuf::as_path).filter(move |path| path.starts_with(dir))
}

/// Writes a file with the directories above it; a script can be executed.
pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    if text.starts_with("#!") {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Copies a directory of this repository, with the modes of its files: into `into` if that exists, or else as `into`.
pub(crate) fn copy(from: &Path, into: &Path) {
    copy_files(tracked_below(from), from, into);
}

/// Returns a copy of a directory of this repository with only what Git knows of it, under the same path below the one returned.
pub(crate) fn copied(path: &str) -> tempfile::TempDir {
    copied_of(&root(), path)
}

/// Returns such a copy of a directory of a repository.
pub(crate) fn copied_of(root: &Path, path: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let from = root.join(path);
    let files = tracked_in(root);
    let below = files.iter().map(PathBuf::as_path).filter(|file| file.starts_with(&from));
    copy_files(below, &from, &dir.path().join(path));
    dir
}

fn copy_files<'a>(files: impl Iterator<Item = &'a Path>, from: &Path, into: &Path) {
    let into = if into.exists() { into.join(from.file_name().unwrap()) } else { into.to_owned() };
    fs::create_dir_all(&into).unwrap();
    for file in files {
        let copied = into.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(copied.parent().unwrap()).unwrap();
        if file.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(file).unwrap(), copied).unwrap();
        } else {
            fs::copy(file, copied).unwrap();
        }
    }
}

#[test]
fn slip_18b_what_somebody_drops_into_the_repository_is_not_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repository");
    write(&root.join("modules/010-a/hooks/10-ours.sh"), "#!/bin/bash\n");
    let git = |arguments: &[&str]| {
        let done = Command::new("git").arg("-C").arg(&root).args(arguments).output();
        done.is_ok_and(|output| output.status.success())
    };
    if !git(&["init", "-q"]) || !git(&["add", "."]) {
        eprintln!("skipped: this machine has no git");
        return;
    }
    write(&root.join("modules/010-a/hooks/30-mine.sh"), "#!/bin/bash\n");
    write(&root.join("try/notes.txt"), "");
    let tracked = tracked_in(&root);
    assert_eq!(tracked, [root.join("modules/010-a/hooks/10-ours.sh")]);
    let copied = dir.path().join("copy");
    fs::create_dir(&copied).unwrap();
    copy_files(tracked.iter().map(PathBuf::as_path), &root.join("modules"), &copied);
    assert_eq!(tracked_in(&copied), [copied.join("modules/010-a/hooks/10-ours.sh")]);
    assert_eq!(
        fs::metadata(copied.join("modules/010-a/hooks/10-ours.sh")).unwrap().permissions().mode() & 0o777,
        0o755
    );
}

/// Returns how `modules` and `global-hooks` of a directory are read.
pub(crate) fn load_options(root: &Path) -> LoadOptions {
    LoadOptions {
        serves_webhooks: false,
        modules_dirs: vec![root.join("modules")],
        bundles_dir: Some(root.join("sources/active")),
        global_hooks_dir: root.join("global-hooks"),
        global_hooks_optional: false,
        unnumbered_order: 1,
        crd_filters: vec!["doc-".into(), "_".into()],
        strict: false,
        environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        config_timeout: Duration::from_secs(5),
        chroots: None,
    }
}

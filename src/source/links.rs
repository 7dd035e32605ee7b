//! The links to bundles that are modules: those in force, and beside them those of the next commit.
//!
//! A link that is made before its bundle is registered needs nothing more of the disk but a rename.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use engine::ModuleLink;

pub(super) const BLOBS: &str = "blobs";
pub(super) const BUNDLE: &str = "bundle";

/// What the name of a link begins with that is not in force yet. The loader skips such names.
const NEXT: &str = ".next-";

/// The directory with the links.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) directory: PathBuf,
}

impl Links {
    /// Returns the links that are neither in force nor made.
    pub(super) fn missing<'l>(&self, links: &'l [ModuleLink]) -> Vec<&'l ModuleLink> {
        let is_missing = |link: &&ModuleLink| !self.is_in_force(link) && !leads(&self.next(link), link);
        links.iter().filter(is_missing).collect()
    }

    /// Makes a link beside those in force.
    pub(super) fn make(&self, link: &ModuleLink) -> io::Result<()> {
        let next = self.next(link);
        if leads(&next, link) {
            return Ok(());
        }
        match fs::remove_file(&next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => symlink(target(link), next),
        }
    }

    /// Removes what was made for registrations that came to nothing. What can't be removed harms nobody: the loader skips it.
    pub(super) fn clear(&self, links: &[ModuleLink]) {
        let wanted: BTreeSet<String> =
            links.iter().filter(|link| !self.is_in_force(link)).map(next_name).collect();
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let is_unwanted = |name: &str| name.starts_with(NEXT) && !wanted.contains(name);
            if entry.file_name().to_str().is_some_and(is_unwanted) {
                drop(fs::remove_file(entry.path()));
            }
        }
    }

    /// Puts exactly these into force. Each is replaced by one rename.
    pub(super) fn replace(&self, links: &[ModuleLink]) -> io::Result<()> {
        let mut names = BTreeSet::new();
        for link in links {
            if !self.is_in_force(link) {
                self.make(link)?;
                fs::rename(self.next(link), self.directory.join(name(link)))?;
            }
            names.insert(name(link));
        }
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            // What is made may be for a commit after this one.
            let stays = |name: &str| names.contains(name) || name.starts_with(NEXT);
            if !entry.file_name().to_str().is_some_and(stays) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Returns the digits of the digests of all bundles that links lead to.
    pub(super) fn digits(&self) -> io::Result<BTreeSet<String>> {
        let mut digits = BTreeSet::new();
        for entry in fs::read_dir(&self.directory)? {
            let target = fs::read_link(entry?.path())?;
            let of_target = target.parent().and_then(Path::file_name).and_then(|name| name.to_str());
            digits.extend(of_target.map(str::to_owned));
        }
        Ok(digits)
    }

    fn is_in_force(&self, link: &ModuleLink) -> bool {
        leads(&self.directory.join(name(link)), link)
    }

    fn next(&self, link: &ModuleLink) -> PathBuf {
        self.directory.join(next_name(link))
    }
}

fn name(link: &ModuleLink) -> String {
    format!("{:03}-{}", link.order, link.name)
}

fn next_name(link: &ModuleLink) -> String {
    format!("{NEXT}{}", name(link))
}

fn target(link: &ModuleLink) -> PathBuf {
    PathBuf::from("..").join(BLOBS).join(link.digest.hex()).join(BUNDLE)
}

fn leads(path: &Path, link: &ModuleLink) -> bool {
    fs::read_link(path).is_ok_and(|found| found == target(link))
}

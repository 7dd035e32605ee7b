//! URLs of files in git repositories.

use std::fmt;

use percent_encoding::percent_decode_str;

use super::error::UrlError;
use super::https::{HttpUrl, Protocols, check_path, has_whole_escapes, split_query};

/// The most bytes of the name of a branch, tag or commit.
const MAX_REF: usize = 255;

/// The URL of an index file in a git repository. It is shown without user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitUrl {
    repository: HttpUrl,
    path: String,
    reference: Option<String>,
    depth: Option<u32>,
}

impl GitUrl {
    /// Reads what stands behind `git::`.
    pub(super) fn parse(text: &str, protocols: Protocols) -> Result<Self, UrlError> {
        let (location, query) = split_query(text);
        let start = location.find("://").map_or(0, |at| at + 3);
        let inner = location.get(start..).and_then(|rest| rest.find("//")).map(|at| start + at);
        let Some((repository, path)) = inner.and_then(|at| location.split_at_checked(at)) else {
            // Whatever else is wrong is more helpful to know.
            HttpUrl::parse(location, protocols)?;
            Options::read(query)?;
            return Err(UrlError::IndexPath);
        };
        let repository = HttpUrl::parse(repository, protocols)?;
        let Options { reference, depth } = Options::read(query)?;
        let path = relative_path(path.trim_start_matches('/'))?;
        Ok(Self { repository, path, reference, depth })
    }

    /// Returns the URL of the repository.
    pub fn repository(&self) -> &HttpUrl {
        &self.repository
    }

    /// Returns the path of the index file in the repository, unescaped, with slashes, without one at either end.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the branch, tag or commit (`ref`); none means the default branch.
    pub fn reference(&self) -> Option<&str> {
        self.reference.as_deref()
    }

    /// Returns how many commits shall be fetched (`depth`).
    pub fn depth(&self) -> Option<u32> {
        self.depth
    }

    /// Returns the path of a directory that lies relative to the index file.
    pub(super) fn directory(&self, relative: &str) -> Result<String, UrlError> {
        if relative.starts_with('/') || relative.split('/').next().is_some_and(|first| first.contains(':')) {
            return Err(UrlError::OutsideRepository);
        }
        let relative = relative.strip_prefix("./").unwrap_or(relative);
        let relative = relative_path(relative.strip_suffix('/').unwrap_or(relative))
            .map_err(|_| UrlError::OutsideRepository)?;
        Ok(match self.path.rsplit_once('/') {
            Some((directory, _)) => format!("{directory}/{relative}"),
            None => relative,
        })
    }
}

impl fmt::Display for GitUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "git::{}//{}", self.repository, self.path)?;
        let reference = self.reference.as_ref().map(|reference| format!("ref={reference}"));
        let depth = self.depth.map(|depth| format!("depth={depth}"));
        let options: Vec<String> = reference.into_iter().chain(depth).collect();
        if options.is_empty() { Ok(()) } else { write!(f, "?{}", options.join("&")) }
    }
}

/// Returns a path in a repository, unescaped.
fn relative_path(text: &str) -> Result<String, UrlError> {
    if text.is_empty() {
        return Err(UrlError::IndexPath);
    }
    if text.ends_with('/') {
        return Err(UrlError::PathInRepository);
    }
    if !has_whole_escapes(text) {
        return Err(UrlError::Escape);
    }
    check_path(text)?;
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| UrlError::Escape)?;
    let is_name = |part: &str| !part.is_empty() && !part.chars().any(|c| c.is_control() || c == '\\');
    if decoded.split('/').all(is_name) { Ok(decoded.into_owned()) } else { Err(UrlError::PathInRepository) }
}

#[derive(Debug, Default)]
struct Options {
    reference: Option<String>,
    depth: Option<u32>,
}

impl Options {
    fn read(query: Option<&str>) -> Result<Self, UrlError> {
        let mut options = Self::default();
        for option in query.unwrap_or_default().split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            if !has_whole_escapes(value) {
                return Err(UrlError::Escape);
            }
            let value = percent_decode_str(value).decode_utf8().map_err(|_| UrlError::Escape)?;
            match name {
                "ref" if options.reference.is_some() => return Err(UrlError::OptionTwice("ref")),
                "depth" if options.depth.is_some() => return Err(UrlError::OptionTwice("depth")),
                "ref" if is_reference(&value) => options.reference = Some(value.into_owned()),
                "ref" => return Err(UrlError::Ref),
                "depth" => options.depth = Some(read_depth(&value)?),
                "sshkey" => return Err(UrlError::SshKey),
                _ => return Err(UrlError::option(name)),
            }
        }
        Ok(options)
    }
}

fn read_depth(value: &str) -> Result<u32, UrlError> {
    let depth: u32 = value.parse().map_err(|_| UrlError::Depth)?;
    if depth == 0 || depth > i32::MAX.cast_unsigned() { Err(UrlError::Depth) } else { Ok(depth) }
}

/// Reports whether git takes this for the name of a branch, a tag or a commit.
fn is_reference(name: &str) -> bool {
    let is_character = |c: char| !c.is_control() && !" ~^:?*[\\".contains(c);
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with('.') && part.strip_suffix(".lock").is_none();
    !name.is_empty()
        && name.len() <= MAX_REF
        && !name.starts_with('-')
        && !name.ends_with('.')
        && name != "@"
        && !name.contains("..")
        && !name.contains("@{")
        && name.chars().all(is_character)
        && name.split('/').all(is_part)
}

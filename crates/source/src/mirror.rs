//! Mirrors: what stands in for a repository that can't be reached. The beginning of a URL is replaced, and nothing else.

use std::fmt;

use crate::allow::{Prefix, PrefixError};
use crate::registry::reference::{ReferenceError, RegistryUrl, is_registry};
use crate::url::{HttpUrl, IndexUrl, Protocols, UrlError};

/// What stands in for URLs that begin with one text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mirror {
    from: String,
    to: String,
}

/// A text that is no mirror.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MirrorError {
    /// There are not two parts.
    #[error("{0:?} is not FROM=TO, such as https://repo.example/=https://mirror.corp/repo/")]
    Parts(String),
    /// One part is no beginning of a URL.
    #[error("{0}")]
    Prefix(#[from] PrefixError),
    /// They are of two kinds.
    #[error(
        "{0:?} stands in for URLs of another kind: both have to begin with oci://, with git::, or with https://"
    )]
    Kinds(String),
}

/// How a URL begins: who is spoken to in which way.
fn kind(url: &str) -> u8 {
    if is_registry(url) { 0 } else { u8::from(url.strip_prefix("git::").is_some()) + 1 }
}

impl Mirror {
    /// Reads `FROM=TO`.
    ///
    /// # Errors
    ///
    /// If one of them can't be the beginning of a URL, or they are of two kinds.
    pub fn parse(text: &str) -> Result<Self, MirrorError> {
        let (from, to) = text.split_once('=').ok_or_else(|| MirrorError::Parts(text.to_owned()))?;
        let read = |part: &str| -> Result<String, MirrorError> {
            let prefix = Prefix::parse(part)?.to_string();
            let host = prefix.rsplit_once("://").map_or("", |(_, rest)| rest);
            // A protocol alone would send everything to one place.
            if host.is_empty() { Err(MirrorError::Parts(text.to_owned())) } else { Ok(prefix) }
        };
        let (from, to) = (read(from)?, read(to)?);
        if kind(&from) != kind(&to) {
            return Err(MirrorError::Kinds(to));
        }
        let bare = |prefix: String| prefix.trim_end_matches('/').to_owned();
        Ok(Self { from: bare(from), to: bare(to) })
    }

    fn replace(&self, url: &str) -> Option<String> {
        let rest = url.strip_prefix(&self.from)?;
        (rest.is_empty() || rest.starts_with(['/', '?'])).then(|| format!("{}{rest}", self.to))
    }
}

/// Writes what stands in.
impl fmt::Display for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to)
    }
}

/// All mirrors of an installation. Of several that fit, the one with the longest beginning counts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Mirrors(Vec<Mirror>);

impl Mirrors {
    /// Returns these mirrors.
    pub fn new(mut mirrors: Vec<Mirror>) -> Self {
        mirrors.sort_by_key(|mirror| std::cmp::Reverse(mirror.from.len()));
        Self(mirrors)
    }

    fn replace(&self, url: &str) -> Option<String> {
        self.0.iter().find_map(|mirror| mirror.replace(url))
    }

    /// Returns what stands in for the URL of an index; `None` if nothing does. User and password do not go to another server.
    ///
    /// # Errors
    ///
    /// If that can't be a URL.
    pub fn index(&self, url: &IndexUrl, protocols: Protocols) -> Result<Option<IndexUrl>, UrlError> {
        if let IndexUrl::Http(url) = url {
            return Ok(self.file(url, protocols)?.map(IndexUrl::Http));
        }
        self.replace(&url.to_string()).map(|text| IndexUrl::parse(&text, protocols)).transpose()
    }

    /// Returns what stands in for the URL of a file on a web server; `None` if nothing does.
    ///
    /// # Errors
    ///
    /// If that can't be a URL.
    pub fn file(&self, url: &HttpUrl, protocols: Protocols) -> Result<Option<HttpUrl>, UrlError> {
        let Some(text) = self.replace(&url.to_string()) else { return Ok(None) };
        let found = HttpUrl::parse(&text, protocols)?;
        Ok(Some(match url.credentials().filter(|_| found.is_same_server(url)) {
            Some(credentials) => found.with_credentials(credentials.user(), credentials.password()),
            None => found,
        }))
    }

    /// Returns what stands in for a registry; `None` if nothing does.
    ///
    /// # Errors
    ///
    /// If that can't be a registry.
    pub fn registry(&self, url: &RegistryUrl) -> Result<Option<RegistryUrl>, ReferenceError> {
        self.replace(&url.to_string()).map(|text| RegistryUrl::parse(&text)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirrors(texts: &[&str]) -> Mirrors {
        Mirrors::new(texts.iter().map(|text| Mirror::parse(text).unwrap()).collect())
    }

    fn index(mirrors: &Mirrors, url: &str) -> Option<String> {
        let url = IndexUrl::parse(url, Protocols::default()).unwrap();
        mirrors.index(&url, Protocols::default()).unwrap().map(|found| found.to_string())
    }

    #[test]
    fn the_longest_beginning_is_replaced_where_a_part_of_the_url_ends() {
        let all = mirrors(&[
            "https://repo.example/=https://mirror.corp/repo",
            "https://repo.example/team=https://team.corp/",
            "git::https://git.example/=git::https://mirror.corp/git/",
            "github.com/o/=git::https://mirror.corp/o/",
        ]);
        for (url, found) in [
            ("https://repo.example/index.yaml", Some("https://mirror.corp/repo/index.yaml")),
            ("https://joe:word@REPO.example:443/index.yaml", Some("https://mirror.corp/repo/index.yaml")),
            ("https://repo.example/team/i?x=1", Some("https://team.corp/i?x=1")),
            ("https://repo.example/team-b/i", Some("https://mirror.corp/repo/team-b/i")),
            ("https://repo.example.org/i", None),
            ("https://repo.example:8443/i", None),
            (
                "git::https://git.example/a.git//i?ref=v1",
                Some("git::https://mirror.corp/git/a.git//i?ref=v1"),
            ),
            ("github.com/o/r//i", Some("git::https://mirror.corp/o/r.git//i")),
            ("https://git.example/a.git", None),
        ] {
            assert_eq!(index(&all, url).as_deref(), found, "{url}");
        }
    }

    #[test]
    fn user_and_password_stay_with_their_server() {
        let all =
            mirrors(&["https://a.example/x=https://a.example/y", "https://b.example=https://c.example"]);
        let file = |url: &str| {
            let url = HttpUrl::parse(url, Protocols::default()).unwrap();
            all.file(&url, Protocols::default()).unwrap().unwrap()
        };
        assert_eq!(file("https://joe:word@a.example/x/i").credentials().unwrap().user(), b"joe");
        assert_eq!(file("https://joe:word@b.example/x/i").credentials(), None);
        assert_eq!(file("https://joe:word@b.example/x/i").to_string(), "https://c.example/x/i");
    }

    #[test]
    fn registries_have_mirrors_of_their_own_kind() {
        let all = mirrors(&["oci://docker.io/me=oci://mirror.corp:5000/hub/me"]);
        let found = |url: &str| {
            let url = RegistryUrl::parse(url).unwrap();
            all.registry(&url).unwrap().map(|found| found.to_string())
        };
        assert_eq!(
            found("oci://joe:word@docker.io/me/web").as_deref(),
            Some("oci://mirror.corp:5000/hub/me/web")
        );
        assert_eq!(found("oci://docker.io/you/web"), None);
    }

    #[test]
    fn what_is_no_mirror_is_refused() {
        for (text, says) in [
            ("https://a.example", "is not FROM=TO"),
            ("https://=https://b.example", "is not FROM=TO"),
            ("https://a.example=https://", "is not FROM=TO"),
            ("oci://=oci://b.example", "is not FROM=TO"),
            ("https://a.example=oci://b.example", "of another kind"),
            ("https://a.example=git::https://b.example", "of another kind"),
            ("https://a.example=ftp://b.example", "not the beginning of a URL"),
            ("https://a.example=https://joe:word@b.example", "has user, password or a query"),
        ] {
            let said = Mirror::parse(text).unwrap_err().to_string();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}

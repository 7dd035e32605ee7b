//! Which URLs of sources may be used, and which private hosts.

use std::fmt;

use crate::registry::reference::{RegistryUrl, is_registry};
use crate::url::{BundleUrl, HttpUrl, IndexUrl, Protocols, UrlError, detect, forced_protocol, read_server};

/// What no host is called.
const ANY: &str = "*";

/// A host that may have a private address, and its port; every port without one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AllowedHost {
    host: String,
    port: Option<u16>,
}

/// A text that is no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not HOST or HOST:PORT, such as repo.corp:8443: {source}")]
pub struct AllowedHostError {
    text: String,
    source: UrlError,
}

impl AllowedHost {
    /// Returns what permits every host: for people who go where they want to.
    pub fn any() -> Self {
        Self { host: ANY.to_owned(), port: None }
    }

    /// Reads `HOST` or `HOST:PORT`; an IPv6 address stands in brackets.
    pub fn parse(text: &str) -> Result<Self, AllowedHostError> {
        let (host, port) =
            read_server(text).map_err(|source| AllowedHostError { text: text.to_owned(), source })?;
        Ok(Self { host, port })
    }

    /// Reports whether this host, as [`HttpUrl::host`] returns it, is meant on this port.
    pub fn permits(&self, host: &str, port: u16) -> bool {
        (self.host == ANY || self.host == host) && self.port.is_none_or(|allowed| allowed == port)
    }
}

/// The beginning of URLs that may be used.
///
/// It ends where a part of the path ends: `https://repo.corp/team` permits `https://repo.corp/team/index.yaml` and not
/// `https://repo.corp/team-b/index.yaml`, and `https://repo.corp` nothing on `repo.corp.example`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix(String);

/// A text that is no prefix of URLs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// It can't be the beginning of a URL.
    #[error(
        "{text:?} is not the beginning of a URL, such as https://repo.corp/ or github.com/OWNER/: {source}"
    )]
    Url {
        /// The text.
        text: String,
        /// Why not.
        source: UrlError,
    },
    /// It has user and password, or a query.
    #[error("{0:?} has user, password or a query: a prefix ends before them")]
    Rest(String),
}

impl Prefix {
    /// Reads a prefix: a protocol (`https://`, `git::`), the short form of a repository's host or owner (`github.com/`,
    /// `github.com/OWNER/`), or the beginning of a URL.
    pub fn parse(text: &str) -> Result<Self, PrefixError> {
        let wrong = |source| PrefixError::Url { text: text.to_owned(), source };
        let shown = match text {
            "https://" | "http://" | "git::" | "git::https://" | "git::http://" | "oci://" => text.to_owned(),
            _ if is_registry(text) => Self::of_registry(text)?,
            _ => {
                let (forced, rest) = forced_protocol(text);
                let is_short = ["github.com/", "bitbucket.org/"].iter().any(|host| rest.starts_with(host));
                let full = match detect(rest) {
                    Ok(Some(url)) => url,
                    Err(_) if is_short => format!("https://{rest}"),
                    Ok(None) | Err(_) => rest.to_owned(),
                };
                let url = HttpUrl::parse(&full, Protocols { has_http: true }).map_err(wrong)?;
                if url.credentials().is_some() || url.query().is_some() {
                    return Err(PrefixError::Rest(text.to_owned()));
                }
                match forced {
                    None if is_short => format!("git::{url}"),
                    None => url.to_string(),
                    Some("git") => format!("git::{url}"),
                    Some(other) => return Err(wrong(UrlError::unsupported(other))),
                }
            }
        };
        Ok(Self(shown))
    }

    /// Returns the beginning of URLs of a registry as those are shown.
    fn of_registry(text: &str) -> Result<String, PrefixError> {
        let server = text.replacen("oci://", "https://", 1);
        let wrong = |source| PrefixError::Url { text: text.to_owned(), source };
        let url = HttpUrl::parse(&server, Protocols::default()).map_err(wrong)?;
        if url.credentials().is_some() || url.query().is_some() {
            return Err(PrefixError::Rest(text.to_owned()));
        }
        Ok(url.to_string().replacen("https://", "oci://", 1))
    }

    fn permits(&self, url: &str) -> bool {
        let Some(rest) = url.strip_prefix(&self.0) else { return false };
        rest.is_empty() || self.0.ends_with(['/', ':']) || rest.starts_with(['/', '?'])
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an installation allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList {
    /// Which protocols may be used.
    pub protocols: Protocols,
    /// Hosts that may have an address that is not public.
    pub hosts: Vec<AllowedHost>,
    /// The beginnings of URLs that may be used; if there are none, all of the supported protocols.
    pub prefixes: Vec<Prefix>,
}

/// A URL that the installation does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the URL begins with none of the prefixes that this installation allows (--source-allow-prefix)")]
pub struct NotAllowed;

impl AllowList {
    /// Checks the URL of an index.
    pub fn check_index(&self, url: &IndexUrl) -> Result<(), NotAllowed> {
        self.check(&url.to_string())
    }

    /// Checks the URL of a bundle. A directory lies in the repository of its index, which was checked.
    pub fn check_bundle(&self, url: &BundleUrl) -> Result<(), NotAllowed> {
        match url {
            BundleUrl::Http(url) => self.check(&url.to_string()),
            BundleUrl::Directory(_) => Ok(()),
        }
    }

    /// Checks the URL of a registry: as people write it, or the server that answers for it.
    pub fn check_registry(&self, url: &RegistryUrl) -> Result<(), NotAllowed> {
        if self.names_registry(url) { Ok(()) } else { self.check(&url.server().to_string()) }
    }

    /// Reports whether a prefix with `oci://` permits a registry.
    pub fn names_registry(&self, url: &RegistryUrl) -> bool {
        let is_named = |prefix: &&Prefix| is_registry(&prefix.0);
        // `oci://host` is shown without the slash with which the prefix ends.
        let url = format!("{}/", url.to_string().trim_end_matches('/'));
        self.prefixes.iter().filter(is_named).any(|prefix| prefix.permits(&url))
    }

    /// Reports whether this host may have an address that is not public.
    pub fn permits_private(&self, host: &str, port: u16) -> bool {
        self.hosts.iter().any(|allowed| allowed.permits(host, port))
    }

    /// Protocols that nobody supports are refused where URLs are read. So only given prefixes have to be looked at.
    fn check(&self, url: &str) -> Result<(), NotAllowed> {
        let is_allowed = self.prefixes.is_empty() || self.prefixes.iter().any(|prefix| prefix.permits(url));
        if is_allowed { Ok(()) } else { Err(NotAllowed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(prefix: &str, url: &str) -> bool {
        let list = AllowList {
            protocols: Protocols { has_http: true },
            prefixes: vec![Prefix::parse(prefix).unwrap()],
            ..AllowList::default()
        };
        list.check_index(&IndexUrl::parse(url, list.protocols).unwrap()).is_ok()
    }

    #[test]
    fn a_prefix_ends_where_a_part_of_a_url_ends() {
        for (prefix, url, expected) in [
            ("https://", "https://h/i", true),
            ("https://", "git::https://h/r//i", false),
            ("https://", "http://h/i", false),
            ("http://", "http://h/i", true),
            ("git::", "git::https://h/r//i", true),
            ("git::", "github.com/o/r//i", true),
            ("github.com/", "github.com/o/r//i", true),
            ("github.com/", "git::https://github.com/o/r.git//i", true),
            ("github.com/", "bitbucket.org/o/r//i", false),
            ("github.com/", "https://github.com/i", false),
            ("github.com/o", "github.com/o/r//i", true),
            ("github.com/o", "github.com/other/r//i", false),
            ("github.com/o/r", "github.com/o/r//i", true),
            ("github.com/o/r", "github.com/o/r2//i", false),
            ("https://repo.corp", "https://repo.corp/i", true),
            ("https://repo.corp", "https://joe:pw@REPO.corp:443/i", true),
            ("https://repo.corp", "https://repo.corp.example/i", false),
            ("https://repo.corp", "https://repo.corp@evil.example/i", false),
            ("https://repo.corp", "https://repo.corp:8443/i", false),
            ("https://repo.corp:8443/", "https://repo.corp:8443/i", true),
            ("https://repo.corp/team", "https://repo.corp/team/i?x=/..", true),
            ("https://repo.corp/team", "https://repo.corp/team-b/i", false),
            ("git::https://h/r.git", "git::https://h/r.git//i", true),
        ] {
            assert_eq!(allows(prefix, url), expected, "{prefix} {url}");
        }
    }

    #[test]
    fn a_registry_is_allowed_as_people_write_it_or_by_its_server() {
        for (prefix, url, is_named, expected) in [
            ("oci://", "oci://a.example/x", true, true),
            ("oci://a.example", "oci://a.example/x", true, true),
            ("oci://a.example/team", "oci://me:word@a.example/team/web", true, true),
            ("oci://a.example/team", "oci://a.example/team", true, true),
            ("oci://a.example/team", "oci://a.example/team-b", false, false),
            ("oci://a.example/", "oci://a.example", true, true),
            ("oci://a.example/", "oci://a.example:5000", false, false),
            ("oci://docker.io/me", "oci://docker.io/me/web", true, true),
            ("https://a.example/", "oci://a.example/x", false, true),
            ("https://", "oci://a.example/x", false, true),
            ("git::", "oci://a.example/x", false, false),
        ] {
            let list = AllowList { prefixes: vec![Prefix::parse(prefix).unwrap()], ..AllowList::default() };
            let url = RegistryUrl::parse(url).unwrap();
            assert_eq!(
                (list.names_registry(&url), list.check_registry(&url).is_ok()),
                (is_named, expected),
                "{prefix} {url}"
            );
        }
        assert!(AllowList::default().check_registry(&RegistryUrl::parse("oci://a/x").unwrap()).is_ok());
        assert!(Prefix::parse("oci://me:word@a.example/").is_err() && Prefix::parse("oci:///x").is_err());
    }

    #[test]
    fn without_prefixes_everything_supported_is_allowed() {
        let url = IndexUrl::parse("https://h/i", Protocols::default()).unwrap();
        assert_eq!(AllowList::default().check_index(&url), Ok(()));
    }

    #[test]
    fn a_bundle_elsewhere_is_checked_too() {
        let list = AllowList { prefixes: vec![Prefix::parse("https://h/").unwrap()], ..AllowList::default() };
        let index = HttpUrl::parse("https://h/i", Protocols::default()).unwrap();
        for (reference, expected) in [("a.tgz", Ok(())), ("https://other/a.tgz", Err(NotAllowed))] {
            let url = BundleUrl::Http(index.join(reference, Protocols::default()).unwrap());
            assert_eq!(list.check_bundle(&url), expected);
        }
        assert_eq!(list.check_bundle(&BundleUrl::Directory("a".to_owned())), Ok(()));
    }

    #[test]
    fn what_is_no_prefix_is_refused() {
        for text in
            ["", "ftp://", "s3::https://h", "https://joe:pw@h/", "https://h/?a", "h", "https://h/../x"]
        {
            assert!(Prefix::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_private_host_is_allowed_by_name_and_port() {
        for (allowed, host, port, expected) in [
            ("repo.corp", "repo.corp", 443, true),
            ("Repo.Corp:8443", "repo.corp", 8443, true),
            ("repo.corp:8443", "repo.corp", 443, false),
            ("corp", "repo.corp", 443, false),
            ("10.0.0.1", "10.0.0.1", 443, true),
            ("[fd00:0::1]:443", "fd00::1", 443, true),
        ] {
            let list =
                AllowList { hosts: vec![AllowedHost::parse(allowed).unwrap()], ..AllowList::default() };
            assert_eq!(list.permits_private(host, port), expected, "{allowed}");
        }
        for text in ["", "https://h", "h:x", "h:0", "h:70000", "a b", "[::1", "*.corp"] {
            assert!(AllowedHost::parse(text).is_err(), "{text}");
        }
    }
}

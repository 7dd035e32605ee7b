//! URLs of sources: where an index file lies, and where its bundles are. See docs/sources.md.
//!
//! The grammar is that of go-getter: a detector (`github.com/OWNER/REPOSITORY` is a git repository), a forced protocol
//! (`git::https://…`), `//` between a repository and a path in it, and options in the query. What is printed never holds
//! user and password.

mod error;
mod git;
mod https;

pub use error::{MAX_URL_BYTES, UrlError};
pub use git::GitUrl;
pub use https::{Credentials, HttpUrl, Protocols, Scheme};

pub(crate) use https::read_server;

/// Where an index file lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexUrl {
    /// A file on a web server.
    Http(HttpUrl),
    /// A file in a git repository.
    Git(GitUrl),
}

/// Where a bundle lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundleUrl {
    /// An archive on a web server.
    Http(HttpUrl),
    /// A directory of the repository in which the index file is: its path there, with slashes, without one at either end.
    Directory(String),
}

impl IndexUrl {
    /// Reads the URL of an index file whose placeholders were filled.
    pub fn parse(text: &str, protocols: Protocols) -> Result<Self, UrlError> {
        https::check_characters(text)?;
        let (forced, rest) = forced_protocol(text);
        if forced.is_some() && forced_protocol(rest).0.is_some() {
            return Err(UrlError::ProtocolTwice);
        }
        let detected = detect(rest)?;
        let rest = detected.as_deref().unwrap_or(rest);
        let forced = forced.map(str::to_ascii_lowercase);
        match forced.as_deref() {
            Some("git") => Ok(Self::Git(GitUrl::parse(rest, protocols)?)),
            None if detected.is_some() => Ok(Self::Git(GitUrl::parse(rest, protocols)?)),
            None => Ok(Self::Http(HttpUrl::parse(rest, protocols)?)),
            Some("s3") => Err(UrlError::S3),
            Some("hg") => Err(UrlError::Mercurial),
            Some(protocol @ ("http" | "https")) => {
                let url = HttpUrl::parse(rest, protocols)?;
                if url.scheme().name() == protocol {
                    Ok(Self::Http(url))
                } else {
                    Err(UrlError::unsupported(protocol))
                }
            }
            Some(other) => Err(UrlError::unsupported(other)),
        }
    }

    /// Returns where a bundle lies: where its index says (`given`), else next to the index file as `<name>-<version>.tgz`, in
    /// a repository as the directory `<name>-<version>`. `version` is written as in the index.
    ///
    /// The query of the index file is not that of a bundle; its credentials are, on the same host.
    pub fn bundle(
        &self,
        name: &str,
        version: &str,
        given: Option<&str>,
        protocols: Protocols,
    ) -> Result<BundleUrl, UrlError> {
        let own = format!("{name}-{version}");
        match (self, given) {
            (Self::Http(index), Some(given)) => index.join(given, protocols).map(BundleUrl::Http),
            (Self::Http(index), None) => Ok(BundleUrl::Http(index.beside(&format!("{own}.tgz"))?)),
            (Self::Git(index), given) => index.directory(given.unwrap_or(&own)).map(BundleUrl::Directory),
        }
    }

    /// Returns the credentials in the URL.
    pub fn credentials(&self) -> Option<&Credentials> {
        match self {
            Self::Http(url) => url.credentials(),
            Self::Git(url) => url.repository().credentials(),
        }
    }
}

impl std::fmt::Display for IndexUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Http(url) => url.fmt(f),
            Self::Git(url) => url.fmt(f),
        }
    }
}

/// Splits `<protocol>::` off.
pub(crate) fn forced_protocol(text: &str) -> (Option<&str>, &str) {
    match text.split_once("::") {
        Some((protocol, rest))
            if !protocol.is_empty() && protocol.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
        {
            (Some(protocol), rest)
        }
        Some(_) | None => (None, text),
    }
}

/// Returns the https URL of a git repository for a short form of it.
pub(crate) fn detect(text: &str) -> Result<Option<String>, UrlError> {
    let Some(host) = ["github.com/", "bitbucket.org/"].into_iter().find(|host| text.starts_with(host)) else {
        return Ok(None);
    };
    let path = text.get(host.len()..).unwrap_or_default();
    let end = path.find("//").into_iter().chain(path.find('?')).min().unwrap_or(path.len());
    let (repository, rest) = path.split_at_checked(end).unwrap_or((path, ""));
    let parts: Vec<&str> = repository.split('/').collect();
    let [owner, name] = parts.as_slice() else { return Err(UrlError::ShortForm) };
    if owner.is_empty() || name.is_empty() {
        return Err(UrlError::ShortForm);
    }
    let suffix = if name.strip_suffix(".git").is_some() { "" } else { ".git" };
    Ok(Some(format!("https://{host}{repository}{suffix}{rest}")))
}

#[cfg(test)]
mod tests;

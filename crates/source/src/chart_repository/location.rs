//! Where the index of a repository is, and where the archive of a version is.

use golang::url::Url;

use crate::url::{HttpUrl, Protocols, UrlError};

/// The file that lists the charts.
const INDEX: &str = "index.yaml";

/// Why a chart can't be had from the place that is named: what URLs of modules say is no advice for charts.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LocationError {
    /// The index names no URL of the archive.
    #[error("the index names no URL of the archive")]
    Missing,
    /// A scheme that nobody supports, or a way to other kinds of repositories.
    #[error(
        "{0:?} is no way to a chart: charts are fetched over https, and from registries as charts of a Repository with oci://"
    )]
    Scheme(String),
    /// A URL without scheme.
    #[error("the URL has no scheme: write https://…, or oci://… for a registry")]
    NoScheme,
    /// Plain http outside of development.
    #[error(
        "http:// is not supported because anybody on the way could change charts: use https:// (--source-develop allows http)"
    )]
    Http,
    /// An index on https names an archive on http.
    #[error(
        "the index was read over https and names an archive on http: it has to be offered over https, too"
    )]
    Downgrade,
    /// An index holds credentials.
    #[error(
        "the index names an archive with user and password: they have to go; those of spec.authSecret are used on the server of the Repository"
    )]
    Credentials,
    /// What else is wrong with it.
    #[error(transparent)]
    Url(UrlError),
}

impl From<UrlError> for LocationError {
    fn from(error: UrlError) -> Self {
        match error {
            UrlError::Unsupported(scheme) => Self::Scheme(scheme),
            UrlError::S3 => Self::Scheme("s3".to_owned()),
            UrlError::Mercurial => Self::Scheme("hg".to_owned()),
            UrlError::Ssh | UrlError::SshKey => Self::Scheme("ssh".to_owned()),
            UrlError::Empty | UrlError::NoScheme | UrlError::ProtocolTwice | UrlError::ShortForm => {
                Self::NoScheme
            }
            UrlError::Http => Self::Http,
            UrlError::Downgrade => Self::Downgrade,
            UrlError::CredentialsInIndex => Self::Credentials,
            other @ (UrlError::Long
            | UrlError::Character(_)
            | UrlError::Host
            | UrlError::Port
            | UrlError::Credentials
            | UrlError::Dots
            | UrlError::Escape
            | UrlError::Fragment
            | UrlError::IndexPath
            | UrlError::PathInRepository
            | UrlError::Option(_)
            | UrlError::OptionTwice(_)
            | UrlError::Ref
            | UrlError::Depth
            | UrlError::OutsideRepository) => Self::Url(other),
        }
    }
}

/// Reads the URL of a repository.
///
/// # Errors
///
/// If it can't be used.
pub fn repository(url: &str, protocols: Protocols) -> Result<HttpUrl, LocationError> {
    Ok(HttpUrl::parse(url, protocols)?)
}

/// Returns the URL of the index of the repository at `base`.
///
/// # Errors
///
/// If the URL of the repository can't be used.
pub fn index(base: &str, protocols: Protocols) -> Result<HttpUrl, LocationError> {
    let base = repository(base, protocols)?;
    let query = base.query().map(str::to_owned);
    Ok(base.below(&format!("/{INDEX}"), query.as_deref()))
}

/// Returns the URL that an entry's `reference` means in the repository at `base`, as Helm finds it. Credentials of the repository
/// go along to its own server, and to no other.
///
/// # Errors
///
/// If one of them can't be used, or leads from https to http.
pub fn archive(base: &HttpUrl, reference: &str, protocols: Protocols) -> Result<HttpUrl, LocationError> {
    if reference.is_empty() {
        return Err(LocationError::Missing);
    }
    let text = base.to_string();
    // Helm's own joining: a directory, whatever is behind its last slash.
    let mut directory = Url::parse(&text).map_err(|_| UrlError::Host)?;
    if !directory.path.ends_with('/') {
        directory.path.push('/');
    }
    let reference = Url::parse(reference).map_err(|_| UrlError::Escape)?;
    let mut resolved = directory.resolve(&reference);
    if reference.host.is_empty() && reference.scheme.is_empty() && resolved.query.is_empty() {
        resolved.query.clone_from(&directory.query);
    }
    Ok(base.join(&resolved.to_string(), protocols)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTTPS: Protocols = Protocols { has_http: false };

    #[test]
    fn an_archive_is_found_as_helm_finds_it() {
        for (base, reference, found) in [
            ("https://a.example/charts", "web-1.0.0.tgz", "https://a.example/charts/web-1.0.0.tgz"),
            ("https://a.example/charts/", "sub/web.tgz", "https://a.example/charts/sub/web.tgz"),
            ("https://a.example/charts", "../web.tgz", "https://a.example/web.tgz"),
            ("https://a.example/charts", "/web.tgz", "https://a.example/web.tgz"),
            ("https://a.example/c?token=x", "web.tgz", "https://a.example/c/web.tgz?token=x"),
            ("https://a.example/c", "https://b.example/web.tgz", "https://b.example/web.tgz"),
            ("https://a.example/c", "//b.example/web.tgz", "https://b.example/web.tgz"),
        ] {
            let base = HttpUrl::parse(base, HTTPS).unwrap();
            assert_eq!(archive(&base, reference, HTTPS).unwrap().to_string(), found, "{reference}");
        }
        assert_eq!(
            index("https://a.example/c/?t=1", HTTPS).unwrap().to_string(),
            "https://a.example/c/index.yaml?t=1"
        );
    }

    #[test]
    fn what_can_not_be_used_says_what_a_chart_needs() {
        for url in
            ["gopher://a", "s3::https://a/b", "git::https://a/b", "git@a:b", "a/b", "http://a.example", ""]
        {
            let said = repository(url, HTTPS).unwrap_err().to_string();
            assert!(
                !["module", "bundle", "git::", "github.com", "index file"]
                    .iter()
                    .any(|word| said.contains(word)),
                "{url}: {said}"
            );
        }
    }

    #[test]
    fn b15_credentials_go_to_their_own_server_only() {
        let base = HttpUrl::parse("https://user:word@a.example/c", HTTPS).unwrap();
        let own = archive(&base, "web.tgz", HTTPS).unwrap();
        assert_eq!(own.credentials(), base.credentials());
        for other in ["https://b.example/web.tgz", "https://a.example:444/web.tgz"] {
            assert_eq!(archive(&base, other, HTTPS).unwrap().credentials(), None, "{other}");
        }
        for (refused, why) in [
            ("http://a.example/web.tgz", LocationError::Downgrade),
            ("https://user:word@a.example/web.tgz", LocationError::Credentials),
            ("file:///etc/passwd", LocationError::Scheme("file".to_owned())),
            ("oci://a.example/web", LocationError::Scheme("oci".to_owned())),
            ("", LocationError::Missing),
        ] {
            assert_eq!(archive(&base, refused, HTTPS).unwrap_err(), why);
        }
    }
}

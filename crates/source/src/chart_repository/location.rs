//! Where the index of a repository is, and where the archive of a version is.

use golang::url::Url;

use crate::url::{HttpUrl, Protocols, UrlError};

/// The file that lists the charts.
const INDEX: &str = "index.yaml";

/// Returns the URL of the index of the repository at `base`.
///
/// # Errors
///
/// If the URL of the repository can't be used.
pub fn index(base: &str, protocols: Protocols) -> Result<HttpUrl, UrlError> {
    let base = HttpUrl::parse(base, protocols)?;
    let query = base.query().map(str::to_owned);
    Ok(base.below(&format!("/{INDEX}"), query.as_deref()))
}

/// Returns the URL that an entry's `reference` means in the repository at `base`, as Helm finds it. Credentials of the repository
/// go along to its own server, and to no other.
///
/// # Errors
///
/// If one of them can't be used, or leads from https to http.
pub fn archive(base: &HttpUrl, reference: &str, protocols: Protocols) -> Result<HttpUrl, UrlError> {
    if reference.is_empty() {
        return Err(UrlError::Empty);
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
    base.join(&resolved.to_string(), protocols)
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
    fn b15_credentials_go_to_their_own_server_only() {
        let base = HttpUrl::parse("https://user:word@a.example/c", HTTPS).unwrap();
        let own = archive(&base, "web.tgz", HTTPS).unwrap();
        assert_eq!(own.credentials(), base.credentials());
        for other in ["https://b.example/web.tgz", "https://a.example:444/web.tgz"] {
            assert_eq!(archive(&base, other, HTTPS).unwrap().credentials(), None, "{other}");
        }
        for (refused, why) in [
            ("http://a.example/web.tgz", UrlError::Downgrade),
            ("https://user:word@a.example/web.tgz", UrlError::CredentialsInIndex),
            ("file:///etc/passwd", UrlError::Unsupported("file".to_owned())),
            ("", UrlError::Empty),
        ] {
            assert_eq!(archive(&base, refused, HTTPS).unwrap_err(), why);
        }
    }
}

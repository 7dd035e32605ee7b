//! Where a registry keeps a chart or a bundle: `oci://HOST/PATH`, its name below it, and the tag of a version.

use std::fmt;

use chart::semver::Version;

use crate::digest::Digest;
use crate::url::{HttpUrl, Protocols, Scheme, UrlError};

/// How URLs of registries begin.
const OCI: &str = "oci://";

/// The most characters of the name of a repository in a registry.
const MAX_NAME: usize = 255;

/// The most characters of a tag.
const MAX_TAG: usize = 128;

/// How many tags are asked for at a time.
const PAGE: &str = "n=1000";

/// The name that people write for Docker Hub, and the host that answers for it.
const HUB: [&str; 2] = ["docker.io", "registry-1.docker.io"];

/// Why an address in a registry can't be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ReferenceError {
    /// It is no URL.
    #[error("{0}")]
    Url(#[from] UrlError),
    /// It has a query.
    #[error(
        "the URL of a registry has no query: write oci://HOST/PATH, the charts are listed in spec.charts, bundles in include"
    )]
    Query,
    /// It names no bundle.
    #[error(
        "the URL names a whole registry, which can't list what it has: write oci://HOST/PATH, or name bundles in include"
    )]
    Whole,
    /// The path or the chart can't be a name there.
    #[error(
        "{0:?} can't be a name in a registry: it has at most {MAX_NAME} small letters, digits, single . and _, and -, between slashes"
    )]
    Name(String),
    /// The version can't be a tag.
    #[error("the version {0:?} can't be a tag of a registry")]
    Tag(String),
}

/// Returns whether a URL is that of a registry.
pub fn is_registry(url: &str) -> bool {
    url.starts_with(OCI)
}

/// A registry, and the path below which its charts are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RegistryUrl {
    server: HttpUrl,
    path: String,
    /// As people write it, without user and password.
    shown: String,
}

/// A repository in a registry: all versions of a chart or of a bundle.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RepositoryReference {
    name: String,
}

impl RegistryUrl {
    /// Reads `oci://HOST/PATH`.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let rest = text.strip_prefix(OCI).ok_or(UrlError::NoScheme)?;
        let url = HttpUrl::parse(&format!("https://{rest}"), Protocols::default())?;
        if url.query().is_some() {
            return Err(ReferenceError::Query);
        }
        let path = url.path().trim_matches('/').to_owned();
        if !path.is_empty() && !is_name(&path) {
            return Err(ReferenceError::Name(path));
        }
        let shown = url.root().to_string();
        let shown = shown.strip_prefix("https://").unwrap_or(&shown).trim_end_matches('/');
        let slash = if path.is_empty() { "" } else { "/" };
        let shown = format!("{OCI}{shown}{slash}{path}");
        let [hub, host] = HUB;
        let server = if url.host() == hub { at(Scheme::Https, host, url.port())? } else { url.root() };
        let server = match url.credentials() {
            Some(credentials) => server.with_credentials(credentials.user(), credentials.password()),
            None => server,
        };
        Ok(Self { server, path, shown })
    }

    /// Returns the server, with user and password if the URL has some.
    pub fn server(&self) -> &HttpUrl {
        &self.server
    }

    /// Returns the same registry with this user and password.
    #[must_use]
    pub fn with_credentials(&self, user: &[u8], password: &[u8]) -> Self {
        Self { server: self.server.with_credentials(user, password), ..self.clone() }
    }

    /// Returns the host as people write it, with its port if that is not the usual one.
    pub fn host(&self) -> &str {
        let rest = self.shown.strip_prefix(OCI).unwrap_or_default();
        rest.split('/').next().unwrap_or_default()
    }

    /// Returns the URL of a repository of this registry, with the same user and password.
    #[must_use]
    pub fn at(&self, repository: &RepositoryReference) -> Self {
        let path = repository.name.clone();
        Self { shown: format!("{OCI}{}/{path}", self.host()), path, server: self.server.clone() }
    }

    /// Returns the repository that the path names.
    ///
    /// # Errors
    ///
    /// If there is no path.
    pub fn repository(&self) -> Result<RepositoryReference, ReferenceError> {
        self.own_name().map(|_| RepositoryReference { name: self.path.clone() })
    }

    /// Returns the name of the only bundle that the URL can mean: the last part of its path.
    ///
    /// # Errors
    ///
    /// If it has no path.
    pub fn own_name(&self) -> Result<&str, ReferenceError> {
        let name = self.path.rsplit('/').next().filter(|name| !name.is_empty());
        name.ok_or(ReferenceError::Whole)
    }

    /// Returns where all versions of a bundle are: below the path, or there if the last part of the path is its name.
    ///
    /// # Errors
    ///
    /// If a registry can't have such a name.
    pub fn bundle(&self, name: &str) -> Result<RepositoryReference, ReferenceError> {
        match self.path.strip_suffix(name) {
            Some(before) if before.is_empty() || before.ends_with('/') => {
                Ok(RepositoryReference { name: self.path.clone() })
            }
            Some(_) | None => self.chart(name),
        }
    }

    /// Returns the same server without TLS: only while developing.
    ///
    /// # Errors
    ///
    /// If its URL can't be written so.
    pub fn plain_server(&self) -> Result<HttpUrl, ReferenceError> {
        at(Scheme::Http, self.server.host(), self.server.port())
    }

    /// Returns a chart below the path.
    ///
    /// # Errors
    ///
    /// If a registry can't have such a name.
    pub fn chart(&self, chart: &str) -> Result<RepositoryReference, ReferenceError> {
        let name = if self.path.is_empty() { chart.to_owned() } else { format!("{}/{chart}", self.path) };
        if is_name(&name) { Ok(RepositoryReference { name }) } else { Err(ReferenceError::Name(name)) }
    }
}

/// Writes the URL without user and password.
impl fmt::Display for RegistryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Returns a server. The port is written in any case, as that of the other scheme is not the same.
fn at(scheme: Scheme, host: &str, port: u16) -> Result<HttpUrl, ReferenceError> {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let text = format!("{}://{host}:{port}", scheme.name());
    Ok(HttpUrl::parse(&text, Protocols { has_http: true })?)
}

impl RepositoryReference {
    /// Returns the name in the registry.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what a token has to permit.
    pub fn scope(&self) -> String {
        format!("repository:{}:pull", self.name)
    }

    /// Returns what a token has to permit for somebody who pushes.
    pub fn push_scope(&self) -> String {
        format!("repository:{}:pull,push", self.name)
    }

    /// Returns the URL where an upload begins.
    pub fn uploads(&self, server: &HttpUrl) -> HttpUrl {
        server.below(&format!("/v2/{}/blobs/uploads/", self.name), None)
    }

    /// Returns the URL of the list of what refers to a manifest.
    pub fn referrers(&self, server: &HttpUrl, manifest: &Digest) -> HttpUrl {
        server.below(&format!("/v2/{}/referrers/{manifest}", self.name), None)
    }

    /// Returns the URL of the first page of tags.
    pub fn tags(&self, server: &HttpUrl) -> HttpUrl {
        server.below(&format!("/v2/{}/tags/list", self.name), Some(PAGE))
    }

    /// Returns the URL of the manifest of a version.
    ///
    /// # Errors
    ///
    /// If the version can't be a tag.
    pub fn manifest(&self, server: &HttpUrl, version: &str) -> Result<HttpUrl, ReferenceError> {
        Ok(server.below(&format!("/v2/{}/manifests/{}", self.name, tag(version)?), None))
    }

    /// Returns the URL of the manifest that has a tag, or a digest.
    pub fn manifest_of(&self, server: &HttpUrl, tag: &str) -> HttpUrl {
        server.below(&format!("/v2/{}/manifests/{tag}", self.name), None)
    }

    /// Returns the URL of what has a digest.
    pub fn blob(&self, server: &HttpUrl, digest: &Digest) -> HttpUrl {
        server.below(&format!("/v2/{}/blobs/{digest}", self.name), None)
    }
}

/// Returns the tag of a version: `+` can't be in one, and is `_` there.
///
/// # Errors
///
/// If it can't be a tag.
pub fn tag(version: &str) -> Result<String, ReferenceError> {
    let tag = version.replace('+', "_");
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_inner = |byte: u8| is_word(byte) || matches!(byte, b'.' | b'-');
    let is_tag = tag.len() <= MAX_TAG && tag.bytes().all(is_inner) && tag.bytes().next().is_some_and(is_word);
    if is_tag { Ok(tag) } else { Err(ReferenceError::Tag(version.to_owned())) }
}

/// Returns the version that a tag stands for; `None` if it is no whole version, such as `latest`, `v1.2.3` or `1.2`, which Helm does
/// not take either.
pub fn version(tag: &str) -> Option<String> {
    let version = tag.replace('_', "+");
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = core.split('.').count() == 3 && core.split('.').all(is_number);
    (tag.len() <= MAX_TAG && is_whole && Version::parse(&version).is_ok()).then_some(version)
}

/// Returns the tag of a version that is named exactly; `None` if it is a range, or no whole version, so that tags have to be listed.
pub fn exact_tag(text: &str) -> Option<String> {
    let tag = tag(text).ok()?;
    (version(&tag).as_deref() == Some(text)).then_some(tag)
}

/// Reports whether a text is a name of a repository in a registry.
fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME && text.split('/').all(is_component)
}

/// Reports whether a text is small letters and digits with separators between them: one dot, one or two underscores, any number of
/// hyphens.
fn is_component(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_separator = |c: char| matches!(c, '.' | '_' | '-');
    let has_ends = text.starts_with(is_letter) && text.ends_with(is_letter);
    let separators = text.split(is_letter).filter(|part| !part.is_empty());
    let is_legal = |part: &str| matches!(part, "." | "_" | "__") || part.bytes().all(|byte| byte == b'-');
    has_ends && text.chars().all(|c| is_letter(c) || is_separator(c)) && separators.into_iter().all(is_legal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_becomes_the_urls_of_the_registry() {
        for (url, tags) in [
            ("oci://a.example/charts", "https://a.example/v2/charts/web/tags/list?n=1000"),
            ("oci://a.example:5000/x/y/", "https://a.example:5000/v2/x/y/web/tags/list?n=1000"),
            ("oci://a.example", "https://a.example/v2/web/tags/list?n=1000"),
            ("oci://docker.io/me", "https://registry-1.docker.io/v2/me/web/tags/list?n=1000"),
            ("oci://[::1]:5000/x", "https://[::1]:5000/v2/x/web/tags/list?n=1000"),
        ] {
            let registry = RegistryUrl::parse(url).unwrap();
            let chart = registry.chart("web").unwrap();
            assert_eq!(chart.tags(registry.server()).to_string(), tags, "{url}");
        }
        let registry = RegistryUrl::parse("oci://me:word@a.example:5000/charts").unwrap();
        let chart = registry.chart("web").unwrap();
        let server = registry.server();
        assert_eq!(server.credentials().unwrap().password(), b"word");
        assert_eq!(
            chart.manifest(server, "1.0.0+3").unwrap().to_string(),
            "https://a.example:5000/v2/charts/web/manifests/1.0.0_3"
        );
        let blob = chart.blob(server, &Digest::of(b""));
        assert!(blob.to_string().starts_with("https://a.example:5000/v2/charts/web/blobs/sha256:e3b0"));
        assert_eq!(registry.plain_server().unwrap().to_string(), "http://a.example:5000/");
        assert_eq!(chart.scope(), "repository:charts/web:pull");
    }

    #[test]
    fn what_is_no_address_or_name_is_refused() {
        for (url, says) in [
            ("https://a.example/charts", "no scheme"),
            ("oci://", "no host"),
            ("oci://a.example/charts?x=1", "no query"),
            ("oci://a.example/Charts", "can't be a name"),
            ("oci://a.example/a//b", "can't be a name"),
            ("oci://a.example/a/../b", ". or .."),
            ("oci://a.example/a%2fb", "can't be a name"),
        ] {
            let error = RegistryUrl::parse(url).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
        }
        let registry = RegistryUrl::parse("oci://a.example/charts").unwrap();
        for (name, is_legal) in [
            ("a", true),
            ("a-b", true),
            ("a--b", true),
            ("a_b", true),
            ("a__b", true),
            ("a.b", true),
            ("a___b", false),
            ("a..b", false),
            ("a.-b", false),
            ("-a", false),
            ("a-", false),
            ("A", false),
            ("", false),
            ("a?b", false),
            (&*"a".repeat(250), false),
        ] {
            assert_eq!(registry.chart(name).is_ok(), is_legal, "{name}");
        }
    }

    #[test]
    fn a_bundle_is_below_the_path_or_the_path_is_its_own() {
        let at = |url: &str, name: &str| RegistryUrl::parse(url).unwrap().bundle(name).unwrap().name;
        assert_eq!(at("oci://a.example/addons", "web"), "addons/web");
        assert_eq!(at("oci://a.example/addons/web/", "web"), "addons/web");
        assert_eq!(at("oci://a.example/web", "web"), "web");
        assert_eq!(at("oci://a.example/the-web", "web"), "the-web/web");
        assert_eq!(at("oci://a.example", "web"), "web");
        assert!(RegistryUrl::parse("oci://a.example/addons").unwrap().bundle("Web").is_err());
        assert_eq!(RegistryUrl::parse("oci://a.example/addons/web").unwrap().own_name(), Ok("web"));
        assert_eq!(RegistryUrl::parse("oci://a.example").unwrap().own_name(), Err(ReferenceError::Whole));
    }

    #[test]
    fn an_address_is_shown_as_it_was_written_without_user_and_password() {
        for (url, shown, host) in [
            ("oci://me:word@A.example:5000/addons/", "oci://a.example:5000/addons", "a.example:5000"),
            ("oci://docker.io/me", "oci://docker.io/me", "docker.io"),
            ("oci://[::1]:5000", "oci://[::1]:5000", "[::1]:5000"),
        ] {
            let registry = RegistryUrl::parse(url).unwrap();
            assert_eq!((registry.to_string().as_str(), registry.host()), (shown, host));
        }
        let registry = RegistryUrl::parse("oci://docker.io/me").unwrap().with_credentials(b"a", b"b");
        assert_eq!(registry.server().credentials().unwrap().user(), b"a");
    }

    #[test]
    fn a_version_that_is_whole_needs_no_list_of_tags() {
        for (text, tag) in [
            ("1.2.3", Some("1.2.3")),
            ("1.2.3-rc.1+5", Some("1.2.3-rc.1_5")),
            ("~1.2", None),
            ("1.2", None),
            ("1.x", None),
            (">=1.0.0", None),
            ("v1.2.3", None),
        ] {
            assert_eq!(exact_tag(text).as_deref(), tag, "{text}");
        }
    }

    #[test]
    fn a_tag_stands_for_a_whole_version_as_helm_takes_it() {
        for (tag, found) in [
            ("1.0.0", Some("1.0.0")),
            ("1.0.0-rc.1_3", Some("1.0.0-rc.1+3")),
            ("1.0.0_a_b", None),
            ("latest", None),
            ("v1.0.0", None),
            ("1.0", None),
            ("1.0.0.0", None),
            ("sha256-aaaa.sig", None),
            ("", None),
        ] {
            assert_eq!(version(tag).as_deref(), found, "{tag}");
        }
        for (version, found) in [("1.0.0+3", Some("1.0.0_3")), ("", None), (".1", None), ("1/2", None)] {
            assert_eq!(super::tag(version).ok().as_deref(), found, "{version}");
        }
        assert!(super::tag(&"1".repeat(MAX_TAG + 1)).is_err());
    }
}

//! URLs of files on web servers.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use golang::url::without_dots;
use percent_encoding::percent_decode_str;

use super::error::{MAX_URL_BYTES, UrlError};

/// The most characters of a host, as DNS has it.
const MAX_HOST: usize = 253;

/// The most characters of one part of a host.
const MAX_LABEL: usize = 63;

/// Which protocols may be used beside https.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocols {
    /// Whether plain http may be used: only while developing.
    pub has_http: bool,
}

/// How a web server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// With TLS.
    Https,
    /// Without it.
    Http,
}

impl Scheme {
    /// Returns the name in URLs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    /// Returns the port that is used if the URL has none.
    pub fn port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }
}

/// User and password of a URL, unescaped. Nothing prints them.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: Vec<u8>,
    password: Vec<u8>,
}

impl Credentials {
    fn parse(text: &str) -> Result<Self, UrlError> {
        // A further @ or / would make it unclear where the host begins.
        if text.contains('@') || !has_whole_escapes(text) {
            return Err(UrlError::Credentials);
        }
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let (user, password) = (percent_decode_str(user).collect(), percent_decode_str(password).collect());
        Ok(Self { user, password })
    }

    /// Returns the user.
    pub fn user(&self) -> &[u8] {
        &self.user
    }

    /// Returns the password; empty if there is none.
    pub fn password(&self) -> &[u8] {
        &self.password
    }

    /// Returns the value of the header `Authorization`.
    pub fn authorization(&self) -> String {
        format!("Basic {}", self.token())
    }

    /// Returns user and password as the header holds them, in base64.
    pub(crate) fn token(&self) -> String {
        STANDARD.encode([&self.user, b":".as_slice(), &self.password].concat())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The URL of a file on a web server. It is shown without user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpUrl {
    scheme: Scheme,
    credentials: Option<Credentials>,
    host: String,
    port: u16,
    path: String,
    query: Option<String>,
}

impl HttpUrl {
    /// Reads an absolute URL.
    pub fn parse(text: &str, protocols: Protocols) -> Result<Self, UrlError> {
        check_characters(text)?;
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(if is_ssh(text) { UrlError::Ssh } else { UrlError::NoScheme });
        };
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "https" => Scheme::Https,
            "http" if protocols.has_http => Scheme::Http,
            "http" => return Err(UrlError::Http),
            "ssh" | "git+ssh" => return Err(UrlError::Ssh),
            "s3" => return Err(UrlError::S3),
            _ => return Err(UrlError::unsupported(scheme)),
        };
        if rest.contains('#') {
            return Err(UrlError::Fragment);
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let (credentials, server) = match authority.rsplit_once('@') {
            Some((credentials, server)) => (Some(Credentials::parse(credentials)?), server),
            None => (None, authority),
        };
        let (host, port) = read_server(server)?;
        let (path, query) = split_query(rest);
        let path = if path.is_empty() { "/" } else { path };
        check_path(path)?;
        if !has_whole_escapes(rest) {
            return Err(UrlError::Escape);
        }
        let port = port.unwrap_or_else(|| scheme.port());
        let (path, query) = (path.to_owned(), query.map(str::to_owned));
        Ok(Self { scheme, credentials, host, port, path, query })
    }

    /// Returns how the server is spoken to.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns user and password.
    pub fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// Returns the host in small letters, an IPv6 address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port, also if the URL has none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path, which begins with a slash, as it was written.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns what stands behind the question mark, as it was written.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// Returns the same URL with this user and password.
    #[must_use]
    pub fn with_credentials(&self, user: &[u8], password: &[u8]) -> Self {
        let credentials = Credentials { user: user.to_vec(), password: password.to_vec() };
        Self { credentials: Some(credentials), ..self.clone() }
    }

    /// Returns the same URL without user and password.
    #[must_use]
    pub fn without_credentials(&self) -> Self {
        Self { credentials: None, ..self.clone() }
    }

    /// Returns the same URL with this behind the question mark; nothing if it is empty.
    #[must_use]
    pub fn with_query(&self, query: &str) -> Self {
        Self { query: Some(query.to_owned()).filter(|query| !query.is_empty()), ..self.clone() }
    }

    /// Returns the root of the server, without user and password.
    #[must_use]
    pub fn root(&self) -> Self {
        Self { credentials: None, path: "/".to_owned(), query: None, ..self.clone() }
    }

    /// Reports whether both are on the same server: scheme, host and port are equal.
    pub fn is_same_server(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }

    /// Returns the URL that a redirect, or an index, names: one with a scheme, or a path from this URL on.
    ///
    /// It never leads from https to http. Credentials of this URL are those of the other one on the same server only; the
    /// other one brings none itself.
    pub fn join(&self, reference: &str, protocols: Protocols) -> Result<Self, UrlError> {
        check_characters(reference)?;
        if reference.contains('#') {
            return Err(UrlError::Fragment);
        }
        let (before_query, _) = split_query(reference);
        if let Some(rest) = reference.strip_prefix("//") {
            return self.join_absolute(&format!("{}://{rest}", self.scheme.name()), protocols);
        }
        if before_query.split('/').next().is_some_and(|first| first.contains(':')) {
            return self.join_absolute(reference, protocols);
        }
        self.beside(reference)
    }

    /// Returns the URL that a redirect names, as [`Self::join`] does. Its path may have `.` and `..`, which never lead above the
    /// root of the server. Escaped ones are refused.
    pub fn redirected(&self, location: &str, protocols: Protocols) -> Result<Self, UrlError> {
        let (before_query, query) = split_query(location);
        let has_server = before_query.split('/').next().is_some_and(|first| first.contains(':'))
            || before_query.starts_with("//");
        if has_server || !before_query.split('/').any(|part| matches!(part, "." | "..")) {
            return self.join(location, protocols);
        }
        let path = without_dots(&self.path_of(before_query));
        self.join(&query.map_or_else(|| path.clone(), |query| format!("{path}?{query}")), protocols)
    }

    fn join_absolute(&self, text: &str, protocols: Protocols) -> Result<Self, UrlError> {
        // An index on http may name https and, while developing, http.
        let all = Protocols { has_http: true };
        let mut url = Self::parse(text, all)?;
        if url.credentials.is_some() {
            return Err(UrlError::CredentialsInIndex);
        }
        if url.scheme == Scheme::Http && self.scheme == Scheme::Https {
            return Err(UrlError::Downgrade);
        }
        if url.scheme == Scheme::Http && !protocols.has_http {
            return Err(UrlError::Http);
        }
        if self.is_same_server(&url) {
            url.credentials.clone_from(&self.credentials);
        }
        Ok(url)
    }

    /// Returns the URL of a path on the same server, relative to the directory of this file or from the root on.
    pub(super) fn beside(&self, reference: &str) -> Result<Self, UrlError> {
        let (path, query) = split_query(reference);
        if !has_whole_escapes(reference) {
            return Err(UrlError::Escape);
        }
        let path = self.path_of(path.strip_prefix("./").unwrap_or(path));
        check_path(&path)?;
        let url = Self { path, query: query.map(str::to_owned), ..self.clone() };
        if url.to_string().len() > MAX_URL_BYTES { Err(UrlError::Long) } else { Ok(url) }
    }

    /// Returns a path on the same server, which is relative to the directory of this file or begins at the root.
    fn path_of(&self, path: &str) -> String {
        if path.starts_with('/') {
            return path.to_owned();
        }
        let directory = self.path.rfind('/').and_then(|slash| self.path.get(..=slash)).unwrap_or("/");
        format!("{directory}{path}")
    }

    /// Returns the URL of what lies below this one, with a query of its own.
    #[must_use]
    pub fn below(&self, path: &str, query: Option<&str>) -> Self {
        let path = format!("{}{path}", self.path.trim_end_matches('/'));
        Self { path, query: query.map(str::to_owned), ..self.clone() }
    }

    /// Returns the URL that has `path` below it, if this is that one.
    #[must_use]
    pub fn above(&self, path: &str) -> Option<Self> {
        let rest = self.path.strip_suffix(path)?;
        Some(Self { path: rest.to_owned(), query: None, ..self.clone() })
    }

    /// Returns scheme, host and port, as the beginning of the URL has them.
    fn write_server(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.host;
        write!(f, "{}://", self.scheme.name())?;
        let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{open}{host}{close}")?;
        if self.port == self.scheme.port() { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

/// Writes what a request asks for: the URL without user and password.
impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_server(f)?;
        f.write_str(&self.path)?;
        match &self.query {
            Some(query) => write!(f, "?{query}"),
            None => Ok(()),
        }
    }
}

/// Splits a query off, without its question mark.
pub(super) fn split_query(text: &str) -> (&str, Option<&str>) {
    text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)))
}

/// Checks the length, and that every character may be in a URL.
pub(super) fn check_characters(text: &str) -> Result<(), UrlError> {
    if text.is_empty() {
        return Err(UrlError::Empty);
    }
    if text.len() > MAX_URL_BYTES {
        return Err(UrlError::Long);
    }
    let is_url = |c: char| c.is_ascii_graphic() && !r#""<>\^`{|}"#.contains(c);
    match text.chars().position(|c| !is_url(c)) {
        Some(at) => Err(UrlError::Character(at + 1)),
        None => Ok(()),
    }
}

/// Reports whether each percent sign is followed by two hexadecimal digits.
pub(super) fn has_whole_escapes(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|part| part.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)))
}

/// Checks that no part of a path is `.` or `..`, in whatever way it is written: servers resolve them, and a prefix that is
/// allowed would be left.
pub(super) fn check_path(path: &str) -> Result<(), UrlError> {
    let is_dots = |part: &str| {
        let decoded: Vec<u8> = percent_decode_str(part).collect();
        // An escaped slash or backslash may be one for the server.
        decoded.split(|byte| matches!(byte, b'/' | b'\\')).any(|part| matches!(part, b"." | b".."))
    };
    if path.split('/').any(is_dots) { Err(UrlError::Dots) } else { Ok(()) }
}

/// Reports whether this is what git takes for SSH: `user@host:path`.
fn is_ssh(text: &str) -> bool {
    text.split_once(':').is_some_and(|(server, _)| server.contains('@') && !server.contains('/'))
}

/// Reads host and port, the host in small letters and without brackets.
pub(crate) fn read_server(text: &str) -> Result<(String, Option<u16>), UrlError> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest.split_once(']').ok_or(UrlError::Host)?;
        let address: Ipv6Addr = address.parse().map_err(|_| UrlError::Host)?;
        let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or(UrlError::Host)?) };
        (address.to_string(), port)
    } else {
        let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
        (read_host(host)?, port)
    };
    let port = match port {
        None | Some("") => None,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(port.parse().ok().filter(|port| *port > 0).ok_or(UrlError::Port)?)
        }
        Some(_) => return Err(UrlError::Port),
    };
    Ok((host, port))
}

/// Returns a name or an IPv4 address in small letters, without a dot at its end.
fn read_host(text: &str) -> Result<String, UrlError> {
    let host = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_label = |label: &str| {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.len() <= MAX_LABEL && label.bytes().all(is_word)
    };
    if host.is_empty() || host.len() > MAX_HOST || !host.split('.').all(is_label) {
        return Err(UrlError::Host);
    }
    // 127.1 and 0x7f000001 are addresses for some resolvers. A name never ends so.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_number && host.parse::<Ipv4Addr>().is_err() { Err(UrlError::Host) } else { Ok(host) }
}

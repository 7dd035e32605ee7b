//! The parts of a URL, and how they are put together.

use std::fmt;

use super::escape::{Mode, escaped};

/// A URL in parts; everything but the query is unescaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// What stands before the first colon, in lower case.
    pub scheme: String,
    /// What stands behind the scheme if it is not a path.
    pub opaque: String,
    /// Name and password.
    pub user: Option<UserInfo>,
    /// Host and port.
    pub host: String,
    /// The path.
    pub path: String,
    /// What stands behind the question mark, as it is.
    pub query: String,
    /// A question mark with nothing behind it.
    pub force_query: bool,
    /// What stands behind the hash sign.
    pub fragment: String,
    /// Whether the scheme is followed by a path at once.
    pub omit_host: bool,
}

/// Name and password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The name.
    pub name: String,
    /// The password.
    pub password: Option<String>,
}

impl Url {
    /// Returns the host without port and brackets.
    pub fn hostname(&self) -> &str {
        let host = match self.host.rfind(':') {
            Some(colon) => match self.host.split_at_checked(colon) {
                Some((host, port)) if is_port(port) => host,
                _ => self.host.as_str(),
            },
            None => self.host.as_str(),
        };
        host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host)
    }

    /// Returns the path as `text`, which was parsed, writes it; nothing if it is written as usual.
    pub fn raw_path<'t>(&self, text: &'t str) -> &'t str {
        let text = text.split(['?', '#']).next().unwrap_or_default();
        let text =
            if self.scheme.is_empty() { text } else { text.split_once(':').map_or("", |(_, rest)| rest) };
        let authority = text.strip_prefix("//").filter(|_| !self.host.is_empty() || self.user.is_some());
        let path = match authority {
            Some(authority) => authority.find('/').and_then(|at| authority.get(at..)).unwrap_or_default(),
            None => text,
        };
        if path == escaped(&self.path, Mode::Path) { "" } else { path }
    }
}

impl fmt::Display for UserInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escaped(&self.name, Mode::User))?;
        if let Some(password) = &self.password {
            write!(f, ":{}", escaped(password, Mode::User))?;
        }
        Ok(())
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            self.write_authority_and_path(f)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if self.force_query || !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", escaped(&self.fragment, Mode::Fragment))?;
        }
        Ok(())
    }
}

impl Url {
    /// Writes user, host and path.
    fn write_authority_and_path(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_placed = !self.host.is_empty() || !self.path.is_empty() || self.user.is_some();
        let bare = self.omit_host && self.host.is_empty() && self.user.is_none();
        if (!self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some()) && !bare {
            if is_placed {
                f.write_str("//")?;
            }
            if let Some(user) = &self.user {
                write!(f, "{user}@")?;
            }
            f.write_str(&escaped(&self.host, Mode::Host))?;
        }
        let path = if self.path == "*" { "*".to_owned() } else { escaped(&self.path, Mode::Path) };
        if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
            f.write_str("/")?;
        }
        // The first part of a bare path must not look like a scheme.
        let is_bare = self.scheme.is_empty() && self.host.is_empty() && self.user.is_none();
        if is_bare && path.split('/').next().is_some_and(|first| first.contains(':')) {
            f.write_str("./")?;
        }
        f.write_str(&path)
    }
}

/// Reports whether this is nothing, or a colon with digits.
pub(super) fn is_port(port: &str) -> bool {
    port.is_empty() || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

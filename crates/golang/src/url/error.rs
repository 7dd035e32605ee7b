//! Why a text is not a URL.

/// Why a text is not a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parse {url}: {kind}")]
pub struct UrlError {
    /// The text, quoted.
    pub(super) url: String,
    /// What is wrong.
    pub kind: UrlErrorKind,
}

/// What is wrong with a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlErrorKind {
    /// A path without a scheme that looks like one.
    #[error("first path segment in URL cannot contain colon")]
    Colon,
    /// A control character.
    #[error("net/url: invalid control character in URL")]
    Control,
    /// A percent sign without two hexadecimal digits.
    #[error("invalid URL escape {}", quoted(.0))]
    Escape(String),
    /// A character that a host cannot hold.
    #[error("invalid character {} in host name", quoted(&.0.to_string()))]
    HostCharacter(char),
    /// What stands in brackets is not an address of IPv6.
    #[error("invalid host: {0}")]
    Address(String),
    /// A bracket inside of the host, or an address of IPv4 in brackets.
    #[error("invalid IP-literal")]
    Literal,
    /// An address in brackets that does not end.
    #[error("missing ']' in host")]
    MissingBracket,
    /// A colon with nothing before.
    #[error("missing protocol scheme")]
    MissingScheme,
    /// Behind the host stands a colon, but no number.
    #[error("invalid port {} after host", quoted(.0))]
    Port(String),
    /// A character that name and password cannot hold.
    #[error("net/url: invalid userinfo")]
    UserInfo,
}

pub(super) fn quoted(text: &str) -> String {
    crate::strconv::quote(text.as_bytes())
}

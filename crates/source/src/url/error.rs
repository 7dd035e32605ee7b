//! Why a URL can't be used.

/// The most bytes of a URL.
pub const MAX_URL_BYTES: usize = 4096;

/// How much of a scheme is quoted, in characters.
const QUOTED: usize = 32;

/// Why a URL can't be used. No text quotes more of the URL than a scheme or the name of an option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The URL is empty.
    #[error("the URL is empty: write the URL of an index file")]
    Empty,
    /// The URL is too long.
    #[error("the URL is longer than {MAX_URL_BYTES} bytes")]
    Long,
    /// A character that a URL can't hold.
    #[error("the character {0} of the URL can't be in a URL: write it as % and its two hexadecimal digits")]
    Character(usize),
    /// A scheme or forced protocol that nobody supports.
    #[error(
        "{0:?} is not supported: write https://…, git::https://…, github.com/OWNER/REPOSITORY//PATH or bitbucket.org/OWNER/REPOSITORY//PATH"
    )]
    Unsupported(String),
    /// Two forced protocols.
    #[error("the URL names two protocols in front of ::, such as git::git::: write one of them")]
    ProtocolTwice,
    /// Neither a scheme nor a short form.
    #[error(
        "the URL has no scheme: write https://…, git::https://…, github.com/OWNER/REPOSITORY//PATH or bitbucket.org/OWNER/REPOSITORY//PATH"
    )]
    NoScheme,
    /// Plain http outside of development.
    #[error(
        "http:// is not supported because anybody on the way could change modules: write https:// (--source-develop allows http)"
    )]
    Http,
    /// Amazon S3.
    #[error(
        "s3:: is not supported: there is no client for S3 and its signatures here; offer the same files over https://"
    )]
    S3,
    /// Mercurial.
    #[error(
        "hg:: is not supported: there is no client for Mercurial here; offer the same files over https:// or git::https://"
    )]
    Mercurial,
    /// git over SSH.
    #[error(
        "git over SSH is not supported: write git::https://HOST/…, with placeholders for a Secret's keys as user and password in front of the host"
    )]
    Ssh,
    /// A key for git over SSH.
    #[error(
        "the option sshkey is not supported because git over SSH is not: remove it and write git::https://HOST/…, with placeholders for a Secret's keys as user and password in front of the host"
    )]
    SshKey,
    /// A short form that does not name a repository.
    #[error(
        "a short URL of a repository is github.com/OWNER/REPOSITORY//PATH or bitbucket.org/OWNER/REPOSITORY//PATH"
    )]
    ShortForm,
    /// The host is missing or is none.
    #[error("the URL has no host, or one that is no name and no address")]
    Host,
    /// The port is no port.
    #[error("the port of the URL is not a number from 1 to 65535")]
    Port,
    /// User and password can't be read.
    #[error("user and password of the URL can't be read: write @ : / in them as %40 %3A %2F")]
    Credentials,
    /// The path has `.` or `..`.
    #[error("the path of the URL has . or .. in it: write the path without them")]
    Dots,
    /// A percent sign without digits.
    #[error("the URL has a % without two hexadecimal digits: write a percent sign as %25")]
    Escape,
    /// There is a fragment.
    #[error("the URL has a fragment (#…), which no server gets: remove it, or write # as %23")]
    Fragment,
    /// No path in the repository.
    #[error(
        "the path of the index file in the repository is missing: write // and the path behind the repository, such as …/addons.git//index.yaml"
    )]
    IndexPath,
    /// A path in the repository that can't be one.
    #[error(
        "the path behind // of the URL has an empty part, ends with a slash, or has a backslash or control character: write it such as …/addons.git//stable/index.yaml"
    )]
    PathInRepository,
    /// An option that git URLs do not have.
    #[error("the option {0:?} of a git URL is not known: there are ref and depth")]
    Option(String),
    /// An option is given twice.
    #[error("the option {0} is given twice: remove one of them")]
    OptionTwice(&'static str),
    /// The name of a branch, tag or commit can't be one.
    #[error("the option ref names no branch, tag or commit: see `git check-ref-format`")]
    Ref,
    /// The depth is no number.
    #[error("the option depth is not a number from 1 to {}", i32::MAX)]
    Depth,
    /// An index or a redirect leads from https to http.
    #[error("the URL leads from https to http: offer what is there over https, too")]
    Downgrade,
    /// An index or a redirect holds credentials.
    #[error(
        "the URL has user and password: remove them there; those of the URL that was asked are used on its host"
    )]
    CredentialsInIndex,
    /// An index in a repository names a bundle elsewhere.
    #[error(
        "the index lies in a repository and names a bundle outside of it: write the path of a directory next to the index"
    )]
    OutsideRepository,
}

impl UrlError {
    /// Returns the error of a scheme or protocol; a long one is cut. What can be none is not quoted: who forgets the scheme
    /// has user and password there.
    pub(crate) fn unsupported(name: &str) -> Self {
        Self::Unsupported(quoted(name))
    }

    /// Returns the error of an option that is not known; a long name is cut, what can be none is not quoted.
    pub(super) fn option(name: &str) -> Self {
        Self::Option(quoted(name))
    }
}

/// Returns a name for a message: its beginning, or dots if it can be no name.
fn quoted(name: &str) -> String {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_');
    let name = if name.bytes().all(is_legal) { name } else { "…" };
    name.chars().take(QUOTED).collect()
}

//! A version: three numbers, a pre-release and metadata.

use std::cmp::Ordering;
use std::fmt;

/// Why a text is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The text does not have the shape of a version.
    #[error("invalid semantic version")]
    Invalid,
    /// The metadata holds a character that is not allowed there.
    #[error("invalid metadata string")]
    Metadata,
    /// The pre-release holds a character that is not allowed there.
    #[error("invalid prerelease string")]
    Prerelease,
    /// A number of the version does not fit into 64 bits.
    #[error("error parsing version segment: strconv.ParseUint: parsing \"{0}\": value out of range")]
    SegmentRange(String),
    /// A number of the pre-release begins with a zero.
    #[error("version segment starts with 0")]
    SegmentZero,
}

/// A version, remembering how it was written.
#[derive(Clone, Debug, Default)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    prerelease: String,
    metadata: String,
    original: String,
}

impl Version {
    /// Reads a version; a leading `v`, missing numbers and leading zeros are accepted.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let rest = text.strip_prefix('v').unwrap_or(text);
        let (major, mut rest) = digits(rest).ok_or(VersionError::Invalid)?;
        let mut numbers = [major, "0", "0"];
        for number in numbers.iter_mut().skip(1) {
            let Some((found, after)) = rest.strip_prefix('.').and_then(digits) else {
                break;
            };
            *number = found;
            rest = after;
        }
        let (rest, metadata) = match rest.split_once('+') {
            Some((before, metadata)) => (before, Some(metadata)),
            None => (rest, None),
        };
        let prerelease = match rest.strip_prefix('-') {
            Some(prerelease) => Some(prerelease),
            None if rest.is_empty() => None,
            None => return Err(VersionError::Invalid),
        };
        if ![prerelease, metadata].into_iter().flatten().all(is_dotted) {
            return Err(VersionError::Invalid);
        }
        let [major, minor, patch] = numbers;
        let version = Self {
            major: segment(major)?,
            minor: segment(minor)?,
            patch: segment(patch)?,
            prerelease: prerelease.unwrap_or_default().to_owned(),
            metadata: metadata.unwrap_or_default().to_owned(),
            original: text.to_owned(),
        };
        check_prerelease(&version.prerelease)?;
        Ok(version)
    }

    /// Returns the first number.
    pub fn major(&self) -> u64 {
        self.major
    }

    /// Returns the second number.
    pub fn minor(&self) -> u64 {
        self.minor
    }

    /// Returns the third number.
    pub fn patch(&self) -> u64 {
        self.patch
    }

    /// Returns the text after `-`, or nothing.
    pub fn prerelease(&self) -> &str {
        &self.prerelease
    }

    /// Returns the text after `+`, or nothing.
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// Returns the version as it was written.
    pub fn original(&self) -> &str {
        &self.original
    }

    /// Returns the next major version.
    #[must_use]
    pub fn next_major(&self) -> Self {
        self.successor(self.major.wrapping_add(1), 0, 0)
    }

    /// Returns the next minor version.
    #[must_use]
    pub fn next_minor(&self) -> Self {
        self.successor(self.major, self.minor.wrapping_add(1), 0)
    }

    /// Returns the next patch version: the release itself if this is a pre-release.
    #[must_use]
    pub fn next_patch(&self) -> Self {
        let patch = if self.prerelease.is_empty() { self.patch.wrapping_add(1) } else { self.patch };
        self.successor(self.major, self.minor, patch)
    }

    /// Returns this version with another pre-release.
    pub fn with_prerelease(&self, prerelease: &str) -> Result<Self, VersionError> {
        check_characters(prerelease, &VersionError::Prerelease)?;
        check_prerelease(prerelease)?;
        Ok(Self { prerelease: prerelease.to_owned(), ..self.clone() }.rewritten())
    }

    /// Returns this version with other metadata.
    pub fn with_metadata(&self, metadata: &str) -> Result<Self, VersionError> {
        check_characters(metadata, &VersionError::Metadata)?;
        Ok(Self { metadata: metadata.to_owned(), ..self.clone() }.rewritten())
    }

    fn successor(&self, major: u64, minor: u64, patch: u64) -> Self {
        Self { major, minor, patch, original: self.original.clone(), ..Self::default() }.rewritten()
    }

    /// Writes `original` anew, keeping a leading `v`.
    fn rewritten(mut self) -> Self {
        let v = if self.original.starts_with('v') { "v" } else { "" };
        self.original = format!("{v}{self}");
        self
    }

    /// Orders by precedence; metadata does not count.
    pub fn precedence(&self, other: &Self) -> Ordering {
        self.major
            .cmp(&other.major)
            .then(self.minor.cmp(&other.minor))
            .then(self.patch.cmp(&other.patch))
            .then_with(|| prerelease_precedence(&self.prerelease, &other.prerelease))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

/// Orders pre-releases; none at all is the greatest.
fn prerelease_precedence(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut left, mut right) = (left.split('.'), right.split('.'));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (Some(a), Some(b)) => part_precedence(a, b),
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Numbers are less than words; numbers that don't fit into 64 bits are words.
fn part_precedence(left: &str, right: &str) -> Ordering {
    match (left.parse::<u64>(), right.parse::<u64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => left.cmp(right),
    }
}

/// Splits off the digits at the start, of which there must be one.
fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Reports whether this is a non-empty list of words with dots between.
fn is_dotted(text: &str) -> bool {
    text.split('.').all(|part| !part.is_empty() && part.bytes().all(is_word_byte))
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn segment(text: &str) -> Result<u64, VersionError> {
    text.parse().map_err(|_| VersionError::SegmentRange(text.to_owned()))
}

fn check_prerelease(prerelease: &str) -> Result<(), VersionError> {
    let zero = prerelease
        .split('.')
        .any(|part| part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit()));
    if zero { Err(VersionError::SegmentZero) } else { Ok(()) }
}

fn check_characters(text: &str, error: &VersionError) -> Result<(), VersionError> {
    if text.is_empty() || text.bytes().all(|b| is_word_byte(b) || b == b'.') {
        Ok(())
    } else {
        Err(error.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_loosely() {
        for (text, shown) in [
            ("1", "1.0.0"),
            ("v1.2", "1.2.0"),
            ("01.2.3", "1.2.3"),
            ("1.2.3-a.b+c.d", "1.2.3-a.b+c.d"),
            ("1-rc+x", "1.0.0-rc+x"),
            ("1.2+a-b", "1.2.0+a-b"),
        ] {
            let version = Version::parse(text).unwrap();
            assert_eq!(version.to_string(), shown, "{text}");
            assert_eq!(version.original(), text);
        }
    }

    #[test]
    fn what_is_not_a_version_says_why() {
        for text in ["", "x", "1.2.3.4", " 1", "1 ", "1.", "1-", "1-a..b", "1+", "vv1", "1.2.3-a_b"] {
            assert_eq!(Version::parse(text).unwrap_err(), VersionError::Invalid, "{text:?}");
        }
        assert_eq!(Version::parse("1.2.3-01").unwrap_err(), VersionError::SegmentZero);
        assert_eq!(
            Version::parse("1.99999999999999999999").unwrap_err().to_string(),
            "error parsing version segment: strconv.ParseUint: parsing \"99999999999999999999\": value out of range"
        );
    }

    #[test]
    fn precedence_puts_prereleases_before_their_release() {
        let order = [
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-10",
            "1.0.0-a",
            "1.0.0-a.1",
            "1.0.0-b",
            "1.0.0",
            "1.0.1",
            "1.1",
            "2",
        ];
        for pair in order.windows(2) {
            let [a, b] = pair else { unreachable!() };
            let (left, right) = (Version::parse(a).unwrap(), Version::parse(b).unwrap());
            assert_eq!(left.precedence(&right), Ordering::Less, "{a} {b}");
        }
    }

    #[test]
    fn next_versions_drop_prerelease_and_keep_the_v() {
        let version = Version::parse("v1.2.3-rc+m").unwrap();
        assert_eq!(version.next_patch().original(), "v1.2.3");
        assert_eq!(version.next_minor().original(), "v1.3.0");
        assert_eq!(version.next_major().to_string(), "2.0.0");
        assert_eq!(version.with_prerelease("b").unwrap().original(), "v1.2.3-b+m");
        assert_eq!(version.with_metadata("!").unwrap_err(), VersionError::Metadata);
    }
}

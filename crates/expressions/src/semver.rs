//! Semantic versions.

use std::cmp::Ordering;

/// A semantic version. What was said of its build does not count.
#[derive(Clone, Debug, PartialEq)]
pub struct Semver {
    /// Major, minor, patch.
    pub(crate) numbers: [u64; 3],
    before: Vec<String>,
}

/// Reads a version that may be shorter than usual, if that is allowed.
pub(crate) fn read_as(text: &str, normalizes: bool) -> Result<Semver, String> {
    if normalizes { read(&normalized(text)?) } else { read(text) }
}

/// Returns a version with three numbers and without zeros before them.
fn normalized(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text
        .splitn(3, '.')
        .map(|part| {
            let plain = part.trim_start_matches('0');
            let is_number = plain.starts_with(|first: char| first.is_ascii_digit());
            if part.len() <= 1 || is_number {
                if part.len() <= 1 { part.to_owned() } else { plain.to_owned() }
            } else {
                format!("0{plain}")
            }
        })
        .collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
    }
    Ok(parts.join("."))
}

/// Returns whether a text is a semantic version.
pub fn is_version(text: &str) -> bool {
    read(text).is_ok()
}

/// Reads a version.
pub(crate) fn read(text: &str) -> Result<Semver, String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    let (rest, build) = match rest.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (rest, None),
    };
    let (patch, before) = match rest.split_once('-') {
        Some((patch, before)) => (patch, Some(before)),
        None => (rest, None),
    };
    let number = |name: &str, digits: &str| -> Result<u64, String> {
        if digits.is_empty() || !digits.chars().all(|digit| digit.is_ascii_digit()) {
            return Err(format!("Invalid character(s) found in {name} number {digits:?}"));
        }
        if digits.len() > 1 && digits.starts_with('0') {
            let what = if name == "patch" {
                "Patch"
            } else if name == "major" {
                "Major"
            } else {
                "Minor"
            };
            return Err(format!("{what} number must not contain leading zeroes {digits:?}"));
        }
        digits.parse().map_err(|_| format!("strconv.ParseUint: parsing {digits:?}: value out of range"))
    };
    let numbers = [number("major", major)?, number("minor", minor)?, number("patch", patch)?];
    let is_plain = |part: &str| part.chars().all(|one| one.is_ascii_alphanumeric() || one == '-');
    let before: Vec<String> =
        before.into_iter().flat_map(|before| before.split('.')).map(str::to_owned).collect();
    for part in &before {
        if part.is_empty() {
            return Err("Prerelease is empty".to_owned());
        }
        if !is_plain(part) {
            return Err(format!("Invalid character(s) found in prerelease {part:?}"));
        }
        if part.len() > 1 && part.starts_with('0') && part.chars().all(|digit| digit.is_ascii_digit()) {
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {part:?}"));
        }
    }
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        if part.is_empty() {
            return Err("Build meta data is empty".to_owned());
        }
        if !is_plain(part) {
            return Err(format!("Invalid character(s) found in build meta data {part:?}"));
        }
    }
    Ok(Semver { numbers, before })
}

impl Semver {
    /// Returns which version comes first.
    pub(crate) fn compare(&self, other: &Semver) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.before.is_empty(), other.before.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => {
                    let pairs = self.before.iter().zip(&other.before).map(|(a, b)| compare_part(a, b));
                    let found = pairs.into_iter().find(|order| order.is_ne());
                    found.unwrap_or_else(|| self.before.len().cmp(&other.before.len()))
                }
            }
        })
    }
}

fn compare_part(a: &str, b: &str) -> Ordering {
    match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

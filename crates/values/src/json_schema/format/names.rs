//! Identifiers, versions and expressions.

use golang::regexp::Regexp;

use super::text::{failed, quoted};

pub(super) fn uuid(text: &str) -> Result<(), String> {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let elements: Vec<&str> = text.split('-').collect();
    if elements.len() != LENGTHS.len() {
        return Err(format!("must have {} elements", LENGTHS.len()));
    }
    for (index, (element, length)) in elements.iter().zip(LENGTHS).enumerate() {
        if element.len() != length {
            return Err(format!("element {} must be {length} characters long", index + 1));
        }
        if let Some(other) = element.chars().find(|character| !character.is_ascii_hexdigit()) {
            return Err(format!("non-hex character {}", quoted(other)));
        }
    }
    Ok(())
}

pub(super) fn regex(text: &str) -> Result<(), String> {
    Regexp::compile(text).map(|_| ()).map_err(|error| error.to_string())
}

pub(super) fn semver(text: &str) -> Result<(), String> {
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    if let Some(build) = build {
        if build.is_empty() {
            return failed("build is empty");
        }
        identifiers("build", build)?;
    }
    let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
    if let Some(pre) = pre {
        identifiers("pre-release", pre)?;
    }
    let numbers: Vec<&str> = core.split('.').collect();
    if numbers.len() != 3 {
        return failed("versionCore must have 3 numbers separated by dot");
    }
    for (name, number) in ["major", "minor", "patch"].into_iter().zip(numbers) {
        if number.is_empty() {
            return Err(format!("{name} is empty"));
        }
        if number.len() > 1 && number.starts_with('0') {
            return Err(format!("{name} starts with zero"));
        }
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("{name} contains non-digit"));
        }
    }
    Ok(())
}

fn identifiers(kind: &str, text: &str) -> Result<(), String> {
    for identifier in text.split('.') {
        if identifier.is_empty() {
            return Err(format!("{kind} identifier is empty"));
        }
        let is_allowed = |character: char| character.is_ascii_alphanumeric() || character == '-';
        if let Some(other) = identifier.chars().find(|character| !is_allowed(*character)) {
            return Err(format!("invalid character {} in {kind} identifier", quoted(other)));
        }
        let is_number = identifier.bytes().all(|byte| byte.is_ascii_digit());
        if kind == "pre-release" && is_number && identifier.len() > 1 && identifier.starts_with('0') {
            return failed("pre-release numeric identifier starts with zero");
        }
    }
    Ok(())
}

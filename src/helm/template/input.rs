//! Files that the command line names, and what to say of those that can't be used.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

/// How many bytes of a file show what it is.
const HEAD_BYTES: usize = 512;

/// Returns where the chart is; charts of repositories are not fetched.
pub(super) fn located(path: &str) -> Result<&str, String> {
    let trimmed = path.trim();
    if Path::new(trimmed).exists() {
        return Ok(trimmed);
    }
    if trimmed.starts_with(['/', '.']) {
        return Err(format!("path {} not found", golang::strconv::quote(trimmed.as_bytes())));
    }
    Err(match trimmed.split_once('/') {
        Some((repository, name)) if !name.is_empty() && !trimmed.contains("://") => {
            format!("repo {repository} not found")
        }
        Some(_) | None => {
            format!("non-absolute URLs should be in form of repo_name/path_to_chart, got: {trimmed}")
        }
    })
}

/// Refuses a file that does not even begin like a packed chart.
pub(super) fn refuse_other_files(path: &str) -> Result<(), String> {
    if Path::new(path).is_dir() {
        return Ok(());
    }
    let mut head = Vec::with_capacity(HEAD_BYTES);
    let file = fs::File::open(path).map_err(|error| told("open", path, &error))?;
    file.take(HEAD_BYTES as u64).read_to_end(&mut head).map_err(|error| told("read", path, &error))?;
    // Helm looks at a buffer of this size, however short the file is.
    head.resize(HEAD_BYTES, 0);
    if head.starts_with(b"\x1f\x8b\x08") {
        return Ok(());
    }
    let full = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let full = full.display();
    if [".yml", ".yaml"].iter().any(|ending| path.ends_with(ending)) {
        return Err(format!("file '{full}' seems to be a YAML file, but expected a gzipped archive"));
    }
    let kind = kind(&head);
    Err(format!("file '{full}' does not appear to be a gzipped archive; got '{kind}'"))
}

/// Returns the content type of the beginning of a file.
fn kind(head: &[u8]) -> &'static str {
    const SIGNATURES: &[(&[u8], &str)] = &[
        (b"PK\x03\x04", "application/zip"),
        (b"%PDF-", "application/pdf"),
        (b"%!PS-Adobe-", "application/postscript"),
        (b"Rar!\x1a\x07\x00", "application/x-rar-compressed"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"\xef\xbb\xbf", "text/plain; charset=utf-8"),
        (b"\xfe\xff", "text/plain; charset=utf-16be"),
        (b"\xff\xfe", "text/plain; charset=utf-16le"),
    ];
    if head.trim_ascii_start().starts_with(b"<?xml") {
        return "text/xml; charset=utf-8";
    }
    if let Some((_, kind)) = SIGNATURES.iter().find(|(signature, _)| head.starts_with(signature)) {
        return kind;
    }
    let is_binary = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    if head.iter().any(is_binary) { "application/octet-stream" } else { "text/plain; charset=utf-8" }
}

/// Returns the content of a file; `-` is the standard input.
pub(super) fn read(path: &str) -> Result<Vec<u8>, String> {
    let mut data = Vec::new();
    if path.trim() == "-" {
        io::stdin().read_to_end(&mut data).map_err(|error| told("read", "/dev/stdin", &error))?;
        return Ok(data);
    }
    let mut file = fs::File::open(path).map_err(|error| told("open", path, &error))?;
    file.read_to_end(&mut data).map_err(|error| told("read", path, &error))?;
    Ok(data)
}

/// Returns an error in the words of the system that Go uses.
fn told(action: &str, path: &str, error: &io::Error) -> String {
    let text = error.to_string();
    let why = text.split(" (os error").next().unwrap_or_default();
    let mut letters = why.chars();
    let why: String =
        letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect();
    format!("{action} {path}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_chart_is_refused_in_helms_words() {
        for (path, expected) in [
            ("nosuch", "non-absolute URLs should be in form of repo_name/path_to_chart, got: nosuch"),
            ("a/b", "repo a not found"),
            ("./nosuch", "path \"./nosuch\" not found"),
        ] {
            assert_eq!(located(path).unwrap_err(), expected);
        }
        assert_eq!(located(" src ").unwrap(), "src");
        assert_eq!(refuse_other_files("src"), Ok(()));
        let error = refuse_other_files("Cargo.toml").unwrap_err();
        assert!(
            error.ends_with(
                "/Cargo.toml' does not appear to be a gzipped archive; got 'text/plain; charset=utf-8'"
            ),
            "{error}"
        );
    }

    #[test]
    fn a_file_with_values_that_can_not_be_read_is_told_as_go_does() {
        assert_eq!(read("src").unwrap_err(), "read src: is a directory");
        assert_eq!(read("nosuch").unwrap_err(), "open nosuch: no such file or directory");
        assert_eq!(read("Cargo.toml/x").unwrap_err(), "open Cargo.toml/x: not a directory");
    }
}

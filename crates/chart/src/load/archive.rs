//! Charts in gzipped tar archives.

use std::io::{self, Read};

use flate2::read::GzDecoder;

use crate::chart::File;

/// The most bytes that one file of a chart may have.
pub const MAX_FILE_BYTES: u64 = 5 << 20;

/// The most bytes that all files of an archive may have together.
pub const MAX_CHART_BYTES: u64 = 100 << 20;

/// The most entries that an archive may have.
pub const MAX_ENTRIES: usize = 50_000;

/// How much room is left for headers and padding beside the files.
const HEADER_BYTES: u64 = 64 << 20;

/// Why an archive is no chart.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is cut off.
    #[error("unexpected EOF")]
    Cut,
    /// It is not gzip, or not tar.
    #[error("chart archive is not a gzipped tar archive, or is damaged: {0}")]
    Read(#[source] io::Error),
    /// An absolute path.
    #[error("chart illegally contains absolute paths")]
    Absolute,
    /// A file that is not below one directory.
    #[error("chart illegally contains content outside the base directory: {0:?}")]
    Outside(String),
    /// A path that leaves the chart.
    #[error("chart illegally references parent directory")]
    Parent,
    /// A path with the letter of a drive.
    #[error("chart contains illegally named files")]
    Drive,
    /// `Chart.yaml` is not below one directory.
    #[error("chart yaml not in base directory")]
    Base,
    /// All files together are too large.
    #[error("decompressed chart is larger than the maximum size {MAX_CHART_BYTES}")]
    Large,
    /// All archives together take more than their reader may spend.
    #[error("the packed charts are too large together")]
    Together,
    /// One file is too large.
    #[error("decompressed chart file {0:?} is larger than the maximum file size {MAX_FILE_BYTES}")]
    LargeFile(String),
    /// Too many entries.
    #[error("chart archive has more than {MAX_ENTRIES} entries")]
    Entries,
    /// Nothing in it.
    #[error("no files in chart archive")]
    Empty,
}

/// Returns the files of an archive in its order, with paths relative to the chart. Takes their bytes from `most`.
pub(super) fn unpack(bytes: &[u8], most: &mut u64) -> Result<Vec<File>, ArchiveError> {
    let unzipped = GzDecoder::new(bytes).take(MAX_CHART_BYTES + HEADER_BYTES);
    let mut archive = tar::Archive::new(unzipped);
    let mut files = Vec::new();
    let mut remaining = MAX_CHART_BYTES;
    for (index, entry) in archive.entries().map_err(damaged)?.enumerate() {
        let mut entry = entry.map_err(damaged)?;
        if index >= MAX_ENTRIES {
            return Err(ArchiveError::Entries);
        }
        let kind = entry.header().entry_type();
        let full_name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if kind.is_dir() || kind.is_pax_global_extensions() || full_name.ends_with('/') {
            continue;
        }
        let name = inner_path(&full_name)?;
        let size = entry.size();
        if size > remaining {
            return Err(ArchiveError::Large);
        }
        if size > MAX_FILE_BYTES {
            return Err(ArchiveError::LargeFile(full_name));
        }
        remaining -= size;
        *most = most.checked_sub(size).ok_or(ArchiveError::Together)?;
        let mut data = Vec::new();
        entry.read_to_end(&mut data).map_err(damaged)?;
        let data = data.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&data);
        files.push(File { name: name.into(), data: data.into() });
    }
    if files.is_empty() { Err(ArchiveError::Empty) } else { Ok(files) }
}

/// Distinguishes an archive that ends too early from what is no archive.
fn damaged(error: io::Error) -> ArchiveError {
    let text = error.to_string();
    let is_cut = error.kind() == io::ErrorKind::UnexpectedEof
        || ["incomplete deflate stream", "unexpected end of file", "failed to read entire block"]
            .contains(&text.as_str());
    if is_cut { ArchiveError::Cut } else { ArchiveError::Read(error) }
}

/// Returns a path without its first directory, or why it is refused.
fn inner_path(full: &str) -> Result<String, ArchiveError> {
    let unified = full.replace('\\', "/");
    let (base, inner) = unified.split_once('/').unwrap_or((&unified, ""));
    if inner.starts_with('/') {
        return Err(ArchiveError::Absolute);
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in inner.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return Err(ArchiveError::Parent);
                }
            }
            part => parts.push(part),
        }
    }
    let Some(first) = parts.first() else { return Err(ArchiveError::Outside(full.to_owned())) };
    if first.starts_with("..") {
        return Err(ArchiveError::Parent);
    }
    let drive =
        first.len() == 2 && first.ends_with(':') && first.starts_with(|c: char| c.is_ascii_alphabetic());
    if drive && parts.len() > 1 {
        return Err(ArchiveError::Drive);
    }
    if base == "Chart.yaml" {
        return Err(ArchiveError::Base);
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn unpack_all(bytes: &[u8]) -> Result<Vec<File>, ArchiveError> {
        unpack(bytes, &mut { u64::MAX })
    }

    fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, data) in files {
            let mut header = tar::Header::new_gnu();
            let field = &mut header.as_gnu_mut().unwrap().name;
            field[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(data.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            builder.append(&header, *data).unwrap();
        }
        let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        zip.write_all(&builder.into_inner().unwrap()).unwrap();
        zip.finish().unwrap()
    }

    #[test]
    fn tricks_with_paths_are_refused() {
        for (name, expected) in [
            ("c/a/b.txt", "a/b.txt"),
            ("c\\a\\b.txt", "a/b.txt"),
            ("c/./a//b", "a/b"),
            ("c//etc/passwd", "chart illegally contains absolute paths"),
            ("top", "chart illegally contains content outside the base directory: \"top\""),
            ("c/a/..", "chart illegally contains content outside the base directory: \"c/a/..\""),
            ("c/../../x", "chart illegally references parent directory"),
            ("c/..x", "chart illegally references parent directory"),
            ("c/d:/x", "chart contains illegally named files"),
            ("Chart.yaml/x", "chart yaml not in base directory"),
        ] {
            let got = match unpack_all(&packed(&[(name, b"x")])) {
                Ok(files) => files[0].name.to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(got, expected, "{name}");
        }
    }

    #[test]
    fn large_and_damaged_archives_are_refused() {
        let large = vec![b'x'; 5 * 1024 * 1024 + 1];
        let error = unpack_all(&packed(&[("c/x", &large)])).unwrap_err().to_string();
        assert_eq!(error, "decompressed chart file \"c/x\" is larger than the maximum file size 5242880");
        assert!(matches!(unpack_all(b"no gzip"), Err(ArchiveError::Cut)));
        assert!(matches!(unpack_all(b"no gzip, but long enough"), Err(ArchiveError::Read(_))));
        let whole = packed(&[("c/x", b"hello")]);
        for cut in 0..whole.len() {
            let _ = unpack_all(&whole[..cut]);
        }
        assert!(matches!(unpack_all(&packed(&[])), Err(ArchiveError::Empty)));
    }
}

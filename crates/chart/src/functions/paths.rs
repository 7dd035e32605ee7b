//! Paths, with slashes.

use super::args::{BOOL, STRING, string};
use crate::value::Function;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("base", &[STRING], STRING, |_, args| Ok(base(&string(args, 0)).into())),
    Function::new("clean", &[STRING], STRING, |_, args| Ok(clean(&string(args, 0)).into())),
    Function::new("dir", &[STRING], STRING, |_, args| Ok(dir(&string(args, 0)).into())),
    Function::new("ext", &[STRING], STRING, |_, args| Ok(ext(&string(args, 0)).into())),
    Function::new("isAbs", &[STRING], BOOL, |_, args| Ok(string(args, 0).starts_with('/').into())),
    Function::new("osBase", &[STRING], STRING, |_, args| Ok(base(&string(args, 0)).into())),
    Function::new("osClean", &[STRING], STRING, |_, args| Ok(clean(&string(args, 0)).into())),
    Function::new("osDir", &[STRING], STRING, |_, args| Ok(dir(&string(args, 0)).into())),
    Function::new("osExt", &[STRING], STRING, |_, args| Ok(ext(&string(args, 0)).into())),
    Function::new("osIsAbs", &[STRING], BOOL, |_, args| Ok(string(args, 0).starts_with('/').into())),
];

/// Returns the shortest path to the same place.
fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(last) if *last != ".." => {
                    parts.pop();
                }
                Some(_) | None if !rooted => parts.push(".."),
                Some(_) | None => {}
            },
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// Returns the last part of the path.
fn base(path: &str) -> &str {
    if path.is_empty() {
        return ".";
    }
    let path = path.trim_end_matches('/');
    match path.rsplit_once('/') {
        Some((_, base)) => base,
        None if path.is_empty() => "/",
        None => path,
    }
}

/// Returns all but the last part of the path.
fn dir(path: &str) -> String {
    let end = path.rfind('/').map_or(0, |slash| slash + 1);
    clean(path.get(..end).unwrap_or_default())
}

/// Returns the last dot of the last part, with what follows it.
fn ext(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rfind('.').and_then(|dot| name.get(dot..)).unwrap_or_default()
}

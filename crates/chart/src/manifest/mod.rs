//! What a chart renders to: documents in the order in which they are installed, and hooks.

mod document;
mod head_scanner;
mod hook;
pub mod order;
mod split;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use document::{Head, Manifest, RESOURCE_POLICY};
pub use hook::{DeletePolicy, Hook, HookEvent, LogPolicy};
pub use split::{split, split_joined};

use crate::warnings::Warnings;
use crate::yaml::FileError;

/// The documents of a render, sorted for installing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifests {
    /// Objects that the release owns.
    pub manifests: Vec<Manifest>,
    /// Objects that are made at certain moments.
    pub hooks: Vec<Hook>,
}

/// A rendered template is not made of Kubernetes objects.
#[derive(Debug, thiserror::Error)]
#[error("YAML parse error on {path}: {source}")]
pub struct ManifestError {
    /// The template.
    pub path: String,
    /// What was wrong.
    pub source: FileError,
    /// The document.
    pub content: String,
}

/// The documents of earlier renders with their heads, by template: a document that is
/// rendered again is not read again.
#[derive(Clone, Debug, Default)]
pub struct Heads(BTreeMap<String, Vec<(Arc<str>, Head)>>);

impl Heads {
    /// Returns a document and its head, which stood at `index` among those of its template.
    fn known(&self, path: &str, index: usize, document: &str) -> Option<&(Arc<str>, Head)> {
        let documents = self.0.get(path)?;
        let at = documents.get(index).filter(|(content, _)| **content == *document);
        at.or_else(|| documents.iter().find(|(content, _)| **content == *document))
    }
}

/// Splits rendered templates into documents and sorts them. `heads` are those of the last
/// render, and become those of this one.
pub fn sort(
    files: &BTreeMap<String, Text>,
    heads: &mut Heads,
    warnings: &mut Warnings,
) -> Result<Manifests, ManifestError> {
    let mut sorted = Manifests::default();
    let mut now = Heads::default();
    for (path, text) in files {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name.starts_with('_') {
            continue;
        }
        let content = match text {
            Text::Readable(content) => content,
            Text::Broken(bytes) => return Err(broken(path, bytes)),
        };
        let mut read = Vec::new();
        for document in split(content) {
            let (content, head) = match heads.known(path, read.len(), document) {
                Some(known) => known.clone(),
                None => (Arc::from(document), new_head(path, document)?),
            };
            read.push((Arc::clone(&content), head.clone()));
            let manifest = Manifest { path: path.clone(), content, head };
            match hook::of(manifest) {
                hook::Sorted::Manifest(manifest) => sorted.manifests.push(manifest),
                hook::Sorted::Hook(hook) => sorted.hooks.push(hook),
                hook::Sorted::Unknown(event) => {
                    let text = format!("info: skipping unknown hook: {event:?}");
                    warnings.add_from("manifest_sorter.go:199", text);
                }
            }
        }
        if !read.is_empty() {
            now.0.insert(path.clone(), read);
        }
    }
    *heads = now;
    order::sort(&mut sorted.manifests, order::INSTALL, |manifest| &manifest.head.kind);
    order::sort(&mut sorted.hooks, order::INSTALL, |hook| &hook.kind);
    Ok(sorted)
}

fn new_head(path: &str, document: &str) -> Result<Head, ManifestError> {
    match head_scanner::scan(document) {
        Some(head) => Ok(head),
        None => Head::read(document.as_bytes()).map_err(|source| ManifestError {
            path: path.to_owned(),
            source,
            content: document.to_owned(),
        }),
    }
}

/// What a template rendered to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// Text.
    Readable(String),
    /// Bytes that are no UTF-8, and so no YAML.
    Broken(Vec<u8>),
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Readable(text),
            Err(error) => Self::Broken(error.into_bytes()),
        }
    }
}

impl Text {
    /// Returns the text with marks where bytes can't be read.
    pub fn into_string(self) -> String {
        match self {
            Self::Readable(text) => text,
            Self::Broken(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        }
    }
}

/// Returns the error of the first document that can't be read; there is one.
fn broken(path: &str, bytes: &[u8]) -> ManifestError {
    // Each byte stands for a character here, so that a text of any bytes can be split into documents.
    let text: String = bytes.iter().copied().map(char::from).collect();
    let documents = split(&text);
    let error = documents.iter().find_map(|document| {
        let bytes: Vec<u8> = document.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect();
        let source = Head::read(&bytes).err()?;
        Some(ManifestError {
            path: path.to_owned(),
            source,
            content: String::from_utf8_lossy(&bytes).into_owned(),
        })
    });
    error.unwrap_or_else(|| ManifestError {
        path: path.to_owned(),
        source: FileError::Yaml("yaml: invalid leading UTF-8 octet".to_owned()),
        content: String::from_utf8_lossy(bytes).into_owned(),
    })
}

/// Returns the documents as one text, each with the line that says where it is from.
pub fn join(manifests: &[Manifest]) -> String {
    let mut text = String::new();
    for manifest in manifests {
        push(&mut text, &manifest.path, &manifest.content);
    }
    text
}

/// Appends one document with the line that says where it is from.
pub fn push(text: &mut String, path: &str, content: &str) {
    for part in ["---\n# Source: ", path, "\n", content, "\n"] {
        text.push_str(part);
    }
}

#[cfg(test)]
mod tests;

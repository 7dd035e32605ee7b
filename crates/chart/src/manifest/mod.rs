//! What a chart renders to: documents in the order in which they are installed, and hooks.

mod hook;
pub mod order;
mod split;

use std::collections::BTreeMap;

pub use hook::{DeletePolicy, Hook, HookEvent, LogPolicy};
pub use split::split;

use crate::decode::{Place, fields};
use crate::warning::Warnings;
use crate::yaml::{self, FileError};

/// The annotation that keeps an object when its release goes.
pub const RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// One document of a rendered template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The template.
    pub path: String,
    /// The text, without white space around it.
    pub content: String,
    /// What the document says of itself.
    pub head: Head,
}

/// The part of a document that decides what is done with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// `apiVersion`
    pub api_version: String,
    /// `kind`
    pub kind: String,
    /// `metadata.name`
    pub name: String,
    /// `metadata.annotations`; absent where there is no `metadata`.
    pub annotations: BTreeMap<String, String>,
}

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

/// Splits rendered templates into documents and sorts them.
pub fn sort(files: &BTreeMap<String, String>, warnings: &mut Warnings) -> Result<Manifests, ManifestError> {
    let mut sorted = Manifests::default();
    for (path, content) in files {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name.starts_with('_') || content.trim().is_empty() {
            continue;
        }
        for document in split(content) {
            let head = Head::read(document).map_err(|source| ManifestError {
                path: path.clone(),
                source,
                content: document.to_owned(),
            })?;
            let manifest = Manifest { path: path.clone(), content: document.to_owned(), head };
            match hook::of(manifest) {
                hook::Sorted::Manifest(manifest) => sorted.manifests.push(manifest),
                hook::Sorted::Hook(hook) => sorted.hooks.push(hook),
                hook::Sorted::Unknown(event) => {
                    warnings.add(format!("info: skipping unknown hook: {event:?}"));
                }
            }
        }
    }
    order::sort(&mut sorted.manifests, order::INSTALL, |manifest| &manifest.head.kind);
    order::sort(&mut sorted.hooks, order::INSTALL, |hook| &hook.kind);
    Ok(sorted)
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

impl Head {
    /// Reads the head of one document.
    pub fn read(document: &str) -> Result<Self, FileError> {
        let mut head = Self::default();
        let value = yaml::read(document.as_bytes())?;
        let top = Place { owner: "SimpleHead", path: "" };
        fields(&value, top, "releaseutil.SimpleHead", &["apiVersion", "kind", "metadata"], |name, value| {
            let place = Place { owner: "SimpleHead", path: name };
            match name {
                "apiVersion" => place.text(value, &mut head.api_version),
                "kind" => place.text(value, &mut head.kind),
                _ => {
                    let kind = "struct { Name string \"json:\\\"name\\\"\"; Annotations map[string]string \"json:\\\"annotations\\\"\" }";
                    fields(value, place, kind, &["name", "annotations"], |name, value| {
                        let path = format!("metadata.{name}");
                        let place = Place { owner: "", path: &path };
                        match name {
                            "name" => place.text(value, &mut head.name),
                            _ => place.text_map(value, &mut head.annotations),
                        }
                    })
                }
            }
        })?;
        Ok(head)
    }

    /// Reports whether the object stays when its release goes.
    pub fn is_kept(&self) -> bool {
        self.annotations.get(RESOURCE_POLICY).is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
    }
}

#[cfg(test)]
mod tests;

//! One document of a rendered template, and what it says of itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::decode::{FieldPath, fields};
use crate::yaml::{self, FileError};

/// The annotation that keeps an object when its release goes.
pub const RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// One document of a rendered template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The template.
    pub path: String,
    /// The text, without white space around it.
    pub content: Arc<str>,
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

impl Head {
    /// Reads the head of one document.
    pub fn read(document: &[u8]) -> Result<Self, FileError> {
        let mut head = Self::default();
        let value = yaml::read(document)?;
        let top = FieldPath { owner: "SimpleHead", path: "" };
        fields(&value, top, "releaseutil.SimpleHead", &["apiVersion", "kind", "metadata"], |name, value| {
            let place = FieldPath { owner: "SimpleHead", path: name };
            match name {
                "apiVersion" => place.text(value, &mut head.api_version),
                "kind" => place.text(value, &mut head.kind),
                _ => {
                    let kind = "struct { Name string \"json:\\\"name\\\"\"; Annotations map[string]string \"json:\\\"annotations\\\"\" }";
                    fields(value, place, kind, &["name", "annotations"], |name, value| {
                        let path = format!("metadata.{name}");
                        let place = FieldPath { owner: "", path: &path };
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

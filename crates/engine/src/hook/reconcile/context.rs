//! What a `reconcile` binding shows its hook: one object with its children and what is related to it.

use std::io::{self, Write};
use std::sync::Arc;

use golang::json;

use crate::hook::snapshot::{Item, Key};

/// One object to bring about, with all that is shown beside.
#[derive(Clone, Debug, PartialEq)]
pub struct Reconciliation {
    /// Which object it is.
    pub key: Key,
    /// Whether the object is being deleted.
    pub is_finalize: bool,
    /// The object.
    pub object: Arc<Item>,
    /// Its children, by kind.
    pub children: Vec<ShownKind>,
    /// What is related to it, by name.
    pub related: Vec<ShownKind>,
}

/// Objects that are shown under one name.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownKind {
    /// The name: a kind with its group, or what the binding says.
    pub name: Arc<str>,
    /// The objects. Those of the parent's namespace, and those of none, are shown by name, others as `namespace/name`.
    pub objects: Vec<(Key, Arc<Item>)>,
}

impl Reconciliation {
    /// Returns the type of the context.
    pub fn type_name(&self) -> &'static str {
        if self.is_finalize { "Finalize" } else { "Reconcile" }
    }

    /// Returns about how many bytes it is written in.
    pub(crate) fn len_bytes(&self) -> usize {
        let shown = self.children.iter().chain(&self.related).flat_map(|kind| &kind.objects);
        shown.map(|(_, item)| item.len_bytes()).fold(self.object.len_bytes(), usize::saturating_add)
    }

    /// Writes the fields of the context behind its binding.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b",\"children\":")?;
        self.write_kinds(out, &self.children)?;
        out.write_all(b",\"object\":")?;
        out.write_all(self.object.object().unwrap_or(b"null"))?;
        out.write_all(b",\"related\":")?;
        self.write_kinds(out, &self.related)?;
        write!(out, ",\"type\":\"{}\"", self.type_name())
    }

    fn write_kinds(&self, out: &mut impl Write, kinds: &[ShownKind]) -> io::Result<()> {
        out.write_all(b"{")?;
        for (place, kind) in kinds.iter().enumerate() {
            separate(out, place)?;
            json::write(out, &*kind.name)?;
            out.write_all(b":{")?;
            for (place, (key, item)) in kind.objects.iter().enumerate() {
                separate(out, place)?;
                if key.namespace.is_empty() || key.namespace == self.key.namespace {
                    json::write(out, &*key.name)?;
                } else {
                    json::write(out, &key.to_string())?;
                }
                out.write_all(b":")?;
                out.write_all(item.object().unwrap_or(b"null"))?;
            }
            out.write_all(b"}")?;
        }
        out.write_all(b"}")
    }
}

fn separate(out: &mut impl Write, place: usize) -> io::Result<()> {
    if place == 0 { Ok(()) } else { out.write_all(b",") }
}

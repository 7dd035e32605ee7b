//! Documents: which schemas in them have names of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::address::{self, below, shown};
use super::draft::Draft;
use super::metaschema;
use super::problem::SchemaProblem;

/// A document with schemas.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) url: String,
    pub(super) content: Arc<Value>,
    /// Schemas with addresses of their own, by where they stand.
    pub(super) resources: BTreeMap<String, Resource>,
    known: BTreeSet<String>,
}

/// A schema with an address of its own; references in it are relative to that.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    pub(super) id: String,
    pub(super) draft: Draft,
    pub(super) anchors: BTreeMap<String, String>,
    pub(super) dynamic: BTreeSet<String>,
}

impl Document {
    /// Reads a document.
    pub(super) fn new(url: &str, content: Arc<Value>) -> Result<Self, SchemaProblem> {
        let mut document =
            Self { url: url.to_owned(), content, resources: BTreeMap::new(), known: BTreeSet::new() };
        let content = Arc::clone(&document.content);
        document.collect(&content, url, "", Draft::default())?;
        Ok(document)
    }

    /// Is the schema at `pointer` where the draft expects schemas?
    pub(super) fn knows(&self, pointer: &str) -> bool {
        self.known.contains(pointer)
    }

    /// Takes a value for a schema that stands where none was expected.
    pub(super) fn add(&mut self, pointer: &str) -> Result<(), SchemaProblem> {
        let content = Arc::clone(&self.content);
        let value = address::lookup(&content, &self.url, pointer)?;
        let (_, base) = self.resource(pointer);
        let (id, draft) = (base.id.clone(), base.draft);
        self.collect(value, &id, pointer, draft)
    }

    /// Returns the innermost resource around `pointer`, and where it stands.
    pub(super) fn resource(&self, pointer: &str) -> (&str, &Resource) {
        // In most documents only the root has an address, and that is around everything.
        if let (1, Some(root)) = (self.resources.len(), self.resources.get("")) {
            return ("", root);
        }
        let mut pointer = pointer;
        loop {
            if let Some((place, resource)) = self.resources.get_key_value(pointer) {
                return (place.as_str(), resource);
            }
            let Some((before, _)) = pointer.rsplit_once('/') else {
                return ("", &NOWHERE);
            };
            pointer = before;
        }
    }

    /// Returns where `fragment` of the resource at address `id` stands, if it is in this document.
    pub(super) fn resolve(&self, id: &str, fragment: &str) -> Option<Result<String, SchemaProblem>> {
        let (place, resource) = if id == self.url {
            self.resource("")
        } else {
            let found = self.resources.iter().find(|(_, resource)| resource.id == id)?;
            (found.0.as_str(), found.1)
        };
        if fragment.is_empty() || fragment.starts_with('/') {
            return Some(Ok(format!("{place}{fragment}")));
        }
        Some(resource.anchors.get(fragment).cloned().ok_or_else(|| SchemaProblem::AnchorNotFound {
            url: self.url.clone(),
            reference: shown(&resource.id, fragment),
        }))
    }

    fn collect(
        &mut self,
        value: &Value,
        base: &str,
        pointer: &str,
        fallback: Draft,
    ) -> Result<(), SchemaProblem> {
        if self.known.contains(pointer) {
            return Ok(());
        }
        if let Value::Object(schema) = value {
            self.collect_schema(schema, base, pointer, fallback)?;
        } else if pointer.is_empty() {
            self.resources.insert(String::new(), Resource::new(base, fallback));
        }
        self.known.insert(pointer.to_owned());
        Ok(())
    }

    fn collect_schema(
        &mut self,
        schema: &Map<String, Value>,
        base: &str,
        pointer: &str,
        fallback: Draft,
    ) -> Result<(), SchemaProblem> {
        let named = schema.get("$schema").and_then(Value::as_str);
        let mut draft = match named {
            Some(named) => draft_named(named, &self.url, pointer)?,
            None => fallback,
        };
        let mut id = draft.id_of(schema);
        if id.is_none() && !pointer.is_empty() {
            draft = fallback;
            id = draft.id_of(schema);
        }
        let mut base = base.to_owned();
        if let Some(id) = id {
            base = address::join(&base, id).map_err(|_| SchemaProblem::ParseId(shown(&self.url, pointer)))?.0;
        }
        if id.is_some() || pointer.is_empty() {
            let twin = self.resources.iter().find(|(_, resource)| resource.id == base);
            match twin {
                Some((place, _)) if place != pointer => {
                    return Err(SchemaProblem::DuplicateId {
                        id: base,
                        url: self.url.clone(),
                        first: pointer.to_owned(),
                        second: place.clone(),
                    });
                }
                Some(_) => {}
                None => {
                    self.resources.insert(pointer.to_owned(), Resource::new(&base, draft));
                }
            }
        }
        let inherited = self.collect_anchors(schema, &base, pointer)?;
        for (keyword, name, value) in draft.inner(schema) {
            let place = below(pointer, keyword);
            let place = name.map_or(place.clone(), |name| below(&place, &name));
            self.collect(value, &base, &place, inherited)?;
        }
        Ok(())
    }

    /// Notes the names that a schema has within the resource `base`; returns the draft of that.
    fn collect_anchors(
        &mut self,
        schema: &Map<String, Value>,
        base: &str,
        pointer: &str,
    ) -> Result<Draft, SchemaProblem> {
        let Some(resource) = self.resources.values_mut().find(|resource| resource.id == base) else {
            return Ok(Draft::default());
        };
        let draft = resource.draft;
        let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
        let mut names: Vec<String> = Vec::new();
        if draft < Draft::Nineteen {
            if let Some(id) = text(draft.id_keyword()).filter(|_| !schema.contains_key("$ref")) {
                let (_, fragment) =
                    address::split(id).map_err(|_| SchemaProblem::ParseAnchor(shown(&self.url, pointer)))?;
                if !fragment.is_empty() && !fragment.starts_with('/') {
                    names.push(fragment);
                }
            }
        } else {
            names.extend(text("$anchor").map(str::to_owned));
        }
        if let Some(name) = text("$dynamicAnchor").filter(|_| draft >= Draft::Twenty) {
            names.push(name.to_owned());
            resource.dynamic.insert(name.to_owned());
        }
        for name in names {
            let first = resource.anchors.entry(name.clone()).or_insert_with(|| pointer.to_owned());
            if first != pointer {
                return Err(SchemaProblem::DuplicateAnchor {
                    anchor: name,
                    url: self.url.clone(),
                    first: first.clone(),
                    second: pointer.to_owned(),
                });
            }
        }
        Ok(draft)
    }
}

impl Resource {
    fn new(id: &str, draft: Draft) -> Self {
        Self { id: id.to_owned(), draft, anchors: BTreeMap::new(), dynamic: BTreeSet::new() }
    }
}

/// Stands for the resource of a document that has none; each has one for its root.
static NOWHERE: Resource =
    Resource { id: String::new(), draft: Draft::Twenty, anchors: BTreeMap::new(), dynamic: BTreeSet::new() };

/// Returns the draft that a `$schema` stands for.
fn draft_named(named: &str, url: &str, pointer: &str) -> Result<Draft, SchemaProblem> {
    if let Some(draft) = Draft::named(named) {
        return Ok(draft);
    }
    let named = named.split('#').next().unwrap_or_default();
    if pointer.is_empty() && named == url {
        return Err(SchemaProblem::Unsupported(named.to_owned()));
    }
    let content = metaschema::load(named)?;
    let of_content = content.get("$schema").and_then(Value::as_str).and_then(Draft::named);
    Ok(of_content.unwrap_or_default())
}

//! Schemas become nodes: references are followed, expressions compiled.

use std::collections::BTreeMap;
use std::sync::Arc;

use golang::regexp::Regexp;
use serde_json::{Map, Value};

use super::address::{self, below, shown};
use super::document::{Document, Resource};
use super::draft::Draft;
use super::evaluate::Evaluation;
use super::format::Format;
use super::metaschema;
use super::node::{Id, Needs, Node, Rest, members, names};
use super::ordinary::is_ordinary;
use super::problem::SchemaProblem;

/// All schemas that one schema needs; the first is that.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) nodes: Vec<Node>,
}

/// Makes the schema at an address ready.
pub(super) fn compile(url: &str, schema: Value) -> Result<Compiled, SchemaProblem> {
    let mut compiler = Compiler::default();
    let document = Document::new(url, Arc::new(schema))?;
    validate(&document, "")?;
    compiler.documents.insert(url.to_owned(), document);
    compiler.run(url)
}

/// Makes the schema of the schemas of a draft ready.
pub(super) fn compile_metaschema(draft: Draft) -> Result<Compiled, SchemaProblem> {
    let mut compiler = Compiler { is_metaschema: true, ..Compiler::default() };
    compiler.run(draft.url())
}

/// Checks what stands at `pointer` against the schema of schemas.
fn validate(document: &Document, pointer: &str) -> Result<(), SchemaProblem> {
    let value = address::lookup(&document.content, &document.url, pointer)?;
    if is_ordinary(value) {
        return Ok(());
    }
    let draft = document.resource(pointer).1.draft;
    let Some(metaschema) = metaschema::of(draft) else { return Ok(()) };
    let resources: BTreeMap<String, Draft> =
        document.resources.iter().map(|(place, Resource { draft, .. })| (place.clone(), *draft)).collect();
    let evaluation = Evaluation::of_schema(metaschema, &resources);
    match evaluation.run(value) {
        Ok(()) => Ok(()),
        Err(finding) => Err(SchemaProblem::Metaschema {
            url: shown(&document.url, pointer),
            findings: finding.report(&metaschema.location()),
        }),
    }
}

impl Compiled {
    /// Returns the address of the schema.
    pub(super) fn location(&self) -> String {
        self.nodes.first().map(|node| node.location.clone()).unwrap_or_default()
    }
}

#[derive(Default)]
struct Compiler {
    documents: BTreeMap<String, Document>,
    places: Vec<(String, String)>,
    ids: BTreeMap<(String, String), Id>,
    is_metaschema: bool,
}

/// The schema that is being compiled.
struct Here<'a> {
    url: &'a str,
    pointer: &'a str,
    schema: &'a Map<String, Value>,
    base: &'a str,
}

impl Compiler {
    fn run(&mut self, url: &str) -> Result<Compiled, SchemaProblem> {
        self.id(url, "");
        let mut nodes = Vec::new();
        while let Some((url, pointer)) = self.places.get(nodes.len()).cloned() {
            nodes.push(self.node(&url, &pointer)?);
        }
        Ok(Compiled { nodes })
    }

    /// Returns the number of the schema at a place, which is compiled later.
    fn id(&mut self, url: &str, pointer: &str) -> Id {
        let place = (url.to_owned(), pointer.to_owned());
        let next = self.places.len();
        *self.ids.entry(place).or_insert_with_key(|place| {
            self.places.push(place.clone());
            next
        })
    }

    fn load(&mut self, url: &str) -> Result<&mut Document, SchemaProblem> {
        if !self.documents.contains_key(url) {
            let content = metaschema::load(url)?;
            let document = Document::new(url, content)?;
            self.documents.insert(url.to_owned(), document);
        }
        self.documents.get_mut(url).ok_or_else(|| SchemaProblem::PointerNotFound(url.to_owned()))
    }

    fn node(&mut self, url: &str, pointer: &str) -> Result<Node, SchemaProblem> {
        let is_metaschema = self.is_metaschema;
        let document = self.load(url)?;
        if !document.knows(pointer) {
            document.add(pointer)?;
            if !is_metaschema {
                validate(document, pointer)?;
            }
        }
        let content = Arc::clone(&document.content);
        let (place, resource) = document.resource(pointer);
        let (place, base, draft) = (place.to_owned(), resource.id.clone(), resource.draft);
        let dynamic: Vec<(String, String)> = resource
            .anchors
            .iter()
            .filter(|(name, _)| {
                draft >= Draft::Twenty && place == pointer && resource.dynamic.contains(*name)
            })
            .map(|(name, place)| (name.clone(), place.clone()))
            .collect();
        let mut node = Node { location: shown(url, pointer), draft, ..Node::default() };
        node.resource = self.id(url, &place);
        for (name, place) in dynamic {
            let id = self.id(url, &place);
            node.references.dynamic_anchors.insert(name, id);
        }
        match address::lookup(&content, url, pointer)? {
            Value::Bool(always) => node.always = Some(*always),
            Value::Object(schema) if schema.is_empty() => node.always = Some(true),
            Value::Object(schema) => {
                self.read(&mut node, &Here { url, pointer, schema, base: &base })?;
            }
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {}
        }
        Ok(node)
    }

    fn read(&mut self, node: &mut Node, here: &Here<'_>) -> Result<(), SchemaProblem> {
        node.references.plain = self.reference(here, "$ref")?;
        if node.draft < Draft::Nineteen && node.references.plain.is_some() {
            // All else is ignored; but Helm's library forgets that for one keyword.
            if node.draft >= Draft::Six {
                node.constant = here.schema.get("const").cloned();
            }
            return Ok(());
        }
        self.read_conditions(node, here);
        self.read_arrays(node, here);
        self.read_objects(node, here)?;
        node.read_plain(here.schema);
        if let Some(pattern) = here.schema.get("pattern").and_then(Value::as_str) {
            node.texts.pattern = Some((regex(here, "pattern", pattern)?, pattern.to_owned()));
        }
        if self.is_metaschema || node.draft < Draft::Nineteen {
            node.format = here.schema.get("format").and_then(Value::as_str).and_then(Format::named);
        }
        if node.draft >= Draft::Nineteen {
            node.references.recursive = self.reference(here, "$recursiveRef")?;
        }
        if node.draft >= Draft::Twenty {
            node.references.dynamic = self.reference(here, "$dynamicRef")?;
            let name = here.schema.get("$dynamicRef").and_then(Value::as_str);
            let (_, name) = address::split(name.unwrap_or_default())?;
            node.references.dynamic_name =
                Some(name).filter(|name| !name.is_empty() && !name.starts_with('/'));
        }
        Ok(())
    }

    fn read_conditions(&mut self, node: &mut Node, here: &Here<'_>) {
        let conditions = &mut node.conditions;
        conditions.all = self.items(here, "allOf");
        conditions.any = self.items(here, "anyOf");
        conditions.one = self.items(here, "oneOf");
        conditions.not = self.inner(here, "not");
        if node.draft >= Draft::Seven {
            conditions.when = self.inner(here, "if");
            if conditions.when.is_some() {
                conditions.then = self.inner(here, "then");
                conditions.otherwise = self.inner(here, "else");
            }
        }
    }

    fn read_arrays(&mut self, node: &mut Node, here: &Here<'_>) {
        let arrays = &mut node.arrays;
        if node.draft >= Draft::Twenty {
            arrays.first = self.items(here, "prefixItems");
            arrays.rest = self.inner(here, "items").map(Rest::Schema);
        } else if here.schema.get("items").is_some_and(Value::is_array) {
            arrays.first = self.items(here, "items");
            arrays.rest = self.rest(here, "additionalItems");
        } else {
            arrays.rest = self.inner(here, "items").map(Rest::Schema);
        }
        if node.draft >= Draft::Six {
            arrays.contains = self.inner(here, "contains");
        }
        if node.draft >= Draft::Nineteen {
            arrays.unevaluated = self.inner(here, "unevaluatedItems");
        }
    }

    fn read_objects(&mut self, node: &mut Node, here: &Here<'_>) -> Result<(), SchemaProblem> {
        let objects = &mut node.objects;
        objects.properties = self.members(here, "properties").into_iter().collect();
        for (pattern, id) in self.members(here, "patternProperties") {
            objects.patterns.push((regex(here, "patternProperties", &pattern)?, id));
        }
        objects.additional = self.rest(here, "additionalProperties");
        for (name, needs) in members(here.schema, "dependencies") {
            let needs = if needs.is_array() {
                Needs::Names(names(Some(needs)))
            } else {
                Needs::Schema(self.below(here, "dependencies", Some(name)))
            };
            objects.dependencies.push((name.clone(), needs));
        }
        if node.draft >= Draft::Six {
            objects.names = self.inner(here, "propertyNames");
        }
        if node.draft >= Draft::Nineteen {
            objects.dependent_schemas = self.members(here, "dependentSchemas");
            objects.unevaluated = self.inner(here, "unevaluatedProperties");
        }
        Ok(())
    }

    fn reference(&mut self, here: &Here<'_>, keyword: &str) -> Result<Option<Id>, SchemaProblem> {
        let Some(reference) = here.schema.get(keyword).and_then(Value::as_str) else { return Ok(None) };
        let (url, fragment) = address::join(here.base, reference)?;
        let local = self.load(here.url)?.resolve(&url, &fragment).transpose()?;
        if let Some(pointer) = local {
            return Ok(Some(self.id(here.url, &pointer)));
        }
        match self.load(&url)?.resolve(&url, &fragment).transpose()? {
            Some(pointer) => Ok(Some(self.id(&url, &pointer))),
            None => Ok(None),
        }
    }

    fn below(&mut self, here: &Here<'_>, keyword: &str, name: Option<&str>) -> Id {
        let place = below(here.pointer, keyword);
        let place = name.map_or(place.clone(), |name| below(&place, name));
        self.id(here.url, &place)
    }

    fn inner(&mut self, here: &Here<'_>, keyword: &str) -> Option<Id> {
        here.schema.contains_key(keyword).then(|| self.below(here, keyword, None))
    }

    fn items(&mut self, here: &Here<'_>, keyword: &str) -> Vec<Id> {
        let items = here.schema.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
        (0..items).map(|index| self.below(here, keyword, Some(&index.to_string()))).collect()
    }

    fn members(&mut self, here: &Here<'_>, keyword: &str) -> Vec<(String, Id)> {
        members(here.schema, keyword)
            .map(|(name, _)| (name.clone(), self.below(here, keyword, Some(name))))
            .collect()
    }

    fn rest(&mut self, here: &Here<'_>, keyword: &str) -> Option<Rest> {
        match here.schema.get(keyword)? {
            Value::Bool(allowed) => Some(Rest::Plain(*allowed)),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                self.inner(here, keyword).map(Rest::Schema)
            }
        }
    }
}

fn regex(here: &Here<'_>, keyword: &str, pattern: &str) -> Result<Regexp, SchemaProblem> {
    Regexp::compile(pattern).map_err(|error| SchemaProblem::Regex {
        regex: pattern.to_owned(),
        url: format!("{}/{keyword}", shown(here.url, here.pointer)),
        why: error.to_string(),
    })
}

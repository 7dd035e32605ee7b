//! A schema, compiled.

use std::collections::BTreeMap;

use golang::json::normalize;
use golang::regexp::Regexp;
use serde_json::{Map, Value};

use super::transform::{below, target};

/// The index of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(usize);

/// A compiled schema; references are indexes, so it may lead into itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Schema {
    nodes: Vec<Node>,
}

/// A regular expression and its text.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) text: String,
    pub(super) regex: Regexp,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// What holds for properties, or items, that are not listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Others {
    #[default]
    Allowed,
    Forbidden,
    Schema(Id),
}

/// What holds for the items of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Items {
    #[default]
    Free,
    All(Id),
    Each(Vec<Id>),
}

/// What a property's presence asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Dependency {
    Properties(Vec<String>),
    Schema(Id),
}

/// A lower or upper limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limit {
    pub(super) value: f64,
    pub(super) exclusive: bool,
}

/// One level of a schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    pub(super) types: Vec<String>,
    pub(super) nullable: bool,
    pub(super) default: Option<Value>,
    pub(super) choices: Option<Vec<Value>>,
    pub(super) properties: BTreeMap<String, Id>,
    pub(super) pattern_properties: Vec<(Pattern, Id)>,
    pub(super) other_properties: Others,
    pub(super) required: Vec<String>,
    pub(super) dependencies: BTreeMap<String, Dependency>,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) items: Items,
    pub(super) other_items: Others,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) unique_items: bool,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) pattern: Option<Pattern>,
    pub(super) format: Option<String>,
    pub(super) minimum: Option<Limit>,
    pub(super) maximum: Option<Limit>,
    pub(super) multiple_of: Option<f64>,
    pub(super) all_of: Vec<Id>,
    pub(super) any_of: Vec<Id>,
    pub(super) one_of: Vec<Id>,
    pub(super) not: Option<Id>,
}

/// How deeply defaults may be put into defaults: a schema that leads into itself
/// may ask for it without end.
const MAX_NESTED_DEFAULTS: usize = 16;

/// How many defaults are put into one section.
const MAX_DEFAULTS: usize = 1_000_000;

/// How many references may lead to one another.
const MAX_HOPS: usize = 64;

/// The JSON pointer of a place and what is wrong there.
type Problem = (String, String);

impl Schema {
    /// Compiles `document`, whose references are local.
    pub(super) fn compile(document: &Value) -> Result<Self, Problem> {
        let mut compiler = Compiler { document, nodes: Vec::new(), references: BTreeMap::new() };
        compiler.schema(document, "")?;
        Ok(Self { nodes: compiler.nodes })
    }

    /// Returns the outermost level.
    pub(super) fn root(&self) -> Option<&Node> {
        self.nodes.first()
    }

    /// Returns a level.
    pub(super) fn node(&self, id: Id) -> Option<&Node> {
        self.nodes.get(id.0)
    }

    /// Puts defaults into `value` where properties are missing.
    pub(super) fn complete(&self, value: &mut Value) {
        if let Some(root) = self.root() {
            let mut left = MAX_DEFAULTS;
            self.complete_at(root, value, 0, &mut left);
        }
    }

    /// Completes one level, which lies `inside` so many defaults; `left` is how
    /// many defaults may still be put.
    fn complete_at(&self, node: &Node, value: &mut Value, inside: usize, left: &mut usize) {
        match value {
            Value::Object(map) => {
                for (name, id) in &node.properties {
                    let Some(property) = self.node(*id) else {
                        continue;
                    };
                    let mut inside = inside;
                    if let Some(default) = &property.default
                        && !map.contains_key(name)
                        && inside < MAX_NESTED_DEFAULTS
                        && *left > 0
                    {
                        map.insert(name.clone(), default.clone());
                        inside += 1;
                        *left -= 1;
                    }
                    if let Some(value) = map.get_mut(name) {
                        self.complete_at(property, value, inside, left);
                    }
                }
            }
            Value::Array(items) => {
                if let Items::All(id) = node.items
                    && let Some(node) = self.node(id)
                {
                    for item in items {
                        self.complete_at(node, item, inside, left);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

struct Compiler<'d> {
    document: &'d Value,
    nodes: Vec<Node>,
    references: BTreeMap<&'d str, Id>,
}

impl<'d> Compiler<'d> {
    fn schema(&mut self, value: &'d Value, pointer: &str) -> Result<Id, Problem> {
        let Value::Object(map) = value else {
            return Err((pointer.to_owned(), "a schema must be a map".to_owned()));
        };
        if let Some(Value::String(reference)) = map.get("$ref") {
            return self.reference(reference, pointer);
        }
        let id = Id(self.nodes.len());
        self.nodes.push(Node::default());
        let node = self.node(map, pointer)?;
        if let Some(place) = self.nodes.get_mut(id.0) {
            *place = node;
        }
        Ok(id)
    }

    fn reference(&mut self, reference: &'d str, pointer: &str) -> Result<Id, Problem> {
        if let Some(id) = self.references.get(reference) {
            return Ok(*id);
        }
        let (target, place) = self.follow(reference).ok_or_else(|| {
            let problem = format!("reference \"{reference}\" leads nowhere in this file");
            (pointer.to_owned(), problem)
        })?;
        // Its node comes next: it is noted before it is compiled, because it may
        // lead into itself.
        self.references.insert(reference, Id(self.nodes.len()));
        self.schema(target, place)
    }

    /// Returns the schema that a reference leads to, through other references,
    /// and its JSON pointer.
    fn follow(&self, reference: &'d str) -> Option<(&'d Value, &'d str)> {
        let mut reference = reference;
        for _ in 0..MAX_HOPS {
            let found = target(self.document, reference)?;
            match found.get("$ref").and_then(Value::as_str) {
                Some(next) => reference = next,
                None => return Some((found, reference.strip_prefix('#')?)),
            }
        }
        None
    }

    fn node(&mut self, map: &'d Map<String, Value>, pointer: &str) -> Result<Node, Problem> {
        let read = Keywords { map, pointer };
        Ok(Node {
            types: read.types()?,
            nullable: read.flag("nullable")? || read.flag("x-nullable")?,
            default: map.get("default").map(|default| {
                let mut default = default.clone();
                normalize(&mut default);
                default
            }),
            choices: read.list("enum")?.map(<[Value]>::to_vec),
            required: read.strings("required")?,
            min_properties: read.count("minProperties")?,
            max_properties: read.count("maxProperties")?,
            min_items: read.count("minItems")?,
            max_items: read.count("maxItems")?,
            unique_items: read.flag("uniqueItems")?,
            min_length: read.count("minLength")?,
            max_length: read.count("maxLength")?,
            pattern: read.text("pattern")?.map(|text| read.pattern("pattern", text)).transpose()?,
            format: read.text("format")?.map(str::to_owned),
            minimum: read.limit("minimum", "exclusiveMinimum")?,
            maximum: read.limit("maximum", "exclusiveMaximum")?,
            multiple_of: read.factor()?,
            properties: self
                .map(&read, "properties")?
                .into_iter()
                .map(|(name, id)| (name.to_owned(), id))
                .collect(),
            pattern_properties: self
                .map(&read, "patternProperties")?
                .into_iter()
                .map(|(text, id)| Ok((read.pattern("patternProperties", text)?, id)))
                .collect::<Result<_, Problem>>()?,
            other_properties: self.others(&read, "additionalProperties")?,
            dependencies: self.dependencies(&read)?,
            items: self.items(&read)?,
            other_items: self.others(&read, "additionalItems")?,
            all_of: self.schemas(&read, "allOf")?,
            any_of: self.schemas(&read, "anyOf")?,
            one_of: self.schemas(&read, "oneOf")?,
            not: map.get("not").map(|not| self.schema(not, &below(pointer, "not"))).transpose()?,
        })
    }

    fn map(&mut self, read: &Keywords<'d, '_>, keyword: &str) -> Result<Vec<(&'d str, Id)>, Problem> {
        let Some(value) = read.map.get(keyword) else {
            return Ok(Vec::new());
        };
        let Value::Object(schemas) = value else {
            return Err(read.problem(keyword, "must be a map of schemas"));
        };
        let pointer = below(read.pointer, keyword);
        schemas
            .iter()
            .map(|(name, schema)| Ok((name.as_str(), self.schema(schema, &below(&pointer, name))?)))
            .collect()
    }

    fn schemas(&mut self, read: &Keywords<'d, '_>, keyword: &str) -> Result<Vec<Id>, Problem> {
        let pointer = below(read.pointer, keyword);
        let schemas = read.list(keyword)?.unwrap_or_default().iter().enumerate();
        schemas.map(|(index, schema)| self.schema(schema, &format!("{pointer}/{index}"))).collect()
    }

    fn others(&mut self, read: &Keywords<'d, '_>, keyword: &str) -> Result<Others, Problem> {
        match read.map.get(keyword) {
            None | Some(Value::Bool(true) | Value::Null) => Ok(Others::Allowed),
            Some(Value::Bool(false)) => Ok(Others::Forbidden),
            Some(schema) => Ok(Others::Schema(self.schema(schema, &below(read.pointer, keyword))?)),
        }
    }

    fn items(&mut self, read: &Keywords<'d, '_>) -> Result<Items, Problem> {
        match read.map.get("items") {
            None => Ok(Items::Free),
            Some(Value::Array(_)) => Ok(Items::Each(self.schemas(read, "items")?)),
            Some(schema) => Ok(Items::All(self.schema(schema, &below(read.pointer, "items"))?)),
        }
    }

    fn dependencies(&mut self, read: &Keywords<'d, '_>) -> Result<BTreeMap<String, Dependency>, Problem> {
        let Some(value) = read.map.get("dependencies") else {
            return Ok(BTreeMap::new());
        };
        let Value::Object(dependencies) = value else {
            return Err(read.problem("dependencies", "must be a map"));
        };
        let pointer = below(read.pointer, "dependencies");
        let mut compiled = BTreeMap::new();
        for (name, value) in dependencies {
            let dependency = match value {
                Value::Array(names) => {
                    let names = names.iter().filter_map(Value::as_str);
                    Dependency::Properties(names.map(str::to_owned).collect())
                }
                Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                    Dependency::Schema(self.schema(value, &below(&pointer, name))?)
                }
            };
            compiled.insert(name.clone(), dependency);
        }
        Ok(compiled)
    }
}

/// Reads the simple keywords of one level.
struct Keywords<'d, 'p> {
    map: &'d Map<String, Value>,
    pointer: &'p str,
}

impl<'d> Keywords<'d, '_> {
    fn problem(&self, keyword: &str, problem: &str) -> Problem {
        (below(self.pointer, keyword), format!("{keyword} {problem}"))
    }

    fn types(&self) -> Result<Vec<String>, Problem> {
        match self.map.get("type") {
            Some(Value::String(name)) if name.is_empty() => Ok(Vec::new()),
            Some(Value::String(name)) => Ok(vec![name.clone()]),
            _ => self.strings("type"),
        }
    }

    fn list(&self, keyword: &str) -> Result<Option<&'d [Value]>, Problem> {
        match self.map.get(keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(_) => Err(self.problem(keyword, "must be a list")),
        }
    }

    fn strings(&self, keyword: &str) -> Result<Vec<String>, Problem> {
        let names = self.list(keyword)?.unwrap_or_default().iter();
        names
            .map(|name| name.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| self.problem(keyword, "must hold strings only"))
    }

    fn text(&self, keyword: &str) -> Result<Option<&'d str>, Problem> {
        match self.map.get(keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty()).map(String::as_str)),
            Some(_) => Err(self.problem(keyword, "must be a string")),
        }
    }

    fn flag(&self, keyword: &str) -> Result<bool, Problem> {
        match self.map.get(keyword) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.problem(keyword, "must be true or false")),
        }
    }

    fn count(&self, keyword: &str) -> Result<Option<u64>, Problem> {
        match self.map.get(keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(count) => Ok(Some(count)),
                None => Err(self.problem(keyword, "must be a whole number, not below zero")),
            },
        }
    }

    fn number(&self, keyword: &str) -> Result<Option<f64>, Problem> {
        match self.map.get(keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.problem(keyword, "must be a number")),
            },
        }
    }

    fn limit(&self, keyword: &str, exclusive: &str) -> Result<Option<Limit>, Problem> {
        let exclusive = self.flag(exclusive)?;
        Ok(self.number(keyword)?.map(|value| Limit { value, exclusive }))
    }

    fn factor(&self) -> Result<Option<f64>, Problem> {
        match self.number("multipleOf")? {
            Some(factor) if factor <= 0.0 => Err(self.problem("multipleOf", "must be positive")),
            factor => Ok(factor),
        }
    }

    fn pattern(&self, keyword: &str, text: &str) -> Result<Pattern, Problem> {
        let regex = Regexp::compile(text).map_err(|_| {
            let problem = format!("'{text}' is not a regular expression");
            self.problem(keyword, &problem)
        })?;
        Ok(Pattern { text: text.to_owned(), regex })
    }
}

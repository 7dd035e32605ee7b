//! Reading a document as a schema.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use golang::json::normalize;
use golang::regexp::Regexp;
use serde_json::{Map, Value};
use thiserror::Error;

use super::node::{Dependency, Dialect, Extensions, Id, Items, Limit, Node, Others, Pattern, Schema};

/// How many references may lead to one another.
const MAX_HOPS: usize = 64;

/// Keywords that structural schemas do not have.
const NOT_STRUCTURAL: [&str; 6] =
    ["$ref", "additionalItems", "dependencies", "patternProperties", "uniqueItems", "x-nullable"];

/// What is wrong with a schema.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("at \"{pointer}\": {problem}")]
pub struct Problem {
    /// The JSON pointer of the place.
    pub pointer: String,
    /// What is wrong there.
    pub problem: String,
}

/// Returns the JSON pointer of `key` in the map at `pointer`.
pub fn child_pointer(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Returns the part of `document` that a local reference such as `#/definitions/a` leads to.
pub fn resolve_reference<'d>(document: &'d Value, reference: &str) -> Option<&'d Value> {
    document.pointer(reference.strip_prefix('#')?)
}

impl Schema {
    /// Compiles a schema of values. References must be local.
    pub fn compile(document: &Value) -> Result<Self, Problem> {
        Self::of(document, Dialect::OpenApi)
    }

    /// Compiles the schema of a custom resource. Keywords whose values make no sense are left out.
    pub(super) fn structural(document: &Value) -> Self {
        let fallback = || Self { dialect: Dialect::Structural, nodes: Vec::new() };
        Self::of(document, Dialect::Structural).unwrap_or_else(|_| fallback())
    }

    fn of(document: &Value, dialect: Dialect) -> Result<Self, Problem> {
        let mut compiler = Compiler { document, dialect, nodes: Vec::new(), references: BTreeMap::new() };
        compiler.schema(document, "")?;
        Ok(Self { dialect, nodes: compiler.nodes })
    }
}

struct Compiler<'d> {
    document: &'d Value,
    dialect: Dialect,
    nodes: Vec<Node>,
    references: BTreeMap<&'d str, Id>,
}

impl<'d> Compiler<'d> {
    fn schema(&mut self, value: &'d Value, pointer: &str) -> Result<Id, Problem> {
        static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        let map = match (value, self.dialect) {
            (Value::Object(map), _) => map,
            (_, Dialect::Structural) => &EMPTY,
            (_, Dialect::OpenApi) => {
                let problem = "a schema must be a map".to_owned();
                return Err(Problem { pointer: pointer.to_owned(), problem });
            }
        };
        let read = Keywords { map, pointer, dialect: self.dialect };
        if let Some(Value::String(reference)) = read.get("$ref") {
            return self.reference(reference, pointer);
        }
        let id = Id(self.nodes.len());
        self.nodes.push(Node::default());
        let node = self.node(&read)?;
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
            Problem { pointer: pointer.to_owned(), problem }
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
            let found = resolve_reference(self.document, reference)?;
            match found.get("$ref").and_then(Value::as_str) {
                Some(next) => reference = next,
                None => return Some((found, reference.strip_prefix('#')?)),
            }
        }
        None
    }

    fn node(&mut self, read: &Keywords<'d, '_>) -> Result<Node, Problem> {
        let mut node = Node {
            types: read.types()?,
            nullable: read.flag("nullable")? || read.flag("x-nullable")?,
            default: read.default(),
            choices: read.list("enum")?.map(<[Value]>::to_vec),
            required: read.strings("required")?,
            min_properties: read.count("minProperties")?,
            max_properties: read.count("maxProperties")?,
            min_items: read.count("minItems")?,
            max_items: read.count("maxItems")?,
            unique_items: read.flag("uniqueItems")?,
            min_length: read.count("minLength")?,
            max_length: read.count("maxLength")?,
            pattern: match read.text("pattern")? {
                Some(text) => read.pattern("pattern", text)?,
                None => None,
            },
            format: read.text("format")?.map(str::to_owned),
            minimum: read.limit("minimum", "exclusiveMinimum")?,
            maximum: read.limit("maximum", "exclusiveMaximum")?,
            multiple_of: read.factor()?,
            properties: self
                .map(read, "properties")?
                .into_iter()
                .map(|(name, id)| (name.to_owned(), id))
                .collect(),
            pattern_properties: self.pattern_properties(read)?,
            other_properties: self.others(read, "additionalProperties")?,
            dependencies: self.dependencies(read)?,
            items: self.items(read)?,
            other_items: self.others(read, "additionalItems")?,
            all_of: self.schemas(read, "allOf")?,
            any_of: self.schemas(read, "anyOf")?,
            one_of: self.schemas(read, "oneOf")?,
            not: match read.get("not") {
                Some(not) => Some(self.schema(not, &child_pointer(read.pointer, "not"))?),
                None => None,
            },
            extensions: read.extensions()?,
        };
        if node.extensions.int_or_string {
            node.types = vec!["integer".to_owned(), "string".to_owned()];
        }
        if node.extensions.embedded_resource {
            for name in ["apiVersion", "kind"] {
                if !node.required.iter().any(|required| required == name) {
                    node.required.push(name.to_owned());
                }
            }
        }
        Ok(node)
    }

    fn map(&mut self, read: &Keywords<'d, '_>, keyword: &str) -> Result<Vec<(&'d str, Id)>, Problem> {
        let schemas = match read.get(keyword) {
            None => return Ok(Vec::new()),
            Some(Value::Object(schemas)) => schemas,
            Some(_) => return read.refuse(keyword, "must be a map of schemas", Vec::new()),
        };
        let pointer = child_pointer(read.pointer, keyword);
        schemas
            .iter()
            .map(|(name, schema)| Ok((name.as_str(), self.schema(schema, &child_pointer(&pointer, name))?)))
            .collect()
    }

    fn pattern_properties(&mut self, read: &Keywords<'d, '_>) -> Result<Vec<(Pattern, Id)>, Problem> {
        let mut compiled = Vec::new();
        for (text, id) in self.map(read, "patternProperties")? {
            compiled.extend(read.pattern("patternProperties", text)?.map(|pattern| (pattern, id)));
        }
        Ok(compiled)
    }

    fn schemas(&mut self, read: &Keywords<'d, '_>, keyword: &str) -> Result<Vec<Id>, Problem> {
        let pointer = child_pointer(read.pointer, keyword);
        let schemas = read.list(keyword)?.unwrap_or_default().iter().enumerate();
        schemas.map(|(index, schema)| self.schema(schema, &format!("{pointer}/{index}"))).collect()
    }

    fn others(&mut self, read: &Keywords<'d, '_>, keyword: &str) -> Result<Others, Problem> {
        match (read.get(keyword), self.dialect) {
            (None | Some(Value::Null), _) => Ok(Others::Unspecified),
            (Some(Value::Bool(true)), _) => Ok(Others::Allowed),
            (Some(Value::Bool(false)), Dialect::OpenApi) => Ok(Others::Forbidden),
            (Some(schema), Dialect::Structural) if !schema.is_object() => Ok(Others::Unspecified),
            (Some(schema), _) => {
                Ok(Others::Schema(self.schema(schema, &child_pointer(read.pointer, keyword))?))
            }
        }
    }

    fn items(&mut self, read: &Keywords<'d, '_>) -> Result<Items, Problem> {
        match (read.get("items"), self.dialect) {
            (None, _) => Ok(Items::Free),
            (Some(schema), Dialect::Structural) if !schema.is_object() => Ok(Items::Free),
            (Some(Value::Array(_)), _) => Ok(Items::Each(self.schemas(read, "items")?)),
            (Some(schema), _) => Ok(Items::All(self.schema(schema, &child_pointer(read.pointer, "items"))?)),
        }
    }

    fn dependencies(&mut self, read: &Keywords<'d, '_>) -> Result<BTreeMap<String, Dependency>, Problem> {
        let dependencies = match read.get("dependencies") {
            None => return Ok(BTreeMap::new()),
            Some(Value::Object(dependencies)) => dependencies,
            Some(_) => return read.refuse("dependencies", "must be a map", BTreeMap::new()),
        };
        let pointer = child_pointer(read.pointer, "dependencies");
        let mut compiled = BTreeMap::new();
        for (name, value) in dependencies {
            let dependency = match value {
                Value::Array(names) => {
                    let names = names.iter().filter_map(Value::as_str);
                    Dependency::Properties(names.map(str::to_owned).collect())
                }
                Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                    Dependency::Schema(self.schema(value, &child_pointer(&pointer, name))?)
                }
            };
            compiled.insert(name.clone(), dependency);
        }
        Ok(compiled)
    }
}

/// Reads the keywords of one level.
struct Keywords<'d, 'p> {
    map: &'d Map<String, Value>,
    pointer: &'p str,
    dialect: Dialect,
}

impl<'d> Keywords<'d, '_> {
    /// Returns the value of a keyword that the dialect has.
    fn get(&self, keyword: &str) -> Option<&'d Value> {
        let known = match self.dialect {
            Dialect::OpenApi => !keyword.starts_with("x-kubernetes-"),
            Dialect::Structural => !NOT_STRUCTURAL.contains(&keyword),
        };
        if known { self.map.get(keyword) } else { None }
    }

    /// Reports that a keyword has a value that makes no sense; custom resources get `fallback`,
    /// as their definitions were checked when they were written.
    fn refuse<T>(&self, keyword: &str, problem: &str, fallback: T) -> Result<T, Problem> {
        match self.dialect {
            Dialect::OpenApi => Err(Problem {
                pointer: child_pointer(self.pointer, keyword),
                problem: format!("{keyword} {problem}"),
            }),
            Dialect::Structural => Ok(fallback),
        }
    }

    fn types(&self) -> Result<Vec<String>, Problem> {
        match self.get("type") {
            Some(Value::String(name)) if name.is_empty() => Ok(Vec::new()),
            Some(Value::String(name)) => Ok(vec![name.clone()]),
            _ => self.strings("type"),
        }
    }

    fn default(&self) -> Option<Value> {
        let mut default = self.get("default")?.clone();
        match self.dialect {
            Dialect::OpenApi => normalize(&mut default),
            Dialect::Structural if default.is_null() => return None,
            Dialect::Structural => {}
        }
        Some(default)
    }

    fn list(&self, keyword: &str) -> Result<Option<&'d [Value]>, Problem> {
        match self.get(keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(_) => self.refuse(keyword, "must be a list", None),
        }
    }

    fn strings(&self, keyword: &str) -> Result<Vec<String>, Problem> {
        let items = self.list(keyword)?.unwrap_or_default();
        let names: Vec<String> = items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        if names.len() == items.len() {
            return Ok(names);
        }
        self.refuse(keyword, "must hold strings only", names)
    }

    fn text(&self, keyword: &str) -> Result<Option<&'d str>, Problem> {
        match self.get(keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty()).map(String::as_str)),
            Some(_) => self.refuse(keyword, "must be a string", None),
        }
    }

    fn flag(&self, keyword: &str) -> Result<bool, Problem> {
        match self.get(keyword) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => self.refuse(keyword, "must be true or false", false),
        }
    }

    fn count(&self, keyword: &str) -> Result<Option<u64>, Problem> {
        match self.get(keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(count) => Ok(Some(count)),
                None => self.refuse(keyword, "must be a whole number, not below zero", None),
            },
        }
    }

    fn number(&self, keyword: &str) -> Result<Option<f64>, Problem> {
        match self.get(keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64() {
                Some(number) => Ok(Some(number)),
                None => self.refuse(keyword, "must be a number", None),
            },
        }
    }

    fn limit(&self, keyword: &str, exclusive: &str) -> Result<Option<Limit>, Problem> {
        let exclusive = self.flag(exclusive)?;
        Ok(self.number(keyword)?.map(|value| Limit { value, exclusive }))
    }

    fn factor(&self) -> Result<Option<f64>, Problem> {
        match self.number("multipleOf")? {
            Some(factor) if factor <= 0.0 => self.refuse("multipleOf", "must be positive", None),
            factor => Ok(factor),
        }
    }

    fn pattern(&self, keyword: &str, text: &str) -> Result<Option<Pattern>, Problem> {
        match Regexp::compile(text) {
            Ok(regex) => Ok(Some(Pattern { text: text.to_owned(), regex })),
            Err(_) => self.refuse(keyword, &format!("'{text}' is not a regular expression"), None),
        }
    }

    fn extensions(&self) -> Result<Extensions, Problem> {
        let text = |keyword| self.text(keyword).map(Option::unwrap_or_default);
        Ok(Extensions {
            preserve_unknown_fields: self.flag("x-kubernetes-preserve-unknown-fields")?,
            int_or_string: self.flag("x-kubernetes-int-or-string")?,
            embedded_resource: self.flag("x-kubernetes-embedded-resource")?,
            list_type: text("x-kubernetes-list-type")?.to_owned(),
            list_map_keys: self.strings("x-kubernetes-list-map-keys")?,
            atomic_map: text("x-kubernetes-map-type")? == "atomic",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, matches) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^[\w-]+$", "a_b-c", true),
            (r"^[\w-]+$", "é", false),
            (r"^[^\d]$", "a", true),
            (r"^[^\D]$", "1", true),
            (r"^\s$", "\u{a0}", false),
            (r"^{{.*}}$", "{{x}}", true),
            (r"^a{2}$", "aa", true),
            (r"^a{2,}$", "aaa", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^[a[b]$", "[", true),
            (r"^[[:alpha:]]+$", "ab", true),
            (r"^[]a]+$", "]a", true),
            (r"^[[:]+$", "[:", true),
            (r"^[^]a]$", "b", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^\Qa.b\E+$", "a.bb", true),
            (r"^(?i)abc$", "ABC", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^\/x$", "/x", true),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", true),
        ] {
            let schema = Schema::compile(&serde_json::json!({"pattern": pattern})).unwrap();
            let compiled = schema.root().unwrap().pattern.as_ref().unwrap();
            assert_eq!(compiled.regex.is_match(text), matches, "{pattern} {text}");
        }
        for pattern in ["(", "\\"] {
            assert!(Schema::compile(&serde_json::json!({"pattern": pattern})).is_err());
        }
    }
}

//! What becomes of a schema before it is compiled.

use objects::schema::{Problem, child_pointer, resolve_reference};
use serde_json::{Map, Value};

/// A schema or a part of it, as a tree.
type Tree = Map<String, Value>;

/// How many nodes a schema may have with its references expanded.
const MAX_NODES: usize = 100_000;

/// How deeply references may lead into one another.
const MAX_REFERENCES: usize = 64;

/// Returns `document` with its local references replaced by what they refer to.
///
/// A reference that leads to itself is left as it is. An error names the place of
/// the reference and what is wrong with it.
pub(super) fn expanded(document: &Value) -> Result<Value, Problem> {
    let mut expansion = Expansion { document, open: Vec::new(), nodes: 0 };
    let result = expansion.copy(document);
    result.map_err(|(reference, problem)| {
        let pointer = find(document, &reference, String::new()).unwrap_or_default();
        Problem { pointer, problem }
    })
}

struct Expansion<'d> {
    document: &'d Value,
    /// The references that are being expanded.
    open: Vec<&'d str>,
    nodes: usize,
}

impl<'d> Expansion<'d> {
    fn copy(&mut self, value: &'d Value) -> Result<Value, (String, String)> {
        self.nodes += 1;
        match value {
            Value::Object(map) => {
                if let Some(Value::String(reference)) = map.get("$ref") {
                    return self.refer(reference, value);
                }
                let mut copy = Tree::new();
                for (key, value) in map {
                    copy.insert(key.clone(), self.copy(value)?);
                }
                Ok(Value::Object(copy))
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| self.copy(item));
                Ok(Value::Array(items.collect::<Result<_, _>>()?))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value.clone()),
        }
    }

    fn refer(&mut self, reference: &'d str, value: &'d Value) -> Result<Value, (String, String)> {
        if self.open.contains(&reference) || self.open.len() >= MAX_REFERENCES {
            return Ok(value.clone());
        }
        if self.nodes > MAX_NODES {
            return Err((reference.to_owned(), "the schema is too large with its references".to_owned()));
        }
        let Some(target) = resolve_reference(self.document, reference) else {
            let problem = format!("reference \"{reference}\" leads nowhere in this file");
            return Err((reference.to_owned(), problem));
        };
        self.open.push(reference);
        let copy = self.copy(target);
        self.open.pop();
        copy
    }
}

/// Returns the JSON pointer of a reference.
fn find(value: &Value, reference: &str, pointer: String) -> Option<String> {
    match value {
        Value::Object(map) => {
            if map.get("$ref").is_some_and(|found| found == reference) {
                return Some(pointer);
            }
            map.iter().find_map(|(key, value)| find(value, reference, child_pointer(&pointer, key)))
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| find(item, reference, format!("{pointer}/{index}"))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Returns the schema with other properties forbidden where it is silent.
///
/// What lies below a property that speaks about it is left alone.
pub(super) fn closed(mut schema: Tree) -> Tree {
    close(&mut schema);
    schema
}

fn close(schema: &mut Tree) {
    schema.entry("additionalProperties").or_insert(Value::Bool(false));
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            if !property.contains_key("additionalProperties") {
                close(property);
            }
        }
    }
    match schema.get_mut("items") {
        Some(Value::Object(items)) => close(items),
        Some(Value::Array(items)) => {
            items.iter_mut().filter_map(Value::as_object_mut).for_each(close);
        }
        _ => {}
    }
}

/// Takes over what `parent` has, if the schema asks for it.
pub(super) fn extend(schema: &mut Tree, parent: &Tree) {
    let asks = schema
        .get("x-extend")
        .and_then(|extend| extend.get("schema"))
        .is_some_and(|name| name.as_str().is_some_and(|name| !name.is_empty()));
    if !asks {
        return;
    }
    for (keyword, theirs) in parent {
        match keyword.as_str() {
            "definitions" | "properties" | "patternProperties" => {
                let ours = schema.entry(keyword.clone()).or_insert_with(|| Value::Object(Tree::new()));
                if let (Value::Object(ours), Value::Object(theirs)) = (ours, theirs) {
                    for (name, theirs) in theirs {
                        ours.entry(name.clone()).or_insert_with(|| theirs.clone());
                    }
                }
            }
            "required" => {
                let own = schema.insert(keyword.clone(), theirs.clone());
                if let Some(Value::Array(own)) = own {
                    for name in own {
                        require(schema, name);
                    }
                }
            }
            "title" | "description" => {
                let ours = schema.entry(keyword.clone()).or_insert(Value::Null);
                if ours.as_str().is_none_or(str::is_empty) {
                    *ours = theirs.clone();
                }
            }
            _ if keyword.starts_with("x-") => {
                schema.entry(keyword.clone()).or_insert_with(|| theirs.clone());
            }
            _ => {}
        }
    }
}

/// Adds `name` to the required properties, once.
fn require(schema: &mut Tree, name: Value) {
    let required = schema.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(required) = required
        && !required.contains(&name)
    {
        required.push(name);
    }
}

/// Requires what is required for helm, at the root and below `properties`.
pub(super) fn require_for_helm(schema: &mut Tree) {
    match schema.get("x-required-for-helm").cloned() {
        Some(name @ Value::String(_)) => require(schema, name),
        Some(Value::Array(names)) => {
            for name in names.into_iter().filter(Value::is_string) {
                require(schema, name);
            }
        }
        _ => {}
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().filter_map(Value::as_object_mut).for_each(require_for_helm);
    }
}

//! Types and values of OpenAPI schemas of custom resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use serde_json::{Map, Value as Json};

use crate::declared::Declared;
use crate::escape::escape;
use crate::times;
use crate::types::Type;
use crate::value::{Key, List, ListKind, Value};

/// How many bytes a request may have.
pub(crate) const MAX_REQUEST: u64 = 3 << 20;

/// How many levels of a schema are looked at.
const MAX_DEPTH: usize = 400;

/// Returns the type of a schema; `None` if expressions can't see values of it. The root of a resource has `apiVersion`, `kind`,
/// and names.
pub fn declared(schema: &Json, is_root: bool) -> Option<Declared> {
    within(schema, is_root, MAX_DEPTH)
}

fn text<'a>(schema: &'a Json, field: &str) -> &'a str {
    schema.get(field).and_then(Json::as_str).unwrap_or_default()
}

fn flag(schema: &Json, field: &str) -> bool {
    schema.get(field) == Some(&Json::Bool(true))
}

/// Returns a limit of a schema; what is below zero counts as zero.
fn limit(schema: &Json, field: &str) -> Option<u64> {
    let number = schema.get(field)?;
    number.as_u64().or_else(|| number.as_i64().map(|_| 0))
}

fn is_embedded(schema: &Json) -> bool {
    flag(schema, "x-kubernetes-embedded-resource")
}

fn within(schema: &Json, is_root: bool, depth: usize) -> Option<Declared> {
    let depth = depth.checked_sub(1)?;
    if flag(schema, "x-kubernetes-int-or-string") {
        let max_elements = limit(schema, "maxLength").map_or(MAX_REQUEST - 2, |most| most.saturating_mul(4));
        return Some(Declared { max_elements, ..Declared::scalar(Type::Dyn, 1) });
    }
    match text(schema, "type") {
        "array" => {
            let items = schema.get("items")?;
            let element = within(items, is_embedded(items), depth)?;
            let max_elements =
                limit(schema, "maxItems").unwrap_or((MAX_REQUEST - 2) / (element.min_size + 1));
            let of = Type::list(element.of.clone());
            Some(Declared { max_elements, element: Some(element.into()), ..Declared::scalar(of, 2) })
        }
        "object" => object(schema, is_root || is_embedded(schema), depth),
        "string" => Some(string(schema)),
        "boolean" => Some(Declared::scalar(Type::Bool, 4)),
        "number" => Some(Declared::scalar(Type::Double, 1)),
        "integer" => Some(Declared::scalar(Type::Int, 1)),
        _ if is_root => object(schema, true, depth),
        _ => None,
    }
}

fn object(schema: &Json, is_root: bool, depth: usize) -> Option<Declared> {
    if let Some(values @ Json::Object(_)) = schema.get("additionalProperties")
        && !is_root
    {
        let element = within(values, is_embedded(values), depth)?;
        let max_elements =
            limit(schema, "maxProperties").unwrap_or((MAX_REQUEST - 2) / (element.min_size + 6));
        let of = Type::map(Type::String, element.of.clone());
        let key = Some(Box::new(Declared::scalar(Type::String, 2)));
        return Some(Declared {
            max_elements,
            element: Some(element.into()),
            key,
            ..Declared::scalar(of, 2)
        });
    }
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
        .collect();
    let mut fields = BTreeMap::new();
    let mut min_size = 2_u64;
    for (name, property) in properties(schema) {
        if is_root && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        let Some(field) = within(property, is_embedded(property), depth) else { continue };
        if required.contains(&name.as_str()) && property.get("default").is_none() {
            min_size = min_size.saturating_add(name.len() as u64 + field.min_size + 4);
        }
        if let Some(name) = escape(name) {
            fields.insert(name, field);
        }
    }
    if is_root {
        let name = || Declared { max_elements: MAX_REQUEST - 2, ..Declared::scalar(Type::String, 2) };
        let names: BTreeMap<String, Declared> =
            ["name", "generateName"].into_iter().map(|field| (field.to_owned(), name())).collect();
        let of = Type::object("object", names.keys().map(|field| (field.clone(), Type::String)));
        fields.insert("apiVersion".to_owned(), name());
        fields.insert("kind".to_owned(), name());
        fields.insert("metadata".to_owned(), Declared { fields: names, ..Declared::scalar(of, 2) });
    }
    let of = Type::object("object", fields.iter().map(|(name, field)| (name.clone(), field.of.clone())));
    Some(Declared { fields, ..Declared::scalar(of, min_size) })
}

fn string(schema: &Json) -> Declared {
    let longest = MAX_REQUEST - 2;
    let (of, min_size, max_elements) = match text(schema, "format") {
        "byte" => (Type::Bytes, 2, limit(schema, "maxLength").unwrap_or(longest)),
        "duration" => (Type::Duration, 3, 32),
        "date" => (Type::Timestamp, 12, 12),
        "date-time" => (Type::Timestamp, 21, 32),
        _ => {
            let choices = schema.get("enum").and_then(Json::as_array).filter(|choices| !choices.is_empty());
            let of_choices = choices.map(|choices| {
                choices.iter().filter_map(Json::as_str).map(|choice| choice.len() as u64).max().unwrap_or(0)
            });
            let most = limit(schema, "maxLength").map(|most| most.saturating_mul(4));
            (Type::String, 2, most.or(of_choices).unwrap_or(longest))
        }
    };
    Declared { max_elements, ..Declared::scalar(of, min_size) }
}

/// Returns the properties of a schema.
pub(crate) fn properties(schema: &Json) -> impl Iterator<Item = (&String, &Json)> {
    schema.get("properties").and_then(Json::as_object).into_iter().flatten()
}

/// Returns a value of JSON as expressions see it that know its schema. Fields that the schema does not have are not there.
pub fn value(json: &Json, schema: &Json, is_root: bool) -> Value {
    let is_root = is_root || is_embedded(schema);
    match json {
        Json::Object(fields) if is_root || text(schema, "type") == "object" => {
            of_object(fields, schema, is_root)
        }
        Json::Array(items) => {
            let none = Json::Null;
            let of = schema.get("items").unwrap_or(&none);
            let items = items.iter().map(|item| value(item, of, false)).collect();
            Value::List(Arc::new(List { items, kind: kind(schema) }))
        }
        Json::String(text) => of_text(text, schema),
        Json::Number(number) if self::text(schema, "type") == "number" => {
            number.as_f64().map_or(Value::Null, Value::Double)
        }
        Json::Number(number) if self::text(schema, "type") == "integer" => {
            number.as_i64().map_or_else(|| Value::of(json), Value::Int)
        }
        other => Value::of(other),
    }
}

fn of_object(fields: &Map<String, Json>, schema: &Json, is_root: bool) -> Value {
    if let Some(values @ Json::Object(_)) = schema.get("additionalProperties")
        && !is_root
    {
        return Value::described(
            fields.iter().map(|(key, json)| (Key::text(key), value(json, values, false))),
        );
    }
    let mut entries = BTreeMap::new();
    for (name, property) in properties(schema) {
        // `null` counts as missing.
        let json = fields.get(name).filter(|json| !json.is_null());
        if let (Some(json), Some(name)) = (json, escape(name)) {
            entries.insert(Key::text(&name), value(json, property, false));
        }
    }
    if is_root {
        for name in ["apiVersion", "kind"] {
            if let Some(json) = fields.get(name) {
                entries.insert(Key::text(name), Value::of(json));
            }
        }
        if let Some(metadata) = fields.get("metadata") {
            let names = ["name", "generateName"].into_iter();
            let names = names.filter_map(|name| Some((Key::text(name), Value::of(metadata.get(name)?))));
            entries.insert(Key::text("metadata"), Value::described(names));
        }
    }
    Value::described(entries)
}

fn of_text(text: &str, schema: &Json) -> Value {
    let typed = match self::text(schema, "format") {
        _ if self::text(schema, "type") != "string" => None,
        "byte" => base64::engine::general_purpose::STANDARD
            .decode(text)
            .ok()
            .map(|bytes| Value::Bytes(bytes.into())),
        "duration" => times::parse_duration(text).map(Value::Duration),
        "date" => times::parse_date(text).map(Value::Timestamp),
        "date-time" => times::parse_timestamp(&text.to_uppercase()).map(Value::Timestamp),
        _ => None,
    };
    typed.unwrap_or_else(|| Value::text(text))
}

fn kind(schema: &Json) -> ListKind {
    match text(schema, "x-kubernetes-list-type") {
        "set" => ListKind::Set,
        "map" => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Json::as_array);
            let keys = keys.into_iter().flatten().filter_map(Json::as_str);
            ListKind::Map(keys.filter_map(escape).collect())
        }
        _ => ListKind::Described,
    }
}

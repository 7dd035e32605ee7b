//! JSON and YAML.

use std::collections::BTreeMap;

use golang::json::{Escape, decode_as, encode, indented};

use super::args::{ANY, Answer, LIST, MAP, STRING, any, bytes};
use super::format;
use crate::value::{CallError, Context, Function, Kind, List, ListType, Map, MapType, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("fromJson", &[STRING], MAP, |_, args| Ok(from_json(args))),
    Function::new("fromJsonArray", &[STRING], LIST, |_, args| Ok(from_json_array(args))),
    Function::new("fromYaml", &[STRING], MAP, |_, args| Ok(from_yaml(args))),
    Function::new("fromYamlArray", &[STRING], LIST, |_, args| Ok(from_yaml_array(args))),
    Function::new("mustFromJson", &[STRING], ANY, |_, args| {
        let decoded = decode_as(bytes(args, 0)).map_err(|error| error.to_string())?;
        match decoded.too_great {
            Some(number) => Err(too_great(&number).into()),
            None => Ok(decoded.value),
        }
    }),
    Function::new("mustToJson", &[ANY], STRING, |context, args| written(context, args, Escape::Html)),
    Function::new("mustToPrettyJson", &[ANY], STRING, pretty),
    Function::new("mustToRawJson", &[ANY], STRING, |context, args| written(context, args, Escape::Nothing)),
    Function::new("toJson", &[ANY], STRING, |context, args| or_nothing(written(context, args, Escape::Html))),
    Function::new("toPrettyJson", &[ANY], STRING, |context, args| or_nothing(pretty(context, args))),
    Function::new("toRawJson", &[ANY], STRING, |context, args| written(context, args, Escape::Nothing)),
    Function::new("toYaml", &[ANY], STRING, |context, args| to_yaml(context, any(args, 0))),
    Function::new("toYamlPretty", &[ANY], STRING, |context, args| to_yaml_pretty(context, any(args, 0))),
];

const MAP_NAME: &str = "map[string]interface {}";
const LIST_NAME: &str = "[]interface {}";

fn written(context: &mut dyn Context, args: &[Value], escape: Escape) -> Answer {
    format::charge(context, any(args, 0))?;
    let json = encode(any(args, 0), escape).map_err(|error| error.to_string())?;
    Ok(json.into())
}

fn pretty(context: &mut dyn Context, args: &[Value]) -> Answer {
    format::charge(context, any(args, 0))?;
    let json = indented(&encode(any(args, 0), Escape::Html).map_err(|error| error.to_string())?);
    context.charge(json.len())?;
    Ok(json.into())
}

/// Turns what cannot be written into an empty text; limits stay errors.
fn or_nothing(answer: Answer) -> Answer {
    match answer {
        Err(CallError::Message(_)) => Ok("".into()),
        other => other,
    }
}

fn too_great(number: &str) -> String {
    format!("json: cannot unmarshal number {number} into Go value of type float64")
}

fn mismatch(value: &Value, wanted: &str) -> String {
    let names = [
        (Kind::Bool, "bool"),
        (Kind::Float64, "number"),
        (Kind::Map, "object"),
        (Kind::Slice, "array"),
        (Kind::String, "string"),
    ];
    let found = names.iter().find(|(kind, _)| *kind == value.kind()).map_or("null", |(_, name)| name);
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

/// A map that holds nothing but an error.
fn error_map(map: Map, error: &str) -> Value {
    map.insert("Error", error.into());
    map.into()
}

fn from_json(args: &[Value]) -> Value {
    let decoded = match decode_as(bytes(args, 0)) {
        Ok(decoded) => decoded,
        Err(error) => return error_map(Map::new(BTreeMap::new()), &error.to_string()),
    };
    match (decoded.value, decoded.too_great) {
        (Value::Map(map), None) => map.into(),
        (Value::Map(map), Some(number)) => error_map(map, &too_great(&number)),
        (Value::Nil, Some(_)) => {
            error_map(Map::new(BTreeMap::new()), &mismatch(&Value::Float(0.0), MAP_NAME))
        }
        (Value::Nil, None) => Map::nil(&MapType::ANY).into(),
        (other, _) => error_map(Map::new(BTreeMap::new()), &mismatch(&other, MAP_NAME)),
    }
}

fn from_json_array(args: &[Value]) -> Value {
    let decoded = match decode_as(bytes(args, 0)) {
        Ok(decoded) => decoded,
        Err(error) => return Value::list(vec![error.to_string().into()]),
    };
    match (decoded.value, decoded.too_great) {
        (Value::List(list), None) => list.into(),
        (Value::List(_), Some(number)) => Value::list(vec![too_great(&number).into()]),
        (Value::Nil, Some(_)) => Value::list(vec![mismatch(&Value::Float(0.0), LIST_NAME).into()]),
        (Value::Nil, None) => Value::List(List::nil(&ListType::ANY)),
        (other, _) => Value::list(vec![mismatch(&other, LIST_NAME).into()]),
    }
}

/// Reads YAML; the error is what Helm puts in place of the value.
fn parsed(args: &[Value]) -> Result<Value, String> {
    match crate::yaml::parse(bytes(args, 0)) {
        Ok(value) => Ok(Value::from_json(&value)),
        Err(error) => Err(format!("error converting YAML to JSON: {error}")),
    }
}

fn decoding(mismatch: &str) -> String {
    format!("error unmarshaling JSON: while decoding JSON: {mismatch}")
}

fn from_yaml(args: &[Value]) -> Value {
    let empty = || Map::new(BTreeMap::new());
    match parsed(args) {
        Ok(Value::Map(map)) => map.into(),
        Ok(Value::Nil) => empty().into(),
        Ok(other) => error_map(empty(), &decoding(&mismatch(&other, MAP_NAME))),
        Err(error) => error_map(empty(), &error),
    }
}

fn from_yaml_array(args: &[Value]) -> Value {
    match parsed(args) {
        Ok(Value::List(list)) => list.into(),
        Ok(Value::Nil) => Value::list(Vec::new()),
        Ok(other) => Value::list(vec![decoding(&mismatch(&other, LIST_NAME)).into()]),
        Err(error) => Value::list(vec![error.into()]),
    }
}

/// Writes YAML without the last line break; nothing for what YAML cannot hold.
fn to_yaml(context: &mut dyn Context, value: &Value) -> Answer {
    format::charge(context, value)?;
    let unchanged =
        |json: serde_json::Value| if is_unchanged(&json) { Some(json) } else { through_yaml(json) };
    let Some(json) = value.to_json().ok().and_then(unchanged) else {
        return Ok("".into());
    };
    without_line_break(context, &values::yaml::emit(&json))
}

/// Writes YAML with indented lists, which does not go through JSON.
fn to_yaml_pretty(context: &mut dyn Context, value: &Value) -> Answer {
    format::charge(context, value)?;
    match value.to_json() {
        Ok(json) => without_line_break(context, &values::yaml::emit_pretty(&json)),
        Err(_) => Ok("".into()),
    }
}

fn without_line_break(context: &mut dyn Context, yaml: &str) -> Answer {
    context.charge(yaml.len())?;
    Ok(yaml.strip_suffix('\n').unwrap_or(yaml).into())
}

/// Reports whether all of `json` is sure to be read as YAML as it is.
fn is_unchanged(json: &serde_json::Value) -> bool {
    use serde_json::Value as Json;
    let is_plain = |text: &str| text.bytes().all(|byte| byte < 0x7f);
    match json {
        Json::String(text) => is_plain(text),
        Json::Array(items) => items.iter().all(is_unchanged),
        Json::Object(entries) => entries.iter().all(|(key, value)| is_plain(key) && is_unchanged(value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => true,
    }
}

/// Returns what is left of JSON that is read as YAML, which is how it becomes YAML: control
/// characters are refused, and a line break of its own kind is folded.
fn through_yaml(json: serde_json::Value) -> Option<serde_json::Value> {
    use serde_json::Value as Json;
    let refused = |c: char| matches!(c, '\x7f'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}');
    Some(match json {
        Json::String(text) if text.contains(refused) => return None,
        Json::String(text) if text.contains('\u{85}') => Json::String(text.replace('\u{85}', " ")),
        Json::Array(items) => Json::Array(items.into_iter().map(through_yaml).collect::<Option<_>>()?),
        Json::Object(entries) => {
            let is_fine = |key: &str| !key.contains(refused) && !key.contains('\u{85}');
            let entries = entries.into_iter().map(|(key, value)| {
                let value = through_yaml(value)?;
                is_fine(&key).then_some((key, value))
            });
            Json::Object(entries.collect::<Option<_>>()?)
        }
        other @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_)) => other,
    })
}

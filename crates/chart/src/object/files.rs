//! `.Files`: the files of a chart that are neither templates nor metadata.

#![expect(clippy::unnecessary_wraps, reason = "all methods have the signature that templates call")]

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;

use super::{glob, path_of};
use crate::chart::File;
use crate::value::{CallError, Context, Entries, ListType, Map, MapType, Method, Text, Type, Value};

/// `engine.files`
static FILES: MapType = MapType { name: "engine.files", element: Type::Bytes, named: true, methods: METHODS };

const METHODS: &[Method] = &[
    Method::new("AsConfig", &[], Type::String, |_, this, _| {
        Ok(by_base_name(this, |data| String::from_utf8_lossy(data).into_owned()))
    }),
    Method::new("AsSecrets", &[], Type::String, |_, this, _| {
        Ok(by_base_name(this, |data| base64::engine::general_purpose::STANDARD.encode(data)))
    }),
    Method::new("Get", &[Type::String], Type::String, |_, this, args| {
        Ok(Value::Text(Text::from(&content(this, args))))
    }),
    Method::new("GetBytes", &[Type::String], Type::Bytes, |_, this, args| {
        Ok(Value::Bytes(content(this, args)))
    }),
    Method::new("Glob", &[Type::String], Type::Named("engine.files"), glob_files),
    Method::new("Lines", &[Type::String], Type::List(&ListType::STRINGS), lines),
];

/// Returns the object of `files`.
pub(crate) fn files(files: &[File]) -> Value {
    let entries = files.iter().map(|file| (Rc::from(&*file.name), Value::Bytes(Arc::clone(&file.data))));
    Value::Map(Map::of(&FILES, entries.collect()))
}

fn entries_of(this: &Value) -> Rc<Entries> {
    this.as_map().map(Map::entries).unwrap_or_default()
}

/// Returns the content of the file that the argument names; nothing if there is none.
fn content(this: &Value, args: &[Value]) -> Arc<[u8]> {
    match entries_of(this).get(path_of(args).as_str()) {
        Some(Value::Bytes(bytes)) => Arc::clone(bytes),
        Some(_) | None => Arc::from([]),
    }
}

fn glob_files(_: &mut dyn Context, this: &Value, args: &[Value]) -> Result<Value, CallError> {
    let fits = glob::compile(&path_of(args));
    let entries = entries_of(this);
    let found =
        entries.iter().filter(|(path, _)| fits(path)).map(|(path, data)| (Rc::clone(path), data.clone()));
    Ok(Value::Map(Map::of(&FILES, found.collect())))
}

fn lines(_: &mut dyn Context, this: &Value, args: &[Value]) -> Result<Value, CallError> {
    let entries = entries_of(this);
    let Some(Value::Bytes(bytes)) = entries.get(path_of(args).as_str()) else {
        return Ok(Value::strings(Vec::<Text>::new()));
    };
    if bytes.is_empty() {
        return Err(CallError::new("runtime error: index out of range [-1]"));
    }
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    Ok(Value::strings(bytes.split(|byte| *byte == b'\n').map(Text::from)))
}

/// Returns the content of all files by the last part of their paths, as YAML.
fn by_base_name(this: &Value, text: impl Fn(&[u8]) -> String) -> Value {
    let mut content = BTreeMap::new();
    for (path, data) in entries_of(this).iter() {
        if let Value::Bytes(data) = data {
            content.insert(path.rsplit('/').next().unwrap_or(path).to_owned(), text(data));
        }
    }
    let content: serde_json::Map<_, _> =
        content.into_iter().map(|(name, text)| (name, text.into())).collect();
    values::yaml::emit(&content.into()).trim_end_matches('\n').into()
}

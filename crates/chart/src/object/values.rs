//! `.Values`: a map with methods.

use super::path_of;
use crate::value::{CallError, Context, Map, MapType, Method, Type, Value};

/// `chartutil.Values`
pub(crate) static VALUES: MapType =
    MapType { name: "chartutil.Values", element: Type::Any, named: true, methods: METHODS };

const METHODS: &[Method] = &[
    Method::new("AsMap", &[], Type::Map(&MapType::ANY), |_, this, _| {
        Ok(Value::Map(map_of(this)?.as_class(&MapType::ANY)))
    }),
    Method::new("PathValue", &[Type::String], Type::Any, path_value),
    Method::new("Table", &[Type::String], Type::Named("chartutil.Values"), table),
    Method::new("YAML", &[], Type::String, yaml),
];

fn map_of(value: &Value) -> Result<&Map, CallError> {
    value.as_map().ok_or_else(|| CallError::new("not a map"))
}

fn table(_: &mut dyn Context, this: &Value, args: &[Value]) -> Result<Value, CallError> {
    let found = walk(map_of(this)?, &path_of(args))
        .map_err(|key| CallError::new(format!("{key:?} is not a table")))?;
    Ok(Value::Map(found.as_class(&VALUES)))
}

fn path_value(_: &mut dyn Context, this: &Value, args: &[Value]) -> Result<Value, CallError> {
    let path = path_of(args);
    if path.is_empty() {
        return Err(CallError::new("YAML path cannot be empty"));
    }
    let map = map_of(this)?;
    let (table, key) = match path.rsplit_once('.') {
        Some((parents, key)) => (walk(map, parents).ok(), key),
        None => (Some(map.clone()), path.as_str()),
    };
    match table.and_then(|table| table.get(key)) {
        Some(value) if value.as_map().is_none() => Ok(value),
        Some(_) | None => Err(CallError::new(format!("{key:?} is not a value"))),
    }
}

fn walk<'p>(map: &Map, path: &'p str) -> Result<Map, &'p str> {
    let mut map = map.clone();
    for key in path.split('.') {
        map = map.get(key).and_then(|value| value.as_map().cloned()).ok_or(key)?;
    }
    Ok(map)
}

fn yaml(_: &mut dyn Context, this: &Value, _: &[Value]) -> Result<Value, CallError> {
    let json = this.to_json().map_err(|error| CallError::new(error.to_string()))?;
    Ok(values::yaml::emit(&json).into())
}

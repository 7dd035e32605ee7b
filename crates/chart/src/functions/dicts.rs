//! Maps.

use super::args::{ANY, Answer, BOOL, LIST, MAP, STRING, STRINGS, any, from, map, string};
use super::{format, merge};
use crate::value::{CallError, Context, Entries, Function, List, MAX_NESTING, Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("deepCopy", &[ANY], ANY, deep_copy),
    Function::new("mustDeepCopy", &[ANY], ANY, deep_copy),
    Function::variadic("dict", &[ANY], MAP, dict),
    Function::variadic("dig", &[ANY], ANY, dig),
    Function::new("get", &[MAP, STRING], ANY, |_, args| {
        Ok(map(args, 0).get(&string(args, 1)).unwrap_or_else(|| "".into()))
    }),
    Function::new("hasKey", &[MAP, STRING], BOOL, |_, args| {
        Ok(map(args, 0).contains(&string(args, 1)).into())
    }),
    Function::variadic("keys", &[MAP], STRINGS, |_, args| {
        let keys = args
            .iter()
            .filter_map(Value::as_map)
            .flat_map(|map| map.entries().keys().cloned().collect::<Vec<_>>());
        Ok(Value::strings(keys))
    }),
    Function::variadic("merge", &[MAP, MAP], ANY, |_, args| merge::merged(args, false)),
    Function::variadic("mergeOverwrite", &[MAP, MAP], ANY, |_, args| merge::merged(args, true)),
    Function::variadic("mustMerge", &[MAP, MAP], ANY, |_, args| merge::merged(args, false)),
    Function::variadic("mustMergeOverwrite", &[MAP, MAP], ANY, |_, args| merge::merged(args, true)),
    Function::variadic("omit", &[MAP, STRING], MAP, |_, args| {
        let mut entries = map(args, 0).entries().as_ref().clone();
        for index in 1..args.len() {
            entries.remove(string(args, index).as_ref());
        }
        Ok(Map::new(entries).into())
    }),
    Function::variadic("pick", &[MAP, STRING], MAP, |_, args| {
        let (map, mut picked) = (map(args, 0), Entries::new());
        for index in 1..args.len() {
            let key = string(args, index);
            if let Some(value) = map.get(&key) {
                picked.insert(key.into(), value);
            }
        }
        Ok(Map::new(picked).into())
    }),
    Function::variadic("pluck", &[STRING, MAP], LIST, |_, args| {
        let key = string(args, 0);
        let values = from(args, 1).iter().filter_map(|map| map.as_map()?.get(&key));
        Ok(Value::list(values.collect()))
    }),
    Function::new("set", &[MAP, STRING, ANY], MAP, |_, args| {
        let map = map(args, 0);
        if map.is_nil() {
            return Err(CallError::new("assignment to entry in nil map"));
        }
        map.insert(string(args, 1), any(args, 2).clone());
        Ok(map.into())
    }),
    Function::new("unset", &[MAP, STRING], MAP, |_, args| {
        let map = map(args, 0);
        map.remove(&string(args, 1));
        Ok(map.into())
    }),
    Function::new("values", &[MAP], LIST, |_, args| {
        Ok(Value::list(map(args, 0).entries().values().cloned().collect()))
    }),
];

fn dict(context: &mut dyn Context, args: &[Value]) -> Answer {
    let mut entries = Entries::new();
    for pair in args.chunks(2) {
        let Some(key) = pair.first() else {
            continue;
        };
        let key = format::text(key)?.lossy().into_owned();
        context.charge(key.len() + size_of::<Value>())?;
        entries.insert(key.into(), pair.get(1).cloned().unwrap_or_else(|| "".into()));
    }
    Ok(Map::new(entries).into())
}

/// Walks through maps by keys; a key that is missing gives the default.
fn dig(_: &mut dyn Context, args: &[Value]) -> Answer {
    let [keys @ .., default, map] = args else {
        return Err(CallError::new("dig needs at least three arguments"));
    };
    if keys.is_empty() {
        return Err(CallError::new("dig needs at least three arguments"));
    }
    let mut map = plain_map(map)?;
    let mut texts = Vec::with_capacity(keys.len());
    for key in keys {
        let text = key.as_text().ok_or_else(|| conversion(key, "string"))?;
        texts.push(text.lossy());
    }
    let mut texts = texts.into_iter().peekable();
    while let Some(key) = texts.next() {
        let Some(value) = map.get(&key) else {
            break;
        };
        if texts.peek().is_none() {
            return Ok(value);
        }
        map = plain_map(&value)?;
    }
    Ok(default.clone())
}

/// Returns the map, which must be of the plain type: a named one is refused as in Go.
fn plain_map(value: &Value) -> Result<Map, CallError> {
    let plain = value.as_map().filter(|map| !map.class().named && map.class().element.is_interface());
    plain.cloned().ok_or_else(|| conversion(value, "map[string]interface {}"))
}

fn conversion(value: &Value, wanted: &str) -> CallError {
    let found = if value.is_nil() { "nil" } else { value.type_name() };
    CallError::new(format!("interface conversion: interface {{}} is {found}, not {wanted}"))
}

fn deep_copy(context: &mut dyn Context, args: &[Value]) -> Answer {
    let value = any(args, 0);
    if value.is_nil() {
        return Err(CallError::new("reflect: call of reflect.Value.Type on zero Value"));
    }
    copied(context, value, 0)
}

/// Copies maps and lists all the way down.
fn copied(context: &mut dyn Context, value: &Value, depth: usize) -> Answer {
    if depth > MAX_NESTING {
        return Err(CallError::new(format!(
            "value is nested more than {MAX_NESTING} levels deep or holds itself"
        )));
    }
    context.charge(size_of::<Value>())?;
    if let Some(list) = value.as_list().filter(|list| !list.is_nil()) {
        let items = list.items();
        let items = items.iter().map(|item| copied(context, item, depth + 1));
        return Ok(List::of(list.class(), items.collect::<Result<_, _>>()?).into());
    }
    if let Some(map) = value.as_map().filter(|map| !map.is_nil()) {
        let mut entries = Entries::new();
        for (key, value) in map.entries().iter() {
            entries.insert(key.clone(), copied(context, value, depth + 1)?);
        }
        return Ok(Map::of(map.class(), entries).into());
    }
    Ok(value.clone())
}

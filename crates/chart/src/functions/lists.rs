//! Lists: taking parts, adding, removing.

use super::args::{ANY, Answer, BOOL, INT, LIST, any, from, int, nil_dereference};
use super::convert::to_i64;
use crate::value::{CallError, Context, End, Function, List, ListType, Type, UintType, Value};

/// `[][]interface {}`, which `chunk` returns.
static CHUNKS: ListType = ListType::unnamed("[][]interface {}", LIST);

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("append", &[ANY, ANY], LIST, push),
    Function::new("mustAppend", &[ANY, ANY], LIST, push),
    Function::new("push", &[ANY, ANY], LIST, push),
    Function::new("mustPush", &[ANY, ANY], LIST, push),
    Function::new("chunk", &[INT, ANY], Type::List(&CHUNKS), chunk),
    Function::new("mustChunk", &[INT, ANY], Type::List(&CHUNKS), chunk),
    Function::new("compact", &[ANY], LIST, compact),
    Function::new("mustCompact", &[ANY], LIST, compact),
    Function::variadic("concat", &[ANY], ANY, concat),
    Function::new("first", &[ANY], ANY, first),
    Function::new("mustFirst", &[ANY], ANY, first),
    Function::new("has", &[ANY, ANY], BOOL, has),
    Function::new("mustHas", &[ANY, ANY], BOOL, has),
    Function::new("initial", &[ANY], LIST, initial),
    Function::new("mustInitial", &[ANY], LIST, initial),
    Function::new("last", &[ANY], ANY, last),
    Function::new("mustLast", &[ANY], ANY, last),
    Function::variadic("list", &[ANY], LIST, |_, args| Ok(Value::list(args.to_vec()))),
    Function::variadic("tuple", &[ANY], LIST, |_, args| Ok(Value::list(args.to_vec()))),
    Function::new("prepend", &[ANY, ANY], LIST, prepend),
    Function::new("mustPrepend", &[ANY, ANY], LIST, prepend),
    Function::new("rest", &[ANY], LIST, rest),
    Function::new("mustRest", &[ANY], LIST, rest),
    Function::new("reverse", &[ANY], LIST, reverse),
    Function::new("mustReverse", &[ANY], LIST, reverse),
    Function::variadic("slice", &[ANY, ANY], ANY, slice),
    Function::variadic("mustSlice", &[ANY, ANY], ANY, slice),
    Function::new("uniq", &[ANY], LIST, uniq),
    Function::new("mustUniq", &[ANY], LIST, uniq),
    Function::variadic("without", &[ANY, ANY], LIST, without),
    Function::variadic("mustWithout", &[ANY, ANY], LIST, without),
];

/// Returns the elements of a slice; `what` begins the error of anything else.
fn elements(value: &Value, what: &str) -> Result<Vec<Value>, CallError> {
    if let Value::List(list) = value {
        Ok(list.items().to_vec())
    } else if let Value::Bytes(bytes) = value {
        Ok(bytes.iter().map(|byte| Value::Uint(UintType::Uint8, (*byte).into())).collect())
    } else if value.is_nil() {
        Err(nil_dereference())
    } else {
        Err(CallError::new(format!("{what} type {}", value.kind().name())))
    }
}

/// Counts the memory of a list that is made, then returns it.
fn made(context: &mut dyn Context, items: Vec<Value>) -> Answer {
    context.charge(items.len().saturating_mul(size_of::<Value>()))?;
    Ok(Value::list(items))
}

fn nil_list() -> Value {
    Value::List(List::nil(&ListType::ANY))
}

/// Returns a list with one more element at an end, if `value` is a list.
fn with(
    context: &mut dyn Context,
    value: &Value,
    item: &Value,
    end: End,
) -> Result<Option<Value>, CallError> {
    let Value::List(list) = value else { return Ok(None) };
    context.charge(list.bytes_of_one_more())?;
    Ok(Some(list.with(item.clone(), end).into()))
}

fn push(context: &mut dyn Context, args: &[Value]) -> Answer {
    if let Some(list) = with(context, any(args, 0), any(args, 1), End::Back)? {
        return Ok(list);
    }
    let mut items = elements(any(args, 0), "Cannot push on")?;
    items.push(any(args, 1).clone());
    made(context, items)
}

fn prepend(context: &mut dyn Context, args: &[Value]) -> Answer {
    if let Some(list) = with(context, any(args, 0), any(args, 1), End::Front)? {
        return Ok(list);
    }
    let mut items = elements(any(args, 0), "Cannot prepend on")?;
    items.insert(0, any(args, 1).clone());
    made(context, items)
}

fn chunk(_: &mut dyn Context, args: &[Value]) -> Answer {
    let items = elements(any(args, 1), "Cannot chunk")?;
    let out_of_range = || CallError::new("runtime error: makeslice: len out of range");
    let size = usize::try_from(int(args, 0)).ok().filter(|size| *size > 0);
    let negative = int(args, 0).min(0).unsigned_abs();
    let chunks = match (size, items.is_empty()) {
        (Some(size), _) => items.chunks(size).map(|chunk| Value::list(chunk.to_vec())).collect(),
        // A negative size makes no chunks, but only of a list that is not longer.
        (None, false) if (1..=negative).contains(&(items.len() as u64 - 1)) => Vec::new(),
        (None, _) => return Err(out_of_range()),
    };
    Ok(Value::List(List::of(&CHUNKS, chunks)))
}

fn compact(context: &mut dyn Context, args: &[Value]) -> Answer {
    let mut items = elements(any(args, 0), "Cannot compact on")?;
    items.retain(|item| !super::defaults::is_empty(item));
    made(context, items)
}

fn concat(context: &mut dyn Context, args: &[Value]) -> Answer {
    let mut all = Vec::new();
    for list in args {
        if !matches!(list, Value::List(_) | Value::Bytes(_) | Value::Nil) {
            let kind = list.kind().name();
            return Err(CallError::new(format!("Cannot concat type {kind} as list")));
        }
        all.extend(elements(list, "")?);
    }
    if all.is_empty() { Ok(nil_list()) } else { made(context, all) }
}

fn first(_: &mut dyn Context, args: &[Value]) -> Answer {
    let items = elements(any(args, 0), "Cannot find first on")?;
    Ok(items.first().cloned().unwrap_or_default())
}

fn last(_: &mut dyn Context, args: &[Value]) -> Answer {
    let items = elements(any(args, 0), "Cannot find last on")?;
    Ok(items.last().cloned().unwrap_or_default())
}

fn rest(context: &mut dyn Context, args: &[Value]) -> Answer {
    let items = elements(any(args, 0), "Cannot find rest on")?;
    match items.split_first() {
        Some((_, rest)) => made(context, rest.to_vec()),
        None => Ok(nil_list()),
    }
}

fn initial(context: &mut dyn Context, args: &[Value]) -> Answer {
    let items = elements(any(args, 0), "Cannot find initial on")?;
    match items.split_last() {
        Some((_, initial)) => made(context, initial.to_vec()),
        None => Ok(nil_list()),
    }
}

fn reverse(context: &mut dyn Context, args: &[Value]) -> Answer {
    let mut items = elements(any(args, 0), "Cannot find reverse on")?;
    items.reverse();
    made(context, items)
}

fn has(context: &mut dyn Context, args: &[Value]) -> Answer {
    if any(args, 1).is_nil() {
        return Ok(false.into());
    }
    let items = elements(any(args, 1), "Cannot find has on")?;
    Ok(contains(context, &items, any(args, 0))?.into())
}

/// Reports whether one of the items equals `wanted`; each comparison counts as a step.
fn contains(context: &mut dyn Context, items: &[Value], wanted: &Value) -> Result<bool, CallError> {
    context.count(items.len())?;
    if matches!(wanted, Value::List(_) | Value::Map(_)) {
        super::format::charge(context, wanted)?;
    }
    Ok(items.iter().any(|item| item.deep_equal(wanted)))
}

fn uniq(context: &mut dyn Context, args: &[Value]) -> Answer {
    let items = elements(any(args, 0), "Cannot find uniq on")?;
    let mut unique: Vec<Value> = Vec::new();
    for item in items {
        if !contains(context, &unique, &item)? {
            unique.push(item);
        }
    }
    made(context, unique)
}

fn without(context: &mut dyn Context, args: &[Value]) -> Answer {
    let items = elements(any(args, 0), "Cannot find without on")?;
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        if !contains(context, from(args, 1), &item)? {
            kept.push(item);
        }
    }
    made(context, kept)
}

fn slice(_: &mut dyn Context, args: &[Value]) -> Answer {
    let list = any(args, 0);
    if !matches!(list, Value::List(_) | Value::Bytes(_) | Value::Nil) {
        let kind = list.kind().name();
        return Err(CallError::new(format!("list should be type of slice or array but {kind}")));
    }
    let items = elements(list, "")?;
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let start = args.get(1).map_or(0, to_i64);
    let end = args.get(2).map_or(len, to_i64);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let Some(part) = range.and_then(|(start, end)| items.get(start..end)) else {
        return Err(CallError::new("reflect.Value.Slice: slice index out of bounds"));
    };
    if let Value::Bytes(bytes) = list {
        let (start, end) = range.unwrap_or_default();
        return Ok(Value::Bytes(bytes.get(start..end).unwrap_or_default().into()));
    }
    let class = list.as_list().map_or(&ListType::ANY, List::class);
    Ok(Value::List(List::of(class, part.to_vec())))
}

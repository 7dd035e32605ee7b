//! Built-in functions that jaq's library leaves to the value type.

use std::sync::Arc;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use jaq_core::RunPtr;
use jaq_core::native::{Filter, Fun, bome, run, v};
use jaq_core::val::{ValR, ValT};

use super::arithmetic::{short, typed};
use super::error_text::{self, detail, fail};
use super::limits::{go_deeper, go_on, go_on_bytes};
use super::runtime::Runtime;
use super::value::{Object, Val};

/// Returns the functions for filters over [`Val`].
pub(super) fn functions() -> impl Iterator<Item = Fun<Runtime>> {
    let table: Vec<Filter<RunPtr<Runtime>>> = vec![
        ("length", v(0), |cv| bome(length(&cv.1))),
        ("tojson", v(0), |cv| bome(Ok(Val::from(cv.1.to_string())))),
        ("fromjson", v(0), |cv| bome(from_json(&cv.1))),
        ("native_base64d", v(0), |cv| bome(from_base64(&cv.1))),
        ("tonumber", v(0), |cv| bome(to_number(cv.1))),
        ("native_nan", v(0), |_| bome(Ok(Val::Float(f64::NAN)))),
        ("native_infinite", v(0), |_| bome(Ok(Val::Float(f64::INFINITY)))),
        ("native_isnan", v(0), |cv| bome(float(&cv.1).map(|value| Val::Bool(value.is_nan())))),
        ("native_isinfinite", v(0), |cv| bome(float(&cv.1).map(|value| Val::Bool(value.is_infinite())))),
        ("native_isnormal", v(0), |cv| bome(float(&cv.1).map(|value| Val::Bool(value.is_normal())))),
        ("to_csv", v(0), |cv| bome(row(&cv.1, ",", csv_cell))),
        ("to_tsv", v(0), |cv| bome(row(&cv.1, "\t", tsv_cell))),
        ("contains", v(1), |mut cv| {
            let part = cv.0.pop_var();
            bome(contains(&cv.1, &part).map(Val::Bool))
        }),
        ("has", v(1), |mut cv| {
            let key = cv.0.pop_var();
            bome(has(&cv.1, &key).map(Val::Bool))
        }),
        ("indices", v(1), |mut cv| {
            let part = cv.0.pop_var();
            bome(find_all(&cv.1, &part))
        }),
        ("native_delpaths", v(1), |mut cv| {
            let paths = cv.0.pop_var();
            bome(delete_paths(cv.1, &paths))
        }),
    ];
    table.into_iter().map(|filter| run::<Runtime>(filter))
}

fn float(value: &Val) -> ValR<f64, Val> {
    value.as_float().map_or_else(|| fail(format!("expected a number but got: {}", typed(value))), Ok)
}

fn length(value: &Val) -> ValR<Val> {
    Ok(match value {
        Val::Null => Val::Int(0),
        Val::Bool(_) => return fail(format!("length cannot be applied to: {}", typed(value))),
        Val::Int(number) => Val::Int(number.saturating_abs()),
        Val::Float(number) => Val::Float(number.abs()),
        Val::Str(text) => Val::from(text.chars().count()),
        Val::Arr(items) => Val::from(items.len()),
        Val::Obj(object) => Val::from(object.len()),
    })
}

fn from_json(value: &Val) -> ValR<Val> {
    let Val::Str(text) = value else {
        return fail(format!("fromjson cannot be applied to: {}", typed(value)));
    };
    let _ = go_on_bytes(text.len());
    let parsed = super::value::from_json(text.as_bytes());
    parsed.or_else(|error| fail(format!("fromjson cannot be applied to: {}: {error}", short(value))))
}

fn from_base64(value: &Val) -> ValR<Val> {
    // The padding may be missing.
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    let text = value.to_string();
    let text = match value {
        Val::Str(text) => text,
        Val::Null | Val::Bool(_) | Val::Int(_) | Val::Float(_) | Val::Arr(_) | Val::Obj(_) => text.as_str(),
    };
    let text: String = text.chars().filter(|char| !matches!(char, '\n' | '\r')).collect();
    let decoded = LENIENT.decode(text);
    let decoded = decoded.or_else(|error| {
        fail(format!("@base64d cannot be applied to {}: {}", short(value), detail(error.to_string())))
    })?;
    Ok(Val::from(String::from_utf8_lossy(&decoded).into_owned()))
}

fn to_number(value: Val) -> ValR<Val> {
    match &value {
        Val::Int(_) | Val::Float(_) => Ok(value),
        Val::Str(text)
            if text.trim() == &**text
                && !text.is_empty()
                && text.starts_with(|first: char| first.is_ascii_digit() || "-+.".contains(first)) =>
        {
            Val::from_num(text).or_else(|_| fail(format!("tonumber cannot be applied to: {}", typed(&value))))
        }
        other => fail(format!("tonumber cannot be applied to: {}", typed(other))),
    }
}

fn contains(value: &Val, part: &Val) -> ValR<bool, Val> {
    if !go_deeper() {
        return Ok(false);
    }
    match (value, part) {
        (Val::Str(text), Val::Str(part)) => Ok(text.contains(&**part)),
        (Val::Arr(items), Val::Arr(parts)) => {
            for part in parts.iter() {
                let mut found = false;
                for item in items.iter().filter(|item| same_type(item, part)) {
                    found = found || contains(item, part)?;
                }
                if !found {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Val::Obj(object), Val::Obj(parts)) => {
            for (key, part) in parts.iter() {
                match object.get(key) {
                    Some(value) if same_type(value, part) && contains(value, part)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (value, part) if same_type(value, part) => Ok(value == part),
        (value, part) => fail(format!("cannot check contains(b): {} and {}", typed(value), typed(part))),
    }
}

fn same_type(a: &Val, b: &Val) -> bool {
    a.type_name() == b.type_name()
}

fn has(value: &Val, key: &Val) -> ValR<bool, Val> {
    match (value, key) {
        (Val::Obj(object), Val::Str(key)) => Ok(object.contains_key(key)),
        (Val::Arr(items), Val::Int(_) | Val::Float(_)) => {
            let position = key.as_index().and_then(|index| usize::try_from(index).ok());
            Ok(position.is_some_and(|position| position < items.len()))
        }
        (Val::Null, _) => Ok(false),
        (value, key) => {
            fail(format!("cannot check whether {} has a {} key", value.type_name(), key.type_name()))
        }
    }
}

/// Returns the indices at which `part` begins in `items`.
pub(super) fn indices(items: &[Val], part: &[Val]) -> Val {
    if part.is_empty() {
        return Val::arr(Vec::new());
    }
    let starts = items.windows(part.len()).enumerate().filter(|(_, window)| go_on(0) && *window == part);
    starts.map(|(position, _)| Val::from(position)).collect()
}

fn find_all(value: &Val, part: &Val) -> ValR<Val> {
    match (value, part) {
        (Val::Null, _) => Ok(Val::Null),
        (Val::Str(_), Val::Str(part)) if part.is_empty() => Ok(Val::arr(Vec::new())),
        (Val::Str(text), Val::Str(part)) => {
            let chars: Vec<char> = text.chars().collect();
            let part: Vec<char> = part.chars().collect();
            let starts = chars.windows(part.len()).enumerate().filter(|(_, window)| *window == part);
            Ok(starts.map(|(position, _)| Val::from(position)).collect())
        }
        (Val::Arr(items), Val::Arr(part)) => Ok(indices(items, part)),
        (Val::Arr(items), part) => Ok(indices(items, std::slice::from_ref(part))),
        (value, part) => value.clone().index(part),
    }
}

/// Returns the value without what the paths lead to. They are deleted from the last to the first, so that no deletion moves another path.
fn delete_paths(value: Val, paths: &Val) -> ValR<Val> {
    let Val::Arr(paths) = paths else {
        return fail(format!("delpaths expects an array but got: {}", typed(paths)));
    };
    let mut paths = paths.to_vec();
    paths.sort();
    paths.into_iter().rev().try_fold(value, |value, path| match path {
        Val::Arr(path) => delete(value, &path),
        other => fail(format!("a path should be an array but got: {}", typed(&other))),
    })
}

fn delete(value: Val, path: &[Val]) -> ValR<Val> {
    if !go_deeper() {
        return Ok(value);
    }
    let Some((first, rest)) = path.split_first() else { return Ok(Val::Null) };
    // A path that leads nowhere deletes nothing and creates no parent.
    let child = value.clone().index(first)?;
    if rest.is_empty() {
        let gone = |_: Val| std::iter::empty();
        return value.map_index(first, jaq_core::path::Opt::Essential, gone).map_err(plain);
    }
    if matches!(child, Val::Null) {
        return Ok(value);
    }
    let child = delete(child, rest)?;
    let put = |_: Val| std::iter::once(Ok(child.clone()));
    value.map_index(first, jaq_core::path::Opt::Essential, put).map_err(plain)
}

fn plain(exception: jaq_core::Exn<'_, Val>) -> super::value::Error {
    exception.get_err().unwrap_or_else(|_| error_text::error("a filter left a deletion by a break"))
}

fn row(value: &Val, separator: &str, cell: impl Fn(&Val) -> Option<String>) -> ValR<Val> {
    let Val::Arr(items) = value else {
        return fail(format!("a row should be an array but got: {}", typed(value)));
    };
    let cells: Option<Vec<String>> = items.iter().map(cell).collect();
    match cells {
        Some(cells) => Ok(Val::from(cells.join(separator))),
        None => fail("a row holds an array or an object, which is no cell"),
    }
}

fn csv_cell(value: &Val) -> Option<String> {
    match value {
        Val::Str(text) => Some(format!("\"{}\"", text.replace('"', "\"\""))),
        other => bare_cell(other),
    }
}

fn tsv_cell(value: &Val) -> Option<String> {
    match value {
        Val::Str(text) => {
            Some(text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
        }
        other => bare_cell(other),
    }
}

fn bare_cell(value: &Val) -> Option<String> {
    match value {
        Val::Null => Some(String::new()),
        Val::Bool(_) | Val::Int(_) | Val::Float(_) => Some(value.to_string()),
        Val::Str(text) => Some(text.as_ref().to_owned()),
        Val::Arr(_) | Val::Obj(_) => None,
    }
}

/// Returns what `$__loc__` is on a line of the filter.
pub(super) fn location(line: usize) -> Val {
    Val::obj(Object::from([("file".into(), Val::str("<top-level>")), ("line".into(), Val::from(line))]))
}

/// Returns an environment without variables.
pub(super) fn empty_object() -> Val {
    Val::Obj(Arc::new(Object::new()))
}

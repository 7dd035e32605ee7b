//! Functions of texts, and of expressions of regular languages.

use golang::regexp::Regexp;

use super::called::Called;
use crate::failure::Failure;
use crate::value::Value;

pub(super) fn call(function: &str, values: &[Value]) -> Called {
    match function {
        "size" => return sized(values),
        "matches" | "find" | "findAll" => return regular(function, values),
        "strings.quote" => {
            let [Value::String(text)] = values else { return None };
            return Some(Ok(Value::text(golang::strconv::quote(text.as_bytes()))));
        }
        _ => {}
    }
    let (Value::String(own), rest) = values.split_first()? else { return None };
    Some(match (function, rest) {
        ("contains", [Value::String(part)]) => Ok(Value::Bool(own.contains(&**part))),
        ("startsWith", [Value::String(part)]) => Ok(Value::Bool(own.starts_with(&**part))),
        ("endsWith", [Value::String(part)]) => Ok(Value::Bool(own.ends_with(&**part))),
        ("lowerAscii", []) => Ok(Value::text(own.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Value::text(own.to_ascii_uppercase())),
        ("trim", []) => Ok(Value::text(own.trim())),
        ("charAt", [Value::Int(place)]) => char_at(own, *place),
        ("indexOf", [Value::String(part)]) => index_of(own, part, 0),
        ("indexOf", [Value::String(part), Value::Int(from)]) => index_of(own, part, *from),
        ("lastIndexOf", [Value::String(part)]) => last_index_of(own, part, None),
        ("lastIndexOf", [Value::String(part), Value::Int(from)]) => last_index_of(own, part, Some(*from)),
        ("replace", [Value::String(old), Value::String(new)]) => Ok(replaced(own, old, new, -1)),
        ("replace", [Value::String(old), Value::String(new), Value::Int(most)]) => {
            Ok(replaced(own, old, new, *most))
        }
        ("split", [Value::String(separator)]) => Ok(split(own, separator, -1)),
        ("split", [Value::String(separator), Value::Int(most)]) => Ok(split(own, separator, *most)),
        ("substring", [Value::Int(from)]) => substring(own, *from, None),
        ("substring", [Value::Int(from), Value::Int(to)]) => substring(own, *from, Some(*to)),
        _ => return None,
    })
}

fn sized(values: &[Value]) -> Called {
    let [value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] = values else {
        return None;
    };
    Some(Ok(Value::Int(i64::try_from(value.size()).unwrap_or(i64::MAX))))
}

fn regular(function: &str, values: &[Value]) -> Called {
    let (Value::String(text), rest) = values.split_first()? else { return None };
    let (Value::String(expression), rest) = rest.split_first()? else { return None };
    let expression = match Regexp::compile(expression) {
        Ok(expression) => expression,
        Err(error) if function == "matches" => return Some(Err(Failure::other(error.to_string()))),
        Err(error) => return Some(Err(Failure::other(format!("Illegal regex: {error}")))),
    };
    let all = |most: i64| {
        let found = expression.find_all(text, most);
        Value::list(
            found.into_iter().map(|(from, to)| Value::text(text.get(from..to).unwrap_or_default())).collect(),
        )
    };
    Some(Ok(match (function, rest) {
        ("matches", []) => Value::Bool(expression.is_match(text)),
        ("find", []) => Value::text(expression.find(text).unwrap_or_default()),
        ("findAll", []) => all(-1),
        ("findAll", [Value::Int(most)]) => all(*most),
        _ => return None,
    }))
}

fn out_of_range(place: i64) -> Failure {
    Failure::other(format!("index out of range: {place}"))
}

fn characters(text: &str) -> Vec<char> {
    text.chars().collect()
}

fn number(place: usize) -> Value {
    Value::Int(i64::try_from(place).unwrap_or(i64::MAX))
}

fn char_at(text: &str, place: i64) -> Result<Value, Failure> {
    let length = text.chars().count();
    match usize::try_from(place) {
        Ok(at) if at == length => Ok(Value::text("")),
        Ok(at) => match text.chars().nth(at) {
            Some(character) => Ok(Value::text(character.to_string())),
            None => Err(out_of_range(place)),
        },
        Err(_) => Err(out_of_range(place)),
    }
}

fn index_of(text: &str, part: &str, from: i64) -> Result<Value, Failure> {
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    let (own, part) = (characters(text), characters(part));
    let start = usize::try_from(from).map_err(|_| out_of_range(from))?;
    if start >= own.len() {
        return Ok(Value::Int(-1));
    }
    let found = own.windows(part.len()).skip(start).position(|window| window == part);
    Ok(found.map_or(Value::Int(-1), |at| number(at + start)))
}

fn last_index_of(text: &str, part: &str, from: Option<i64>) -> Result<Value, Failure> {
    let (own, part) = (characters(text), characters(part));
    let last = match from {
        None if part.is_empty() => return Ok(number(own.len())),
        None => own.len(),
        Some(from) if part.is_empty() => return Ok(Value::Int(from)),
        Some(from) => {
            let place = usize::try_from(from).map_err(|_| out_of_range(from))?;
            if place >= own.len() {
                return Ok(Value::Int(-1));
            }
            place
        }
    };
    let windows: Vec<&[char]> = own.windows(part.len()).collect();
    let found = windows.iter().take(last.saturating_add(1)).rposition(|window| *window == part);
    Ok(found.map_or(Value::Int(-1), number))
}

fn replaced(text: &str, old: &str, new: &str, most: i64) -> Value {
    match usize::try_from(most) {
        Ok(most) => Value::text(text.replacen(old, new, most)),
        Err(_) => Value::text(text.replace(old, new)),
    }
}

fn split(text: &str, separator: &str, most: i64) -> Value {
    let parts: Vec<Value> = if most == 0 {
        Vec::new()
    } else if separator.is_empty() {
        let own = characters(text);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let alone = own.len().min(most.saturating_sub(1));
        let mut parts: Vec<Value> = own.iter().take(alone).map(|one| Value::text(one.to_string())).collect();
        let rest: String = own.iter().skip(alone).collect();
        if !rest.is_empty() {
            parts.push(Value::text(rest));
        }
        parts
    } else {
        match usize::try_from(most) {
            Ok(most) => text.splitn(most, separator).map(Value::text).collect(),
            Err(_) => text.split(separator).map(Value::text).collect(),
        }
    };
    Value::list(parts)
}

fn substring(text: &str, from: i64, to: Option<i64>) -> Result<Value, Failure> {
    let own = characters(text);
    let length = i64::try_from(own.len()).unwrap_or(i64::MAX);
    if to.is_some_and(|to| from > to) {
        let to = to.unwrap_or_default();
        return Err(Failure::other(format!("invalid substring range. start: {from}, end: {to}")));
    }
    for place in [Some(from), to].into_iter().flatten() {
        if !(0..=length).contains(&place) {
            return Err(out_of_range(place));
        }
    }
    let (from, to) = (usize::try_from(from), usize::try_from(to.unwrap_or(length)));
    let part = own.get(from.unwrap_or_default()..to.unwrap_or_default()).unwrap_or_default();
    Ok(Value::text(part.iter().collect::<String>()))
}

//! Functions of lists and of sets.

use std::cmp::Ordering;

use super::called::Called;
use super::operators;
use crate::failure::Failure;
use crate::value::{List, Value};

pub(super) fn call(function: &str, values: &[Value]) -> Called {
    let (Value::List(own), rest) = values.split_first()? else { return None };
    let place = |at: Option<usize>| Value::Int(at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1));
    Some(match (function, rest) {
        ("isSorted", []) => Ok(Value::Bool(is_sorted(own)?)),
        ("sum", []) => return sum(own),
        ("min", []) => return extreme("min", own, Ordering::is_lt),
        ("max", []) => return extreme("max", own, Ordering::is_gt),
        ("indexOf", [item]) => Ok(place(own.items.iter().position(|other| other.equals(item)))),
        ("lastIndexOf", [item]) => Ok(place(own.items.iter().rposition(|other| other.equals(item)))),
        ("join", []) => joined(own, ""),
        ("join", [Value::String(separator)]) => joined(own, separator),
        ("sets.contains", [Value::List(other)]) => Ok(Value::Bool(contains(own, other))),
        ("sets.equivalent", [Value::List(other)]) => {
            Ok(Value::Bool(contains(own, other) && contains(other, own)))
        }
        ("sets.intersects", [Value::List(other)]) => {
            Ok(Value::Bool(own.items.iter().any(|item| has(other, item))))
        }
        _ => return None,
    })
}

fn has(list: &List, item: &Value) -> bool {
    list.items.iter().any(|other| other.equals(item))
}

fn contains(list: &List, others: &List) -> bool {
    others.items.iter().all(|item| has(list, item))
}

fn is_sorted(list: &List) -> Option<bool> {
    for (a, b) in list.items.iter().zip(list.items.iter().skip(1)) {
        if a.compare(b)?.is_gt() {
            return Some(false);
        }
    }
    Some(true)
}

fn sum(list: &List) -> Called {
    // The type of nothing is not known when it runs.
    let Some((first, rest)) = list.items.split_first() else { return Some(Ok(Value::Int(0))) };
    let mut sum = first.clone();
    if !matches!(sum, Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_)) {
        return None;
    }
    for item in rest {
        match operators::call("_+_", &[sum, item.clone()])? {
            Ok(more) => sum = more,
            failure => return Some(failure),
        }
    }
    Some(Ok(sum))
}

fn extreme(name: &str, list: &List, is_better: fn(Ordering) -> bool) -> Called {
    let Some((first, rest)) = list.items.split_first() else {
        return Some(Err(Failure::other(format!("{name} called on empty list"))));
    };
    let mut best = first;
    for item in rest {
        if is_better(item.compare(best)?) {
            best = item;
        }
    }
    Some(Ok(best.clone()))
}

fn joined(list: &List, separator: &str) -> Result<Value, Failure> {
    let mut parts = Vec::with_capacity(list.items.len());
    for item in &list.items {
        match item {
            Value::String(text) => parts.push(&**text),
            other => {
                return Err(Failure::other(format!("join: invalid input: {}", other.to_json())));
            }
        }
    }
    Ok(Value::text(parts.join(separator)))
}

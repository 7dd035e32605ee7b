//! What the evaluation of an expression in CEL can cost at worst: it is told before it begins.

use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue};
use serde_json::Value;

/// How many steps an evaluation may take at worst.
const MAX_STEPS: u64 = 1_000_000;

/// How long a list, a map or a text may become at worst, in items or bytes.
const MAX_LENGTH: u64 = 64 * 1024 * 1024;

/// Returns whether the evaluation of an expression about these values may cost too much.
pub(super) fn is_too_much(expression: &IdedExpr, values: &[&Value]) -> bool {
    let given = values.iter().map(|value| longest(value)).max().unwrap_or(0);
    // Each addition at most doubles what there is, and what a loop makes is not longer than what it is about.
    let doubled = |additions: u32| 1_u64.checked_shl(additions).unwrap_or(u64::MAX);
    let length = given.max(longest_literal(expression)).saturating_mul(doubled(additions(expression, None)));
    let items = values.iter().map(|value| most_items(value)).max().unwrap_or(0);
    let rounds =
        items.max(longest_literal(expression)).saturating_mul(doubled(additions_in_ranges(expression)));
    length > MAX_LENGTH || steps(expression, rounds) > MAX_STEPS
}

/// Returns how many steps an expression takes if each loop has so many rounds.
fn steps(expression: &IdedExpr, rounds: u64) -> u64 {
    let once = |parts: Vec<&IdedExpr>| {
        parts.into_iter().map(|part| steps(part, rounds)).fold(1, u64::saturating_add)
    };
    match &expression.expr {
        Expr::Comprehension(each) => {
            let around = once(vec![&each.iter_range, &each.accu_init, &each.result]);
            around.saturating_add(once(vec![&each.loop_cond, &each.loop_step]).saturating_mul(rounds.max(1)))
        }
        Expr::Call(_)
        | Expr::Ident(_)
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Select(_)
        | Expr::Struct(_)
        | Expr::Unspecified => once(parts(expression)),
    }
}

/// Returns how many additions an expression has, but for those by which a loop collects what it makes in `collector`.
fn additions(expression: &IdedExpr, collector: Option<&str>) -> u32 {
    let mut is_one = false;
    if let Expr::Call(call) = &expression.expr
        && call.func_name == "_+_"
    {
        let first = call.args.first().map(|first| &first.expr);
        is_one = !matches!(first, Some(Expr::Ident(name)) if Some(name.as_str()) == collector);
    }
    let inner = if let Expr::Comprehension(each) = &expression.expr { Some(&*each.accu_var) } else { None };
    let collector = inner.or(collector);
    let below = parts(expression).into_iter().map(|part| additions(part, collector));
    below.fold(u32::from(is_one), u32::saturating_add)
}

/// Returns how many additions make what loops are about. Others are of numbers, or make what no loop is about.
fn additions_in_ranges(expression: &IdedExpr) -> u32 {
    if let Expr::Comprehension(each) = &expression.expr {
        let body = [&each.accu_init, &each.loop_cond, &each.loop_step, &each.result];
        let below = body.into_iter().map(additions_in_ranges);
        return below.fold(additions(&each.iter_range, None), u32::saturating_add);
    }
    parts(expression).into_iter().map(additions_in_ranges).fold(0, u32::saturating_add)
}

/// Returns the length of the longest list, map or text that an expression writes out.
fn longest_literal(expression: &IdedExpr) -> u64 {
    let own = match &expression.expr {
        Expr::List(list) => list.elements.len(),
        Expr::Map(map) => map.entries.len(),
        Expr::Literal(LiteralValue::String(text)) => text.inner().len(),
        Expr::Call(_)
        | Expr::Comprehension(_)
        | Expr::Ident(_)
        | Expr::Literal(_)
        | Expr::Select(_)
        | Expr::Struct(_)
        | Expr::Unspecified => 0,
    };
    let below = parts(expression).into_iter().map(longest_literal);
    below.fold(count(own), u64::max)
}

/// Returns what an expression consists of.
fn parts(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(each) => {
            vec![&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(parts_of_entry).collect(),
        Expr::Struct(made) => made.entries.iter().flat_map(parts_of_entry).collect(),
        Expr::Select(select) => vec![&*select.operand],
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn parts_of_entry(entry: &IdedEntryExpr) -> Vec<&IdedExpr> {
    match &entry.expr {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

/// Returns the length of the longest list, map or text in a value.
fn longest(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(longest).fold(count(items.len()), u64::max),
        Value::Object(map) => map.values().map(longest).fold(count(map.len()), u64::max),
        Value::String(text) => count(text.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Returns the length of the longest list or map in a value.
fn most_items(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(most_items).fold(count(items.len()), u64::max),
        Value::Object(map) => map.values().map(most_items).fold(count(map.len()), u64::max),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_too_much_of(expression: &str, value: &Value) -> bool {
        is_too_much(cel::Program::compile(expression).unwrap().expression(), &[value])
    }

    #[test]
    fn loops_within_loops_and_what_grows_are_counted() {
        let list = |length: usize| Value::from(vec![1; length]);
        for (expression, length, expected) in [
            ("self.all(a, a > 0.0)", 20_000, false),
            ("self.all(a, self.all(b, a + b > 0.0))", 50, false),
            ("self.all(a, self.all(b, a + b > 0.0))", 2_000, true),
            ("size(self.filter(a, self.exists(b, b > a))) > 1", 200, false),
            ("self.map(a, self + self).all(x, x.all(y, true))", 3_000, true),
            ("size([self].map(x, x + x).map(x, x + x)) > 1", 100, false),
        ] {
            assert_eq!(is_too_much_of(expression, &list(length)), expected, "{expression} {length}");
        }
        let doubled = format!("size([self]{}) > 1", ".map(x, x + x)".repeat(30));
        assert!(is_too_much_of(&doubled, &list(2)));
        let text = json!("x".repeat(40 << 20));
        assert!(is_too_much_of("self + self == ''", &text) && !is_too_much_of("self == ''", &text));
    }
}

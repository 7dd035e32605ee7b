//! How many results a part of a filter has: what is known of it before it runs.

use jaq_core::load::parse::{BinaryOp, Pattern, Term};
use jaq_core::path::{Opt, Part};

/// How many results a part of a filter has for one input. An error counts as a result.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Count {
    /// Exactly one.
    One,
    /// One or none.
    AtMostOne,
    /// Not known.
    Many,
}

/// Functions with one result for each combination of what their arguments, which are values, give.
const OF_VALUES: &[&str] = &[
    "abs",
    "add",
    "all",
    "any",
    "ascii",
    "ascii_downcase",
    "ascii_upcase",
    "bsearch",
    "ceil",
    "contains",
    "date",
    "endswith",
    "env",
    "error",
    "explode",
    "fabs",
    "false",
    "first",
    "flatten",
    "floor",
    "from_entries",
    "fromdate",
    "fromdateiso8601",
    "fromjson",
    "getpath",
    "gmtime",
    "has",
    "implode",
    "in",
    "index",
    "indices",
    "infinite",
    "inside",
    "isinfinite",
    "isnan",
    "isnormal",
    "isvalid",
    "join",
    "keys",
    "keys_unsorted",
    "last",
    "length",
    "localtime",
    "log",
    "log10",
    "log2",
    "ltrim",
    "ltrimstr",
    "max",
    "min",
    "mktime",
    "nan",
    "not",
    "now",
    "nth",
    "null",
    "pow",
    "reverse",
    "rindex",
    "round",
    "rtrim",
    "rtrimstr",
    "setpath",
    "delpaths",
    "sort",
    "split",
    "sqrt",
    "startswith",
    "strflocaltime",
    "strftime",
    "strptime",
    "test",
    "to_entries",
    "toarray",
    "todate",
    "tojson",
    "tonumber",
    "tostring",
    "transpose",
    "trim",
    "true",
    "type",
    "unique",
    "utf8bytelength",
    "atan2",
    "fma",
    "fmod",
    "ldexp",
    "scalb",
    "scalbln",
    "nextafter",
    "copysign",
    "drem",
    "dateadd",
    "datesub",
];

/// Functions with one result, whatever their arguments, which are filters, give.
const OF_FILTERS: &[&str] = &[
    "add",
    "all",
    "any",
    "del",
    "group_by",
    "isempty",
    "map",
    "map_values",
    "max_by",
    "min_by",
    "pick",
    "sort_by",
    "to_entries",
    "unique_by",
    "with_entries",
    "IN",
    "INDEX",
];

/// Functions that let their input through or not.
const CHOOSING: &[&str] = &[
    "arrays",
    "booleans",
    "empty",
    "finites",
    "iterables",
    "normals",
    "nulls",
    "numbers",
    "objects",
    "scalars",
    "strings",
    "values",
];

/// What is defined at a place in a filter, with how many results it has; the last one of a name counts.
pub(super) type Scope<'s> = Vec<((&'s str, usize), Count)>;

/// Returns how many results a term has.
pub(super) fn count(term: &Term<&str>, scope: &Scope<'_>) -> Count {
    match term {
        Term::Id | Term::Num(_) | Term::Arr(_) | Term::Var(_) => Count::One,
        Term::Break(_) => Count::AtMostOne,
        Term::Neg(term) => count(term, scope),
        Term::Str(_, parts) => {
            use jaq_core::load::lex::StrPart;
            all(parts.iter().map(|part| match part {
                StrPart::Term(term) => count(term, scope),
                StrPart::Str(_) | StrPart::Char(_) => Count::One,
            }))
        }
        Term::Obj(entries) => {
            let terms = entries.iter().flat_map(|(key, value)| std::iter::once(key).chain(value));
            all(terms.map(|term| count(term, scope)))
        }
        Term::Label(_, term) => count(term, scope).max(Count::AtMostOne),
        Term::TryCatch(term, catch) => {
            let catch = catch.as_ref().map_or(Count::AtMostOne, |catch| count(catch, scope));
            count(term, scope).max(catch)
        }
        Term::IfThenElse(cases, other) => {
            let other = other.as_ref().map_or(Count::One, |other| count(other, scope));
            let cases = cases.iter().flat_map(|(condition, then)| [condition, then]);
            all(cases.map(|term| count(term, scope))).max(other)
        }
        // Each start gives one end: see how folds are rewritten.
        Term::Fold("reduce", _, _, parts) => parts.first().map_or(Count::Many, |init| count(init, scope)),
        // What a definition makes of the names inside it is not looked into.
        Term::Recurse | Term::Fold(..) | Term::Def(..) => Count::Many,
        Term::Call(name, arguments) => of_call(name, arguments, scope),
        Term::Path(term, path) => all(path.0.iter().map(|part| of_part(part, scope))).max(count(term, scope)),
        Term::BinOp(left, op, right) => {
            let (left, right) = (|| count(left, scope), || count(right, scope));
            of_operation(op, left, right)
        }
    }
}

/// Returns how many combinations there are.
fn all(counts: impl Iterator<Item = Count>) -> Count {
    counts.max().unwrap_or(Count::One)
}

fn of_operation(op: &BinaryOp<&str>, left: impl FnOnce() -> Count, right: impl FnOnce() -> Count) -> Count {
    match op {
        BinaryOp::Comma | BinaryOp::Update => Count::Many,
        BinaryOp::Pipe(Some(pattern)) if !is_plain(pattern) => Count::Many,
        BinaryOp::Alt => match left() {
            Count::One | Count::AtMostOne => right(),
            Count::Many => Count::Many,
        },
        BinaryOp::Assign | BinaryOp::UpdateMath(_) | BinaryOp::UpdateAlt => right(),
        BinaryOp::Pipe(_) | BinaryOp::Or | BinaryOp::And | BinaryOp::Math(_) | BinaryOp::Cmp(_) => {
            left().max(right())
        }
    }
}

/// Returns whether a pattern names its keys, so that there is one way to take a value apart.
fn is_plain(pattern: &Pattern<&str>) -> bool {
    match pattern {
        Pattern::Var(_) => true,
        Pattern::Arr(items) => items.iter().all(is_plain),
        Pattern::Obj(entries) => entries.iter().all(|(key, inner)| {
            matches!(key, Term::Str(None, _)) && count(key, &Scope::new()) == Count::One && is_plain(inner)
        }),
    }
}

/// Returns how many values a part of a path leads to.
pub(super) fn of_part((part, opt): &(Part<Term<&str>>, Opt), scope: &Scope<'_>) -> Count {
    let inner = match part {
        Part::Range(None, None) => Count::Many,
        Part::Index(term) => count(term, scope),
        Part::Range(from, to) => all(from.iter().chain(to).map(|term| count(term, scope))),
    };
    match opt {
        Opt::Essential => inner,
        Opt::Optional => inner.max(Count::AtMostOne),
    }
}

fn of_call(name: &str, arguments: &[Term<&str>], scope: &Scope<'_>) -> Count {
    let defined = scope.iter().rev().find(|((other, arity), _)| *other == name && *arity == arguments.len());
    if let Some((_, count)) = defined {
        return *count;
    }
    let of = |arguments: &[Term<&str>]| all(arguments.iter().map(|argument| count(argument, scope)));
    match (name, arguments) {
        (_, []) if name.starts_with('@') => Count::One,
        (_, []) if CHOOSING.contains(&name) => Count::AtMostOne,
        ("select", [condition]) => of(std::slice::from_ref(condition)).max(Count::AtMostOne),
        ("first" | "last", [_]) => Count::AtMostOne,
        ("walk", [change]) => of(std::slice::from_ref(change)),
        ("sub" | "gsub" | "split" | "test", arguments) => of(arguments),
        (_, [_, ..]) if OF_FILTERS.contains(&name) => Count::One,
        (_, arguments) if OF_VALUES.contains(&name) => of(arguments),
        (_, _) => Count::Many,
    }
}

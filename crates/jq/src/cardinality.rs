//! How many results a part of a filter can have, as far as that is known before it runs.

use jaq_core::load::parse::{BinaryOp, Pattern, Term};
use jaq_core::path::{Opt, Part};

/// How many results a part of a filter has for one input. An error counts as a result.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Cardinality {
    /// Exactly one.
    One,
    /// One or none.
    AtMostOne,
    /// Not known.
    Many,
}

/// Functions with one result for each combination of what their arguments, which are values, give.
const OF_VALUES: &str = "abs add all any ascii ascii_downcase ascii_upcase bsearch ceil contains date endswith env error \
    explode fabs false first flatten floor from_entries fromdate fromdateiso8601 fromjson getpath gmtime \
    has implode in index indices infinite inside isinfinite isnan isnormal isvalid join keys \
    keys_unsorted last length localtime log log10 log2 ltrim ltrimstr max min mktime nan not now nth \
    null pow reverse rindex round rtrim rtrimstr setpath delpaths sort split sqrt startswith \
    strflocaltime strftime strptime test to_entries toarray todate tojson tonumber tostring transpose \
    trim true type unique utf8bytelength atan2 fma fmod ldexp scalb scalbln nextafter copysign drem \
    dateadd datesub";

/// Functions with one result, whatever their arguments, which are filters, give.
const OF_FILTERS: &str = "add all any del group_by isempty map map_values max_by min_by pick sort_by to_entries unique_by \
    with_entries IN INDEX";

/// Functions that return their input or nothing.
const CHOOSING: &str =
    "arrays booleans empty finites iterables normals nulls numbers objects scalars strings values";

/// Returns whether the function `name` is one of `names`, which are separated by blanks.
pub(super) fn is_among(name: &str, names: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

/// The definitions that are visible, with how many results they have. The last one of a name counts.
pub(super) type Scope<'s> = Vec<((&'s str, usize), Cardinality)>;

/// Returns how many results a term has.
pub(super) fn cardinality(term: &Term<&str>, scope: &Scope<'_>) -> Cardinality {
    match term {
        Term::Id | Term::Num(_) | Term::Arr(_) | Term::Var(_) => Cardinality::One,
        Term::Break(_) => Cardinality::AtMostOne,
        Term::Neg(term) => cardinality(term, scope),
        Term::Str(_, parts) => {
            use jaq_core::load::lex::StrPart;
            all(parts.iter().map(|part| match part {
                StrPart::Term(term) => cardinality(term, scope),
                StrPart::Str(_) | StrPart::Char(_) => Cardinality::One,
            }))
        }
        Term::Obj(entries) => {
            let terms = entries.iter().flat_map(|(key, value)| std::iter::once(key).chain(value));
            all(terms.map(|term| cardinality(term, scope)))
        }
        Term::Label(_, term) => cardinality(term, scope).max(Cardinality::AtMostOne),
        Term::TryCatch(term, catch) => {
            let catch = catch.as_ref().map_or(Cardinality::AtMostOne, |catch| cardinality(catch, scope));
            cardinality(term, scope).max(catch)
        }
        Term::IfThenElse(cases, other) => {
            let other = other.as_ref().map_or(Cardinality::One, |other| cardinality(other, scope));
            let cases = cases.iter().flat_map(|(condition, then)| [condition, then]);
            all(cases.map(|term| cardinality(term, scope))).max(other)
        }
        // Each initial state gives one result: see how folds are desugared.
        Term::Fold("reduce", _, _, parts) => {
            parts.first().map_or(Cardinality::Many, |init| cardinality(init, scope))
        }
        // Bodies of local definitions are not analysed.
        Term::Recurse | Term::Fold(..) | Term::Def(..) => Cardinality::Many,
        Term::Call(name, arguments) => of_call(name, arguments, scope),
        Term::Path(term, path) => {
            all(path.0.iter().map(|part| of_part(part, scope))).max(cardinality(term, scope))
        }
        Term::BinOp(left, op, right) => {
            let (left, right) = (|| cardinality(left, scope), || cardinality(right, scope));
            of_operation(op, left, right)
        }
    }
}

/// Returns how many combinations there are.
fn all(counts: impl Iterator<Item = Cardinality>) -> Cardinality {
    counts.max().unwrap_or(Cardinality::One)
}

fn of_operation(
    op: &BinaryOp<&str>,
    left: impl FnOnce() -> Cardinality,
    right: impl FnOnce() -> Cardinality,
) -> Cardinality {
    match op {
        BinaryOp::Comma | BinaryOp::Update => Cardinality::Many,
        BinaryOp::Pipe(Some(pattern)) if !is_plain(pattern) => Cardinality::Many,
        BinaryOp::Alt => match left() {
            Cardinality::One | Cardinality::AtMostOne => right(),
            Cardinality::Many => Cardinality::Many,
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
            matches!(key, Term::Str(None, _))
                && cardinality(key, &Scope::new()) == Cardinality::One
                && is_plain(inner)
        }),
    }
}

/// Returns how many values a part of a path leads to.
pub(super) fn of_part((part, opt): &(Part<Term<&str>>, Opt), scope: &Scope<'_>) -> Cardinality {
    let inner = match part {
        Part::Range(None, None) => Cardinality::Many,
        Part::Index(term) => cardinality(term, scope),
        Part::Range(from, to) => all(from.iter().chain(to).map(|term| cardinality(term, scope))),
    };
    match opt {
        Opt::Essential => inner,
        Opt::Optional => inner.max(Cardinality::AtMostOne),
    }
}

fn of_call(name: &str, arguments: &[Term<&str>], scope: &Scope<'_>) -> Cardinality {
    let defined = scope.iter().rev().find(|((other, arity), _)| *other == name && *arity == arguments.len());
    if let Some((_, count)) = defined {
        return *count;
    }
    let of = |arguments: &[Term<&str>]| all(arguments.iter().map(|argument| cardinality(argument, scope)));
    match (name, arguments) {
        (_, []) if name.starts_with('@') => Cardinality::One,
        (_, []) if is_among(name, CHOOSING) => Cardinality::AtMostOne,
        ("select", [condition]) => of(std::slice::from_ref(condition)).max(Cardinality::AtMostOne),
        ("first" | "last", [_]) => Cardinality::AtMostOne,
        ("walk", [change]) => of(std::slice::from_ref(change)),
        ("sub" | "gsub" | "split" | "test", arguments) => of(arguments),
        (_, [_, ..]) if is_among(name, OF_FILTERS) => Cardinality::One,
        (_, arguments) if is_among(name, OF_VALUES) => of(arguments),
        (_, _) => Cardinality::Many,
    }
}

//! Functions for regular expressions: `match`, `test`, `capture`, `sub` and others build on them.
//!
//! Expressions are those of RE2, as in gojq: hooks were written for it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use golang::regexp::Regexp;
use jaq_core::RunPtr;
use jaq_core::native::{Filter, Fun, bome, run, v};
use jaq_core::val::ValR;

use super::arithmetic::{short, typed};
use super::error_text::{detail, fail};
use super::limits::{go_on, go_on_bytes};
use super::runtime::Runtime;
use super::value::{Object, Val};

/// How many expressions each thread keeps compiled.
const KEPT: usize = 64;

/// How much memory a compiled expression may take, in bytes.
const LARGEST: usize = 4 * 1024 * 1024;

thread_local! {
    static COMPILED: RefCell<BTreeMap<(String, String), Expression>> = const { RefCell::new(BTreeMap::new()) };
}

/// A compiled expression and what its flags ask for.
#[derive(Clone)]
struct Expression {
    regex: Regexp,
    all: bool,
    not_empty: bool,
}

/// Returns the functions that search in texts.
pub(super) fn functions() -> impl Iterator<Item = Fun<Runtime>> {
    let table: Vec<Filter<RunPtr<Runtime>>> = vec![
        ("native_test", v(2), |mut cv| {
            let (flags, regex) = (cv.0.pop_var(), cv.0.pop_var());
            bome(
                search(&cv.1, &regex, &flags)
                    .map(|(text, expression)| Val::Bool(expression.regex.is_match(text))),
            )
        }),
        ("native_match", v(2), |mut cv| {
            let (flags, regex) = (cv.0.pop_var(), cv.0.pop_var());
            bome(search(&cv.1, &regex, &flags).map(|(text, expression)| matches(text, &expression)))
        }),
        ("native_parts", v(2), |mut cv| {
            let (flags, regex) = (cv.0.pop_var(), cv.0.pop_var());
            bome(search(&cv.1, &regex, &flags).map(|(text, expression)| parts(text, &expression)))
        }),
    ];
    table.into_iter().map(run::<Runtime>)
}

/// Returns the text to search in and the expression to search for.
fn search<'a>(value: &'a Val, regex: &Val, flags: &Val) -> ValR<(&'a str, Expression), Val> {
    let flags = match flags {
        Val::Null => "",
        Val::Str(flags) => flags,
        other => {
            return fail(format!(
                "the flags of a regular expression should be a string but are: {}",
                short(other)
            ));
        }
    };
    match (value, regex) {
        (Val::Str(text), Val::Str(regex)) => {
            let _ = go_on_bytes(text.len());
            Ok((text, compiled(regex, flags)?))
        }
        (value, regex) => fail(format!(
            "match({}; {}) cannot be applied to: {}",
            short(regex),
            detail(format!("{flags:?}")),
            typed(value)
        )),
    }
}

fn compiled(text: &str, flags: &str) -> ValR<Expression, Val> {
    let key = (text.to_owned(), flags.to_owned());
    if let Some(found) = COMPILED.with_borrow(|compiled| compiled.get(&key).cloned()) {
        return Ok(found);
    }
    // The way of jq to name groups, which RE2 has not.
    let mut translated = text.replace("(?<", "(?P<");
    let (mut all, mut not_empty) = (false, false);
    for flag in flags.chars() {
        match flag {
            'g' => all = true,
            'n' => not_empty = true,
            'i' => translated.insert_str(0, "(?i)"),
            // RE2 has no extended expressions; gojq takes the flag for the other one.
            'x' | 's' => translated.insert_str(0, "(?s)"),
            'p' => translated.insert_str(0, "(?sm)"),
            'l' => translated.insert_str(0, "(?U)"),
            other => {
                let flag = detail(format!("{other:?}"));
                return fail(format!("unsupported regular expression flag: {flag}"));
            }
        }
    }
    let regex = Regexp::compile_within(&translated, LARGEST).or_else(|error| {
        // The words of the error quote the expression, which can come from the object.
        let (text, error) = (detail(format!("{text:?}")), detail(error.to_string()));
        fail(format!("invalid regular expression {text}: {error}"))
    })?;
    let expression = Expression { regex, all, not_empty };
    COMPILED.with_borrow_mut(|compiled| {
        if compiled.len() >= KEPT {
            compiled.clear();
        }
        compiled.insert(key, expression.clone());
    });
    Ok(expression)
}

/// Where a match and its groups begin and end.
type Places = Vec<Option<(usize, usize)>>;

fn found<'a>(text: &'a str, expression: &'a Expression) -> impl Iterator<Item = Places> + 'a {
    let most = if expression.all { usize::MAX } else { 1 };
    let wanted = |places: &Places| {
        !expression.not_empty || places.first().copied().flatten().is_some_and(|(start, end)| start < end)
    };
    expression.regex.captures(text).take_while(|_| go_on(0)).filter(wanted).take(most)
}

fn matches(text: &str, expression: &Expression) -> Val {
    let mut offsets = Offsets { text, byte: 0, char: 0 };
    found(text, expression).map(|places| described(&places, expression, &mut offsets)).collect()
}

/// Returns the texts between the matches and the matches, in their order.
fn parts(text: &str, expression: &Expression) -> Val {
    let mut offsets = Offsets { text, byte: 0, char: 0 };
    let (mut parts, mut end) = (Vec::new(), 0);
    for places in found(text, expression) {
        let (start, next) = places.first().copied().flatten().unwrap_or((end, end));
        parts.push(Val::str(text.get(end..start).unwrap_or_default()));
        parts.push(described(&places, expression, &mut offsets));
        end = next;
    }
    parts.push(Val::str(text.get(end..).unwrap_or_default()));
    Val::arr(parts)
}

fn described(places: &Places, expression: &Expression, offsets: &mut Offsets<'_>) -> Val {
    // The whole has no name.
    let names = std::iter::once(&None).chain(expression.regex.names());
    let mut groups = places.iter().zip(names).map(|(group, name)| {
        let name = ("name".into(), name.as_deref().map_or(Val::Null, Val::str));
        let (offset, length, string) = match *group {
            Some((start, end)) => {
                let string = offsets.text.get(start..end).unwrap_or_default();
                (Val::from(offsets.of(start)), string.chars().count(), Val::str(string))
            }
            None => (Val::Int(-1), 0, Val::Null),
        };
        let place =
            [("offset".into(), offset), ("length".into(), Val::from(length)), ("string".into(), string)];
        place.into_iter().chain([name]).collect::<Object>()
    });
    let mut whole = groups.next().unwrap_or_default();
    whole.remove("name");
    let captures = groups.map(Val::obj).collect();
    whole.insert("captures".into(), captures);
    Val::obj(whole)
}

/// Converts offsets in bytes to offsets in characters, continuing from the last one where possible.
struct Offsets<'a> {
    text: &'a str,
    byte: usize,
    char: usize,
}

impl Offsets<'_> {
    fn of(&mut self, byte: usize) -> usize {
        if byte < self.byte {
            (self.byte, self.char) = (0, 0);
        }
        self.char += self.text.get(self.byte..byte).map_or(0, |between| between.chars().count());
        self.byte = byte;
        self.char
    }
}

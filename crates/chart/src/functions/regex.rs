//! Regular expressions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use golang::regexp::{Regexp, quote_meta};
use golang::strconv::can_backquote;

use super::args::{Answer, BOOL, INT, STRING, STRINGS, int, string};
use super::format;
use crate::value::{CallError, Context, Function, List, ListType, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("mustRegexFind", &[STRING, STRING], STRING, |_, args| find(args, false)),
    Function::new("mustRegexFindAll", &[STRING, STRING, INT], STRINGS, |_, args| find_all(args, false)),
    Function::new("mustRegexMatch", &[STRING, STRING], BOOL, |_, args| {
        Ok(compiled(args, false)?.is_match(&string(args, 1)).into())
    }),
    Function::new("mustRegexReplaceAll", &[STRING, STRING, STRING], STRING, |context, args| {
        replace(context, args, false, Regexp::replace_all)
    }),
    Function::new("mustRegexReplaceAllLiteral", &[STRING, STRING, STRING], STRING, |context, args| {
        replace(context, args, false, Regexp::replace_all_literal)
    }),
    Function::new("mustRegexSplit", &[STRING, STRING, INT], STRINGS, |_, args| split(args, false)),
    Function::new("regexFind", &[STRING, STRING], STRING, |_, args| find(args, true)),
    Function::new("regexFindAll", &[STRING, STRING, INT], STRINGS, |_, args| find_all(args, true)),
    Function::new("regexMatch", &[STRING, STRING], BOOL, |_, args| {
        Ok(compiled(args, false).is_ok_and(|regex| regex.is_match(&string(args, 1))).into())
    }),
    Function::new("regexQuoteMeta", &[STRING], STRING, |_, args| Ok(quote_meta(&string(args, 0)).into())),
    Function::new("regexReplaceAll", &[STRING, STRING, STRING], STRING, |context, args| {
        replace(context, args, true, Regexp::replace_all)
    }),
    Function::new("regexReplaceAllLiteral", &[STRING, STRING, STRING], STRING, |context, args| {
        replace(context, args, true, Regexp::replace_all_literal)
    }),
    Function::new("regexSplit", &[STRING, STRING, INT], STRINGS, |_, args| split(args, true)),
];

/// How many compiled expressions a thread keeps.
const KEPT: usize = 64;

/// Replacements that cannot make more bytes than this are not counted beforehand.
const CHEAP: usize = 1 << 20;

thread_local! {
    /// Expressions that were compiled before: templates use the same few in loops.
    static COMPILED: RefCell<BTreeMap<String, Rc<Regexp>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Compiles the first argument; `panics` says whether Go would panic over an error, which
/// makes its text longer.
fn compiled(args: &[Value], panics: bool) -> Result<Rc<Regexp>, CallError> {
    let expression = string(args, 0);
    if let Some(regex) = COMPILED.with_borrow(|kept| kept.get(expression.as_ref()).cloned()) {
        return Ok(regex);
    }
    let regex = Rc::new(Regexp::compile(&expression).map_err(|error| {
        if panics {
            CallError::new(format!("regexp: Compile({}): {error}", back_quoted(&expression)))
        } else {
            CallError::new(error.to_string())
        }
    })?);
    COMPILED.with_borrow_mut(|kept| {
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(expression.into_owned(), Rc::clone(&regex));
    });
    Ok(regex)
}

/// Quotes with back quotes if that is possible.
fn back_quoted(text: &str) -> String {
    if can_backquote(text.as_bytes()) {
        format!("`{text}`")
    } else {
        String::from_utf8_lossy(&format::quoted(text.as_bytes())).into_owned()
    }
}

fn find(args: &[Value], panics: bool) -> Answer {
    Ok(compiled(args, panics)?.find(&string(args, 1)).unwrap_or_default().into())
}

fn find_all(args: &[Value], panics: bool) -> Answer {
    let text = string(args, 1);
    let found = compiled(args, panics)?.find_all(&text, int(args, 2));
    Ok(strings_or_nil(found.into_iter().filter_map(|(start, end)| text.get(start..end))))
}

fn split(args: &[Value], panics: bool) -> Answer {
    let text = string(args, 1);
    let limit = int(args, 2);
    let parts = compiled(args, panics)?.split(&text, limit);
    Ok(if limit == 0 { strings_or_nil(parts) } else { Value::strings(parts) })
}

/// No matches are a nil slice.
fn strings_or_nil<'a>(texts: impl IntoIterator<Item = &'a str>) -> Value {
    let mut texts = texts.into_iter().peekable();
    if texts.peek().is_none() {
        return Value::List(List::nil(&ListType::STRINGS));
    }
    Value::strings(texts)
}

fn replace(
    context: &mut dyn Context,
    args: &[Value],
    panics: bool,
    replace: fn(&Regexp, &str, &str) -> String,
) -> Answer {
    let regex = compiled(args, panics)?;
    let (text, replacement) = (string(args, 1), string(args, 2));
    let references = replacement.matches('$').count() + 1;
    let mut bound = references.saturating_mul(text.len());
    if replacement.len().saturating_mul(text.len()) > CHEAP {
        let matches = regex.find_all(&text, -1).len();
        bound = bound.saturating_add(matches.saturating_mul(replacement.len()));
    }
    context.charge(bound)?;
    Ok(replace(&regex, &text, &replacement).into())
}

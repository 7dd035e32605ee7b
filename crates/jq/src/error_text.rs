//! Errors of filters as they are reported: with types and paths, and without what the object holds.
//!
//! A filter that catches an error sees the text that jq has, which quotes values. That text does not leave the run:
//! the objects of a binding can be Secrets, and an error ends in the log and on the port.

use std::cell::RefCell;
use std::sync::Arc;

use jaq_core::val::ValR;

use super::value::{Error, Val, quoted};

/// How many values are looked at to find the one that an error is about.
const MOST_VISITED: usize = 100_000;

/// How many bytes of a path are reported.
const LONGEST_PATH: usize = 200;

/// How errors of the library begin that quote values behind that.
const QUOTING: [&str; 4] =
    ["cannot calculate ", "cannot index ", "cannot use ", "invalid path expression with input "];

/// What the library expects of a value that it can't use.
const EXPECTED: [&str; 7] =
    ["array", "integer", "number", "object", "string", "iterable (array or object)", "boolean"];

/// A part of an error's text that quotes a value.
struct Quote {
    text: String,
    /// The value; `None` where the text tells of it otherwise.
    value: Option<Val>,
}

thread_local! {
    /// What was quoted since the last error was made.
    static QUOTES: RefCell<Vec<Quote>> = const { RefCell::new(Vec::new()) };
    /// The last error, and what it quotes.
    static LAST: RefCell<(Arc<str>, Vec<Quote>)> = RefCell::new((Arc::from(""), Vec::new()));
}

/// Returns `text`, which tells of `value`, as a part of the error that is made next.
pub(super) fn about(value: &Val, text: String) -> String {
    QUOTES.with_borrow_mut(|quotes| quotes.push(Quote { text: text.clone(), value: Some(value.clone()) }));
    text
}

/// Returns `text`, which quotes parts of a value, as a part of the error that is made next.
pub(super) fn detail(text: impl Into<String>) -> String {
    let text = text.into();
    QUOTES.with_borrow_mut(|quotes| quotes.push(Quote { text: text.clone(), value: None }));
    text
}

/// Returns the error with this text.
pub(super) fn error(text: impl Into<String>) -> Error {
    let text: Arc<str> = text.into().into();
    LAST.set((Arc::clone(&text), QUOTES.take()));
    Error::new(Val::Str(text))
}

/// Returns a failure with a text.
pub(super) fn fail<T>(text: impl Into<String>) -> ValR<T, Val> {
    Err(error(text))
}

/// Forgets what the errors of a run quote.
pub(super) fn forget() {
    QUOTES.take();
    LAST.take();
}

/// Returns the `error` of a filter whose text is `filter`, as it is reported for the object `input`.
pub(super) fn reported(error: &Val, input: &Val, filter: &str) -> String {
    let Val::Str(text) = error else { return unknown(error) };
    let own =
        LAST.with_borrow(|(last, quotes)| (**last == **text).then(|| without_quotes(text, quotes, input)));
    if let Some(text) = own {
        return text;
    }
    // What the author of the filter wrote tells nothing of the object.
    if [filter, include_str!("prelude.jq")].iter().any(|known| known.contains(&quoted(text))) {
        return text.as_ref().to_owned();
    }
    match QUOTING.iter().find(|beginning| text.starts_with(**beginning)) {
        Some(beginning) => {
            let what = EXPECTED.iter().find(|what| text.ends_with(&format!(" as {what}")));
            let what = what.map(|what| format!(" as {what}")).unwrap_or_default();
            format!("{beginning}a value{what}")
        }
        None => unknown(error),
    }
}

fn unknown(error: &Val) -> String {
    let kind = error.type_name();
    format!(
        "it ended with an error of type {kind} that can quote the object (`addon-operator hook jq` shows it)"
    )
}

/// Returns the text of an error with types and paths where it quotes values.
fn without_quotes(text: &str, quotes: &[Quote], input: &Val) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    for quote in quotes.iter().filter(|quote| !quote.text.is_empty()) {
        // What was prepared for an error that was never made is not in the text.
        let Some((before, behind)) = rest.split_once(quote.text.as_str()) else { continue };
        shown.push_str(before);
        match &quote.value {
            Some(value) => shown.push_str(&described(value, input)),
            None => shown.push('…'),
        }
        rest = behind;
    }
    shown + rest
}

/// Returns the type of a value, and where in the object it is.
fn described(value: &Val, input: &Val) -> String {
    let kind = value.type_name();
    let mut left = MOST_VISITED;
    let mut path = Vec::new();
    if !find(value, input, &mut path, &mut left) {
        return kind.to_owned();
    }
    path.reverse();
    let mut path = if path.is_empty() { ".".to_owned() } else { path.concat() };
    if path.len() > LONGEST_PATH {
        path.truncate(path.floor_char_boundary(LONGEST_PATH));
        path.push('…');
    }
    format!("{kind} at {path}")
}

/// Finds the very value in another one. The steps of its path are added, the last first.
fn find(value: &Val, within: &Val, path: &mut Vec<String>, left: &mut usize) -> bool {
    let is_same = match (value, within) {
        (Val::Str(a), Val::Str(b)) => Arc::ptr_eq(a, b),
        (Val::Arr(a), Val::Arr(b)) => Arc::ptr_eq(a, b),
        (Val::Obj(a), Val::Obj(b)) => Arc::ptr_eq(a, b),
        // These are not shared, so that it is not known which one it is.
        _ => false,
    };
    if is_same {
        return true;
    }
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    match within {
        Val::Arr(items) => items.iter().enumerate().any(|(place, item)| {
            let found = find(value, item, path, left);
            if found {
                path.push(format!("[{place}]"));
            }
            found
        }),
        Val::Obj(object) => object.iter().any(|(key, item)| {
            let found = find(value, item, path, left);
            if found {
                let is_word =
                    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                path.push(if is_word { format!(".{key}") } else { format!("[{}]", quoted(key)) });
            }
            found
        }),
        Val::Null | Val::Bool(_) | Val::Int(_) | Val::Float(_) | Val::Str(_) => false,
    }
}

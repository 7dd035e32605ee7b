//! A limit for recursion: a filter that calls itself for ever ends with an error, not with the process.

use std::cell::Cell;
use std::hint::black_box;

use jaq_core::Native;
use jaq_core::box_iter::box_once;
use jaq_core::native::{Fun, v};

use super::inputs::Kind;
use super::value::Error;

/// How much stack a filter may use on a thread that says nothing else: half of what most threads have.
const USUAL: usize = 1024 * 1024;

thread_local! {
    static LIMIT: Cell<usize> = const { Cell::new(USUAL) };
    static BASE: Cell<usize> = const { Cell::new(0) };
}

/// Says that filters on this thread may use this many bytes of its stack.
pub fn use_stack(bytes: usize) {
    LIMIT.set(bytes);
}

/// Begins a run: the stack is measured from here.
pub(super) fn begin() {
    BASE.set(here());
}

/// Returns about where the stack ends now.
#[inline(never)]
fn here() -> usize {
    let marker = black_box(0_u8);
    std::ptr::from_ref(&marker).addr()
}

fn check() -> Result<(), Error> {
    if BASE.get().abs_diff(here()) > LIMIT.get() {
        return Err(Error::str("the filter calls itself too often"));
    }
    Ok(())
}

/// Returns the function that stands at the beginning of each definition. It changes nothing.
pub(super) fn funs() -> impl Iterator<Item = Fun<Kind>> {
    let native = Native::new(|cv| box_once(check().map(|()| cv.1).map_err(Into::into)))
        .with_paths(|cv| box_once(check().map(|()| cv.1).map_err(Into::into)))
        .with_update(|cv, update| match check() {
            Ok(()) => update(cv.1),
            Err(error) => box_once(Err(error.into())),
        });
    std::iter::once(("native_guard", v(0), native))
}

/// Where a text of the language is at a place.
enum Place {
    /// In code; the number counts the brackets that are open since an interpolation began.
    Code(usize),
    Text,
}

/// Returns a filter in which each definition begins with the check; `None` when it defines nothing.
pub(super) fn guarded(text: &str) -> Option<String> {
    let mut insertions = Vec::new();
    let mut places = vec![Place::Code(0)];
    let mut chars = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((start, char)) = chars.next() {
        let inside = places.len() > 1;
        match (places.last_mut()?, char) {
            (Place::Text, '"') => {
                places.pop();
            }
            (Place::Text, '\\') => {
                if chars.next().is_some_and(|(_, escaped)| escaped == '(') {
                    places.push(Place::Code(0));
                }
            }
            (Place::Code(_), '"') => places.push(Place::Text),
            (Place::Code(_), '#') => while chars.next_if(|(_, char)| *char != '\n').is_some() {},
            (Place::Code(open), '(') => *open += 1,
            (Place::Code(0), ')') if inside => {
                places.pop();
            }
            (Place::Code(open), ')') => *open = open.saturating_sub(1),
            (Place::Code(_), 'd')
                if !before.is_ascii_alphanumeric() && !matches!(before, '_' | '.' | '$' | '@') =>
            {
                insertions.extend(body_of(text, start));
            }
            (Place::Text | Place::Code(_), _) => {}
        }
        before = char;
    }
    if insertions.is_empty() {
        return None;
    }
    let mut out = text.to_owned();
    insertions.into_iter().rev().for_each(|place| out.insert_str(place, " native_guard |"));
    Some(out)
}

/// Returns where the body of the definition at `start` begins; `None` when there is none.
fn body_of(text: &str, start: usize) -> Option<usize> {
    let rest = text.get(start..)?.strip_prefix("def")?;
    let head = rest.trim_start();
    if head.len() == rest.len()
        || !head.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '@'))
    {
        return None;
    }
    // A name may hold `::`; a colon alone ends the head of the definition.
    let bytes = head.as_bytes();
    let alone = |place: &usize| {
        let at = |place: Option<usize>| place.and_then(|place| bytes.get(place)) == Some(&b':');
        at(Some(*place)) && !at(place.checked_add(1)) && !at(place.checked_sub(1))
    };
    let arguments = match (head.find('('), head.find(':')) {
        (Some(open), Some(colon)) if open < colon => head.find(')')?,
        (Some(_) | None, Some(_) | None) => 0,
    };
    let colon = (arguments..head.len()).find(alone)?;
    Some(start + 3 + (rest.len() - head.len()) + colon + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_definition_begins_with_the_check() {
        let cases = [
            ("def f: 1; f", Some("def f: native_guard | 1; f")),
            (
                "def f:def g(x; $y) : x;g(1;2);f",
                Some("def f: native_guard |def g(x; $y) : native_guard | x;g(1;2);f"),
            ),
            (".def, {def: 1}, $def, \"def f: 1\" # def f: 1", None),
            ("\"a\\(def f: (1); f)\"", Some("\"a\\(def f: native_guard | (1); f)\"")),
            ("undef, default, defx", None),
        ];
        for (text, expected) in cases {
            assert_eq!(guarded(text).as_deref(), expected, "{text}");
        }
    }
}

//! Definitions of a filter, marked so that each call of them is within the limits of the run.

/// Where a text of the language is at a place.
enum Place {
    /// In code; the number counts the brackets that are open since an interpolation began.
    Code(usize),
    Text,
}

/// Returns where a filter has alternatives of a destructuring, `?//`, which this language does not have.
pub(super) fn alternative(text: &str) -> Option<usize> {
    let mut found = None;
    scan(text, |start| {
        if found.is_none() && text.get(start..).is_some_and(|rest| rest.starts_with("?//")) {
            found = Some(start);
        }
    });
    found
}

/// Returns a filter in which each definition begins with the check; `None` when it defines nothing.
pub(super) fn guarded(text: &str) -> Option<String> {
    let mut insertions = Vec::new();
    scan(text, |start| insertions.extend(body_of(text, start)));
    if insertions.is_empty() {
        return None;
    }
    let mut out = text.to_owned();
    insertions.into_iter().rev().for_each(|place| out.insert_str(place, " native_guard |"));
    Some(out)
}

/// Calls `each` with the place of each letter of code that may begin a word or an operator.
fn scan(text: &str, mut each: impl FnMut(usize)) {
    let mut places = vec![Place::Code(0)];
    let mut chars = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((start, char)) = chars.next() {
        let inside = places.len() > 1;
        let Some(place) = places.last_mut() else { return };
        match (place, char) {
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
            (Place::Code(_), 'd' | '?')
                if !before.is_ascii_alphanumeric() && !matches!(before, '_' | '.' | '$' | '@')
                    || char == '?' =>
            {
                each(start);
            }
            (Place::Text | Place::Code(_), _) => {}
        }
        before = char;
    }
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

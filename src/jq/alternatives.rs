//! What stands in the text of a filter that the language of the engine does not have.

/// Where a text of the language is at a place.
enum Place {
    /// In code; the number counts the brackets that are open since an interpolation began.
    Code(usize),
    Text,
}

/// Returns where a filter has alternatives of a destructuring, `?//`, which this language does not have.
pub(super) fn first(text: &str) -> Option<usize> {
    let mut places = vec![Place::Code(0)];
    let mut chars = text.char_indices().peekable();
    while let Some((start, char)) = chars.next() {
        let inside = places.len() > 1;
        let place = places.last_mut()?;
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
            (Place::Code(_), '?') if text.get(start..).is_some_and(|rest| rest.starts_with("?//")) => {
                return Some(start);
            }
            (Place::Text | Place::Code(_), _) => {}
        }
    }
    None
}

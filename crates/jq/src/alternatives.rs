//! Finds alternatives of a destructuring, which jaq does not support, to report them by name.

/// What a character of the text stands in.
enum Context {
    /// In code; the number counts the brackets that are open since an interpolation began.
    Code(usize),
    /// In the text of a string.
    Text,
}

/// Returns the byte offset of the first `?//`, the operator between alternatives of a destructuring.
pub(super) fn first(text: &str) -> Option<usize> {
    let mut contexts = vec![Context::Code(0)];
    let mut chars = text.char_indices().peekable();
    while let Some((start, char)) = chars.next() {
        let inside = contexts.len() > 1;
        let context = contexts.last_mut()?;
        match (context, char) {
            (Context::Text, '"') => {
                contexts.pop();
            }
            (Context::Text, '\\') => {
                if chars.next().is_some_and(|(_, escaped)| escaped == '(') {
                    contexts.push(Context::Code(0));
                }
            }
            (Context::Code(_), '"') => contexts.push(Context::Text),
            (Context::Code(_), '#') => while chars.next_if(|(_, char)| *char != '\n').is_some() {},
            (Context::Code(open), '(') => *open += 1,
            (Context::Code(0), ')') if inside => {
                contexts.pop();
            }
            (Context::Code(open), ')') => *open = open.saturating_sub(1),
            (Context::Code(_), '?') if text.get(start..).is_some_and(|rest| rest.starts_with("?//")) => {
                return Some(start);
            }
            (Context::Text | Context::Code(_), _) => {}
        }
    }
    None
}

//! Splitting a text into YAML documents.

/// Returns the documents of `text` without white space around them.
///
/// A line of three dashes ends a document, whatever stands behind the dashes; the
/// white space around the dashes belongs to the mark, so the second of two marks in
/// a row stays in the text.
pub fn split(text: &str) -> Vec<&str> {
    let text = text.trim();
    let mut documents = Vec::new();
    let mut rest = match text.strip_prefix("---") {
        Some(behind) => skip_space(behind),
        None => text,
    };
    while let Some(at) = rest.find("\n---") {
        let (document, mark) = rest.split_at(at);
        push(&mut documents, document);
        rest = skip_space(mark.strip_prefix("\n---").unwrap_or_default());
    }
    push(&mut documents, rest);
    documents
}

fn push<'t>(documents: &mut Vec<&'t str>, document: &'t str) {
    let trimmed = document.trim();
    if !trimmed.is_empty() {
        documents.push(trimmed);
    }
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches(['\t', '\n', '\u{c}', '\r', ' '])
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn marks_split_and_the_second_of_two_stays() {
        for (text, expected) in [
            ("", vec![]),
            ("a: 1", vec!["a: 1"]),
            ("---\na\n---\nb\n", vec!["a", "b"]),
            ("---\n---\n# c\n---\n\n---\na", vec!["---\n# c", "---\na"]),
            ("a\n---   \nb\n--- # c\nd", vec!["a", "b", "# c\nd"]),
            ("t: |\n  ---\n  x", vec!["t: |\n  ---\n  x"]),
            ("a\n---b", vec!["a", "b"]),
            ("a\r\n---\r\nb", vec!["a", "b"]),
            ("a\n----\nb", vec!["a", "-\nb"]),
        ] {
            assert_eq!(split(text), expected, "{text:?}");
        }
    }
}

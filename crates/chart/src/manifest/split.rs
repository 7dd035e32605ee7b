//! Splitting a text into YAML documents.

/// Returns the documents of `text` without white space around them.
///
/// A line of three dashes ends a document, whatever stands behind the dashes; the
/// white space around the dashes belongs to the mark, so the second of two marks in
/// a row stays in the text.
pub fn split(text: &str) -> Vec<&str> {
    between_marks(text.trim()).map(str::trim).filter(|document| !document.is_empty()).collect()
}

/// Returns the documents of a text that [`super::join`] wrote, as they were handed to it: what they hold may end with white space.
pub fn split_joined(text: &str) -> Vec<&str> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    between_marks(text.trim_start()).filter(|document| !document.trim().is_empty()).collect()
}

/// Iterates over what is between the marks.
fn between_marks(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(match text.strip_prefix("---") {
        Some(behind) => skip_space(behind),
        None => text,
    });
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(at) = text.find("\n---") else { return rest.take() };
        let (document, mark) = text.split_at(at);
        rest = Some(skip_space(mark.strip_prefix("\n---").unwrap_or_default()));
        Some(document)
    })
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches(['\t', '\n', '\u{c}', '\r', ' '])
}

#[cfg(test)]
mod tests {
    use super::{split, split_joined};

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

    #[test]
    fn what_was_joined_is_split_as_it_was() {
        for document in ["a: 1", "k: |+\n  x\n\n", "k: |\n  ---\n  x", "k: |+\n  x\n "] {
            let text = format!("---\n# Source: a.yaml\n{document}\n---\n# Source: b.yaml\n{document}\n");
            let expected = ["a.yaml", "b.yaml"].map(|path| format!("# Source: {path}\n{document}"));
            assert_eq!(split_joined(&text), expected, "{document:?}");
        }
        assert_eq!(split_joined(""), [""; 0]);
        assert_eq!(split_joined("---\n# c\n---\n\n---\na"), ["# c", "---\na"]);
    }
}

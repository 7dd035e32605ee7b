//! What is wrong with a YAML text, and where.

use std::fmt;

use thiserror::Error;

/// A place in a text; both numbers count from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, counted in characters.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

impl From<libyaml_safer::Mark> for Position {
    fn from(mark: libyaml_safer::Mark) -> Self {
        let one_based = |zero_based: u64| usize::try_from(zero_based).unwrap_or(usize::MAX).saturating_add(1);
        Self { line: one_based(mark.line), column: one_based(mark.column) }
    }
}

/// Why a YAML text could not be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum YamlError {
    /// The text is not YAML.
    #[error("{position}: {problem}")]
    Syntax {
        /// Where reading stopped.
        position: Position,
        /// What was found or missing.
        problem: String,
        /// What Go's reader says; see [`YamlError::go_text`].
        go: String,
    },
    /// Lists and mappings are nested too deeply.
    #[error("{position}: nested deeper than {limit} levels")]
    TooDeep {
        /// Where the limit was passed.
        position: Position,
        /// The limit.
        limit: usize,
    },
    /// An alias names an anchor that was not seen before it.
    #[error("{position}: unknown anchor '{anchor}' referenced")]
    UnknownAnchor {
        /// Where the alias is.
        position: Position,
        /// The name.
        anchor: String,
    },
    /// An alias stands inside the node that it names.
    #[error("{position}: anchor '{anchor}' contains itself")]
    RecursiveAnchor {
        /// Where the alias is.
        position: Position,
        /// The name.
        anchor: String,
    },
    /// Aliases multiply the text beyond what a person would write.
    #[error("{position}: the document contains excessive aliasing")]
    ExcessiveAliasing {
        /// Where the limit was passed.
        position: Position,
    },
    /// A mapping's key cannot become a string.
    #[error("{position}: {found} cannot be a key, write a string")]
    Key {
        /// Where the key is.
        position: Position,
        /// What the key is.
        found: String,
        /// The key as Go's reader shows it, if that reads keys of its kind at all.
        go: Option<String>,
    },
    /// A key occurs twice in one mapping; only the strict reader minds.
    #[error("{position}: key \"{key}\" is already set at line {}, remove one of them", first.line)]
    DuplicateKey {
        /// Where the key occurs again.
        position: Position,
        /// Where the key occurs first.
        first: Position,
        /// The key.
        key: String,
    },
    /// A merge key's value is neither a mapping nor a list of mappings.
    #[error("{position}: map merge requires a map or a list of maps as the value")]
    Merge {
        /// Where the value is.
        position: Position,
    },
    /// A value does not fit its explicit tag.
    #[error("{position}: cannot read `{text}` as {tag}")]
    Tag {
        /// Where the value is.
        position: Position,
        /// The value as written.
        text: String,
        /// The tag's short form, such as `!!int`.
        tag: String,
        /// The tag that the value has by itself.
        own: String,
    },
    /// A number that JSON cannot hold.
    #[error("{position}: {text} is not a number that JSON can hold, quote it or write another")]
    NotJson {
        /// Where the value is.
        position: Position,
        /// The value as written.
        text: String,
    },
}

impl YamlError {
    /// Returns where in the text the error is.
    pub fn position(&self) -> Position {
        match self {
            Self::Syntax { position, .. }
            | Self::TooDeep { position, .. }
            | Self::UnknownAnchor { position, .. }
            | Self::RecursiveAnchor { position, .. }
            | Self::ExcessiveAliasing { position }
            | Self::Key { position, .. }
            | Self::DuplicateKey { position, .. }
            | Self::Merge { position }
            | Self::Tag { position, .. }
            | Self::NotJson { position, .. } => *position,
        }
    }

    /// Returns the text of the same error as Go's reader puts it.
    ///
    /// Templates and users of charts compare these texts. Lines are counted as Go
    /// counts them, which is not always where the problem is.
    pub fn go_text(&self) -> String {
        match self {
            Self::Syntax { go, .. } => format!("yaml: {go}"),
            Self::TooDeep { limit, .. } => format!("yaml: exceeded max depth of {limit}"),
            Self::UnknownAnchor { anchor, .. } => format!("yaml: unknown anchor '{anchor}' referenced"),
            Self::RecursiveAnchor { anchor, .. } => format!("yaml: anchor '{anchor}' value contains itself"),
            Self::ExcessiveAliasing { .. } => "yaml: document contains excessive aliasing".to_owned(),
            Self::Merge { .. } => "yaml: map merge requires map or sequence of maps as the value".to_owned(),
            Self::Tag { tag, .. } if tag == "!!binary" => {
                "yaml: !!binary value contains invalid base64 data".to_owned()
            }
            Self::Tag { text, tag, own, .. } => format!("yaml: cannot decode {own} `{text}` as a {tag}"),
            Self::NotJson { text, .. } => {
                let number = if text.to_lowercase().contains("nan") {
                    "NaN"
                } else if text.starts_with('-') {
                    "-Inf"
                } else {
                    "+Inf"
                };
                format!("json: unsupported value: {number}")
            }
            Self::Key { go: Some(key), .. } => format!("yaml: invalid map key: {key}"),
            Self::Key { .. } | Self::DuplicateKey { .. } => format!("yaml: {self}"),
        }
    }
}

/// Returns a problem with the line that Go's reader names: that of the scanner's
/// problems is counted from one, that of others from zero, and zero is left out.
/// With `is_behind` the problem is on the line before the one that the library names.
pub(super) fn go_problem(error: &libyaml_safer::Error, is_behind: bool) -> String {
    let scanner = u64::from(error.kind() == libyaml_safer::ErrorKind::Scanner);
    let line = |mark: Option<libyaml_safer::Mark>| mark.map(|mark| mark.line).filter(|line| *line != 0);
    let problem = error.problem_mark().map(|mark| mark.line.saturating_sub(u64::from(is_behind)));
    let line =
        problem.filter(|line| *line != 0).map(|line| line + scanner).or_else(|| line(error.context_mark()));
    match line {
        Some(line) => format!("line {line}: {}", error.problem()),
        None => error.problem().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::yaml::{YamlError, parse};

    #[test]
    fn texts_on_which_the_library_panics_are_errors() {
        for text in ["\"\\", "a: \"\\", "[!a,]", "a: 1\nb: {c: !x,}"] {
            let error = parse(text).unwrap_err();
            assert!(matches!(error, YamlError::Syntax { .. }), "{text:?}: {error}");
            assert!(crate::yaml::locate(text, "/a").is_none_or(|place| place.line == 1), "{text:?}");
        }
    }

    #[test]
    fn errors_have_the_words_and_lines_of_go() {
        for (text, expected) in [
            ("a: b: c", "yaml: mapping values are not allowed in this context"),
            ("kind: A\n  a: 1", "yaml: line 2: mapping values are not allowed in this context"),
            ("a: 1\nb", "yaml: line 3: could not find expected ':'"),
            ("a: 1\nb\n c\n\n d", "yaml: line 5: could not find expected ':'"),
            ("a: 1\nb\n c\n\n d\n", "yaml: line 6: could not find expected ':'"),
            ("a:\n\tb: 1", "yaml: line 2: found character that cannot start any token"),
            ("k: A\na: [1, 2\nb: 3", "yaml: line 2: did not find expected ',' or ']'"),
            ("a: *x", "yaml: unknown anchor 'x' referenced"),
            ("a: .inf", "json: unsupported value: +Inf"),
            ("a: 'x", "yaml: found unexpected end of stream"),
            ("a: 1\nb: \"x", "yaml: line 2: found unexpected end of stream"),
            ("a: 1\nb: \"x\n", "yaml: line 3: found unexpected end of stream"),
            ("a: !!int x", "yaml: cannot decode !!str `x` as a !!int"),
            ("a: !!bool 1", "yaml: cannot decode !!int `1` as a !!bool"),
            ("a: !!binary '*'", "yaml: !!binary value contains invalid base64 data"),
            (
                "a: {{ .Values.x }}",
                "yaml: invalid map key: map[interface {}]interface {}{\".Values.x\":interface {}(nil)}",
            ),
            (
                "[a, 1, 1.5, true, null]: b",
                "yaml: invalid map key: []interface {}{\"a\", 1, 1.5, true, interface {}(nil)}",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().go_text(), expected, "{text:?}");
        }
    }
}

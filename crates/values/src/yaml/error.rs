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

impl Position {
    /// The first character.
    pub(super) const START: Self = Self { line: 1, column: 1 };
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
#[error("{position}: {problem}")]
pub struct YamlError {
    /// Where: a limit was passed, reading stopped, or the bad key, alias or value is.
    position: Position,
    /// What is wrong there.
    pub problem: YamlProblem,
}

/// What is wrong with a YAML text.
///
/// Its text names places, keys and types, and quotes no value: nobody knows yet which of them are secrets. A password that
/// begins with `*` or `!` is read as an alias or a tag. [`YamlError::go_text`] quotes what Go quotes.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum YamlProblem {
    /// The text is not YAML.
    #[error("{problem}")]
    Syntax {
        /// What was found or missing.
        problem: String,
        /// What Go's reader says; see [`YamlError::go_text`].
        go: String,
    },
    /// Lists and mappings are nested too deeply.
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// An alias names an anchor that was not seen before it.
    #[error("an alias (*…) names no anchor before it; quote a text that begins with *")]
    UnknownAnchor {
        /// The name.
        anchor: String,
    },
    /// An alias stands inside the node that it names.
    #[error("an alias (*…) stands inside the anchor that it names")]
    RecursiveAnchor {
        /// The name.
        anchor: String,
    },
    /// Aliases multiply the text beyond what a person would write.
    #[error("the document contains excessive aliasing")]
    ExcessiveAliasing,
    /// The document would take more memory than its reader may spend.
    #[error(
        "takes more than {} MiB of memory when it is read, write less or use fewer small mappings, anchors and aliases",
        limit >> 20
    )]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A stream goes on and on, and nothing in it is complete.
    #[error("more than {} MiB without a value; write shorter texts and comments", limit >> 20)]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A mapping's key cannot become a string.
    #[error("{found} cannot be a key, write a string")]
    Key {
        /// What the key is.
        found: String,
        /// The key as Go's reader shows it, if that reads keys of its kind at all.
        go: Option<String>,
    },
    /// A key occurs twice in one mapping; only the strict reader minds.
    #[error("key \"{key}\" is already set at line {}, remove one of them", first.line)]
    DuplicateKey {
        /// Where the key occurs first.
        first: Position,
        /// The key.
        key: String,
    },
    /// A boolean is written as a word that is a text for other readers; only the plain reader minds.
    #[error("{word} without quotes is the boolean {flag}: write {flag}, or \"{word}\" if a text is meant")]
    OldBoolean {
        /// The word, one of those that YAML 1.1 knows.
        word: String,
        /// What it means.
        flag: bool,
    },
    /// A merge key's value is neither a mapping nor a list of mappings.
    #[error("map merge requires a map or a list of maps as the value")]
    Merge,
    /// A value does not fit its explicit tag.
    #[error("a value of type {own} cannot be read as {tag}")]
    Tag {
        /// The value as written.
        text: String,
        /// The tag's short form, such as `!!int`.
        tag: String,
        /// The tag that the value has by itself.
        own: String,
    },
    /// A second document in a stream that has to be one.
    #[error("a second document begins here, and only one is read: write all into one")]
    SecondDocument,
    /// A number that JSON cannot hold.
    #[error("a number that JSON cannot hold, quote it or write another")]
    NotJson {
        /// The value as written.
        text: String,
    },
}

impl YamlProblem {
    /// Returns the error of this problem at `position`.
    pub(super) fn at(self, position: Position) -> YamlError {
        YamlError { position, problem: self }
    }
}

impl YamlError {
    /// Returns where in the text the error is.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns the text of the same error as Go's reader puts it.
    ///
    /// Templates and users of charts compare these texts. Lines are counted as Go
    /// counts them, which is not always where the problem is.
    pub fn go_text(&self) -> String {
        match &self.problem {
            YamlProblem::Syntax { go, .. } => format!("yaml: {go}"),
            YamlProblem::TooDeep { limit, .. } => format!("yaml: exceeded max depth of {limit}"),
            YamlProblem::UnknownAnchor { anchor, .. } => {
                format!("yaml: unknown anchor '{anchor}' referenced")
            }
            YamlProblem::RecursiveAnchor { anchor, .. } => {
                format!("yaml: anchor '{anchor}' value contains itself")
            }
            YamlProblem::ExcessiveAliasing => "yaml: document contains excessive aliasing".to_owned(),
            YamlProblem::Merge => "yaml: map merge requires map or sequence of maps as the value".to_owned(),
            YamlProblem::Tag { tag, .. } if tag == "!!binary" => {
                "yaml: !!binary value contains invalid base64 data".to_owned()
            }
            YamlProblem::Tag { text, tag, own, .. } => {
                format!("yaml: cannot decode {own} `{text}` as a {tag}")
            }
            YamlProblem::NotJson { text, .. } => {
                let number = if text.to_lowercase().contains("nan") {
                    "NaN"
                } else if text.starts_with('-') {
                    "-Inf"
                } else {
                    "+Inf"
                };
                format!("json: unsupported value: {number}")
            }
            YamlProblem::Key { go: Some(key), .. } => format!("yaml: invalid map key: {key}"),
            YamlProblem::Key { .. }
            | YamlProblem::DuplicateKey { .. }
            | YamlProblem::OldBoolean { .. }
            | YamlProblem::SecondDocument
            | YamlProblem::TooLarge { .. }
            | YamlProblem::TooLong { .. } => format!("yaml: {self}"),
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
    use crate::yaml::{YamlProblem, parse};

    #[test]
    fn texts_on_which_the_library_panics_are_errors() {
        for text in ["\"\\", "a: \"\\", "[!a,]", "a: 1\nb: {c: !x,}"] {
            let error = parse(text).unwrap_err();
            assert!(matches!(error.problem, YamlProblem::Syntax { .. }), "{text:?}: {error}");
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

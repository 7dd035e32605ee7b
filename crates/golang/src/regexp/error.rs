//! What is wrong with an expression.

/// The kinds of errors in expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrorCode {
    /// A range whose end is before its beginning, or an unknown name of a class.
    #[error("invalid character class range")]
    CharRange,
    /// A backslash before something that has no meaning.
    #[error("invalid escape sequence")]
    Escape,
    /// The name of a group is not one.
    #[error("invalid named capture")]
    NamedCapture,
    /// `(?` with something behind it that RE2 does not do.
    #[error("invalid or unsupported Perl syntax")]
    PerlSyntax,
    /// A repetition of a repetition.
    #[error("invalid nested repetition operator")]
    RepeatOperator,
    /// A count of repetitions that is too great or in the wrong order.
    #[error("invalid repeat count")]
    RepeatSize,
    /// A class that does not end.
    #[error("missing closing ]")]
    MissingBracket,
    /// A group that does not end.
    #[error("missing closing )")]
    MissingParen,
    /// A repetition of nothing.
    #[error("missing argument to repetition operator")]
    MissingRepeatArgument,
    /// The expression ends with a backslash.
    #[error("trailing backslash at end of expression")]
    TrailingBackslash,
    /// The end of a group that did not begin.
    #[error("unexpected )")]
    UnexpectedParen,
    /// Groups within groups within groups.
    #[error("expression nests too deeply")]
    NestingDepth,
    /// The expression needs too much memory.
    #[error("expression too large")]
    Large,
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {kind}: `{expression}`")]
pub struct SyntaxError {
    /// What is wrong.
    pub kind: ErrorCode,
    /// The part of the expression that is.
    pub expression: String,
}

impl SyntaxError {
    pub(super) fn new(kind: ErrorCode, expression: &str) -> Self {
        Self { kind, expression: expression.to_owned() }
    }
}

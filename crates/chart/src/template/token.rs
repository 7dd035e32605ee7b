//! What the lexer hands to the parser.

use golang::strconv::quote;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Assign,
    Block,
    Bool,
    Break,
    Char,
    CharConstant,
    Complex,
    Continue,
    Declare,
    Define,
    Dot,
    Else,
    End,
    Eof,
    Error,
    Field,
    Identifier,
    If,
    LeftDelim,
    LeftParen,
    Nil,
    Number,
    Pipe,
    Range,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Template,
    Text,
    Variable,
    With,
}

/// The words that are tokens of their own.
const KEYWORDS: [(&[u8], TokenKind); 11] = [
    (b"block", TokenKind::Block),
    (b"break", TokenKind::Break),
    (b"continue", TokenKind::Continue),
    (b"define", TokenKind::Define),
    (b"else", TokenKind::Else),
    (b"end", TokenKind::End),
    (b"if", TokenKind::If),
    (b"nil", TokenKind::Nil),
    (b"range", TokenKind::Range),
    (b"template", TokenKind::Template),
    (b"with", TokenKind::With),
];

impl TokenKind {
    /// Returns the keyword that `word` is.
    pub(super) fn keyword(word: &[u8]) -> Option<Self> {
        KEYWORDS.iter().find(|(keyword, _)| *keyword == word).map(|(_, kind)| *kind)
    }

    /// Reports whether Go counts it among the keywords, as it does the dot.
    fn is_keyword(self) -> bool {
        self == Self::Dot || KEYWORDS.iter().any(|(_, kind)| *kind == self)
    }
}

/// A piece of a template.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    /// Where it starts in the source, in bytes.
    pub(super) pos: usize,
    /// The line it starts on, from 1.
    pub(super) line: usize,
    /// What it reads. The message of an error is with the lexer.
    pub(super) text: &'a [u8],
}

impl Token<'_> {
    /// Returns how parse errors show the token, if it is none itself.
    pub(super) fn shown(&self) -> String {
        if self.kind == TokenKind::Eof {
            return "EOF".to_owned();
        }
        let text = String::from_utf8_lossy(self.text);
        if self.kind.is_keyword() {
            return format!("<{text}>");
        }
        if self.text.len() > 10 {
            let start: String = text.chars().take(10).collect();
            return format!("{}...", quote(start.as_bytes()));
        }
        quote(self.text)
    }
}

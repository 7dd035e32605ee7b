//! What the lexer hands to the parser.

use std::borrow::Cow;

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

impl TokenKind {
    /// Returns the keyword that `word` is.
    pub(super) fn keyword(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"block" => Self::Block,
            b"break" => Self::Break,
            b"continue" => Self::Continue,
            b"define" => Self::Define,
            b"else" => Self::Else,
            b"end" => Self::End,
            b"if" => Self::If,
            b"nil" => Self::Nil,
            b"range" => Self::Range,
            b"template" => Self::Template,
            b"with" => Self::With,
            _ => return None,
        })
    }

    fn is_keyword(self) -> bool {
        matches!(
            self,
            Self::Block
                | Self::Break
                | Self::Continue
                | Self::Define
                | Self::Dot
                | Self::Else
                | Self::End
                | Self::If
                | Self::Nil
                | Self::Range
                | Self::Template
                | Self::With
        )
    }
}

/// A piece of a template.
#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    /// Where it starts in the source, in bytes.
    pub(super) pos: usize,
    /// The line it starts on, from 1.
    pub(super) line: usize,
    /// What it reads; of an error, the message.
    pub(super) text: Cow<'a, [u8]>,
}

impl Token<'_> {
    /// Returns how parse errors show the token.
    pub(super) fn shown(&self) -> String {
        if self.kind == TokenKind::Eof {
            return "EOF".to_owned();
        }
        let text = String::from_utf8_lossy(&self.text);
        if self.kind == TokenKind::Error {
            return text.into_owned();
        }
        if self.kind.is_keyword() {
            return format!("<{text}>");
        }
        if self.text.len() > 10 {
            let start: String = text.chars().take(10).collect();
            return format!("{}...", quote(start.as_bytes()));
        }
        quote(&self.text)
    }
}

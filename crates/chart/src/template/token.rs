//! What the lexer hands to the parser.

use std::borrow::Cow;

use golang::strconv::quote;

use super::ast::Span;

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

    /// Reports whether Go counts it among the keywords, as it does the dot.
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    /// Where it starts in the source, in bytes.
    pub(super) pos: u32,
    /// The line it starts on, from 1.
    pub(super) line: u32,
    /// What it reads; nothing of an error, whose message the lexer has.
    pub(super) text: &'a [u8],
}

impl<'a> Token<'a> {
    /// Returns what a string literal stands for, if that is what is between its quotes, byte for byte.
    pub(super) fn plain(&self) -> Option<&'a [u8]> {
        let is_itself = |byte: &u8| byte.is_ascii() && !matches!(byte, b'\\' | b'\r');
        match self.text {
            [_, inner @ .., _] if inner.iter().all(is_itself) => Some(inner),
            _ => None,
        }
    }

    /// Returns what it reads, with U+FFFD in place of what is not UTF-8.
    pub(super) fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.text)
    }

    /// Returns where it is in the source.
    pub(super) fn span(&self) -> Span {
        let start = self.pos as usize;
        Span::new(start, start + self.text.len())
    }

    /// Returns how parse errors show the token, if it is no error.
    pub(super) fn shown(&self) -> String {
        if self.kind == TokenKind::Eof {
            return "EOF".to_owned();
        }
        let text = self.lossy();
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

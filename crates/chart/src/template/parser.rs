//! Builds templates out of tokens; the errors are those of Go's parser.

#![expect(clippy::wildcard_enum_match_arm, reason = "all tokens that do not fit are one mistake")]

use std::sync::Arc;

use golang::strconv::quote;

use super::ast::{Node, Pipe, Source, Span, Template};
use super::error::ParseError;
use super::lexer::Lexer;
use super::pool::{Pool, taken};
use super::token::{Token, TokenKind};
use super::unquote::unquote;

/// How deeply control structures and parentheses may be nested within each other.
const MAX_NESTING: usize = 1_000;

/// How many bytes of stack the parser uses at most: it has to run on any thread.
const MAX_STACK: usize = 1 << 20;

/// Returns the templates of a source, its own first, then those that it defines.
pub fn parse(name: &str, text: &[u8]) -> Result<Vec<Arc<Template>>, ParseError> {
    let source = Arc::new(Source { name: name.into(), text: text.into() });
    let mut set = TreeSet { source: Arc::clone(&source), trees: Vec::new() };
    let mut lexer = Lexer::new(&source.text);
    let base = stack_address();
    let mut pool = Pool::new(&source.text);
    let mut parser = Parser::new(&mut lexer, &mut set, &mut pool, 0, base);
    let body = parser.file()?;
    parser.add(name.into(), body)?;
    let (main, defined): (Vec<_>, Vec<_>) = set.trees.into_iter().partition(|tree| &*tree.name == name);
    Ok(main.into_iter().chain(defined).map(Arc::new).collect())
}

/// Returns about where the stack is; the difference of two is its use.
pub(super) fn stack_address() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&marker)).addr()
}

/// The templates found so far.
pub(super) struct TreeSet {
    source: Arc<Source>,
    trees: Vec<Template>,
}

/// What ends a list of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Terminator {
    End,
    Else,
}

impl Terminator {
    pub(super) fn shown(self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

/// One node, or what ends the list it would be part of.
pub(super) enum Parsed {
    Node(Node),
    Terminator(Terminator),
}

/// The parser of one template; a `define` in it gets its own.
pub(super) struct Parser<'p, 'a> {
    lexer: &'p mut Lexer<'a>,
    set: &'p mut TreeSet,
    pub(super) pool: &'p mut Pool<'a>,
    /// The last token read, and up to two that were put back before it.
    tokens: [Token<'a>; 3],
    peeked: usize,
    pub(super) variables: Vec<Arc<str>>,
    action_line: usize,
    pub(super) range_depth: usize,
    nesting: usize,
    stack_base: usize,
}

impl<'p, 'a> Parser<'p, 'a> {
    fn new(
        lexer: &'p mut Lexer<'a>,
        set: &'p mut TreeSet,
        pool: &'p mut Pool<'a>,
        nesting: usize,
        stack_base: usize,
    ) -> Self {
        let empty = Token { kind: TokenKind::Error, pos: 0, line: 0, text: b"" };
        Self {
            lexer,
            set,
            pool,
            tokens: [empty; 3],
            peeked: 0,
            variables: vec!["$".into()],
            action_line: 0,
            range_depth: 0,
            nesting,
            stack_base,
        }
    }

    /// Returns what stands in the source there.
    pub(super) fn source(&self, start: usize, end: usize) -> &'a [u8] {
        self.pool.text.get(start..end).unwrap_or_default()
    }

    // Tokens.

    pub(super) fn next(&mut self) -> Token<'a> {
        let [last, before, first] = &mut self.tokens;
        match self.peeked {
            0 => *last = self.lexer.next_token(),
            more => self.peeked = more - 1,
        }
        match self.peeked {
            0 => *last,
            1 => *before,
            _ => *first,
        }
    }

    pub(super) fn peek(&mut self) -> Token<'a> {
        let token = self.next();
        self.peeked += 1;
        token
    }

    pub(super) fn backup(&mut self) {
        self.peeked += 1;
    }

    /// Puts back `token`, which was read before the last one.
    pub(super) fn backup2(&mut self, token: Token<'a>) {
        let [_, before, _] = &mut self.tokens;
        *before = token;
        self.peeked = 2;
    }

    /// Puts back `first` and `second`, which were read before the last one.
    pub(super) fn backup3(&mut self, first: Token<'a>, second: Token<'a>) {
        let [_, before, earliest] = &mut self.tokens;
        *before = second;
        *earliest = first;
        self.peeked = 3;
    }

    pub(super) fn next_non_space(&mut self) -> Token<'a> {
        loop {
            let token = self.next();
            if token.kind != TokenKind::Space {
                return token;
            }
        }
    }

    pub(super) fn peek_non_space(&mut self) -> Token<'a> {
        let token = self.next_non_space();
        self.backup();
        token
    }

    pub(super) fn expect(&mut self, kind: TokenKind, context: &str) -> Result<Token<'a>, ParseError> {
        let token = self.next_non_space();
        if token.kind == kind { Ok(token) } else { Err(self.unexpected(&token, context)) }
    }

    // Errors.

    /// Returns an error at the line of the last token that was read.
    pub(super) fn error(&self, message: impl Into<String>) -> ParseError {
        let [last, ..] = &self.tokens;
        ParseError { name: self.set.source.name.to_string(), line: last.line, message: message.into() }
    }

    pub(super) fn unexpected(&self, token: &Token<'_>, context: &str) -> ParseError {
        if token.kind != TokenKind::Error {
            return self.error(format!("unexpected {} in {context}", token.shown()));
        }
        let shown = self.lexer.problem();
        if self.action_line == 0 || self.action_line == token.line {
            return self.error(shown.to_owned());
        }
        let start = if shown.ends_with(" action") { "" } else { " in action" };
        self.error(format!("{shown}{start} started at {}:{}", self.set.source.name, self.action_line))
    }

    /// Enters one level of nesting; to be left with [`Self::leave`].
    pub(super) fn enter(&mut self) -> Result<(), ParseError> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING || self.stack_base.abs_diff(stack_address()) > MAX_STACK {
            return Err(self.error("max expression depth exceeded"));
        }
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.nesting -= 1;
    }

    // Lists.

    /// Parses a whole source; `define` is allowed only here.
    fn file(&mut self) -> Result<Box<[Node]>, ParseError> {
        let begin = self.pool.nodes.len();
        loop {
            let token = self.peek();
            if token.kind == TokenKind::Eof {
                return Ok(taken(&mut self.pool.nodes, begin));
            }
            if token.kind == TokenKind::LeftDelim {
                let delimiter = self.next();
                if self.next_non_space().kind == TokenKind::Define {
                    self.nested().definition()?;
                    continue;
                }
                self.backup2(delimiter);
            }
            match self.text_or_action()? {
                Parsed::Node(node) => self.pool.nodes.push(node),
                Parsed::Terminator(end) => return Err(self.error(format!("unexpected {}", end.shown()))),
            }
        }
    }

    /// Returns the parser of a template within this one.
    fn nested<'q>(&'q mut self) -> Parser<'q, 'a> {
        Parser::new(self.lexer, self.set, self.pool, self.nesting, self.stack_base)
    }

    /// Parses what follows `define`.
    fn definition(&mut self) -> Result<(), ParseError> {
        const CONTEXT: &str = "define clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        self.expect(TokenKind::RightDelim, CONTEXT)?;
        let (body, end) = self.list()?;
        if end != Terminator::End {
            return Err(self.error(format!("unexpected {} in {CONTEXT}", end.shown())));
        }
        self.add(name, body)
    }

    /// Keeps a template; a second one of the same name only if one of them is empty.
    fn add(&mut self, name: Arc<str>, body: Box<[Node]>) -> Result<(), ParseError> {
        let template = Template { name, source: Arc::clone(&self.set.source), body };
        match self.set.trees.iter_mut().find(|tree| tree.name == template.name) {
            None => self.set.trees.push(template),
            Some(before) if before.is_empty() => *before = template,
            Some(_) if template.is_empty() => {}
            Some(_) => {
                let name = quote(template.name.as_bytes());
                return Err(self.error(format!("template: multiple definition of template {name}")));
            }
        }
        Ok(())
    }

    pub(super) fn list(&mut self) -> Result<(Box<[Node]>, Terminator), ParseError> {
        let begin = self.pool.nodes.len();
        while self.peek_non_space().kind != TokenKind::Eof {
            match self.text_or_action()? {
                Parsed::Node(node) => self.pool.nodes.push(node),
                Parsed::Terminator(end) => return Ok((taken(&mut self.pool.nodes, begin), end)),
            }
        }
        Err(self.error("unexpected EOF"))
    }

    fn text_or_action(&mut self) -> Result<Parsed, ParseError> {
        let token = self.next_non_space();
        match token.kind {
            TokenKind::Text => {
                let span = Span { start: token.pos, end: token.pos + token.text.len() };
                Ok(Parsed::Node(Node::Text(span)))
            }
            TokenKind::LeftDelim => {
                self.action_line = token.line;
                let parsed = self.action()?;
                self.action_line = 0;
                Ok(parsed)
            }
            _ => Err(self.unexpected(&token, "input")),
        }
    }

    // Names.

    pub(super) fn template_name(&mut self, token: &Token<'_>, context: &str) -> Result<Arc<str>, ParseError> {
        if !matches!(token.kind, TokenKind::String | TokenKind::RawString) {
            return Err(self.unexpected(token, context));
        }
        let literal = String::from_utf8_lossy(token.text);
        let name = unquote(&literal).ok_or_else(|| self.error("invalid syntax"))?;
        Ok(String::from_utf8_lossy(&name).into())
    }

    /// Parses what follows `block`: a definition and its use.
    pub(super) fn block(&mut self) -> Result<Node, ParseError> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe: Pipe = self.pipeline(CONTEXT, TokenKind::RightDelim)?;
        self.enter()?;
        let mut inner = self.nested();
        let (body, end) = inner.list()?;
        if end == Terminator::End {
            inner.add(Arc::clone(&name), body)?;
        } else {
            return Err(self.error(format!("unexpected {} in {CONTEXT}", end.shown())));
        }
        self.leave();
        Ok(Node::Template { pos: token.pos, name, pipe: Some(Box::new(pipe)) })
    }
}

//! Builds templates out of tokens; the errors are those of Go's parser.

#![expect(clippy::wildcard_enum_match_arm, reason = "all tokens that do not fit are one mistake")]

use std::borrow::Cow;
use std::sync::Arc;

use golang::strconv::quote;

use super::ast::{DOLLAR, Node, Pipe, Span, Template, Variable};
use super::error::ParseError;
use super::lexer::Lexer;
use super::token::{Token, TokenKind};
use super::tree_set::TreeSet;
use super::unquote::unquote;

/// How deeply control structures and parentheses may be nested within each other.
const MAX_NESTING: usize = 1_000;

/// How many bytes of stack the parser uses at most: it has to run on any thread.
const MAX_STACK: usize = 1 << 20;

/// Why a step of the parser failed. Almost all succeed, and should not have to move what an error needs.
pub(super) struct Failure(Box<ParseError>);

/// What a step of the parser returns.
pub(super) type Fallible<T> = Result<T, Failure>;

/// Returns the templates of a source, its own first, then those that it defines.
pub fn parse(name: &str, text: impl Into<Arc<[u8]>>) -> Result<Vec<Arc<Template>>, ParseError> {
    parse_shared(name, &text.into())
}

fn parse_shared(name: &str, text: &Arc<[u8]>) -> Result<Vec<Arc<Template>>, ParseError> {
    if u32::try_from(text.len()).is_err() {
        let message = "the template has more than 4 GiB, split it".to_owned();
        return Err(ParseError { name: name.to_owned(), line: 1, message });
    }
    let mut set = TreeSet::new(name, text);
    let mut lexer = Lexer::new(text);
    let base = stack_address();
    let mut parser = Parser::new(&mut lexer, &mut set, 0, base);
    let parsed = parser.file().and_then(|body| parser.add(name.into(), body));
    parsed.map_err(|Failure(error)| *error)?;
    Ok(set.into_templates(text))
}

/// Returns about where the stack is; the difference of two is its use.
pub(super) fn stack_address() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&marker)).addr()
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
    pub(super) set: &'p mut TreeSet<'a>,
    /// The last token read, and up to two that were put back before it.
    tokens: [Token<'a>; 3],
    peeked: usize,
    pub(super) variables: Vec<Variable>,
    action_line: u32,
    pub(super) range_depth: usize,
    nesting: usize,
    stack_base: usize,
}

impl<'p, 'a> Parser<'p, 'a> {
    fn new(lexer: &'p mut Lexer<'a>, set: &'p mut TreeSet<'a>, nesting: usize, stack_base: usize) -> Self {
        Self {
            lexer,
            set,
            tokens: [Token { kind: TokenKind::Error, pos: 0, line: 0, text: b"" }; 3],
            peeked: 0,
            variables: vec![DOLLAR],
            action_line: 0,
            range_depth: 0,
            nesting,
            stack_base,
        }
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

    pub(super) fn expect(&mut self, kind: TokenKind, context: &str) -> Fallible<Token<'a>> {
        let token = self.next_non_space();
        if token.kind == kind { Ok(token) } else { Err(self.unexpected(&token, context)) }
    }

    // Errors.

    /// Returns an error at the line of the last token that was read.
    pub(super) fn error(&self, message: impl Into<String>) -> Failure {
        let [last, ..] = &self.tokens;
        let (name, line) = (self.set.name().to_owned(), last.line as usize);
        Failure(Box::new(ParseError { name, line, message: message.into() }))
    }

    pub(super) fn unexpected(&self, token: &Token<'_>, context: &str) -> Failure {
        if token.kind != TokenKind::Error {
            return self.error(format!("unexpected {} in {context}", token.shown()));
        }
        let shown = self.lexer.message();
        if self.action_line == 0 || self.action_line == token.line {
            return self.error(shown);
        }
        let start = if shown.ends_with(" action") { "" } else { " in action" };
        self.error(format!("{shown}{start} started at {}:{}", self.set.name(), self.action_line))
    }

    /// Enters one level of nesting; to be left with [`Self::leave`].
    pub(super) fn enter(&mut self) -> Fallible<()> {
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
    fn file(&mut self) -> Fallible<Span> {
        let mark = self.set.pending().nodes.len();
        loop {
            let token = self.peek();
            if token.kind == TokenKind::Eof {
                return Ok(self.set.end_nodes(mark));
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
                Parsed::Node(node) => self.set.pending().nodes.push(node),
                Parsed::Terminator(end) => return Err(self.error(format!("unexpected {}", end.shown()))),
            }
        }
    }

    /// Returns the parser of a template within this one.
    fn nested<'q>(&'q mut self) -> Parser<'q, 'a> {
        Parser::new(self.lexer, self.set, self.nesting, self.stack_base)
    }

    /// Parses what follows `define`.
    fn definition(&mut self) -> Fallible<()> {
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
    fn add(&mut self, name: Arc<str>, body: Span) -> Fallible<()> {
        match self.set.define(name, body) {
            Ok(()) => Ok(()),
            Err(name) => {
                let name = quote(name.as_bytes());
                Err(self.error(format!("template: multiple definition of template {name}")))
            }
        }
    }

    pub(super) fn list(&mut self) -> Fallible<(Span, Terminator)> {
        let mark = self.set.pending().nodes.len();
        while self.peek_non_space().kind != TokenKind::Eof {
            match self.text_or_action()? {
                Parsed::Node(node) => self.set.pending().nodes.push(node),
                Parsed::Terminator(end) => return Ok((self.set.end_nodes(mark), end)),
            }
        }
        Err(self.error("unexpected EOF"))
    }

    fn text_or_action(&mut self) -> Fallible<Parsed> {
        let token = self.next_non_space();
        match token.kind {
            TokenKind::Text => Ok(Parsed::Node(Node::Text(token.span()))),
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

    pub(super) fn template_name(&mut self, token: &Token<'_>, context: &str) -> Fallible<Arc<str>> {
        if !matches!(token.kind, TokenKind::String | TokenKind::RawString) {
            return Err(self.unexpected(token, context));
        }
        let name = match token.plain() {
            Some(name) => Cow::Borrowed(name),
            None => unquote(&token.lossy()).ok_or_else(|| self.error("invalid syntax"))?.into(),
        };
        Ok(String::from_utf8_lossy(&name).into())
    }

    /// Parses what follows `block`: a definition and its use.
    pub(super) fn block(&mut self) -> Fallible<Node> {
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
        let name = self.set.add_template(name);
        Ok(Node::Template { pos: token.pos, name, pipe: Some(pipe) })
    }
}

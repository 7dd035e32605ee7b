//! Parses actions: control structures, pipelines and operands.

#![expect(clippy::wildcard_enum_match_arm, reason = "all tokens that do not fit are one mistake")]

use std::sync::Arc;

use golang::strconv::quote;

use super::ast::{Branch, Command, Expr, Fields, Node, Pipe};
use super::error::ParseError;
use super::number::Number;
use super::parser::{Parsed, Parser, Terminator};
use super::pool::taken;
use super::token::TokenKind;
use super::unquote::unquote;

impl Parser<'_, '_> {
    pub(super) fn action(&mut self) -> Result<Parsed, ParseError> {
        let token = self.next_non_space();
        Ok(Parsed::Node(match token.kind {
            TokenKind::Block => self.block()?,
            TokenKind::Break => self.jump("{{break}}", Node::Break)?,
            TokenKind::Continue => self.jump("{{continue}}", Node::Continue)?,
            TokenKind::Else => {
                if !matches!(self.peek_non_space().kind, TokenKind::If | TokenKind::With) {
                    self.expect(TokenKind::RightDelim, "else")?;
                }
                return Ok(Parsed::Terminator(Terminator::Else));
            }
            TokenKind::End => {
                self.expect(TokenKind::RightDelim, "end")?;
                return Ok(Parsed::Terminator(Terminator::End));
            }
            TokenKind::If => Node::If(Box::new(self.branch("if")?)),
            TokenKind::Range => Node::Range(Box::new(self.branch("range")?)),
            TokenKind::Template => self.template()?,
            TokenKind::With => Node::With(Box::new(self.branch("with")?)),
            _ => {
                self.backup();
                Node::Action(Box::new(self.pipeline("command", TokenKind::RightDelim)?))
            }
        }))
    }

    fn jump(&mut self, word: &str, node: Node) -> Result<Node, ParseError> {
        self.expect(TokenKind::RightDelim, word)?;
        if self.range_depth == 0 {
            return Err(self.error(format!("{word} outside {{{{range}}}}")));
        }
        Ok(node)
    }

    fn template(&mut self) -> Result<Node, ParseError> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let mut pipe = None;
        if self.next_non_space().kind != TokenKind::RightDelim {
            self.backup();
            pipe = Some(Box::new(self.pipeline(CONTEXT, TokenKind::RightDelim)?));
        }
        Ok(Node::Template { pos: token.pos, name, pipe })
    }

    /// Parses what follows `if`, `with` or `range`.
    fn branch(&mut self, word: &str) -> Result<Branch, ParseError> {
        self.enter()?;
        let scope = self.variables.len();
        let pipe = self.pipeline(word, TokenKind::RightDelim)?;
        let ranging = usize::from(word == "range");
        self.range_depth += ranging;
        let (then, end) = self.list()?;
        self.range_depth -= ranging;
        let mut otherwise = None;
        if end == Terminator::Else {
            otherwise = Some(match self.peek().kind {
                TokenKind::If if word == "if" => {
                    self.next();
                    [Node::If(Box::new(self.branch("if")?))].into()
                }
                TokenKind::With if word == "with" => {
                    self.next();
                    [Node::With(Box::new(self.branch("with")?))].into()
                }
                _ => {
                    let (nodes, end) = self.list()?;
                    if end != Terminator::End {
                        return Err(self.error(format!("expected end; found {}", end.shown())));
                    }
                    nodes
                }
            });
        }
        self.variables.truncate(scope);
        self.leave();
        Ok(Branch { pipe, then, otherwise })
    }

    /// Parses declarations and commands up to `end`.
    pub(super) fn pipeline(&mut self, context: &str, end: TokenKind) -> Result<Pipe, ParseError> {
        let pos = self.peek_non_space().pos;
        let mut pipe = Pipe { pos, assign: false, variables: Vec::new(), commands: [].into() };
        self.declarations(context, &mut pipe)?;
        let begin = self.pool.commands.len();
        loop {
            let token = self.next_non_space();
            if token.kind == end {
                pipe.commands = taken(&mut self.pool.commands, begin);
                self.check_pipeline(&pipe, context)?;
                return Ok(pipe);
            }
            if !starts_operand(token.kind) {
                return Err(self.unexpected(&token, context));
            }
            self.backup();
            let command = self.command()?;
            self.pool.commands.push(command);
        }
    }

    fn declarations(&mut self, context: &str, pipe: &mut Pipe) -> Result<(), ParseError> {
        loop {
            let variable = self.peek_non_space();
            if variable.kind != TokenKind::Variable {
                return Ok(());
            }
            self.next();
            // Whether a space follows decides how far the lookahead goes back.
            let after = self.peek();
            let next = self.peek_non_space();
            let name = |text| -> Arc<str> { String::from_utf8_lossy(text).into() };
            if matches!(next.kind, TokenKind::Assign | TokenKind::Declare) {
                pipe.assign = next.kind == TokenKind::Assign;
                self.next_non_space();
                let name = name(variable.text);
                pipe.variables.push(Arc::clone(&name));
                self.variables.push(name);
                return Ok(());
            }
            if next.kind == TokenKind::Char && next.text == b"," {
                self.next_non_space();
                let name = name(variable.text);
                pipe.variables.push(Arc::clone(&name));
                self.variables.push(name);
                if context != "range" || pipe.variables.len() > 1 {
                    return Err(self.error(format!("too many declarations in {context}")));
                }
                let third = self.peek_non_space().kind;
                if !matches!(third, TokenKind::Variable | TokenKind::RightDelim | TokenKind::RightParen) {
                    return Err(self.error("range can only initialize variables"));
                }
                continue;
            }
            if after.kind == TokenKind::Space {
                self.backup3(variable, after);
            } else {
                self.backup2(variable);
            }
            return Ok(());
        }
    }

    fn check_pipeline(&self, pipe: &Pipe, context: &str) -> Result<(), ParseError> {
        if pipe.commands.is_empty() {
            return Err(self.error(format!("missing value for {context}")));
        }
        for (index, command) in pipe.commands.iter().enumerate().skip(1) {
            if matches!(
                command.first,
                Expr::Bool { .. }
                    | Expr::Dot { .. }
                    | Expr::Nil { .. }
                    | Expr::Number { .. }
                    | Expr::Text { .. }
            ) {
                let stage = index + 1;
                return Err(self.error(format!("non executable command in pipeline stage {stage}")));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Result<Command, ParseError> {
        let pos = self.peek_non_space().pos;
        let (mut first, begin) = (None, self.pool.arguments.len());
        loop {
            self.peek_non_space();
            match self.operand()? {
                Some(operand) if first.is_none() => first = Some(operand),
                operand => self.pool.arguments.extend(operand),
            }
            let token = self.next();
            match token.kind {
                TokenKind::Space => continue,
                TokenKind::RightDelim | TokenKind::RightParen => self.backup(),
                TokenKind::Pipe => {}
                _ => return Err(self.unexpected(&token, "operand")),
            }
            break;
        }
        match first {
            Some(first) => Ok(Command { pos, first, args: taken(&mut self.pool.arguments, begin) }),
            None => Err(self.error("empty command")),
        }
    }

    fn operand(&mut self) -> Result<Option<Expr>, ParseError> {
        let Some(term) = self.term()? else {
            return Ok(None);
        };
        let next = self.peek();
        if next.kind != TokenKind::Field {
            return Ok(Some(term));
        }
        // Fields behind a field move the place that errors name.
        let pos = next.pos;
        let mut end = pos;
        while self.peek().kind == TokenKind::Field {
            let field = self.next();
            end = field.pos + field.text.len();
        }
        Ok(Some(match term {
            Expr::Field { pos: start, .. } => Expr::Field { pos, fields: self.path(start, end) },
            Expr::Variable { name, .. } => Expr::Variable { pos, name, fields: self.path(pos, end) },
            Expr::Bool { value, .. } => return Err(self.no_fields(if value { "true" } else { "false" })),
            Expr::Dot { .. } => return Err(self.no_fields(".")),
            Expr::Nil { .. } => return Err(self.no_fields("nil")),
            Expr::Number { number, .. } => return Err(self.no_fields(&number.text)),
            Expr::Text { pos, length, .. } => {
                let quoted = self.source(pos, pos + length);
                return Err(self.no_fields(&String::from_utf8_lossy(quoted)));
            }
            Expr::Chain { .. } | Expr::Function { .. } | Expr::Pipe(_) => {
                Expr::Chain { pos, base: Box::new(term), fields: self.path(pos, end) }
            }
        }))
    }

    /// Returns the names of a path that stands there.
    fn path(&mut self, start: usize, end: usize) -> Fields {
        let text = self.source(start, end);
        self.pool.path(text)
    }

    fn no_fields(&self, term: &str) -> ParseError {
        self.error(format!("unexpected . after term {}", quote(term.as_bytes())))
    }

    fn term(&mut self) -> Result<Option<Expr>, ParseError> {
        let token = self.next_non_space();
        let pos = token.pos;
        // Most tokens are of a kind that says everything.
        let text = || String::from_utf8_lossy(token.text);
        Ok(Some(match token.kind {
            TokenKind::Identifier => match self.pool.function(token.text) {
                Some(callee) => Expr::Function { pos, callee },
                None => return Err(self.error(format!("function {} not defined", quote(text().as_bytes())))),
            },
            TokenKind::Dot => Expr::Dot { pos },
            TokenKind::Nil => Expr::Nil { pos },
            TokenKind::Variable => self.variable(pos, token.text)?,
            TokenKind::Field => Expr::Field { pos, fields: self.pool.path(token.text) },
            TokenKind::Bool => Expr::Bool { pos, value: *token.text == *b"true" },
            TokenKind::CharConstant => self.number(pos, Number::from_char(&text()))?,
            TokenKind::Complex => self.number(pos, Number::from_complex(&text()))?,
            TokenKind::Number => self.number(pos, Number::parse(&text()))?,
            TokenKind::LeftParen => {
                self.enter()?;
                let pipe = self.pipeline("parenthesized pipeline", TokenKind::RightParen)?;
                self.leave();
                Expr::Pipe(Box::new(pipe))
            }
            TokenKind::String | TokenKind::RawString => {
                let value = self.pool.literals.of(token.text, || unquote(&text()).map(Arc::from).ok_or(()));
                let value = value.map_err(|()| self.error("invalid syntax"))?;
                Expr::Text { pos, length: token.text.len(), text: value }
            }
            _ => {
                self.backup();
                return Ok(None);
            }
        }))
    }

    fn number(&self, pos: usize, number: Result<Number, String>) -> Result<Expr, ParseError> {
        match number {
            Ok(number) => Ok(Expr::Number { pos, number: Box::new(number) }),
            Err(message) => Err(self.error(message)),
        }
    }

    fn variable(&self, pos: usize, name: &[u8]) -> Result<Expr, ParseError> {
        let name = String::from_utf8_lossy(name);
        match self.variables.iter().find(|variable| ***variable == *name) {
            Some(variable) => {
                Ok(Expr::Variable { pos, name: Arc::clone(variable), fields: Fields::default() })
            }
            None => Err(self.error(format!("undefined variable {}", quote(name.as_bytes())))),
        }
    }
}

fn starts_operand(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Bool
            | TokenKind::CharConstant
            | TokenKind::Complex
            | TokenKind::Dot
            | TokenKind::Field
            | TokenKind::Identifier
            | TokenKind::Number
            | TokenKind::Nil
            | TokenKind::RawString
            | TokenKind::String
            | TokenKind::Variable
            | TokenKind::LeftParen
    )
}

//! Parses actions: control structures, pipelines and operands.

#![expect(clippy::wildcard_enum_match_arm, reason = "all tokens that do not fit are one mistake")]

use golang::strconv::quote;

use super::ast::{Branch, Command, Expr, Node, Pipe, Span, Variables};
use super::builtins;
use super::number::Number;
use super::parser::{Failure, Fallible, Parsed, Parser, Terminator};
use super::token::TokenKind;
use super::unquote::unquote;

impl<'a> Parser<'_, 'a> {
    pub(super) fn action(&mut self) -> Fallible<Parsed> {
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
            TokenKind::If => Node::If(self.branch("if")?),
            TokenKind::Range => Node::Range(self.branch("range")?),
            TokenKind::Template => self.template()?,
            TokenKind::With => Node::With(self.branch("with")?),
            _ => {
                self.backup();
                Node::Action(self.pipeline("command", TokenKind::RightDelim)?)
            }
        }))
    }

    fn jump(&mut self, word: &str, node: Node) -> Fallible<Node> {
        self.expect(TokenKind::RightDelim, word)?;
        if self.range_depth == 0 {
            return Err(self.error(format!("{word} outside {{{{range}}}}")));
        }
        Ok(node)
    }

    fn template(&mut self) -> Fallible<Node> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let mut pipe = None;
        if self.next_non_space().kind != TokenKind::RightDelim {
            self.backup();
            pipe = Some(self.pipeline(CONTEXT, TokenKind::RightDelim)?);
        }
        let name = self.set.add_template(name);
        Ok(Node::Template { pos: token.pos, name, pipe })
    }

    /// Parses what follows `if`, `with` or `range`; returns the place of the branch.
    fn branch(&mut self, word: &str) -> Fallible<u32> {
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
                    let inner = Node::If(self.branch("if")?);
                    self.set.lone_node(inner)
                }
                TokenKind::With if word == "with" => {
                    self.next();
                    let inner = Node::With(self.branch("with")?);
                    self.set.lone_node(inner)
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
        Ok(self.set.add_branch(Branch { pipe, then, otherwise }))
    }

    /// Parses declarations and commands up to `end`.
    pub(super) fn pipeline(&mut self, context: &str, end: TokenKind) -> Fallible<Pipe> {
        let pos = self.peek_non_space().pos;
        let mut pipe = Pipe { pos, assign: false, variables: Variables::NONE, commands: Span::default() };
        self.declarations(context, &mut pipe)?;
        let mark = self.set.pending().commands.len();
        loop {
            let token = self.next_non_space();
            if token.kind == end {
                self.check_pipeline(mark, context)?;
                pipe.commands = self.set.end_commands(mark);
                return Ok(pipe);
            }
            if !starts_operand(token.kind) {
                return Err(self.unexpected(&token, context));
            }
            self.backup();
            let command = self.command()?;
            self.set.pending().commands.push(command);
        }
    }

    fn declarations(&mut self, context: &str, pipe: &mut Pipe) -> Fallible<()> {
        loop {
            let variable = self.peek_non_space();
            if variable.kind != TokenKind::Variable {
                return Ok(());
            }
            self.next();
            // Whether a space follows decides how far the lookahead goes back.
            let after = self.peek();
            let next = self.peek_non_space();
            let name = self.set.variable(variable.text);
            if matches!(next.kind, TokenKind::Assign | TokenKind::Declare) {
                pipe.assign = next.kind == TokenKind::Assign;
                self.next_non_space();
                pipe.variables.push(name);
                self.variables.push(name);
                return Ok(());
            }
            if next.kind == TokenKind::Char && next.text == b"," {
                self.next_non_space();
                pipe.variables.push(name);
                self.variables.push(name);
                if context != "range" || pipe.variables.names().len() > 1 {
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

    fn check_pipeline(&mut self, mark: usize, context: &str) -> Fallible<()> {
        let mut stage = 0;
        while let Some(command) = self.set.pending().commands.get(mark + stage).copied() {
            stage += 1;
            if stage > 1 && self.set.begins_with_constant(&command) {
                return Err(self.error(format!("non executable command in pipeline stage {stage}")));
            }
        }
        if stage == 0 { Err(self.error(format!("missing value for {context}"))) } else { Ok(()) }
    }

    fn command(&mut self) -> Fallible<Command> {
        let pos = self.peek_non_space().pos;
        let mark = self.set.pending().exprs.len();
        loop {
            self.peek_non_space();
            if let Some(operand) = self.operand()? {
                self.set.pending().exprs.push(operand);
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
        let operands = self.set.end_exprs(mark);
        if operands.is_empty() { Err(self.error("empty command")) } else { Ok(Command { pos, operands }) }
    }

    fn operand(&mut self) -> Fallible<Option<Expr>> {
        let Some(term) = self.term()? else {
            return Ok(None);
        };
        let next = self.peek();
        if next.kind != TokenKind::Field {
            return Ok(Some(term));
        }
        // Names of fields follow each other without a space: they are one piece of the source.
        let mut more = next.span();
        while self.peek().kind == TokenKind::Field {
            more.end = self.next().span().end;
        }
        // Fields behind a field move the place that errors name.
        let pos = next.pos;
        Ok(Some(match term {
            Expr::Field { fields, .. } => Expr::Field { pos, fields: Span { end: more.end, ..fields } },
            Expr::Variable { name, .. } => Expr::Variable { pos, name, fields: more },
            Expr::Bool { value, .. } => return Err(self.no_fields(if value { "true" } else { "false" })),
            Expr::Dot { .. } => return Err(self.no_fields(".")),
            Expr::Nil { .. } => return Err(self.no_fields("nil")),
            Expr::Number { number, .. } => {
                return Err(self.no_fields(self.set.number(number).map_or("", |number| &number.text)));
            }
            Expr::Text { quoted, .. } => {
                let text = self.set.text(quoted);
                return Err(self.no_fields(&String::from_utf8_lossy(text)));
            }
            Expr::Chain { .. } | Expr::Function { .. } | Expr::Pipe(_) => {
                Expr::Chain { pos, base: self.set.add_expr(term), fields: more }
            }
        }))
    }

    fn no_fields(&self, term: &str) -> Failure {
        self.error(format!("unexpected . after term {}", quote(term.as_bytes())))
    }

    fn term(&mut self) -> Fallible<Option<Expr>> {
        let token = self.next_non_space();
        let pos = token.pos;
        Ok(Some(match token.kind {
            TokenKind::Identifier => match builtins::lookup(token.text) {
                Some(callee) => Expr::Function { pos, callee },
                None => return Err(self.error(format!("function {} not defined", quote(token.text)))),
            },
            TokenKind::Dot => Expr::Dot { pos },
            TokenKind::Nil => Expr::Nil { pos },
            TokenKind::Variable => self.variable(pos, token.text)?,
            TokenKind::Field => Expr::Field { pos, fields: token.span() },
            TokenKind::Bool => Expr::Bool { pos, value: token.text == b"true" },
            TokenKind::CharConstant => self.number(pos, Number::from_char(&token.lossy()))?,
            TokenKind::Complex => self.number(pos, Number::from_complex(&token.lossy()))?,
            TokenKind::Number => self.number(pos, Number::parse(&token.lossy()))?,
            TokenKind::LeftParen => {
                self.enter()?;
                let pipe = self.pipeline("parenthesized pipeline", TokenKind::RightParen)?;
                self.leave();
                Expr::Pipe(pipe)
            }
            TokenKind::String | TokenKind::RawString => {
                let text = match token.plain() {
                    Some(_) => None,
                    None => Some(unquote(&token.lossy()).ok_or_else(|| self.error("invalid syntax"))?),
                };
                Expr::Text { pos, quoted: token.span(), text: self.set.add_text(text) }
            }
            _ => {
                self.backup();
                return Ok(None);
            }
        }))
    }

    fn number(&mut self, pos: u32, number: Result<Number, String>) -> Fallible<Expr> {
        match number {
            Ok(number) => Ok(Expr::Number { pos, number: self.set.add_number(number) }),
            Err(message) => Err(self.error(message)),
        }
    }

    fn variable(&mut self, pos: u32, text: &'a [u8]) -> Fallible<Expr> {
        let name = self.set.variable(text);
        if self.variables.contains(&name) {
            Ok(Expr::Variable { pos, name, fields: Span::default() })
        } else {
            Err(self.error(format!("undefined variable {}", quote(text))))
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

//! Cuts a template into tokens.

use golang::strconv::quote;
use golang::unicode::{decode_rune, is_digit, is_letter, is_print};

use super::ast::place;
use super::token::{Token, TokenKind};

const LEFT: &[u8] = b"{{";
const RIGHT: &[u8] = b"}}";

/// The lexer of one source; it makes one token at a time.
pub(super) struct Lexer<'a> {
    input: &'a [u8],
    pos: usize,
    start: usize,
    line: usize,
    start_line: usize,
    paren_depth: usize,
    inside_action: bool,
    /// What is wrong, once something is.
    error: String,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        let error = String::new();
        Self { input, pos: 0, start: 0, line: 1, start_line: 1, paren_depth: 0, inside_action: false, error }
    }

    /// Returns the message of the last error.
    pub(super) fn message(&self) -> &str {
        &self.error
    }

    /// Returns the next token; after the end and after an error, always `Eof`.
    pub(super) fn next_token(&mut self) -> Token<'a> {
        if self.inside_action { self.action() } else { self.text() }
    }

    fn rest(&self) -> &'a [u8] {
        self.input.get(self.pos..).unwrap_or_default()
    }

    fn rest_after(&self, skipped: usize) -> &'a [u8] {
        self.input.get(self.pos + skipped..).unwrap_or_default()
    }

    fn pending(&self) -> &'a [u8] {
        self.input.get(self.start..self.pos).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        decode_rune(self.rest()).map(|(rune, _)| rune)
    }

    fn advance(&mut self) -> Option<char> {
        let (rune, width) = decode_rune(self.rest())?;
        self.pos += width;
        if rune == '\n' {
            self.line += 1;
        }
        Some(rune)
    }

    fn accept(&mut self, valid: &str) -> bool {
        let accepted = self.peek().is_some_and(|rune| valid.contains(rune));
        if accepted {
            self.advance();
        }
        accepted
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    fn emit(&mut self, kind: TokenKind) -> Token<'a> {
        let token =
            Token { kind, pos: place(self.start), line: place(self.start_line), text: self.pending() };
        self.start = self.pos;
        self.start_line = self.line;
        token
    }

    /// Drops what is pending, which was skipped without counting its lines.
    fn skip_pending(&mut self) {
        self.line += count_lines(self.pending());
        self.start = self.pos;
        self.start_line = self.line;
    }

    fn error(&mut self, message: impl Into<String>) -> Token<'a> {
        self.error = message.into();
        let (pos, line) = (place(self.start), place(self.start_line));
        let token = Token { kind: TokenKind::Error, pos, line, text: b"" };
        self.input = &[];
        self.start = 0;
        self.pos = 0;
        self.inside_action = false;
        token
    }

    fn text(&mut self) -> Token<'a> {
        loop {
            let Some(found) = find(self.rest(), LEFT) else {
                self.pos = self.input.len();
                if self.pos > self.start {
                    self.line += count_lines(self.pending());
                    return self.emit(TokenKind::Text);
                }
                return self.emit(TokenKind::Eof);
            };
            if found > 0 {
                self.pos += found;
                let trimmed = if has_left_trim(self.rest_after(LEFT.len())) {
                    trailing_space(self.pending())
                } else {
                    0
                };
                self.pos -= trimmed;
                self.line += count_lines(self.pending());
                let token = self.emit(TokenKind::Text);
                self.pos += trimmed;
                self.skip_pending();
                if !token.text.is_empty() {
                    return token;
                }
            }
            let marker = if has_left_trim(self.rest_after(LEFT.len())) { 2 } else { 0 };
            if !self.rest_after(LEFT.len() + marker).starts_with(b"/*") {
                self.pos += LEFT.len();
                let token = self.emit(TokenKind::LeftDelim);
                self.inside_action = true;
                self.pos += marker;
                self.skip_pending();
                self.paren_depth = 0;
                return token;
            }
            self.pos += LEFT.len() + marker;
            self.skip_pending();
            if let Some(message) = self.skip_comment() {
                return self.error(message);
            }
        }
    }

    /// Skips a comment; returns what is wrong with it.
    fn skip_comment(&mut self) -> Option<&'static str> {
        self.pos += 2;
        let Some(end) = find(self.rest(), b"*/") else {
            return Some("unclosed comment");
        };
        self.pos += end + 2;
        let Some(trim) = self.at_right_delim() else {
            return Some("comment ends before closing delimiter");
        };
        self.pos += RIGHT.len() + if trim { 2 } else { 0 };
        if trim {
            self.pos += leading_space(self.rest());
        }
        self.skip_pending();
        None
    }

    /// Returns whether the right delimiter here trims, if there is one.
    fn at_right_delim(&self) -> Option<bool> {
        if has_right_trim(self.rest()) && self.rest_after(2).starts_with(RIGHT) {
            return Some(true);
        }
        self.rest().starts_with(RIGHT).then_some(false)
    }

    fn right_delim(&mut self) -> Token<'a> {
        let trim = self.at_right_delim() == Some(true);
        if trim {
            self.pos += 2;
            self.skip_pending();
        }
        self.pos += RIGHT.len();
        let token = self.emit(TokenKind::RightDelim);
        if trim {
            self.pos += leading_space(self.rest());
            self.skip_pending();
        }
        self.inside_action = false;
        token
    }

    fn action(&mut self) -> Token<'a> {
        if let Some(token) = self.common() {
            return token;
        }
        if self.at_right_delim().is_some() {
            if self.paren_depth == 0 {
                return self.right_delim();
            }
            return self.error("unclosed left paren");
        }
        let Some(rune) = self.peek() else {
            return self.error("unclosed action");
        };
        if is_space(rune) {
            return self.space();
        }
        if rune == '+' || rune == '-' || rune.is_ascii_digit() {
            return self.number();
        }
        if is_alphanumeric(rune) {
            return self.identifier();
        }
        self.advance();
        match rune {
            '=' => self.emit(TokenKind::Assign),
            ':' => {
                if self.advance() == Some('=') {
                    self.emit(TokenKind::Declare)
                } else {
                    self.error("expected :=")
                }
            }
            '`' => self.raw_string(),
            '\'' => self.quoted(b'\'', TokenKind::CharConstant, "unterminated character constant"),
            '.' => {
                // At the very end a point is taken for a number, too.
                self.pos -= 1;
                self.number()
            }
            ')' => {
                let Some(depth) = self.paren_depth.checked_sub(1) else {
                    return self.error("unexpected right paren");
                };
                self.paren_depth = depth;
                self.emit(TokenKind::RightParen)
            }
            _ if rune.is_ascii() && is_print(rune) => self.emit(TokenKind::Char),
            _ => self.error(format!("unrecognized character in action: {}", unicode(rune))),
        }
    }

    /// Returns the token here if it is one of those that are told by their first byte, as most are.
    fn common(&mut self) -> Option<Token<'a>> {
        match self.rest() {
            [b' ', behind, ..] if !is_space_byte(*behind) && *behind != b'-' => {
                self.pos += 1;
                Some(self.emit(TokenKind::Space))
            }
            [b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => Some(self.identifier()),
            [b'.', behind, ..] if !behind.is_ascii_digit() => {
                self.pos += 1;
                Some(self.field_or_variable(TokenKind::Field))
            }
            [b'$', ..] => {
                self.pos += 1;
                Some(self.field_or_variable(TokenKind::Variable))
            }
            [b'"', ..] => {
                self.pos += 1;
                Some(self.quoted(b'"', TokenKind::String, "unterminated quoted string"))
            }
            [b'|', ..] => {
                self.pos += 1;
                Some(self.emit(TokenKind::Pipe))
            }
            [b'(', ..] => {
                self.pos += 1;
                self.paren_depth += 1;
                Some(self.emit(TokenKind::LeftParen))
            }
            _ => None,
        }
    }

    fn space(&mut self) -> Token<'a> {
        let count = leading_space(self.rest());
        self.pos += count;
        self.line += count_lines(self.pending());
        // The last space may belong to a trimming delimiter.
        if self.rest().first() == Some(&b'-') {
            let last = self.input.get(self.pos - 1..).unwrap_or_default();
            if has_right_trim(last) && last.get(2..).unwrap_or_default().starts_with(RIGHT) {
                self.pos -= 1;
                if last.first() == Some(&b'\n') {
                    self.line -= 1;
                }
                if count == 1 {
                    return self.right_delim();
                }
            }
        }
        self.emit(TokenKind::Space)
    }

    fn identifier(&mut self) -> Token<'a> {
        self.word();
        if let Some(error) = self.bad_terminator() {
            return error;
        }
        let word = self.pending();
        match TokenKind::keyword(word) {
            Some(keyword) => self.emit(keyword),
            None if word == b"true" || word == b"false" => self.emit(TokenKind::Bool),
            None => self.emit(TokenKind::Identifier),
        }
    }

    /// Goes to the end of a name, which almost always is one of ASCII.
    fn word(&mut self) {
        loop {
            let rest = self.rest();
            let end = rest.iter().position(|byte| !is_word_byte(*byte)).unwrap_or(rest.len());
            self.pos += end;
            if rest.get(end).is_none_or(u8::is_ascii) || !self.peek().is_some_and(is_alphanumeric) {
                return;
            }
            self.advance();
        }
    }

    /// Lexes what follows `.` or `$`.
    fn field_or_variable(&mut self, kind: TokenKind) -> Token<'a> {
        if self.at_terminator() {
            return self.emit(if kind == TokenKind::Variable { kind } else { TokenKind::Dot });
        }
        self.word();
        match self.bad_terminator() {
            Some(error) => error,
            None => self.emit(kind),
        }
    }

    fn bad_terminator(&mut self) -> Option<Token<'a>> {
        if self.at_terminator() {
            return None;
        }
        let rune = self.peek().unwrap_or_default();
        Some(self.error(format!("bad character {}", unicode(rune))))
    }

    fn at_terminator(&self) -> bool {
        match self.rest() {
            [] | [b' ' | b'\t' | b'\r' | b'\n' | b'.' | b',' | b'|' | b':' | b')' | b'(', ..] => true,
            rest => rest.starts_with(RIGHT),
        }
    }

    fn quoted(&mut self, delimiter: u8, kind: TokenKind, message: &'static str) -> Token<'a> {
        loop {
            let is_end = |byte: &u8| matches!(*byte, b'\\' | b'\n') || *byte == delimiter;
            let Some(found) = self.rest().iter().position(is_end) else {
                return self.error(message);
            };
            self.pos += found;
            match self.rest() {
                [b'\n', ..] | [b'\\'] | [b'\\', b'\n', ..] => return self.error(message),
                // What is more of the character than its first byte is none of those that end the loop.
                [b'\\', ..] => self.pos += 2,
                _ => {
                    self.pos += 1;
                    return self.emit(kind);
                }
            }
        }
    }

    fn raw_string(&mut self) -> Token<'a> {
        let Some(found) = self.rest().iter().position(|byte| *byte == b'`') else {
            return self.error("unterminated raw quoted string");
        };
        self.pos += found + 1;
        self.line += count_lines(self.pending());
        self.emit(TokenKind::RawString)
    }

    fn number(&mut self) -> Token<'a> {
        if !self.scan_number() {
            return self.bad_number();
        }
        if !matches!(self.peek(), Some('+' | '-')) {
            return self.emit(TokenKind::Number);
        }
        if !self.scan_number() || self.pending().last() != Some(&b'i') {
            return self.bad_number();
        }
        self.emit(TokenKind::Complex)
    }

    fn bad_number(&mut self) -> Token<'a> {
        let message = format!("bad number syntax: {}", quote(self.pending()));
        self.error(message)
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        let (mut decimal, mut hex) = (true, false);
        if self.accept("0") {
            if self.accept("xX") {
                (digits, decimal, hex) = ("0123456789abcdefABCDEF_", false, true);
            } else if self.accept("oO") {
                (digits, decimal) = ("01234567_", false);
            } else if self.accept("bB") {
                (digits, decimal) = ("01_", false);
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        if (decimal && self.accept("eE")) || (hex && self.accept("pP")) {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.advance();
            return false;
        }
        true
    }
}

fn is_space(rune: char) -> bool {
    matches!(rune, ' ' | '\t' | '\r' | '\n')
}

fn is_space_byte(byte: u8) -> bool {
    is_space(char::from(byte))
}

fn is_word_byte(byte: u8) -> bool {
    // Most are small letters.
    byte.is_ascii_lowercase() || byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_alphanumeric(rune: char) -> bool {
    rune == '_' || is_letter(rune) || is_digit(rune)
}

fn has_left_trim(text: &[u8]) -> bool {
    matches!(text, [b'-', space, ..] if is_space_byte(*space))
}

fn has_right_trim(text: &[u8]) -> bool {
    matches!(text, [space, b'-', ..] if is_space_byte(*space))
}

fn trailing_space(text: &[u8]) -> usize {
    text.iter().rev().take_while(|byte| is_space_byte(**byte)).count()
}

fn leading_space(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_space_byte(**byte)).count()
}

fn count_lines(text: &[u8]) -> usize {
    // Numbers of one byte are added many at a time.
    let count = |part: &[u8]| part.iter().fold(0_u8, |count, byte| count + u8::from(*byte == b'\n'));
    text.chunks(usize::from(u8::MAX)).map(|part| usize::from(count(part))).sum()
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    let first = *pattern.first()?;
    let mut from = 0;
    loop {
        let at = from + find_byte(text.get(from..)?, first)?;
        if text.get(at..)?.starts_with(pattern) {
            return Some(at);
        }
        from = at + 1;
    }
}

fn find_byte(text: &[u8], wanted: u8) -> Option<usize> {
    /// How many bytes are compared at the same time.
    const WIDTH: usize = 16;
    // Without a way out, all of them are.
    let has_it = |part: &[u8]| part.iter().fold(0, |found, byte| found | u8::from(*byte == wanted)) > 0;
    let parts = text.chunks_exact(WIDTH).take_while(|part| !has_it(part)).count();
    let at = parts * WIDTH;
    text.get(at..)?.iter().position(|byte| *byte == wanted).map(|found| at + found)
}

/// Returns a character as `%#U` prints it.
fn unicode(rune: char) -> String {
    let code = u32::from(rune);
    if is_print(rune) { format!("U+{code:04X} '{rune}'") } else { format!("U+{code:04X}") }
}

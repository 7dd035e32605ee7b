//! Checking an expression and writing it in the syntax of `regex`.

use std::fmt::Write as _;

use super::class;
use super::error::{ErrorCode, SyntaxError};
use super::escape::{character, consumed, push_literal};

/// How deeply groups may be nested.
const MAX_NESTING: usize = 1_000;

/// How often something may be repeated by a count, counts within counts multiplied.
const MAX_REPEAT: u32 = 1_000;

/// An expression in the syntax of `regex`.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) pattern: String,
    /// The names of the groups, beginning with group 1.
    pub(super) names: Vec<Option<String>>,
}

/// One thing that can be repeated.
struct Atom {
    text: String,
    /// The product of the counts inside.
    weight: u32,
}

/// A group that is being read.
#[derive(Default)]
struct Group {
    open: String,
    /// The finished alternatives, each with a bar behind it.
    done: String,
    atoms: Vec<Atom>,
    /// Flags that were set and stand before the next atom.
    flags: String,
    weight: u32,
}

impl Group {
    fn push(&mut self, text: &str, weight: u32) {
        let text = format!("{}{text}", std::mem::take(&mut self.flags));
        self.weight = self.weight.max(weight);
        self.atoms.push(Atom { text, weight });
    }

    fn end_alternative(&mut self) {
        for atom in self.atoms.drain(..) {
            self.done.push_str(&atom.text);
        }
    }

    fn finish(mut self) -> (String, u32) {
        self.end_alternative();
        (format!("{}{}", self.open, self.done), self.weight)
    }
}

struct Translator<'a> {
    whole: &'a str,
    groups: Vec<Group>,
    current: Group,
    names: Vec<Option<String>>,
}

/// Checks `expression` as Go does and translates it.
pub(super) fn translate(expression: &str) -> Result<Translated, SyntaxError> {
    let mut translator =
        Translator { whole: expression, groups: Vec::new(), current: Group::default(), names: Vec::new() };
    let mut rest = expression;
    // What the last repetition began with; nothing after anything else.
    let mut last_repeat = None;
    while let Some(first) = rest.chars().next() {
        let before = rest;
        let repeats = match first {
            '*' | '+' | '?' => {
                let (operator, after) = rest.split_at_checked(1).unwrap_or((rest, ""));
                rest = translator.repeat(operator, 1, before, after, last_repeat)?;
                true
            }
            '{' if let Some((count, after)) = Count::read(rest) => {
                count.check(consumed(before, after))?;
                rest = translator.repeat(&count.written(), count.weight(), before, after, last_repeat)?;
                true
            }
            _ => {
                rest = translator.item(first, rest)?;
                false
            }
        };
        last_repeat = repeats.then_some(before);
    }
    if !translator.groups.is_empty() {
        return Err(SyntaxError::new(ErrorCode::MissingParen, expression));
    }
    let (pattern, _) = translator.current.finish();
    Ok(Translated { pattern, names: translator.names })
}

impl Translator<'_> {
    /// Reads what is not a repetition.
    fn item<'t>(&mut self, first: char, text: &'t str) -> Result<&'t str, SyntaxError> {
        let after = text.get(first.len_utf8()..).unwrap_or_default();
        match first {
            '(' if after.starts_with('?') => return self.perl_group(text),
            '(' => {
                self.names.push(None);
                self.open("(")?;
            }
            ')' => self.close()?,
            '|' => {
                self.current.end_alternative();
                self.current.done.push('|');
            }
            '^' => self.current.push("(?:^)", 1),
            '$' => self.current.push("(?:$)", 1),
            '.' => self.current.push(".", 1),
            '[' => {
                let (class, rest) = class::bracketed(text)?;
                self.current.push(&class, 1);
                return Ok(rest);
            }
            '\\' => return self.escape(text),
            _ => return Ok(self.literal(text)),
        }
        Ok(after)
    }

    fn literal<'t>(&mut self, text: &'t str) -> &'t str {
        let mut chars = text.chars();
        if let Some(c) = chars.next() {
            self.push_char(c);
        }
        chars.as_str()
    }

    fn push_char(&mut self, c: char) {
        let mut literal = String::new();
        push_literal(&mut literal, c);
        self.current.push(&literal, 1);
    }

    fn escape<'t>(&mut self, text: &'t str) -> Result<&'t str, SyntaxError> {
        let second = text.chars().nth(1).unwrap_or_default();
        let after = text.get(1 + second.len_utf8()..).unwrap_or_default();
        let assertion = match second {
            'A' => r"(?:\A)",
            'z' => r"(?:\z)",
            'b' => r"(?-u:\b)",
            'B' => r"(?-u:\B)",
            'C' => return Err(SyntaxError::new(ErrorCode::Escape, r"\C")),
            'Q' => {
                let (literal, rest) = after.split_once(r"\E").unwrap_or((after, ""));
                literal.chars().for_each(|c| self.push_char(c));
                return Ok(rest);
            }
            _ => "",
        };
        if !assertion.is_empty() {
            self.current.push(assertion, 1);
            return Ok(after);
        }
        if let Some((class, rest)) = class::unicode(text)? {
            self.current.push(&class, 1);
            return Ok(rest);
        }
        if let Some((class, rest)) = class::perl(text) {
            self.current.push(class, 1);
            return Ok(rest);
        }
        let (c, rest) = character(text)?;
        self.push_char(c);
        Ok(rest)
    }

    fn open(&mut self, open: &str) -> Result<(), SyntaxError> {
        if self.groups.len() >= MAX_NESTING {
            return Err(SyntaxError::new(ErrorCode::NestingDepth, self.whole));
        }
        let group = Group { open: open.to_owned(), ..Group::default() };
        self.groups.push(std::mem::replace(&mut self.current, group));
        Ok(())
    }

    fn close(&mut self) -> Result<(), SyntaxError> {
        let Some(outer) = self.groups.pop() else {
            return Err(SyntaxError::new(ErrorCode::UnexpectedParen, self.whole));
        };
        let (text, weight) = std::mem::replace(&mut self.current, outer).finish();
        self.current.push(&format!("{text})"), weight);
        Ok(())
    }

    /// Reads `(?P<name>`, `(?<name>`, `(?i)` or `(?i:`.
    fn perl_group<'t>(&mut self, text: &'t str) -> Result<&'t str, SyntaxError> {
        let named = text.strip_prefix("(?P<").filter(|rest| !rest.is_empty());
        if let Some(rest) = named.or_else(|| text.strip_prefix("(?<").filter(|rest| !rest.is_empty())) {
            let Some((name, rest)) = rest.split_once('>') else {
                return Err(SyntaxError::new(ErrorCode::NamedCapture, text));
            };
            if name.is_empty() || !name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
                return Err(SyntaxError::new(ErrorCode::NamedCapture, consumed(text, rest)));
            }
            self.names.push(Some(name.to_owned()));
            self.open("(")?;
            return Ok(rest);
        }
        let mut chars = text.get(2..).unwrap_or_default().chars();
        let (mut flags, mut negative, mut saw_flag) = (String::new(), false, false);
        while let Some(c) = chars.next() {
            match c {
                'i' | 'm' | 's' | 'U' => saw_flag = true,
                '-' if !negative => (negative, saw_flag) = (true, false),
                ':' if !negative || saw_flag => {
                    self.open(&format!("(?{flags}:"))?;
                    return Ok(chars.as_str());
                }
                ')' if !negative || saw_flag => {
                    if !flags.is_empty() {
                        let _ = write!(self.current.flags, "(?{flags})");
                    }
                    return Ok(chars.as_str());
                }
                _ => {
                    let expression = consumed(text, chars.as_str());
                    return Err(SyntaxError::new(ErrorCode::PerlSyntax, expression));
                }
            }
            // `regex` refuses a flag that is given twice.
            if !flags.contains(c) {
                flags.push(c);
            }
        }
        Err(SyntaxError::new(ErrorCode::PerlSyntax, text))
    }

    /// Repeats the last atom; `after` is what follows the operator.
    fn repeat<'t>(
        &mut self,
        operator: &str,
        times: u32,
        before: &'t str,
        after: &'t str,
        last_repeat: Option<&str>,
    ) -> Result<&'t str, SyntaxError> {
        let (lazy, rest) = match after.strip_prefix('?') {
            Some(rest) => ("?", rest),
            None => ("", after),
        };
        if let Some(last) = last_repeat {
            return Err(SyntaxError::new(ErrorCode::RepeatOperator, consumed(last, rest)));
        }
        let written = consumed(before, rest);
        let Some(atom) = self.current.atoms.last_mut() else {
            return Err(SyntaxError::new(ErrorCode::MissingRepeatArgument, written));
        };
        atom.weight = atom.weight.saturating_mul(times.max(1));
        if atom.weight > MAX_REPEAT && times > 1 {
            return Err(SyntaxError::new(ErrorCode::RepeatSize, written));
        }
        self.current.weight = self.current.weight.max(atom.weight);
        atom.text.push_str(operator);
        atom.text.push_str(lazy);
        Ok(rest)
    }
}

/// A repetition by count; nothing as the maximum is no limit.
struct Count {
    min: Option<u32>,
    max: Option<u32>,
    open: bool,
}

impl Count {
    /// Reads `{2}`, `{2,}` or `{2,3}`; everything else is not a repetition.
    fn read(text: &str) -> Option<(Self, &str)> {
        let (min, rest) = number(text.strip_prefix('{')?)?;
        let Some(after) = rest.strip_prefix(',') else {
            let count = Self { min, max: min, open: false };
            return Some((count, rest.strip_prefix('}')?));
        };
        if let Some(rest) = after.strip_prefix('}') {
            return Some((Self { min, max: None, open: true }, rest));
        }
        let (max, rest) = number(after)?;
        Some((Self { min, max, open: false }, rest.strip_prefix('}')?))
    }

    fn check(&self, expression: &str) -> Result<(), SyntaxError> {
        let in_range = |n: Option<u32>| n.is_some_and(|n| n <= MAX_REPEAT);
        let fits = in_range(self.min) && (self.open || (in_range(self.max) && self.min <= self.max));
        if fits { Ok(()) } else { Err(SyntaxError::new(ErrorCode::RepeatSize, expression)) }
    }

    fn written(&self) -> String {
        let min = self.min.unwrap_or_default();
        match self.max {
            Some(max) => format!("{{{min},{max}}}"),
            None => format!("{{{min},}}"),
        }
    }

    fn weight(&self) -> u32 {
        self.max.or(self.min).unwrap_or_default()
    }
}

/// Reads a number without leading zeros; one that is far too great is `Some(None)`.
fn number(text: &str) -> Option<(Option<u32>, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().ok(), rest))
}

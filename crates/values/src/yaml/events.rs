//! The parser's events, and what the parser cannot do by itself.

use std::io::{BufRead, BufReader, Chain};
use std::panic::{AssertUnwindSafe, catch_unwind};

use libyaml_safer::{Encoding, Event, EventData, Parser, ScalarStyle};

use super::error::{Position, YamlError, YamlProblem};

/// What the scanner says of a quoted text without an end.
const UNEXPECTED_END: &str = "found unexpected end of stream";

/// What is wrong with a line that is no entry of a mapping.
const NO_COLON: &str = "could not find expected ':'";

/// How much of a text the parser is given at a time, in bytes: it makes a list of characters of that, which takes four times
/// as much.
const BUFFER: usize = 16 << 10;

/// The events of a text, or of a stream that is read as far as the parser needs it.
pub(super) struct Events<'t, R = BufReader<&'t [u8]>> {
    parser: Parser<Chain<R, &'static [u8]>>,
    /// The text; empty for a stream.
    text: &'t str,
    /// The text does not end with a line break, and the parser was given one.
    completed: bool,
    /// Where the last event ended.
    reached: Position,
}

impl<'t> Events<'t> {
    /// Returns the events of a text.
    pub(super) fn new(text: &'t str) -> Self {
        // The parser panics at a block scalar that ends with the text.
        let completed = !text.ends_with('\n');
        let line_break: &'static [u8] = if completed { b"\n" } else { b"" };
        // It takes any first character from U+F000 on for a bad byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self {
            parser: parser(BufReader::with_capacity(BUFFER, text.as_bytes()), line_break),
            text,
            completed,
            reached: Position::START,
        }
    }
}

impl<R: BufRead> Events<'static, R> {
    /// Returns the events of a stream. A block scalar at its end has a line break, whether one is written there or not.
    pub(super) fn of_stream(stream: R) -> Self {
        Self { parser: parser(stream, b"\n"), text: "", completed: false, reached: Position::START }
    }
}

impl<R: BufRead> Events<'_, R> {
    /// Returns the next event; behind the last one, the end of the stream.
    pub(super) fn next(&mut self) -> Result<Event, YamlError> {
        // The library panics on a few broken texts, as `[!a,]`. Nobody reads on
        // behind an error, so the state that it leaves does not matter.
        let Ok(parsed) = catch_unwind(AssertUnwindSafe(|| self.parser.parse())) else {
            let problem = "could not find the end of a quoted text or of a tag";
            let go = format!("line {}: {problem}", self.reached.line);
            return Err(YamlProblem::Syntax { problem: problem.to_owned(), go }.at(self.reached));
        };
        let mut event = parsed.map_err(|error| {
            let mut position = error.problem_mark().map_or_else(|| self.first_unreadable(), Position::from);
            // A quoted text without an end ends where the text does, not behind the line break
            // that was put there.
            let is_behind = self.completed
                && (error.problem() == UNEXPECTED_END || self.ends_in_long_text(&error))
                && error.problem_mark().is_some_and(|mark| mark.index > self.text.len() as u64);
            if is_behind {
                position.line = position.line.saturating_sub(1).max(1);
            }
            let problem = match error.context() {
                Some(context) => format!("{} {context}", error.problem()),
                None => error.problem().to_owned(),
            };
            let go = super::error::go_problem(&error, is_behind);
            YamlProblem::Syntax { problem, go }.at(position)
        })?;
        self.reached = event.end_mark.into();
        if self.completed
            && event.end_mark.index >= self.text.len() as u64
            && let EventData::Scalar { value, style: ScalarStyle::Literal | ScalarStyle::Folded, .. } =
                &mut event.data
        {
            self.take_back(event.start_mark.index, value);
        }
        Ok(event)
    }

    /// Returns where the first character is that YAML does not allow; in a stream, where the last event ended.
    fn first_unreadable(&self) -> Position {
        if self.text.is_empty() { self.reached } else { first_unreadable(self.text) }
    }

    /// Reports whether what should be a key is a text of several lines at the end of all: that
    /// it is no key is then found before the end of the last line is looked at.
    fn ends_in_long_text(&self, error: &libyaml_safer::Error) -> bool {
        let last = self.text.matches('\n').count() as u64;
        error.problem() == NO_COLON && error.context_mark().is_some_and(|mark| mark.line < last)
    }

    /// Takes the line break that was put behind the text out of the block scalar
    /// which begins at byte `start` and reaches there.
    fn take_back(&self, start: u64, value: &mut String) {
        let header = usize::try_from(start).ok().and_then(|start| self.text.get(start..));
        let is_header_only = header.is_some_and(|header| !header.contains('\n'));
        let keeps = header.is_some_and(|header| {
            let mut indicators = header.chars().skip(1).take(2);
            indicators.any(|indicator| indicator == '+')
        });
        let last_line = self.text.rsplit('\n').next().unwrap_or_default();
        let ends_with_content = if last_line.trim_matches(' ').is_empty() {
            // Spaces are content where they reach further in than the block.
            let written = value.strip_suffix('\n').and_then(|value| value.rsplit('\n').next());
            written.is_some_and(|written| written.ends_with(' ') && written.trim_matches(' ').is_empty())
        } else {
            true
        };
        if (keeps || ends_with_content) && !is_header_only && value.ends_with('\n') {
            value.pop();
        }
    }
}

/// Returns a parser of a text and of what is put behind it.
fn parser<R: BufRead>(text: R, behind: &'static [u8]) -> Parser<Chain<R, &'static [u8]>> {
    let mut parser = Parser::new();
    parser.set_encoding(Encoding::Utf8);
    parser.set_input(text.chain(behind));
    parser
}

/// Returns where the first character is that YAML does not allow.
fn first_unreadable(text: &str) -> Position {
    let mut position = Position::START;
    for character in text.chars() {
        match character {
            '\n' => position = Position { line: position.line + 1, column: 1 },
            '\t' | '\r' | '\u{20}'..='\u{7e}' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'.. => {
                position.column += 1;
            }
            _ => break,
        }
    }
    position
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::yaml::parse;

    #[test]
    fn a_block_may_end_without_a_line_break() {
        for (text, expected) in [
            ("a: |\n  x", json!({"a": "x"})),
            ("a: |+\n  é", json!({"a": "é"})),
            ("a: >\n  x\n  y", json!({"a": "x y"})),
            ("a: |\n  x\n\n   ", json!({"a": "x\n\n "})),
            ("a: |\n  x\n   ", json!({"a": "x\n "})),
            ("a: |", json!({"a": ""})),
            ("a: |+", json!({"a": ""})),
            ("a: |-\n  x", json!({"a": "x"})),
            ("a: |\n  x\nb: |2 # c\n  y", json!({"a": "x\n", "b": "y"})),
            ("a: |\n  x\n# c", json!({"a": "x\n"})),
            ("a: |\n  x\nb: z", json!({"a": "x\n", "b": "z"})),
        ] {
            assert_eq!(parse(text).unwrap(), expected, "{text:?}");
        }
    }
}
